import test from 'brittle'
import { requestPayloadSchema } from '../../src/domain/task/payloads.js'
import { askedBefore } from '../../src/node/asked-before.js'
import type { Incoming } from '../../src/node/incoming.js'

const [BEFORE, NOW, HERE] = ['b', 'n', 'h'].map((letter) => letter.repeat(52)) as [string, string, string]
const INCOMING: Incoming = {
  peer: NOW,
  sender: { agentId: 'operator', nodeId: NOW },
  recipient: { agentId: 'w', nodeId: HERE },
  header: {} as Incoming['header'],
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
  book: { name: ({ source, attempt }: { source: string; attempt: number }) => `${source}#${attempt}` },
  areVoters: (swarm: string, nodes: readonly string[]) => swarm === 'swarm_1' && nodes.every((node) => node === BEFORE || node === NOW)
}

test('a voter may ask after a lease that another voter gave, by the name that its request has there', (t) => {
  const asked = askedBefore(INCOMING, requestPayloadSchema.parse(QUERY), PARTS)
  t.alike([asked.peer, asked.sender.nodeId, asked.recorded?.name], [BEFORE, BEFORE, `operator@${BEFORE}#2`])
})

test('nobody else is told of the requests of another: who is no voter, begins something, or names what is no lease of the swarm', (t) => {
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
    t.is(askedBefore(INCOMING, requestPayloadSchema.parse({ ...QUERY, ...changes }), PARTS), INCOMING, why)
  const stranger = { ...INCOMING, peer: HERE }
  t.is(askedBefore(stranger, requestPayloadSchema.parse(QUERY), PARTS), stranger, 'who asks does not vote')
})
