import test, { type Assert } from 'brittle'
import { requestPayloadSchema } from '../../../../src/domain/task/payloads.js'
import { priorRequest } from '../../../../src/node/requests/callee/record.js'
import type { InboundMessage } from '../../../../src/node/messaging/inbound-message.js'
import { votersDigest } from '../../../../src/domain/swarm/coordination.js'
import { hash } from '../../../support/membership.js'
import { mapOf } from '../../../support/swarm-scene.js'
import { VotersScene } from '../../../support/voters-scene.js'

const [BEFORE, NOW, HERE] = ['b', 'n', 'h'].map((letter) => letter.repeat(52)) as [string, string, string]
const INCOMING: InboundMessage = {
  peer: NOW,
  sender: { agentId: 'operator', nodeId: NOW },
  recipient: { agentId: 'w', nodeId: HERE },
  header: {} as InboundMessage['header'],
  payload: null,
  isReliable: true
}
const QUERY = {
  requestId: 'swarm_1.4',
  attempt: 2,
  capability: null,
  input: null,
  swarm: 'swarm_1',
  isQuery: true,
  askedBy: `operator@${BEFORE}`
}
const PARTS = {
  requestStore: { name: ({ source, attempt }: { source: string; attempt: number }) => `${source}#${attempt}` },
  hash,
  areVoters: (swarm: string, nodes: readonly string[]) =>
    swarm === 'swarm_1' && nodes.every((node) => node === BEFORE || node === NOW)
}

test('a voter may ask after a lease that another voter gave, by the name that its request has there', (t) => {
  const asked = priorRequest(INCOMING, requestPayloadSchema.parse(QUERY), PARTS)
  t.alike([asked.peer, asked.sender.nodeId, asked.recorded?.name], [BEFORE, BEFORE, `operator@${BEFORE}#2`])
})

test('requests of another node are not disclosed to a node that is no voter, begins something, or names no lease of the swarm', (t) => {
  const cases: readonly (readonly [string, object])[] = [
    ['it is no query', { isQuery: false }],
    ['no swarm', { swarm: null }],
    ['another swarm', { swarm: 'swarm_2' }],
    ['a request beside it', { requestId: 'req_1' }],
    ['a swarm of a like name', { requestId: 'swarm_11.4' }],
    ['an agent, who coordinates nothing', { askedBy: `w@${BEFORE}` }],
    ['a node that does not vote', { askedBy: `operator@${HERE}` }],
    ['no address', { askedBy: 'operator' }]
  ]
  for (const [why, changes] of cases)
    t.is(priorRequest(INCOMING, requestPayloadSchema.parse({ ...QUERY, ...changes }), PARTS), INCOMING, why)
  const unseated = { ...PARTS, areVoters: () => false }
  for (const amongVoters of [[], [NOW], [BEFORE, HERE]])
    t.is(
      priorRequest(INCOMING, requestPayloadSchema.parse({ ...QUERY, amongVoters }), unseated),
      INCOMING,
      'not both are named'
    )
  const stranger = { ...INCOMING, peer: HERE }
  t.is(priorRequest(stranger, requestPayloadSchema.parse(QUERY), PARTS), stranger, 'the asking node does not vote')
})

test('a node without a vote states the digest of the voters by which it knows the lease', (t) => {
  const amongVoters = [BEFORE, NOW, HERE]
  const asked = priorRequest(INCOMING, requestPayloadSchema.parse({ ...QUERY, amongVoters }), {
    ...PARTS,
    areVoters: () => false
  })
  t.alike([asked.peer, asked.voters], [BEFORE, votersDigest(amongVoters, hash)])
  t.not(asked.voters, votersDigest([BEFORE, NOW], hash))
  t.is(
    priorRequest(INCOMING, requestPayloadSchema.parse({ ...QUERY, amongVoters }), PARTS).voters,
    undefined,
    'a participant knows them'
  )
})

test('a node without a vote reports its work for the earlier coordinator to the next one', async (t: Assert) => {
  const scene = await VotersScene.start(t)
  const [a, b, c] = [scene.at(0), scene.at(1), scene.at(2)]
  for (const { node } of [b, c]) Object.assign(node.core.swarms.participants, { areVoters: () => false })
  const id = await a.node.core.swarms.launch(mapOf(12, { capability: 'work.once' }))
  await scene.pass(1500)
  await scene.kill(a)
  await scene.world.pass(60_000, 500)
  await scene.pass(90_000, [b, c])
  const { results } = await scene.same(id, [b, c])
  t.is(results.filter((one) => one.status === 'unknown').length, 1, 'only what ran on the node that is gone')
  t.is(new Set(scene.begun).size, scene.begun.length, 'none was begun twice')
})

test('a node without a vote reports a run, active or done, to the voters named with the lease, and to no others', async (t: Assert) => {
  const scene = await VotersScene.start(t)
  const [a, b, c] = [scene.at(0).node, scene.at(1), scene.at(2).node]
  Object.assign(b.node.core.swarms.participants, { areVoters: () => false })
  const swarm = await a.core.swarms.launch(mapOf(12, { capability: 'work.once' }))
  await scene.pass(1500)
  const [run] = b.agent.open
  const voters = a.core.swarms.inMemory(swarm)?.head?.voters ?? []
  const requestId = run?.task.requestId ?? ''
  const record = (await b.node.core.requestStore.pending().next()).value as { readonly attempt: number }
  const askWith = async (amongVoters: readonly string[]): Promise<unknown[]> => {
    const replies: unknown[] = []
    const query = { requestId, attempt: record.attempt, capability: 'work.once', input: {}, swarm, isQuery: true }
    await c.core.outbound.send({
      sender: { agentId: 'operator', nodeId: c.id },
      recipient: { agentId: 'w', nodeId: b.node.id },
      type: 'request',
      payload: { ...query, askedBy: `operator@${a.id}`, amongVoters },
      replies: { ttlMs: 600_000, handler: (_, reply) => replies.push((reply as { outcome?: unknown }).outcome) }
    })
    await scene.world.settle()
    return replies
  }
  t.alike(await askWith([a.id, c.id]), ['UNKNOWN'], 'not those of the lease')
  const entitled = await askWith(voters)
  t.alike(entitled, [], 'it runs')
  run?.end({ ok: true, result: { item: 'x' } })
  await scene.world.settle()
  t.alike(entitled, ['COMPLETED'])
  t.alike(await askWith([a.id, c.id]), ['UNKNOWN'])
  t.alike(await askWith(voters), ['COMPLETED'])
})
