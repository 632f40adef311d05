import test, { type Assert } from 'brittle'
import { NodeError } from '../../../../src/kit/errors.js'
import { KEYS } from '../../../../src/domain/reliable/keys.js'
import type { RequestRecord } from '../../../../src/domain/reliable/records.js'
import { approvalScene, waitingOf } from '../../../support/approval-scene.js'
import { DurableScene } from '../../../support/durable-scene.js'
import { agentDefinition, capability, FakeAgent } from '../../../support/fake-agents.js'
import type { FakeNode } from '../../../support/fake-node.js'
import { forge, request } from '../../../support/forge.js'

async function openAt({ core }: FakeNode): Promise<RequestRecord[]> {
  const open: RequestRecord[] = []
  for await (const record of core.requestStore.pending()) open.push(record)
  return open
}

test('a run may be repeated only when its capability says so, for any other content under its id', async (t) => {
  const capabilities = [capability('text.do'), capability('text.once', { idempotent: false })]
  const agent = new FakeAgent(agentDefinition('text', { capabilities }))
  const { world, owner, peer } = await approvalScene(t, 'rules:\n  - decision: ask\n    from: {tier: L3}\n', agent)
  const copy = (named: string, tier: 0 | 3): void =>
    forge(owner, peer, {
      payload: request('same', { capability: named }),
      correlationId: named,
      metadata: { tier, justification: 'why' }
    })
  copy('text.do', 3)
  await world.settle()
  t.is((await waitingOf(peer)).length, 1)
  copy('text.once', 0)
  await world.settle()
  t.alike(
    agent.tasks.map((one) => one.capability),
    ['text.once']
  )
  t.alike(
    (await openAt(peer)).map(({ status, isRepeatable }) => [status, isRepeatable]),
    [['started', false]]
  )
})

test('a request whose record is damaged ends as unknown, and its lane goes on', async (t) => {
  const scene = await DurableScene.start(t)
  const { here, peer, world } = scene
  const damaged = await scene.ask()
  await world.settle()
  scene.finish()
  await world.settle()
  // Its caller asks for it once more, as after a crash.
  const [record] = await peer.core.requestStore.lasting(1)
  if (record === undefined) throw new Error('nothing is on record')
  const name = peer.core.requestStore.name(record)
  await peer.ledger.commit([{ key: KEYS.request(name), value: new Uint8Array([1, 2, 3]) }])
  const payload = {
    requestId: damaged.requestId,
    attempt: 1,
    capability: 'slow.again',
    input: { a: 1 },
    isQuery: false
  }
  const replies: unknown[] = []
  const again = here.core.outbound.send({
    sender: { agentId: 'operator', nodeId: here.id },
    recipient: { agentId: 'slow', nodeId: peer.id },
    type: 'request',
    payload,
    reliable: { requestId: damaged.requestId, mayWait: true, ttlMs: 600_000, changes: () => [] },
    replies: { ttlMs: 600_000, handler: (_, reply) => replies.push(reply) }
  })
  await again
  const { taskId } = await scene.ask()
  await world.settle()
  scene.finish()
  await world.settle()
  t.is((await scene.task(taskId)).state, 'completed', 'the next request is done')
  t.is(scene.runsOf(damaged.requestId), 1, 'it is not done again')
  t.is((replies[0] as { outcome?: unknown } | undefined)?.outcome, 'UNKNOWN')
  t.ok(peer.lines.some((line) => line.includes('damaged')))
})

/**
 * What the peer answers to a copy of a request that was done, where its ledger then says in turn what is found of it.
 */
async function answered(t: Assert, found: (record: RequestRecord) => (RequestRecord | null)[]): Promise<unknown[]> {
  const scene = await DurableScene.start(t)
  const { here, peer, world } = scene
  const { requestId } = await scene.ask()
  await world.settle()
  scene.finish()
  await world.settle()
  const [record] = await peer.core.requestStore.lasting(1)
  if (record === undefined) throw new Error('nothing is on record')
  const left = found(record)
  peer.core.requestStore.get = () => Promise.resolve(left.shift() ?? null)
  const replies: { outcome: string; error: { code: string } }[] = []
  await here.core.outbound.send({
    sender: { agentId: 'operator', nodeId: here.id },
    recipient: { agentId: 'slow', nodeId: peer.id },
    type: 'request',
    payload: { requestId, attempt: 1, capability: 'slow.again', input: { a: 1 }, isQuery: false },
    reliable: { requestId, mayWait: true, ttlMs: 600_000, changes: () => [] },
    replies: { ttlMs: 600_000, handler: (_, reply) => replies.push(reply as (typeof replies)[number]) }
  })
  await world.settle()
  t.is(scene.runsOf(requestId), 1)
  return replies.map(({ outcome, error }) => [outcome, error.code])
}

test('a copy whose record was removed while it arrived was not done: its caller may ask once more', async (t) => {
  // As when the copy before it has no place yet while this one comes, and finds none before this one is looked at.
  t.alike(await answered(t, (record) => [{ ...record, status: 'pending' }, null]), [['FAILED', 'OVERLOADED']])
})

test('a copy that came while its node was stopping is answered as the one before: it was not done, and its caller may ask once more', async (t) => {
  const stopped = { status: 'unknown', error: new NodeError('PEER_OFFLINE', 'the node was stopped').toBody() } as const
  const standing = (record: RequestRecord): RequestRecord[] => [
    { ...record, status: 'started' },
    { ...record, ...stopped }
  ]
  t.alike(await answered(t, standing), [['FAILED', 'PEER_OFFLINE']])
})
