import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { canonicalJson } from '../../../../src/kit/json.js'
import { decodeEntry, encodeEntry } from '../../../../src/domain/membership/codec.js'
import { fold, reads } from '../../../../src/domain/membership/fold/fold.js'
import { endInviteFault, grantFault } from '../../../../src/domain/membership/grant.js'
import { seal } from '../../../../src/domain/membership/signing.js'
import type { Entry, MembershipView, Trust } from '../../../../src/domain/membership/types.js'
import { MAX_WRITERS } from '../../../../src/domain/membership/writers.js'
import type { Tier } from '../../../../src/domain/routing/tier.js'
import {
  arbDocumentOp,
  checkDocuments,
  DOCUMENT_KINDS,
  documentBody,
  documentWithStream
} from '../../../support/document-entries.js'
import { demand } from '../../../support/demand.js'
import {
  type Actor,
  actor,
  admission,
  cardBody,
  founded,
  inviteTerms,
  keyText,
  LogModel,
  MESH,
  signedCard,
  verify
} from '../../../support/membership.js'
import { holds } from '../../../support/holds.js'

const owner = actor('owner')
const ACTORS: readonly Actor[] = [owner, ...Array.from({ length: 9 }, (_, i) => actor(`node${i}`))]
const INVITES = 6

/** One thing that somebody tries, honest or not. Most are legal for some authors only. */
const arbWho = fc.nat(ACTORS.length - 1)
/** Mostly somebody who may. */
const arbAuthor = fc.oneof(
  { weight: 3, arbitrary: fc.constant(0) },
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 3 }) },
  { weight: 1, arbitrary: arbWho }
)
const arbTier = fc.constantFrom<Tier[]>(0, 1, 2, 3)
const arbSandbox = fc.constantFrom(undefined, undefined, 'ci', 'lab')
const arbIssued = fc.integer({ min: 1000, max: 3200 })
const arbOp = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      op: fc.constant('invite' as const),
      by: arbAuthor,
      invite: fc.nat(INVITES - 1),
      tier: arbTier,
      admin: fc.boolean(),
      uses: fc.constantFrom(1, 2, 3, 9),
      sandbox: arbSandbox
    })
  },
  {
    weight: 9,
    arbitrary: fc.record({
      op: fc.constant('admit' as const),
      by: arbAuthor,
      node: arbWho,
      invite: fc.nat(INVITES - 1),
      issuedAt: arbIssued,
      lie: fc.constantFrom('', '', '', '', 'tier', 'rights', 'core', 'request', 'issuer')
    })
  },
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constant('end-invite' as const),
      by: arbWho,
      invite: fc.nat(INVITES - 1),
      at: arbIssued
    })
  },
  {
    weight: 5,
    arbitrary: fc.record({
      op: fc.constant('certify' as const),
      by: arbAuthor,
      node: arbWho,
      tier: arbTier,
      step: fc.constantFrom(1, 1, 1, 2, 0, -1),
      lie: fc.constantFrom('', '', '', 'rights', 'sandbox')
    })
  },
  {
    weight: 2,
    arbitrary: fc.record({ op: fc.constant('revoke' as const), by: arbAuthor, node: arbWho, at: arbIssued })
  },
  {
    weight: 3,
    arbitrary: fc.record({
      op: fc.constant('card' as const),
      by: arbAuthor,
      signer: fc.boolean(),
      agent: fc.nat(3),
      tier: arbTier,
      revision: fc.nat(4),
      sandbox: arbSandbox
    })
  },
  {
    weight: 1,
    arbitrary: fc.record({ op: fc.constant('uncard' as const), by: arbWho, agent: fc.nat(3), revision: fc.nat(4) })
  },
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constant('set' as const),
      by: arbAuthor,
      serial: fc.integer({ min: 1, max: 4 }),
      tier: arbTier
    })
  },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant('trust' as const),
      by: arbAuthor,
      node: arbWho,
      trust: fc.constantFrom<Trust[]>('mine', 'guest'),
      serial: fc.integer({ min: 1, max: 4 })
    })
  },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant('core' as const),
      by: arbAuthor,
      serial: fc.integer({ min: 1, max: 4 }),
      core: fc.constantFrom('one', 'two', '')
    })
  },
  {
    weight: 8,
    arbitrary: arbDocumentOp(arbAuthor)
  },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('again' as const), which: fc.nat(99) }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('found' as const), by: arbWho }) }
)
type Op = typeof arbOp extends fc.Arbitrary<infer T> ? T : never
const arbOps = fc.array(arbOp, { minLength: 20, maxLength: 45 })

