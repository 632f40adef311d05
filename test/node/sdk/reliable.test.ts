import test from 'brittle'
import { firstNumber } from '../../../src/domain/reliable/lane-sender.js'
import { createLayer } from '../../../src/node/sdk/layer.js'
import { DurableScene } from '../../support/durable-scene.js'
import { failsWith } from '../../support/fails.js'

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = []
  for await (const item of items) list.push(item)
  return list
}

test('a program has something done wherever the agent is, and reads how it stands', async (t) => {
  const scene = await DurableScene.start(t)
  const { reliable } = createLayer(scene.here.core)
  const ended: string[] = []
  reliable.onMessageCompleted((id) => ended.push(`done ${id}`))
  reliable.onMessageFailed((id, { code }) => ended.push(`${code} ${id}`))
  await scene.unlink()
  const id = await reliable.sendReliableMessage('slow@peer', { a: 1 })
  const [source, target] = [`operator@${scene.here.id}`, `slow@${scene.peer.id}`]
  const record = await reliable.getRequestRecord(id)
  t.alike(
    [record?.status, record?.payload, record?.sourceAgentId, record?.targetAgentId],
    ['UNKNOWN', { a: 1 }, source, target]
  )
  t.alike(
    (await all(reliable.listPendingRequests())).map((one) => one.requestId),
    [id]
  )
  t.alike(await all(reliable.listPendingRequests(new Date(0))), [])
  t.is(reliable.getLastSequence(source, target), 0)
  const first = firstNumber(scene.world.clock.now())
  await scene.link()
  t.is(reliable.getLastSequence(source, target), first)
  t.alike(await reliable.getUnacknowledgedMessages(source, target), [])
  scene.finish()
  await scene.world.settle()
  t.alike(ended, [`done ${id}`])
  t.alike(
    (await all(reliable.listMessagesInState('COMPLETED'))).map((one) => one.requestId),
    [id]
  )
  t.alike(await all(reliable.listMessagesInState('FAILED')), [])
  t.is(await reliable.purgeExpired(new Date(record?.expiresAt ?? 0)), 1)
  t.is(await reliable.getRequestRecord(id), null)
})

test('a request of a program gives the result of its agent, or its error', async (t) => {
  const scene = await DurableScene.start(t)
  const { reliable } = createLayer(scene.here.core)
  const result = reliable.sendRequest('slow@peer', {})
  await scene.world.settle()
  scene.finish()
  t.is(await result, `did ${scene.done[0]}`)
  const late = reliable.sendRequest('slow@peer', {}, 1000)
  const failure = failsWith(t, 'TIMEOUT', () => late)
  await scene.world.settle()
  await scene.world.pass(2000)
  await failure
  await failsWith(t, 'AGENT_NOT_FOUND', () => reliable.sendRequest('nobody@peer', {}))
})

test('a request of a program speaks as the named agent, for any capability of its target', async (t) => {
  const scene = await DurableScene.start(t)
  const { here, peer } = scene
  const { reliable } = createLayer(here.core)
  await here.core.attach({ id: 'writer', tier: 0, capabilities: [] })
  const target = `slow@${peer.id}`
  for (const [from, capabilityId] of [
    ['writer', 'slow.once'],
    [`writer@${here.id}`, 'slow.again']
  ] as const) {
    const id = await reliable.sendReliableMessage('slow@peer', {}, { from, capability: capabilityId })
    await scene.world.settle()
    t.is((await reliable.getRequestRecord(id))?.sourceAgentId, `writer@${here.id}`)
    t.is(scene.begun.at(-1)?.capability, capabilityId, 'the target runs it')
    t.ok(reliable.getLastSequence(`writer@${here.id}`, target) > 0, 'in a lane of the agent')
    scene.finish()
    await scene.world.settle()
  }
  await failsWith(t, 'AGENT_NOT_FOUND', () => reliable.sendRequest('slow@peer', {}, { from: 'nobody' }))
  await failsWith(t, 'AGENT_NOT_FOUND', () =>
    reliable.sendReliableMessage('slow@peer', {}, { from: `slow@${peer.id}` })
  )
  await failsWith(t, 'CAPABILITY_NOT_FOUND', () =>
    reliable.sendRequest('slow@peer', {}, { from: 'writer', capability: 'slow.none' })
  )
})

test('unacknowledged messages can be read, as they were sent', async (t) => {
  const scene = await DurableScene.start(t)
  const { reliable } = createLayer(scene.here.core)
  const { peers } = scene.here.core
  const { send } = peers
  peers.send = (to, message) => {
    if (message.kind !== 'reliable') send.call(peers, to, message)
  }
  await reliable.sendReliableMessage('slow@peer', { a: 1 })
  const [source, target] = [`operator@${scene.here.id}`, `slow@${scene.peer.id}`]
  const messages = await reliable.getUnacknowledgedMessages(source, target)
  t.alike(
    messages.map(({ seq, envelope }) => [seq, envelope.type, (envelope.payload as { input: unknown }).input]),
    [[firstNumber(scene.world.clock.now()), 'request', { a: 1 }]]
  )
})

test('retries end, and their waits grow up to a bound', async (t) => {
  const scene = await DurableScene.start(t)
  const { reliable } = createLayer(scene.here.core)
  t.alike(
    [0, 1, 2, 3, 10].map((retries) => reliable.getBackoffDelay(retries)),
    [2500, 5000, 10_000, 20_000, 30_000]
  )
  t.is(reliable.getMaxAttempts(), 5)
  t.alike(
    (['UNKNOWN', 'FAILED', 'COMPLETED'] as const).map((status) => reliable.shouldRetry({ status, retryCount: 1 })),
    [true, false, false]
  )
  t.absent(reliable.shouldRetry({ status: 'UNKNOWN', retryCount: 5 }))
})
