import test from 'brittle'
import type { RegisteredCard } from '../../../src/domain/card/registry.js'
import type { SideEffect } from '../../../src/domain/card/card.js'
import { Eligibility, nobody, type SurveyDeps } from '../../../src/node/swarms/eligibility.js'
import type { SwarmHead } from '../../../src/node/swarms/store.js'
import { actor } from '../../support/membership.js'

const [self, peer] = [actor('self').id, actor('peer').id]
const stage = { id: 'map', capability: 'work.do', from: 0, count: 1, needs: [] }
const head = { id: 'swarm_1', request: {}, stages: [stage] } as unknown as SwarmHead
const directory = { namer: () => (agent: unknown) => `shown ${String(agent)}` }

interface SceneOptions {
  readonly isOnline?: boolean
  /** The member whose guest the peer is. */
  readonly guestOf?: string
  /** Do the rules allow the peer? */
  readonly isAllowed?: boolean
  /** Side effects of further capabilities of both agents, and of `work.do`. */
  readonly effects?: Readonly<Record<string, SideEffect>>
}

/** One agent of this node, and one of a peer that the rules refuse. Keeps the agents whose refusal is recorded. */
function scene({ isOnline = true, guestOf = '', isAllowed = false, effects = {} }: SceneOptions = {}): {
  eligibility: Eligibility
  recorded: string[]
} {
  const recorded: string[] = []
  const cards = [self, peer].map((nodeId) => ({
    id: 'w',
    nodeId,
    address: `w@${nodeId}`,
    capabilities: ['work.do', 'work.more'].map((id) => ({ id, ...(id in effects ? { sideEffect: effects[id] } : {}) }))
  }))
  const deps = {
    self,
    directory,
    guests: {
      has: (node: string, by: string) => node === peer && by === guestOf,
      step: (node: string) => `trust ${node === peer ? 'b' : node}`
    },
    peers: { isOnline: () => isOnline },
    visibility: { toCaller: () => true },
    registry: { findByCapability: () => cards as unknown as RegisteredCard[] },
    outbound: {
      verdict: ({ recipient }: { recipient: { nodeId: string } }) =>
        isAllowed || recipient.nodeId === self
          ? { allowed: true }
          : { allowed: false, rule: 'a rule', code: 'TIER_VIOLATION' },
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

test('a guest is left out of work with side effects, a declared or an undeclared one, and takes part in other work', (t) => {
  const left = { agent: `w@${peer}`, rule: 'guest, may only ask; `trust b`' }
  for (const effect of ['none', 'read', 'write', 'exec', null] as const) {
    const effects = effect === null ? {} : { 'work.do': effect }
    const [found] = scene({ isAllowed: true, guestOf: self, effects }).eligibility.of(head)
    const isIn = effect === 'none' || effect === 'read'
    t.alike(found?.leftOut, isIn ? [] : [left], String(effect))
    t.is(found?.allowed.length, isIn ? 2 : 1)
    t.alike(found?.next, isIn ? undefined : ['trust b'])
  }
})

test('a further capability with side effects leaves a guest out of a stage that needs both', (t) => {
  const both = { ...head, stages: [{ ...stage, further: ['work.more'] }] } as unknown as SwarmHead
  const leftOut = (more: SideEffect): number =>
    scene({ isAllowed: true, guestOf: self, effects: { 'work.do': 'read', 'work.more': more } }).eligibility.of(both)[0]
      ?.leftOut.length ?? 0
  t.alike([leftOut('read'), leftOut('write')], [0, 1])
})

test('a node that took a swarm over leaves out the guests of its launcher, not its own ones', (t) => {
  const launcher = actor('launcher').id
  const taken = { ...head, voters: [launcher, self] }
  t.is(scene({ isAllowed: true, guestOf: launcher }).eligibility.of(taken)[0]?.leftOut.length, 1)
  t.is(scene({ isAllowed: true, guestOf: self }).eligibility.of(taken)[0]?.leftOut.length, 0)
})

test('a refusal of the rules counts before the trust, and is recorded; a guest is no refusal to record', (t) => {
  const refused = scene({ guestOf: self })
  refused.eligibility.begin(head.id, new Set())
  t.is(refused.eligibility.check(head)[0]?.leftOut[0]?.rule, 'a rule')
  t.is(refused.recorded.length, 1)
  const guest = scene({ guestOf: self, isAllowed: true })
  guest.eligibility.begin(head.id, new Set())
  t.is(guest.eligibility.check(head)[0]?.leftOut.length, 1)
  t.is(guest.recorded.length, 0)
})

test('the error for guests alone is a denial whose next steps trust them', (t) => {
  const leftOut = [{ agent: 'w@b', rule: 'guest, may only ask; `trust b`' }]
  const error = nobody(directory, stage, { allowed: [], leftOut, refusals: ['POLICY_DENIED'], next: ['trust b'] })
  t.is(error.code, 'POLICY_DENIED')
  t.alike(error.next, ['trust b'])
})