const who = (index: number): Actor => ACTORS[index] ?? owner
const terms = (log: LogModel, index: number) =>
  log.view().invites.get(inviteTerms(`i${index}`).id)?.terms ?? inviteTerms(`i${index}`)

/** A mesh with an admin and three invites, so that much of what is tried can succeed. */
function started(): LogModel {
  const log = founded()
  log.join(owner, who(1), { admin: true, tier: 0 })
  log.invite(owner, inviteTerms('i0', { admin: true, uses: 9, expiresAt: 3000 }))
  log.invite(owner, inviteTerms('i1', { tier: 2, uses: 2, expiresAt: 3000 }))
  log.invite(who(1), inviteTerms('i2', { tier: 2, uses: 3, sandboxId: 'ci', expiresAt: 3000 }))
  for (const body of documentWithStream()) log.write(who(1), body)
  return log
}

/** The entry that an operation stands for; null when it needs something that is not there. */
function entryOf(log: LogModel, op: Op): Entry | null {
  if (op.op === 'again') return log.entries[op.which % log.entries.length]?.entry ?? null
  const by = who(op.by)
  switch (op.op) {
    case 'invite': {
      const sandbox = op.sandbox === undefined ? {} : { sandboxId: op.sandbox }
      const invite = inviteTerms(`i${op.invite}`, {
        tier: op.tier,
        admin: op.admin,
        uses: op.uses,
        expiresAt: 3000,
        ...sandbox
      })
      return seal('entry', { kind: 'invite', mesh: MESH, invite }, by)
    }
    case 'admit':
      return admitEntry(log, op)
    case 'end-invite':
      return seal(
        'entry',
        { kind: 'invite-revoked', mesh: MESH, inviteId: inviteTerms(`i${op.invite}`).id, at: op.at },
        by
      )
    case 'certify':
      return certifyEntry(log, op)
    case 'revoke':
      return seal('entry', { kind: 'revocation', mesh: MESH, nodeKey: who(op.node).id, at: op.at, reason: '' }, by)
    case 'card': {
      const sandbox = op.sandbox === undefined ? {} : { sandboxId: op.sandbox }
      const card = signedCard(
        op.signer ? by : owner,
        cardBody(`agent${op.agent}`, { tier: op.tier, revision: op.revision, ...sandbox })
      )
      return seal('entry', { kind: 'card', mesh: MESH, card }, by)
    }
    case 'uncard':
      return seal('entry', { kind: 'card-removed', mesh: MESH, agentId: `agent${op.agent}`, revision: op.revision }, by)
    case 'set': {
      const rule = { sourceTier: op.tier, allowedTargetTiers: [op.tier], requiresEscalationJustification: false }
      const settings = { tierRules: [rule], sandbox: { enforced: true, crossSandboxAllowList: [] } }
      return seal('entry', { kind: 'settings', mesh: MESH, settings, serial: op.serial, at: 1000 }, by)
    }
    case 'core': {
      // The empty one is that of another writer.
      const coreKey = op.core === '' ? who(1).coreKey : keyText(`core/${by.name}/${op.core}`)
      return seal('entry', { kind: 'core', mesh: MESH, coreKey, serial: op.serial }, by)
    }
    case 'trust': {
      const { trust, serial } = op
      return seal('entry', { kind: 'trust', mesh: MESH, nodeKey: who(op.node).id, trust, serial, at: 1000 }, by)
    }
    case 'document':
      return seal('entry', documentBody(op), by)
    case 'found':
      return foundingOf(by)
  }
}

