import assert from 'node:assert/strict'
import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import type { NodeId } from '../../../src/kit/ids.js'
import type { FoldResult } from '../../../src/domain/membership/fold/fold.js'
import { MAX_TRUSTED } from '../../../src/domain/membership/fold/member.js'
import { SERIAL_MAX_STEP } from '../../../src/domain/membership/serial.js'
import { considerJoin } from '../../../src/domain/membership/admit.js'
import { inviterOf, ownMachines } from '../../../src/domain/membership/trust.js'
import type { MembershipView, Trust } from '../../../src/domain/membership/types.js'
import {
  type Actor,
  actor,
  founded,
  inviteTerms,
  joinRequest,
  keyText,
  type LogModel,
  MESH,
  verify
} from '../../support/membership.js'
import { holds } from '../../support/holds.js'

const [owner, ann, bea, cyd] = ['owner', 'ann', 'bea', 'cyd'].map((name) => actor(name)) as [Actor, Actor, Actor, Actor]
const ALL = [owner, ann, bea, cyd]

function rate(log: LogModel, by: Actor, node: Actor, trust: Trust, serial = 1): FoldResult {
  return log.write(by, { kind: 'trust', mesh: MESH, nodeKey: node.id, trust, serial, at: 1000 })
}

/** The names of the own machines of a node. */
function own(log: LogModel, self: Actor, acceptsInviter = false): string[] {
  const found = ownMachines({ view: log.view(), self: self.id, acceptsInviter })
  return ALL.filter(({ id }) => found.has(id)).map(({ name }) => name)
}

test('a member rates other members for its own machines, its newest entry counts, and never itself or a stranger', (t: Assert) => {
  const log = founded()
  log.join(owner, ann)
  t.is(rate(log, ann, owner, 'mine').skipped, null)
  t.alike(log.view().trust.get(ann.id), { of: { [owner.id]: { trust: 'mine', serial: 1 } } })
  t.is(rate(log, ann, owner, 'guest', 1).skipped, 'a newer one is known')
  t.is(rate(log, ann, owner, 'guest', 2).skipped, null)
  t.alike(log.view().trust.get(ann.id), { of: { [owner.id]: { trust: 'guest', serial: 2 } } })
  t.is(rate(log, ann, ann, 'mine', 3).skipped, 'a node does not rate itself')
  t.is(rate(log, ann, bea, 'mine', 3).skipped, 'the node is no member')
  t.is(rate(log, bea, ann, 'mine').skipped, 'its author is no member')
  t.ok(rate(log, ann, owner, 'mine', 3 + SERIAL_MAX_STEP).skipped, 'numbers cannot be used up')
})

test('a member rates a bounded number of members', (t: Assert) => {
  const log = founded()
  log.join(owner, ann)
  const of = Object.fromEntries(
    Array.from({ length: MAX_TRUSTED }, (_, at) => [keyText(`rated/${at}`), { trust: 'mine', serial: 1 }])
  )
  log.records.set(`trust/${ann.id}`, { of })
  const full = rate(log, ann, owner, 'mine', 2)
  t.alike([full.isFull, full.puts.size], [true, 0])
})

test('a newcomer is a guest unless its invite says mine, and its inviter is one to it unless it accepted', (t: Assert) => {
  const log = founded()
  log.join(owner, ann)
  log.join(owner, bea, { trust: 'mine' })
  t.alike(own(log, owner), ['bea'])
  t.alike([own(log, ann), own(log, ann, true)], [[], ['owner', 'bea']])
  t.alike([own(log, bea), own(log, bea, true)], [[], ['owner']])
  t.is(inviterOf(log.view(), ann.id), owner.id)
  t.is(inviterOf(log.view(), owner.id), null)
})

test('machines of machines are own ones, and one that any of them calls a guest is none', (t: Assert) => {
  const log = founded()
  log.join(owner, ann, { trust: 'mine', admin: true })
  log.join(ann, bea, { trust: 'mine' })
  log.join(owner, cyd)
  t.alike(own(log, owner), ['ann', 'bea'])
  rate(log, ann, cyd, 'mine')
  t.alike(own(log, owner), ['ann', 'bea', 'cyd'], 'an entry of one machine counts for all')
  t.alike(own(log, cyd), [], 'but not for the machine of another person')
  rate(log, bea, cyd, 'guest')
  t.alike(own(log, owner), ['ann', 'bea'])
  rate(log, owner, ann, 'guest')
  t.alike(own(log, owner), [], 'the word of a guest counts for nothing')
})

test('a member that a nearer machine calls a guest takes no machine from the others, though another calls it mine', (t: Assert) => {
  const log = founded()
  for (const node of [ann, bea]) log.join(owner, node, { trust: 'mine', admin: true })
  log.join(bea, cyd, { trust: 'mine' })
  t.alike(own(log, owner), ['ann', 'bea', 'cyd'])
  rate(log, ann, cyd, 'guest')
  rate(log, cyd, ann, 'guest')
  rate(log, cyd, bea, 'guest')
  t.alike(own(log, owner), ['ann', 'bea'], 'a guest of another machine')
  rate(log, ann, cyd, 'mine', 2)
  rate(log, owner, cyd, 'guest')
  t.alike(own(log, owner), ['ann', 'bea'], 'a guest of its own')
})

