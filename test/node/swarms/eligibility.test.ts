import test from 'brittle'
import type { RegisteredCard } from '../../../src/domain/card/registry.js'
import { Eligibility, nobody, type SurveyDeps } from '../../../src/node/swarms/eligibility.js'
import type { SwarmHead } from '../../../src/node/swarms/store.js'
import { actor } from '../../support/membership.js'

const [self, peer] = [actor('self').id, actor('peer').id]
const stage = { id: 'map', capability: 'work.do', from: 0, count: 1, needs: [] }
const head = { id: 'swarm_1', request: {}, stages: [stage] } as unknown as SwarmHead
const directory = { namer: () => (agent: unknown) => `shown ${String(agent)}` }

/** One agent of this node, and one of a peer that the rules refuse. Keeps the agents whose refusal is recorded. */
function scene({ isOnline = true } = {}): { eligibility: Eligibility; recorded: string[] } {
  const recorded: string[] = []
  const cards = [self, peer].map((nodeId) => ({
    id: 'w',
    nodeId,
    address: `w@${nodeId}`,
    capabilities: [{ id: 'work.do' }]
  }))
  const deps = {
    self,
    directory,
    peers: { isOnline: () => isOnline },
    visibility: { toCaller: () => true },
    registry: { findByCapability: () => cards as unknown as RegisteredCard[] },
    outbound: {
      verdict: ({ recipient }: { recipient: { nodeId: string } }) =>
        recipient.nodeId === self ? { allowed: true } : { allowed: false, rule: 'a rule', code: 'TIER_VIOLATION' },
      judge: ({ recipient }: { recipient: { nodeId: string } }) => void recorded.push(recipient.nodeId)
    }
  } as unknown as SurveyDeps
  return { eligibility: new Eligibility(deps), recorded }
}

test('an agent that the rules refuse is left out with the rule, one on an offline node as offline', (t) => {
  const refused = { agent: `w@${peer}`, rule: 'a rule' }
  t.alike(scene().eligibility.of(head), [{ allowed: [`w@${self}`], leftOut: [refused], refusals: ['TIER_VIOLATION'] }])
  const [away] = scene({ isOnline: false }).eligibility.of(head)
  t.alike(away, { allowed: [`w@${self}`], leftOut: [{ ...refused, rule: 'offline' }], refusals: [] })
})

test('a refusal is recorded once for a running swarm, and again after a repeated invitation', (t) => {
  const { eligibility, recorded } = scene()
  eligibility.check(head)
  eligibility.of(head)
  t.alike(recorded, [], 'it does not run here')
  eligibility.begin(head.id, new Set())
  eligibility.check(head)
  eligibility.check(head)
  t.alike(recorded, [peer])
  eligibility.forget(head, `w@${peer}`)
  eligibility.check(head)
  t.alike(recorded, [peer, peer])
  eligibility.end(head.id)
  eligibility.check(head)
  t.is(recorded.length, 2)
})

test('a refusal that the launch recorded is not recorded again', (t) => {
  const { eligibility, recorded } = scene()
  const refused = new Set<string>()
  eligibility.survey({ request: {}, wants: stage }, refused)
  t.alike(recorded, [peer])
  eligibility.begin(head.id, refused)
  eligibility.check(head)
  t.is(recorded.length, 1)
})

test('the error for no eligible agent names the first refusal, or says that the nodes are offline', (t) => {
  const left = (rule: string): { agent: string; rule: string } => ({ agent: 'w@b', rule })
  t.is(nobody(directory, stage, { allowed: [], leftOut: [], refusals: [] }).code, 'NO_CAPABLE_AGENT')
  const refused = nobody(directory, stage, { allowed: [], leftOut: [left('a rule')], refusals: ['TIER_VIOLATION'] })
  t.is(refused.code, 'TIER_VIOLATION')
  t.ok(refused.message.includes('shown w@b (a rule)'))
  t.is(nobody(directory, stage, { allowed: [], leftOut: [left('offline')], refusals: [] }).code, 'PEER_OFFLINE')
})