function foundingOf(by: Actor): Entry | null {
  const log = new LogModel()
  log.found(by)
  return log.entries[0]?.entry ?? null
}

function admitEntry(log: LogModel, op: Op & { op: 'admit' }): Entry {
  const [by, node] = [who(op.by), who(op.node)]
  const granted = terms(log, op.invite)
  const changes = {
    issuedAt: op.issuedAt,
    ...(op.lie === 'tier' ? { maxTier: 0 as const } : {}),
    ...(op.lie === 'rights' ? { mayInvite: true, mayWrite: true } : {})
  }
  const body = admission(op.lie === 'issuer' ? owner : by, node, { terms: granted, changes })
  const lie =
    op.lie === 'core'
      ? { coreKey: owner.coreKey }
      : op.lie === 'request'
        ? { request: admission(by, who(op.node + 1), { terms: granted }).request }
        : {}
  return seal('entry', { ...body, ...lie }, by)
}

function certifyEntry(log: LogModel, op: Op & { op: 'certify' }): Entry | null {
  const known = log.view().members.get(who(op.node).id)?.certificate.body
  if (known === undefined) return null
  const by = who(op.by)
  const lie =
    op.lie === 'rights' ? { mayInvite: true, mayWrite: true } : op.lie === 'sandbox' ? { sandboxId: 'elsewhere' } : {}
  const next = { ...known, maxTier: op.tier, serial: Math.max(1, known.serial + op.step), issuer: by.id, ...lie }
  return seal('entry', { kind: 'certificate', mesh: MESH, certificate: seal('certificate', next, by) }, by)
}

/** Everything that must hold of any view, whatever was tried. */
function checkView(log: LogModel): void {
  const view = log.view()
  const root = view.members.get(owner.id)
  const members = [...view.members].sort(([, a], [, b]) => a.order - b.order)
  demand(
    view.mesh?.owner === owner.id && root?.revoked === null && root.certificate.body.maxTier === 0,
    'the owner stays'
  )
  const eligible = members
    .filter(([, one]) => one.revoked === null && one.certificate.body.mayWrite)
    .map(([, one]) => one.coreKey)
  demand(
    canonicalJson([...log.writers].sort()) === canonicalJson(eligible.slice(0, MAX_WRITERS).sort()),
    'writers are the owner and the first four eligible'
  )
  demand(
    canonicalJson(view.writers.active) === canonicalJson(eligible.slice(0, MAX_WRITERS)),
    'the writers record says so'
  )
  demand(new Set(members.map(([, one]) => one.order)).size === members.length, 'every order is given once')
  for (const invite of view.invites.values()) {
    demand(invite.admitted.length <= invite.terms.uses, 'no more than its uses are admitted')
    demand(new Set(invite.admitted).size === invite.admitted.length, 'nobody is counted twice')
    for (const node of invite.admitted)
      demand(view.members.get(node)?.certificate.body.inviteId === invite.terms.id, 'an admission makes a member')
  }
  for (const [node, member] of members) {
    const { inviteId } = member.certificate.body
    demand(
      node === owner.id || view.invites.get(inviteId ?? '')?.admitted.includes(node) === true,
      'every member came by an invite'
    )
    demand(member.revoked === null || !view.cards.has(node), 'a revoked node has no cards')
  }
}