test('of two machines that call each other guests the nearer one counts, and neither at the same distance', (t: Assert) => {
  const log = founded()
  for (const node of [ann, bea]) log.join(owner, node, { trust: 'mine', admin: true })
  log.join(bea, cyd, { trust: 'mine' })
  rate(log, ann, cyd, 'guest')
  rate(log, cyd, ann, 'guest')
  t.alike(own(log, owner), ['ann', 'bea'])
  rate(log, ann, bea, 'guest')
  rate(log, bea, ann, 'guest')
  t.alike(own(log, owner), [])
})

test('an admin that is a guest makes no machine of the maker by an invite of the maker, and does not answer it', (t: Assert) => {
  const log = founded()
  log.join(owner, ann, { admin: true })
  const terms = inviteTerms('open', { trust: 'mine', uses: 2 })
  log.invite(owner, terms)
  const answer = considerJoin(log.view(), {
    self: ann.id,
    inviteId: terms.id,
    request: joinRequest(bea, terms.id),
    now: 2000,
    verify
  })
  t.is(answer.answer, 'silent')
  t.is(log.admit(ann, bea, terms).skipped, null, 'it is a member all the same')
  t.alike(own(log, owner), [])
  log.recertify(owner, { ...log.certificateOf(bea), name: 'bess', serial: 2, issuer: owner.id })
  t.alike(own(log, owner), [], 'another name by the maker changes nothing')
  rate(log, owner, bea, 'mine')
  t.alike(own(log, owner), ['bea'], 'a word of the maker does')
  rate(log, owner, bea, 'guest', 2)
  rate(log, owner, ann, 'mine')
  log.admit(ann, cyd, terms)
  t.alike(own(log, owner), ['ann', 'cyd'], 'a machine of the maker admits for it')
  rate(log, owner, ann, 'guest', 2)
  t.alike(own(log, owner), [], 'as long as it is one')
})

test('entries of one author about several members have their effect in any order', (t: Assert) => {
  const states = [
    [0, 1, 2],
    [2, 1, 0],
    [1, 2, 0]
  ].map((order) => {
    const log = founded()
    for (const node of [ann, bea]) log.join(owner, node, { trust: 'mine' })
    const entries = [
      () => rate(log, owner, ann, 'guest', 1),
      () => rate(log, owner, bea, 'guest', 1),
      () => rate(log, owner, ann, 'mine', 2)
    ]
    for (const at of order) entries[at]?.()
    return own(log, owner)
  })
  for (const state of states) t.alike(state, ['ann'])
})

test('a revoked member is nobody to trust, and neither is one by its word', (t: Assert) => {
  const log = founded()
  log.join(owner, ann, { trust: 'mine', admin: true })
  log.join(ann, bea, { trust: 'mine' })
  log.revoke(owner, ann)
  t.alike(own(log, owner), [])
})

const arbRatings = fc.array(
  fc.record({ by: fc.nat(5), node: fc.nat(5), trust: fc.constantFrom<Trust[]>('mine', 'guest') }),
  { maxLength: 20 }
)
const ids = Array.from({ length: 6 }, (_, at) => keyText(`node/${at}`))

function viewOf(ratings: typeof arbRatings extends fc.Arbitrary<infer T> ? T : never): MembershipView {
  const trust = new Map<NodeId, { of: Record<NodeId, { trust: Trust; serial: number }> }>()
  for (const { by, node, trust: how } of ratings) {
    const id = ids[by] ?? ''
    const record = trust.get(id) ?? { of: {} }
    if (by !== node) record.of[ids[node] ?? ''] = { trust: how, serial: 1 }
    trust.set(id, record)
  }
  const members = new Map(ids.map((id) => [id, { revoked: null, certificate: { body: {} } }]))
  return { members, invites: new Map(), trust } as unknown as MembershipView
}

test('every own machine is vouched for by another own machine, no own machine calls it a guest, and guests add none', async (t: Assert) => {
  await holds(
    t,
    fc.property(arbRatings, fc.nat(5), (ratings, at) => {
      const view = viewOf(ratings)
      const self = ids[at] ?? ''
      const found = ownMachines({ view, self, acceptsInviter: false })
      const all = [self, ...found]
      assert.ok(!found.has(self))
      for (const one of found) {
        assert.ok(all.some((by) => view.trust.get(by)?.of[one]?.trust === 'mine'))
        assert.ok(all.every((by) => view.trust.get(by)?.of[one]?.trust !== 'guest'))
      }
      // Entries of members that are none of its machines change nothing for it, unless its machines vouched for them.
      const guests = ids.filter((id) => !all.includes(id))
      const vouched = guests.filter((id) => all.some((by) => view.trust.get(by)?.of[id]?.trust === 'mine'))
      if (vouched.length > 0) return
      const without = { ...view, trust: new Map([...view.trust].filter(([by]) => !guests.includes(by))) }
      assert.deepEqual([...ownMachines({ view: without, self, acceptsInviter: false })].sort(), [...found].sort())
    }),
    1000
  )
})
