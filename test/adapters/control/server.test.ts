import { chmodSync, lstatSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import test, { type Assert } from 'brittle'
import { connectControl } from '../../../src/adapters/control/client.js'
import { checkedApi } from '../../../src/adapters/control/contract.js'
import type { ControlRefusal } from '../../../src/adapters/control/guard.js'
import { type ControlServer, startControlServer } from '../../../src/adapters/control/server.js'
import { NodeError } from '../../../src/kit/errors.js'
import type { NodeApi, Principal } from '../../../src/ports/node-api.js'
import { codeOf, nodeApiSuite } from '../../contracts/node-api.js'
import { FakeNodeApi, type FakeState } from '../../contracts/node-api-fake.js'

function scratch(t: Assert): string {
  const dir = mkdtempSync(path.join(os.tmpdir(), 'control-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }), { order: 10 })
  return dir
}

interface Served {
  readonly api: NodeApi
  readonly fake: FakeNodeApi
  readonly server: ControlServer
  readonly socket: string
  readonly refusals: ControlRefusal[]
  readonly principals: Principal[]
}

async function serve(
  t: Assert,
  state: FakeState = {},
  options: { keepAliveMs?: number; maxConnections?: number } = {}
): Promise<Served> {
  const socket = path.join(scratch(t), 'run', 'control.sock')
  const fake = new FakeNodeApi(state)
  const refusals: ControlRefusal[] = []
  const principals: Principal[] = []
  const server = await startControlServer({
    path: socket,
    tier: () => 0,
    apiFor: (principal) => {
      principals.push(principal)
      return fake
    },
    onRefusal: (one) => refusals.push(one),
    ...options
  })
  t.teardown(() => server.close())
  return { api: connectControl(socket), fake, server, socket, refusals, principals }
}

/** Sends raw bytes, gives all that comes back until the server hangs up. */
async function raw(socket: string, text: string): Promise<string> {
  const connection = net.connect(socket)
  connection.setEncoding('utf8')
  let answer = ''
  connection.on('data', (chunk: string) => (answer += chunk))
  connection.on('error', () => {})
  connection.write(text)
  await new Promise((resolve) => connection.once('close', resolve))
  return answer
}

/** Promise.withResolvers, which Node 20 lacks. */
function withResolvers<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => {}
  const promise = new Promise<T>((done) => (resolve = done))
  return { promise, resolve }
}

function post(target: string, headers: string, body = '{}'): string {
  return `POST ${target} HTTP/1.1\r\n${headers}Content-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`
}

const OURS = 'Host: a2a-node\r\nContent-Type: application/json\r\n'

const EVENTS = [{ at: '2026-01-02T03:04:05.000Z', type: 'peer_joined', message: 'bob joined', data: {} }]

nodeApiSuite('over the control socket', async (t: Assert) => {
  const { api, server } = await serve(t, { events: EVENTS })
  return { api, close: () => server.close() }
})

nodeApiSuite('checked in process', async () => ({
  api: checkedApi(new FakeNodeApi({ events: EVENTS })),
  close: async () => {}
}))

test('the socket is 0600 in a directory of 0700, and is gone after close', async (t: Assert) => {
  const { server, socket } = await serve(t)
  t.is(lstatSync(socket).mode & 0o777, 0o600)
  t.is(lstatSync(path.dirname(socket)).mode & 0o777, 0o700)
  await server.close()
  t.is(lstatSync(socket, { throwIfNoEntry: false }), undefined)
})

test('a directory that others may enter is closed to them', async (t: Assert) => {
  const dir = path.join(scratch(t), 'run')
  mkdirSync(dir)
  chmodSync(dir, 0o755)
  const server = await startControlServer({ path: path.join(dir, 's'), tier: () => 0, apiFor: () => new FakeNodeApi() })
  t.teardown(() => server.close())
  t.is(lstatSync(dir).mode & 0o777, 0o700)
})

test('a client does not trust a socket in a directory that others may write to', async (t: Assert) => {
  const { api, socket } = await serve(t)
  chmodSync(path.dirname(socket), 0o777)
  t.is(await codeOf(api.call('node.info', {})), 'NO_PERMISSION')
})

test('a second server on a live socket is ALREADY_RUNNING and leaves the first alone', async (t: Assert) => {
  const { api, socket } = await serve(t)
  t.is(
    await codeOf(startControlServer({ path: socket, tier: () => 0, apiFor: () => new FakeNodeApi() })),
    'ALREADY_RUNNING'
  )
  t.is((await api.call('node.info', {})).node.name, 'laptop')
})

test('a socket left over by a killed process is taken over', async (t: Assert) => {
  const dir = path.join(scratch(t), 'run')
  mkdirSync(dir, { mode: 0o700 })
  const socket = path.join(dir, 's')
  const child = spawn(process.execPath, [
    '-e',
    `require('net').createServer().listen(${JSON.stringify(socket)}, () => console.log('up'))`
  ])
  await once(child.stdout, 'data')
  child.kill('SIGKILL')
  await once(child, 'exit')
  t.ok(lstatSync(socket).isSocket())
  const server = await startControlServer({ path: socket, tier: () => 0, apiFor: () => new FakeNodeApi() })
  t.teardown(() => server.close())
  t.is((await connectControl(socket).call('node.info', {})).mesh.name, 'home')
})

test('a file in the place of the socket is not removed', async (t: Assert) => {
  const file = path.join(scratch(t), 'important')
  writeFileSync(file, 'data')
  t.is(
    await codeOf(startControlServer({ path: file, tier: () => 0, apiFor: () => new FakeNodeApi() })),
    'NO_PERMISSION'
  )
  t.ok(lstatSync(file).isFile())
})

test('nobody at the socket is NODE_NOT_RUNNING', async (t: Assert) => {
  t.is(await codeOf(connectControl(path.join(scratch(t), 'none')).call('node.info', {})), 'NODE_NOT_RUNNING')
})

test('the caller of the socket acts as the operator, for any message', async (t: Assert) => {
  const { api, principals } = await serve(t)
  await api.call('node.info', {})
  t.alike(principals[0], {
    kind: 'operator',
    name: 'operator',
    tier: 0,
    sandboxId: null,
    scopes: ['read', 'send', 'admin']
  })
})

test('pages and strangers are refused before the API is asked, and each refusal is reported', async (t: Assert) => {
  const { fake, socket, refusals } = await serve(t)
  const requests = [
    post('/v0/call/node.stop', 'Host: localhost\r\nContent-Type: application/json\r\n'),
    post('/v0/call/node.stop', 'Host: a2a-node\r\nHost: a2a-node\r\nContent-Type: application/json\r\n'),
    post('/v0/call/node.stop', `${OURS}Origin: http://evil.example\r\n`),
    post('/v0/call/node.stop', `${OURS}Origin: null\r\n`),
    post('/v0/call/node.stop', `${OURS}${'a:\r\n'.repeat(3000)}Origin: http://evil.example\r\n`),
    post('/v0/call/node.stop', `${OURS}Sec-Fetch-Site: cross-site\r\n`),
    post('/v0/call/node.stop', 'Host: a2a-node\r\nContent-Type: text/plain\r\n'),
    'GET /v0/call/node.stop HTTP/1.1\r\nHost: a2a-node\r\nContent-Type: application/json\r\n\r\n'
  ]
  for (const request of requests)
    t.ok(/^HTTP\/1\.1 4(03|05|15)/.test(await raw(socket, request)), JSON.stringify(request.slice(0, 90)))
  t.alike(
    refusals.map((one) => one.rule),
    ['host', 'host', 'origin', 'origin', 'origin', 'sec-fetch', 'content-type', 'method']
  )
  t.is(fake.seen.length, 0)
})

test('malformed HTTP and headers beyond the limit do not reach the API or end the server', async (t: Assert) => {
  const { api, fake, socket, refusals } = await serve(t)
  const bad = [
    '\u0000\u0001\u0002\r\n\r\n',
    'POST /v0/call/node.info HTTP/9.9\r\n\r\n',
    post('/x', `${OURS}X: ${'y'.repeat(20_000)}\r\n`)
  ]
  for (const text of bad) await raw(socket, text)
  t.is(fake.seen.length, 0)
  t.is(refusals.filter((one) => one.rule === 'malformed').length, bad.length)
  t.is((await api.call('node.info', {})).node.name, 'laptop')
})

test('paths, parameters and bodies that do not fit are errors with a code', async (t: Assert) => {
  const { socket, fake } = await serve(t)
  const codeFor = async (target: string, body?: string): Promise<string> => {
    const answer = await raw(socket, post(target, OURS, body))
    return `${answer.slice(9, 12)} ${(JSON.parse(answer.split('\r\n\r\n')[1] ?? '{}') as { error: { code: string } }).error.code}`
  }
  t.is(await codeFor('/v0/call/no.such'), '400 USAGE')
  t.is(await codeFor('/v0/call/constructor'), '400 USAGE')
  t.is(await codeFor('/v0/call/node.info?x=1'), '400 USAGE')
  t.is(await codeFor('/'), '400 USAGE')
  t.is(await codeFor('/v0/call/node.info', '{'), '400 USAGE')
  t.is(await codeFor('/v0/call/node.info', '[]'), '400 USAGE')
  t.is(await codeFor('/v0/call/peers.show', '{"peer":"a","__proto__":{}}'), '400 USAGE')
  t.is(
    await codeFor(
      '/v0/call/message.call',
      `{"agent":null,"capability":"c","input":${'['.repeat(100_000)}${']'.repeat(100_000)}}`
    ),
    '400 USAGE'
  )
  t.is(await codeFor('/v0/call/peers.show', `{"peer":"${'x'.repeat(1_100_000)}"}`), '413 PAYLOAD_TOO_LARGE')
  t.is(fake.seen.length, 0)
  t.is(await codeFor('/v0/call/peers.show', '{"peer":"x"}'), '404 PEER_NOT_FOUND')
})

test('bytes reach the API where free JSON stands, and nowhere else', async (t: Assert) => {
  const { api, fake } = await serve(t, { swarmEvents: [] })
  const input = { file: 'a', bytes: new Uint8Array([0, 255, 7]), fake: { $bytes: 'not bytes' } }
  await api.call('swarm.start', { goal: 'g', capability: 'c', strategy: 'map', items: [{ item: 'a', input }] })
  t.alike(fake.seen.at(0)?.params, { goal: 'g', capability: 'c', strategy: 'map', items: [{ item: 'a', input }] })
  t.is(await codeOf(api.call('peers.show', { peer: new Uint8Array([1]) as unknown as string })), 'USAGE')
})

test('bytes in a result come back as bytes', async (t: Assert) => {
  const payload = { data: new Uint8Array([1, 2, 3]) }
  const reply = {
    requestId: 'r',
    correlationId: 'c',
    agent: 'a@b',
    taskId: null,
    outcome: 'COMPLETED',
    error: null,
    latencyMs: 1
  } as const
  const { api } = await serve(t, { calls: { 'message.call': () => ({ ...reply, payload }) } })
  t.alike((await api.call('message.call', { agent: 'a', capability: 'c', input: 1 })).payload, payload)
})

test('an error keeps its code, next steps and data; an unexpected one is INTERNAL without its stack', async (t: Assert) => {
  const candidates = ['one', 'two']
  const { api } = await serve(t, {
    calls: {
      'peers.show': () => {
        throw new NodeError('AMBIGUOUS_NAME', 'which?', { data: { candidates }, next: ['a2a-node peers show one'] })
      },
      'node.id': () => {
        throw new TypeError('oops')
      }
    }
  })
  try {
    await api.call('peers.show', { peer: 'o' })
    t.fail('no error')
  } catch (error) {
    t.ok(error instanceof NodeError)
    t.alike((error as NodeError).toBody(), {
      code: 'AMBIGUOUS_NAME',
      message: 'which?',
      retryable: false,
      next: ['a2a-node peers show one'],
      data: { candidates }
    })
  }
  t.is(await codeOf(api.call('node.id', {})), 'INTERNAL')
})

test('parameters too large to be taken are not sent', async (t: Assert) => {
  const { api, fake } = await serve(t)
  t.is(await codeOf(api.call('documents.create', { name: 'x'.repeat(2_000_000) })), 'USAGE')
  t.is(await codeOf(api.call('message.send', { agent: 'a', text: 'x'.repeat(26_000_000) })), 'USAGE')
  t.is(fake.seen.length, 0)
})

test('a text or an input is bounded by its whole call, not by a length of its own', async (t: Assert) => {
  const { api, fake } = await serve(t)
  const text = 'x'.repeat(8_000_000)
  await codeOf(api.call('message.send', { agent: 'a', text }))
  await codeOf(
    api.call('message.call', { agent: 'a', capability: 'c', input: { text, bytes: new Uint8Array(3_000_000) } })
  )
  t.is(fake.seen.length, 2)
})

test('a client that hangs up ends its watch on the node', async (t: Assert) => {
  const { api, fake } = await serve(t)
  for await (const _ of api.watch('peers.list', {})) break
  const [signal] = fake.signals
  t.ok(signal !== undefined)
  if (signal !== undefined && !signal.aborted) await once(signal, 'abort')
  t.is(signal?.aborted, true)
})

test('nothing is kept of a watch that is over', async (t: Assert) => {
  const { api, fake } = await serve(t)
  for await (const _ of api.watch('peers.list', {})) break
  const [ref] = await Promise.all(
    fake.signals.splice(0).map(async (signal) => {
      if (!signal.aborted) await once(signal, 'abort')
      return new WeakRef(signal)
    })
  )
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  let left = 100
  for (; left > 0 && ref?.deref() !== undefined; left--) {
    await new Promise((resolve) => setImmediate(resolve))
    collect()
  }
  t.ok(ref !== undefined && left > 0, 'its signal is collected')
})

test('a call given up by its signal is CANCELED and the node learns of it', async (t: Assert) => {
  const stop = new AbortController()
  let told: (() => void) | null = null
  const learned = new Promise<void>((resolve) => (told = resolve))
  const { api } = await serve(t, {
    calls: {
      'peers.ping': (_params, signal) => {
        signal?.addEventListener('abort', () => told?.())
        stop.abort()
        return new Promise(() => {})
      }
    }
  })
  t.is(await codeOf(api.call('peers.ping', { peer: 'p' }, { signal: stop.signal })), 'CANCELED')
  await learned
  t.is(await codeOf(api.call('node.info', {}, { signal: stop.signal })), 'CANCELED')
})

test('a quiet watch carries blank lines that the client does not show', async (t: Assert) => {
  const { socket } = await serve(t, {}, { keepAliveMs: 5 })
  const connection = net.connect(socket)
  connection.setEncoding('utf8')
  connection.write(post('/v0/watch/peers.list', OURS).replace('Connection: close\r\n', ''))
  let text = ''
  for await (const chunk of connection) {
    text += String(chunk)
    if (/\{"peers":\[\],"problems":\[\]\}[\s\S]*\r\n1\r\n\n\r\n/.test(text)) break
  }
  t.ok(text.includes('application/x-ndjson'))
})

test('an error in the middle of a watch arrives after the items before it', async (t: Assert) => {
  const api = connectControl(await brokenWatch(t))
  const seen: unknown[] = []
  const code = await codeOf(
    (async () => {
      for await (const item of api.watch('node.events', { follow: true })) seen.push(item)
    })()
  )
  t.is(code, 'CHANNEL_CLOSED')
  t.is(seen.length, 1)
})

async function brokenWatch(t: Assert): Promise<string> {
  const socket = path.join(scratch(t), 'run', 's')
  const fake = new FakeNodeApi()
  fake.watch = async function* () {
    yield { at: '', type: 'x', message: '', data: {} }
    throw new NodeError('CHANNEL_CLOSED', 'gone')
  }
  const server = await startControlServer({ path: socket, tier: () => 0, apiFor: () => fake })
  t.teardown(() => server.close())
  return socket
}

test('closing the server ends every watch with NODE_NOT_RUNNING and answers calls in flight', async (t: Assert) => {
  const hold = withResolvers<{ pid: number }>()
  const asked = withResolvers<void>()
  const { api, server } = await serve(t, {
    calls: {
      'node.stop': () => {
        asked.resolve()
        return hold.promise
      }
    }
  })
  const watched = codeOf(
    (async () => {
      for await (const _ of api.watch('node.status', {})) {
        const stopping = api.call('node.stop', {})
        await asked.promise
        const closed = server.close()
        hold.resolve({ pid: 7 })
        t.alike(await stopping, { pid: 7 })
        await closed
      }
    })()
  )
  t.is(await watched, 'NODE_NOT_RUNNING')
  t.is(await codeOf(api.call('node.info', {})), 'NODE_NOT_RUNNING')
})

test('a node that is killed during a watch is NODE_NOT_RUNNING, not a normal end', async (t: Assert) => {
  const dir = path.join(scratch(t), 'run')
  mkdirSync(dir, { mode: 0o700 })
  const socket = path.join(dir, 's')
  const half = net.createServer((connection) => {
    connection.on('error', () => {})
    connection.once('data', () => {
      connection.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n1\r\n\n\r\n')
      setImmediate(() => connection.destroy())
    })
  })
  half.listen(socket)
  await once(half, 'listening')
  t.teardown(() => half.close())
  const api = connectControl(socket)
  t.is(
    await codeOf(
      (async () => {
        for await (const _ of api.watch('node.status', {}));
      })()
    ),
    'NODE_NOT_RUNNING'
  )
})

test('connections beyond the limit are dropped, those within go on', async (t: Assert) => {
  const { socket, api } = await serve(t, {}, { maxConnections: 2 })
  const held = [net.connect(socket), net.connect(socket)]
  t.teardown(() => held.forEach((one) => one.destroy()))
  await Promise.all(held.map((one) => once(one, 'connect')))
  t.is(await codeOf(api.call('node.info', {})), 'NODE_NOT_RUNNING')
  held[0]?.end()
  if (held[0] !== undefined) await once(held[0], 'close')
  t.is((await api.call('node.info', {})).node.name, 'laptop')
})