/** What one entry may have changed. */
function checkStep(before: MembershipView, after: MembershipView, entry: Entry): void {
  const serialOf = ({ settings }: MembershipView): number => settings?.serial ?? 0
  demand(serialOf(after) >= serialOf(before), 'settings never go back')
  demand(serialOf(after) === serialOf(before) || entry.by === owner.id, 'the owner alone sets what holds for the mesh')
  checkDocuments(before, after, entry)
  for (const [author, { of }] of after.trust) {
    const was = before.trust.get(author)
    for (const [node, { serial }] of Object.entries(was?.of ?? {}))
      demand((of[node]?.serial ?? 0) >= serial, 'ratings never go back')
    demand(canonicalJson(of) === canonicalJson(was?.of ?? {}) || entry.by === author, 'a member rates for itself alone')
    demand(of[author] === undefined, 'no member rates itself')
  }
  for (const [node, member] of before.members) {
    const now = after.members.get(node)
    demand(now !== undefined, 'no member vanishes')
    demand(member.revoked === null || canonicalJson(now) === canonicalJson(member), 'a revoked node never changes')
    const author = before.members.get(entry.by)?.certificate.body
    const [was, is] = [member, now].map((one) => canonicalJson([one?.certificate ?? null, one?.revoked ?? null]))
    const couldAdmit =
      author !== undefined && grantFault(author, { ...member.certificate.body, issuer: entry.by }) === null
    demand(was === is || entry.by === owner.id || couldAdmit, 'nobody changes a member that it could not have admitted')
  }
  for (const [node, member] of after.members) {
    const issuer = before.members.get(entry.by)
    if (canonicalJson(before.members.get(node)?.certificate ?? null) === canonicalJson(member.certificate)) continue
    demand(issuer?.revoked === null && member.certificate.by === entry.by, 'certificates come from unrevoked members')
    demand(
      node === owner.id || grantFault(issuer.certificate.body, member.certificate.body) === null,
      'nobody grants more than it has'
    )
  }
  for (const [id, { terms: ended, by, revokedAt }] of before.invites) {
    if ((after.invites.get(id)?.revokedAt ?? null) === revokedAt || by === entry.by || entry.body.kind === 'revocation')
      continue
    const author = before.members.get(entry.by)?.certificate.body
    demand(
      author !== undefined && endInviteFault(author, ended, { owner: owner.id }) === null,
      'nobody ends an invite it could not have made'
    )
  }
  for (const [node, cards] of after.cards) {
    for (const [id, card] of cards) {
      const old = before.cards.get(node)?.get(id)
      if (old !== undefined && old.body.revision === card.body.revision) continue
      const certificate = after.members.get(node)?.certificate.body
      demand(certificate !== undefined && card.by === node && entry.by === node, 'cards come from their node')
      demand(
        card.body.tier >= certificate.maxTier && (old === undefined || card.body.revision > old.body.revision),
        'within its certificate, ever newer'
      )
      demand(certificate.sandboxId === undefined || card.body.sandboxId === certificate.sandboxId, 'inside its sandbox')
    }
  }
}

test('the rules of membership hold, for any actions of honest and hostile authors in any order', async (t: Assert) => {
  const tried = new Map<string, number>()
  fc.assert(
    fc.property(arbOps, (ops) => {
      const log = started()
      for (const op of ops) {
        const entry = entryOf(log, op)
        if (entry === null) continue
        const before = log.view()
        const whole = fold(log.records, entry, { verify, isBootstrapRelay: false, meshId: MESH })
        const result = log.apply(entry)
        demand(
          canonicalJson([...whole.puts]) === canonicalJson([...result.puts]) && whole.skipped === result.skipped,
          'reads names every key that counts'
        )
        checkStep(before, log.view(), entry)
        checkView(log)
        const how = `${entry.body.kind}${result.skipped === null ? '' : result.puts.size > 0 ? ' refused' : ' skipped'}`
        tried.set(how, (tried.get(how) ?? 0) + 1)
      }
    }),
    { numRuns: 120 }
  )
  for (const kind of [
    'invite',
    'invite-revoked',
    'admission',
    'admission refused',
    'certificate',
    'revocation',
    'card',
    'card-removed',
    'settings',
    'core',
    'core skipped',
    'trust',
    'trust skipped',
    ...DOCUMENT_KINDS.flatMap((what) => [what, `${what} skipped`])
  ]) {
    t.ok((tried.get(kind) ?? 0) > 0, `${kind}: ${tried.get(kind)}`)
  }
})

