import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import {
  type AccessRule,
  accessOf,
  type DocumentAccess,
  DocumentAccessSchema,
  type DocumentMember,
  mayRestrict,
  newerAccess
} from '../../../src/domain/document/access.js'
import { TIERS } from '../../../src/domain/routing/tier.js'
import { holds } from '../../support/holds.js'
import { actor } from '../../support/membership.js'

const nodes = ['owner', 'creator', 'ann', 'bob'].map((name) => actor(name).id)
const [owner, creator] = nodes
const sandboxes = ['ci', 'lab']

const arbRule: fc.Arbitrary<AccessRule> = fc.record({
  members: fc.subarray(nodes),
  maxTier: fc.constantFrom(null, ...TIERS),
  sandboxes: fc.subarray(sandboxes),
  unsandboxed: fc.boolean()
})
const arbAccess: fc.Arbitrary<DocumentAccess> = fc.record({ see: arbRule, write: arbRule, serial: fc.nat({ max: 2 }) })
const arbMember: fc.Arbitrary<DocumentMember> = fc.record({
  node: fc.constantFrom(...nodes),
  tier: fc.constantFrom(...TIERS),
  sandboxId: fc.constantFrom(null, ...sandboxes)
})

/** Who passes, said the other way round: every member of the test that a rule lets pass, by name, tier and place. */
function listed(rule: AccessRule): Set<string> {
  const all = nodes.flatMap((node) =>
    TIERS.flatMap((tier) => [null, ...sandboxes].map((place) => ({ node, tier, place })))
  )
  const places: (string | null)[] = [...rule.sandboxes, ...(rule.unsandboxed ? [null] : [])]
  const tiers = rule.maxTier === null ? [] : TIERS.slice(0, rule.maxTier + 1)
  const some = all.filter(
    ({ node, tier, place }) => rule.members.includes(node) || (tiers.includes(tier) && places.includes(place))
  )
  return new Set(some.map(({ node, tier, place }) => `${node} ${tier} ${place}`))
}

test('an access list lets pass whom it names, and nobody writes who may not see', async (t) => {
  await holds(
    t,
    fc.property(arbAccess, arbMember, (access, member) => {
      const verdict = accessOf({ owner, creator, access }, member)
      const who = `${member.node} ${member.tier} ${member.sandboxId}`
      const isFirst = member.node === owner || member.node === creator
      const maySee = isFirst || listed(access.see).has(who)
      assert.equal(verdict.maySee, maySee)
      assert.equal(verdict.mayWrite, isFirst || (maySee && listed(access.write).has(who)))
      assert.equal(verdict.rule, member.node === owner ? 'owner' : member.node === creator ? 'creator' : 'list')
      assert.ok(DocumentAccessSchema.safeParse(access).success)
    }),
    500
  )
})

test('a document that nobody restricted is for all members in no sandbox, its creator and the owner', async (t) => {
  await holds(
    t,
    fc.property(arbMember, (member) => {
      const { maySee, mayWrite } = accessOf({ owner, creator, access: null }, member)
      const may = member.node === owner || member.node === creator || member.sandboxId === null
      assert.deepEqual([maySee, mayWrite], [may, may])
    })
  )
})

test('creator and owner may restrict a document, others may not', (t) => {
  t.alike(
    nodes.map((node) => mayRestrict({ owner, creator, access: null }, node)),
    [true, true, false, false]
  )
})

test('of two access lists the same one counts, whichever came first: the higher serial, then that of the owner', async (t) => {
  const signed = fc.record({ access: arbAccess, by: fc.constantFrom(owner, creator) })
  await holds(
    t,
    fc.property(signed, signed, signed, (a, b, c) => {
      const newer = newerAccess(a, b, owner)
      assert.deepEqual(newer.access, newerAccess(b, a, owner).access)
      assert.ok(newer.access.serial >= Math.max(a.access.serial, b.access.serial))
      if (a.access.serial === b.access.serial && a.by !== b.by) assert.equal(newer.by, owner)
      assert.deepEqual(newerAccess(newer, c, owner).access, newerAccess(a, newerAccess(b, c, owner), owner).access)
    }),
    500
  )
})
