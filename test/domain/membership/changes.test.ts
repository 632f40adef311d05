import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import {
  type KnownMembership,
  membershipChanges,
  type MembershipChange,
  NOTHING_KNOWN
} from '../../../src/domain/membership/changes.js'
import { EMPTY_VIEW, firstView } from '../../../src/domain/membership/view.js'
import type { MembershipView } from '../../../src/domain/membership/types.js'
import { DEFAULT_TIER_RULES } from '../../../src/domain/routing/tier-rules.js'
import type { TierRule } from '../../../src/domain/routing/tier-rules.js'
import { holds } from '../../support/holds.js'
import { type Actor, actor, founded, inviteTerms, LogModel, MESH } from '../../support/membership.js'

const owner = actor('owner')
const ann = actor('ann')
const bob = actor('bob')

/** Tells what is new in a log, again and again. */
class Teller {
  known: KnownMembership = NOTHING_KNOWN

  tell(log: LogModel): readonly MembershipChange[] {
    const { known, changes } = membershipChanges(this.known, log.view())
    // Over a restart what is known is JSON.
    this.known = JSON.parse(JSON.stringify(known)) as KnownMembership
    return changes
  }

  codes(log: LogModel): string[] {
    return this.tell(log).map(({ code }) => code)
  }
}

function renamed(
  log: LogModel,
  by: Actor,
  node: Actor,
  change: { readonly name?: string; readonly maxTier?: 0 | 1 | 2 | 3 }
): void {
  const now = log.certificateOf(node)
  log.recertify(by, { ...now, ...change, serial: now.serial + 1, issuer: by.id, issuedAt: now.issuedAt + 1 })
}

test('each change is reported once: founding, invite, admission, new name, new tier, revocation', (t: Assert) => {
  const log = founded()
  const teller = new Teller()
  t.alike(
    teller.tell(log).map(({ code, peer, by }) => [code, peer, by]),
    [['founded', owner.id, owner.id]]
  )
  log.join(owner, ann, { admin: true })
  t.alike(
    teller.tell(log).map(({ code, peer, by }) => [code, peer, by]),
    [
      ['invited', null, owner.id],
      ['admitted', ann.id, owner.id]
    ]
  )
  log.join(ann, bob)
  renamed(log, ann, bob, { name: 'new', maxTier: 2 })
  const later = teller.tell(log)
  t.alike(
    later.map(({ code, peer, by, reason }) => [code, peer, by, reason]),
    [
      ['invited', null, ann.id, `invite ${later[0]?.ref.slice(0, 8)}: L1, 1 use`],
      ['admitted', bob.id, ann.id, `"new" L2, by invite ${later[0]?.ref.slice(0, 8)}`]
    ]
  )
  renamed(log, owner, bob, { name: 'newer', maxTier: 3 })
  t.alike(
    teller.tell(log).map(({ code, by, reason }) => [code, by, reason]),
    [
      ['renamed', owner.id, '"new" to "newer"'],
      ['tier-changed', owner.id, '"newer" L2 to L3']
    ]
  )
  renamed(log, owner, bob, {})
  t.alike(teller.codes(log), ['certified'])
  log.revoke(ann, bob)
  t.alike(
    teller.tell(log).map(({ code, peer, by, reason }) => [code, peer, by, reason]),
    [['revoked', bob.id, ann.id, '"newer": lost']]
  )
  t.alike(teller.codes(log), [])
})

test('a refused node and a revoked invite are reported; an invite that ends with its creator is not', (t: Assert) => {
  const log = founded()
  const teller = new Teller()
  log.join(owner, ann, { admin: true })
  const terms = log.join(owner, bob)
  const mine = inviteTerms('ann/later')
  log.invite(ann, mine)
  teller.tell(log)
  log.admit(owner, actor('late'), terms)
  log.write(owner, { kind: 'invite-revoked', mesh: MESH, inviteId: terms.id, at: 9 })
  log.revoke(owner, ann)
  t.alike(
    teller.tell(log).map(({ kind, code, peer }) => [kind, code, peer]),
    [
      ['membership', 'invite-revoked', null],
      ['membership', 'revoked', ann.id],
      ['refusal', 'INVITE_USED', actor('late').id]
    ]
  )
  t.alike(teller.codes(log), [])
})

test('settings of the mesh are reported each time they are set', (t: Assert) => {
  const log = founded()
  const teller = new Teller()
  teller.tell(log)
  const settings = { tierRules: DEFAULT_TIER_RULES, sandbox: { enforced: false, crossSandboxAllowList: [] } }
  for (const serial of [1, 2]) {
    log.write(owner, { kind: 'settings', mesh: MESH, settings, serial, at: serial })
    t.alike(
      teller.tell(log).map(({ code, by }) => [code, by]),
      [['settings', owner.id]]
    )
    t.alike(teller.codes(log), [])
  }
})