test('an entry that counted changes nothing when it is applied again, at once or at any later place', async (t: Assert) => {
  await holds(
    t,
    fc.property(arbOps, (ops) => {
      const log = started()
      const counted = [...log.entries]
      for (const op of ops) {
        const entry = entryOf(log, op)
        if (entry === null) continue
        if (log.apply(entry).puts.size > 0) counted.push({ entry, isBootstrapRelay: false })
        const once = log.state()
        log.apply(entry)
        demand(log.state() === once, 'applied twice in a row')
      }
      const end = log.state()
      for (const { entry, isBootstrapRelay } of counted) {
        log.apply(entry, isBootstrapRelay)
        demand(log.state() === end, `applied again at the end: ${entry.body.kind}`)
      }
    }),
    100
  )
})

test('the same log, read back from bytes, gives the same view', async (t: Assert) => {
  await holds(
    t,
    fc.property(arbOps, (ops) => {
      const log = started()
      for (const op of ops) {
        const entry = entryOf(log, op)
        if (entry !== null) log.apply(entry)
      }
      const copy = new LogModel()
      for (const { entry, isBootstrapRelay } of log.entries) {
        const decoded = decodeEntry(encodeEntry(entry))
        demand(decoded.ok, 'entries of nodes can be read')
        copy.apply(decoded.entry, isBootstrapRelay)
      }
      demand(copy.state() === log.state(), 'the views agree')
    }),
    100
  )
})

test('bytes changed on the way never throw and never count', async (t: Assert) => {
  const log = founded()
  log.join(owner, who(1), { admin: true })
  log.card(who(1), cardBody('host'))
  const honest = [...log.entries]
  const before = log.state()
  const arbCut = fc.record({
    which: fc.nat(honest.length - 1),
    at: fc.nat(4000),
    drop: fc.nat(3),
    bytes: fc.uint8Array({ maxLength: 3 })
  })
  fc.assert(
    fc.property(arbCut, ({ which, at, drop, bytes }) => {
      const entry = honest[which]?.entry
      const whole = encodeEntry(entry)
      const place = at % whole.byteLength
      const decoded = decodeEntry(
        Uint8Array.from([...whole.subarray(0, place), ...bytes, ...whole.subarray(place + drop)])
      )
      if (!decoded.ok) return
      log.apply(decoded.entry, true)
      demand(log.state() === before, 'a changed entry counts for nothing')
    }),
    { numRuns: 1500 }
  )
  t.is(log.state(), before)
})

test('reads and fold never throw, for any value of any part of an entry', async (t: Assert) => {
  const log = founded()
  log.join(owner, who(1), { admin: true })
  log.card(who(1), cardBody('host'))
  log.revoke(owner, who(1))
  const honest = log.entries.map((one) => one.entry)
  await holds(
    t,
    fc.property(fc.nat(honest.length - 1), fc.nat(60), fc.anything(), (which, part, junk) => {
      const entry = structuredClone(honest[which])
      const places: [Record<string, unknown>, string][] = []
      walk(entry as unknown as Record<string, unknown>, places)
      const [holder, key] = places[part % places.length]
      holder[key] = junk
      const shown = new Map(reads(entry).map((one) => [one, log.records.get(one)] as const))
      const result = fold(shown, entry, { verify, isBootstrapRelay: true, meshId: MESH })
      demand(result.skipped !== null || result.puts.size >= 0, 'a result comes back')
    }),
    1000
  )
})

function walk(holder: Record<string, unknown>, places: [Record<string, unknown>, string][]): void {
  for (const key of Object.keys(holder)) {
    places.push([holder, key])
    const value = holder[key]
    if (typeof value === 'object' && value !== null) walk(value as Record<string, unknown>, places)
  }
}
