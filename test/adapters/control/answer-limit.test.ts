import { writeFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { once } from 'node:events'
import net from 'node:net'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { answerMs } from '../../../src/adapters/control/answer-limit.js'
import { connectControl } from '../../../src/adapters/control/client.js'
import { startControlServer } from '../../../src/adapters/control/server.js'
import { asNodeError, type NodeError } from '../../../src/kit/errors.js'
import { AsyncQueue } from '../../../src/kit/queue.js'
import { FakeNodeApi } from '../../contracts/node-api-fake.js'
import { tempDir } from '../../support/tmp.js'

/** A socket that takes every request and never answers, as of a stopped process. */
async function muteSocket(t: Assert): Promise<string> {
  const dir = path.join(await tempDir(t), 'run')
  await mkdir(dir, { mode: 0o700 })
  const socket = path.join(dir, 's')
  const held = new Set<net.Socket>()
  const server = net.createServer((connection) => {
    held.add(connection)
    connection.on('error', () => {})
  })
  server.listen(socket)
  await once(server, 'listening')
  t.teardown(async () => {
    for (const one of held) one.destroy()
    server.close()
    await once(server, 'close')
  })
  return socket
}

function dropped(): never {
  throw new Error('nothing is pushed')
}

async function failureOf(asked: Promise<unknown>): Promise<NodeError> {
  return await asked.then(
    () => {
      throw new Error('it was answered')
    },
    (error: unknown) => asNodeError(error)
  )
}

test('the time of the caller reaches the node, and any other header counts as none', async (t: Assert) => {
  const dir = path.join(await tempDir(t), 'run')
  const seen: (number | undefined)[] = []
  const fake = new FakeNodeApi()
  const call: typeof fake.call = async (name, params, options) => {
    seen.push((options as { timeoutMs?: number }).timeoutMs)
    return await fake.call(name, params, options)
  }
  await mkdir(dir, { mode: 0o700 })
  const socket = path.join(dir, 's')
  const server = await startControlServer({
    path: socket,
    tier: () => 0,
    apiFor: () => ({ call, watch: fake.watch.bind(fake) })
  })
  t.teardown(() => server.close())
  for (const timeoutMs of [1, 90_000, 30 * 86_400_000])
    await connectControl(socket, () => null).call('node.info', {}, { timeoutMs })
  t.alike(seen.splice(0), [1, 90_000, 30 * 86_400_000])
  await connectControl(socket).call('node.info', {})
  for (const timeoutMs of [0, -5, 1.5, 1e12])
    await connectControl(socket, () => null).call('node.info', {}, { timeoutMs })
  t.alike(
    seen,
    Array.from({ length: 5 }, () => undefined)
  )
  t.is(answerMs('node.status', {}, 200), 200, 'a read from memory has no wait of the node in it')
  t.is(answerMs('documents.create', {}, 200), 1200, 'the error of the node comes first')
})

test('a call that a stuck node does not answer is TIMEOUT and names the process to end', async (t: Assert) => {
  const socket = await muteSocket(t)
  const api = connectControl(socket, () => 20)
  const unknown = await failureOf(api.call('node.status', {}))
  t.is(unknown.code, 'TIMEOUT')
  t.is(
    unknown.message,
    `the node at ${socket} does not answer: no reply to node.status within 20 ms; the node still runs, and may still do it`
  )
  t.alike(unknown.next, ['a2a-node status'])
  writeFileSync(path.join(path.dirname(socket), 'node.pid'), JSON.stringify({ pid: 4242, socket }))
  const known = await failureOf(api.call('node.stop', {}))
  t.is(
    known.message,
    `the node at ${socket} does not answer (pid 4242): no reply to node.stop within 20 ms; the node still runs, and may still do it`
  )
  t.alike(known.next, ['kill -9 4242'])
  const slow = await failureOf(api.call('documents.create', { name: 'a' }))
  t.alike(
    [slow.next, slow.data],
    [['a2a-node status', 'kill -9 4242'], { outcome: 'unknown', timeoutMs: 20 }],
    'a slow call is no reason to kill the node at once'
  )
  const impatient = connectControl(socket)
  for (const [name, params] of [
    ['node.info', {}],
    ['node.stop', {}],
    ['documents.create', { name: 'a' }]
  ] as const)
    t.alike(
      (await failureOf(impatient.call(name, params, { timeoutMs: 1 }))).next,
      ['a2a-node status'],
      `a millisecond for ${name} proves nothing`
    )
  writeFileSync(path.join(path.dirname(socket), 'node.pid'), JSON.stringify({ pid: 4242, socket: '/elsewhere' }))
  t.alike((await failureOf(api.call('node.stop', {}))).next, ['a2a-node status'])
})

test('a watch on a stuck node is TIMEOUT too', async (t: Assert) => {
  const api = connectControl(await muteSocket(t), () => 20)
  const watched = async (): Promise<void> => {
    for await (const _ of api.watch('peers.list', {}));
  }
  t.is((await failureOf(watched())).code, 'TIMEOUT')
})

test('only the work of others may take as long as it likes', (t: Assert) => {
  for (const name of ['node.status', 'node.stop', 'peers.list']) t.is(answerMs(name, {}), 5000, name)
  for (const name of ['peers.show', 'swarm.start', '/v0/watch/']) t.is(answerMs(name, { timeoutMs: 1 }), 15_000, name)
  for (const name of ['message.send', 'message.call', 'peers.ping']) t.is(answerMs(name, {}), null, name)
  t.is(answerMs('peers.ping', { timeoutMs: 60_000 }), 75_000)
  t.is(answerMs('message.call', { timeoutMs: 60_000 }), 3_675_000, 'a person may have to approve it')
})

test('a watch without events sends its headers', async (t: Assert) => {
  const socket = path.join(await tempDir(t), 'run', 's')
  const fake = new FakeNodeApi()
  // Without an item, until its client goes.
  fake.watch = async function* (_name, _params, options) {
    yield* new AsyncQueue<never>(1, dropped, options?.signal as AbortSignal | undefined)
  }
  const server = await startControlServer({ path: socket, tier: () => 0, apiFor: () => fake, keepAliveMs: 1_000_000 })
  t.teardown(() => server.close())
  const connection = net.connect(socket)
  t.teardown(() => connection.destroy())
  connection.write(
    'POST /v0/watch/peers.list HTTP/1.1\r\nHost: a2a-node\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}'
  )
  const [head] = (await once(connection, 'data')) as [Buffer]
  t.ok(head.toString().startsWith('HTTP/1.1 200'))
})