test('a change of settings reports its serial and the differences, an invite its sandbox', (t: Assert) => {
  const log = founded()
  const teller = new Teller()
  teller.tell(log)
  const told: string[] = []
  const set = (
    serial: number,
    tierRules: readonly TierRule[],
    sandbox: { enforced: boolean; crossSandboxAllowList: string[] }
  ): void => {
    log.write(owner, { kind: 'settings', mesh: MESH, settings: { tierRules, sandbox }, serial, at: serial })
    told.push(...teller.tell(log).map(({ reason }) => reason))
  }
  const other = DEFAULT_TIER_RULES.map((rule) =>
    rule.sourceTier === 1 ? { ...rule, allowedTargetTiers: [1 as const] } : rule
  )
  set(1, other, { enforced: true, crossSandboxAllowList: ['text'] })
  set(2, DEFAULT_TIER_RULES, { enforced: false, crossSandboxAllowList: ['host'] })
  t.alike(told, [
    'serial 1; tiers: L1 may open to L1 (was L0 L1); allow list: +text',
    'serial 2; tiers: L1 may open to L0 L1 (was L1); sandboxes: not enforced; allow list: +host -text'
  ])
  log.invite(owner, inviteTerms('boxed', { sandboxId: 'lab', tier: 3, uses: 1 }))
  t.ok(/^invite .{8}: L3, sandbox lab, 1 use$/.test(teller.tell(log)[0]?.reason ?? ''))
})

test('a change that the log takes back is reported, and reported again when it comes again', (t: Assert) => {
  const log = founded()
  log.join(owner, ann)
  const without = founded()
  const revoked = founded()
  revoked.join(owner, ann)
  revoked.revoke(owner, ann)
  const teller = new Teller()
  teller.tell(log)
  t.alike(teller.codes(without), ['withdrawn'])
  t.alike(teller.codes(without), [])
  const again = teller.tell(log)
  t.alike(
    again.map(({ code }) => code),
    ['admitted']
  )
  const revocation = teller.tell(revoked)
  t.alike(teller.codes(log), ['reinstated'])
  const second = teller.tell(revoked)
  t.alike([revocation[0]?.code, second[0]?.code], ['revoked', 'revoked'])
  t.not(revocation[0]?.ref, second[0]?.ref, 'each is a change of its own')
})

test('a log that was not read yet changes nothing, another mesh begins anew', (t: Assert) => {
  const teller = new Teller()
  teller.tell(founded())
  for (const view of [EMPTY_VIEW, firstView({ mesh: MESH, name: 'home', owner: owner.id })]) {
    t.alike(membershipChanges(teller.known, view), { known: teller.known, changes: [] })
  }
  const other = { ...teller.known, mesh: 'another' }
  t.alike(
    membershipChanges(other, founded().view()).changes.map(({ code }) => code),
    ['founded']
  )
})

test('no reference is reported twice and every revocation is reported, for any times of reading the log', async (t: Assert) => {
  const people = ['p1', 'p2', 'p3', 'p4'].map((name) => actor(name))
  const step = fc.record({
    what: fc.constantFrom('join', 'name', 'tier', 'revoke', 'restart'),
    who: fc.nat(3),
    isRead: fc.boolean()
  })
  const property = fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
    const log = founded()
    const every = new Teller()
    const some = new Teller()
    const refs: string[] = []
    const seen = new Set<string>()
    refs.push(...every.tell(log).map(({ ref }) => ref))
    for (const { what, who, isRead } of steps) {
      const one = people[who] ?? owner
      const member = log.view().members.get(one.id)
      if (what === 'join' && member === undefined) log.join(owner, one)
      else if (what === 'revoke' && member?.revoked === null) log.revoke(owner, one)
      else if (what === 'name' && member?.revoked === null) renamed(log, owner, one, { name: `n${steps.length}` })
      else if (what === 'tier' && member?.revoked === null) renamed(log, owner, one, { maxTier: 3 })
      refs.push(...every.tell(log).map(({ ref }) => ref))
      if (isRead) for (const { ref } of some.tell(log)) seen.add(ref)
    }
    const mine = log.view()
    const { changes } = membershipChanges(some.known, mine)
    for (const { ref } of changes) seen.add(ref)
    const lasting = refs.filter((ref) => ref.endsWith('/invited') || ref.includes('/revoked'))
    return new Set(refs).size === refs.length && lasting.every((ref) => seen.has(ref)) && every.codes(log).length === 0
  })
  await holds(t, property, 100)
})

test('a bounded number of refusals is remembered, the newest, and none is reported twice', (t: Assert) => {
  const view = founded().view()
  const refused = (from: number, to: number): MembershipView['refusals'] =>
    new Map(
      Array.from({ length: to - from }, (_, at) => [
        `node${from + at}`,
        { inviteId: 'i', code: 'INVITE_USED', at: from + at }
      ])
    )
  const first = membershipChanges(NOTHING_KNOWN, { ...view, refusals: refused(0, 5000) })
  t.is(first.changes.filter(({ kind }) => kind === 'refusal').length, 5000)
  const stored = JSON.parse(JSON.stringify(first.known)) as KnownMembership
  t.is(Object.keys(stored.refusals).length, 4096)
  const again = membershipChanges(stored, { ...view, refusals: refused(0, 5000) })
  t.alike(again.changes, [], 'a dropped event was reported')
  t.alike(again.known, stored)
  const more = membershipChanges(stored, { ...view, refusals: refused(0, 5010) })
  t.alike(
    more.changes.map(({ peer }) => peer),
    Array.from({ length: 10 }, (_, at) => `node${5000 + at}`)
  )
  t.is(Object.keys(more.known.refusals).length, 4096)
  t.alike(membershipChanges(more.known, { ...view, refusals: refused(0, 5010) }).changes, [])
})
