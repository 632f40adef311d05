import type { MeshId, NodeId } from '../../kit/ids.js'
import { DEFAULT_TIER_RULES } from '../routing/tier-rules.js'
import type { TierRule } from '../routing/tier-rules.js'
import { TIERS, tierText } from '../routing/tier.js'
import type { InviteRecord, MemberRecord, MembershipView, MeshSettings, SettingsRecord, TrustRecord } from './types.js'

/** One change of members or their rights, reported once. */
export interface MembershipChange {
  /** `refusal`: a node that the log did not admit. */
  readonly kind: 'membership' | 'refusal'
  /**
   * `founded`, `admitted`, `withdrawn`, `renamed`, `tier-changed`, `certified`, `revoked`, `reinstated`, `invited`,
   * `invite-revoked`, `trust`, `settings`, or an INVITE_ code.
   */
  readonly code: string
  /** The node it is about; null for an invite. */
  readonly peer: NodeId | null
  /** The author; null where the log does not name one. */
  readonly by: NodeId | null
  /** In words; names of others in it are theirs. */
  readonly reason: string
  /** No other change has it. */
  readonly ref: string
}

interface KnownNode {
  /** Signature of its certificate. */
  readonly sig: string
  readonly name: string
  readonly tier: number
  readonly isRevoked: boolean
  readonly isGone: boolean
  /** How often the log took something of it back. */
  readonly turns: number
}

/** The settings before the owner sets any. */
const SHIPPED: MeshSettings = { tierRules: DEFAULT_TIER_RULES, sandbox: { enforced: true, crossSandboxAllowList: [] } }

/** Refusals that are known one by one, the newest; of older ones only the time of the newest is kept. */
const MAX_REFUSALS = 4096

/** The reported changes: plain JSON, stored across restarts. */
export interface KnownMembership {
  readonly mesh: MeshId | null
  readonly nodes: { readonly [nodeId: string]: KnownNode }
  /** Invites by id: are they revoked? */
  readonly invites: { readonly [id: string]: boolean }
  /** When nodes were last refused, by node: the newest {@link MAX_REFUSALS}. */
  readonly refusals: { readonly [nodeId: string]: number }
  /** Every refusal up to this time that is not listed was reported; absent while all are listed. */
  readonly refusedUntil?: number
  /** Serial of the settings of the mesh; absent while none were set. */
  readonly settings?: number
  /** The settings themselves, for the comparison with the next ones. */
  readonly rules?: MeshSettings
  /** How members regard others by entries of their own, by author; absent: none does. */
  readonly trust?: { readonly [author: string]: TrustRecord['of'] }
}

/** The state before any report. */
export const NOTHING_KNOWN: KnownMembership = { mesh: null, nodes: {}, invites: {}, refusals: {} }

/**
 * The unreported changes of a view in a stable order, and the state after them. The log may retract unsigned entries by
 * reordering: that is a change too. A view without members, as before the log is read, changes nothing.
 */
export function membershipChanges(
  known: KnownMembership,
  view: MembershipView
): { readonly known: KnownMembership; readonly changes: readonly MembershipChange[] } {
  if (view.mesh === null || view.members.size === 0) return { known, changes: [] }
  const before = known.mesh === view.mesh.id ? known : NOTHING_KNOWN
  const members = [...view.members].sort(([, a], [, b]) => a.order - b.order)
  const changes: MembershipChange[] = []
  const nodes: Record<string, KnownNode> = {}
  for (const [id, member] of members) {
    const old = own(before.nodes, id)
    const next = nextNode(old, member)
    changes.push(...nodeChanges({ id, member, old, next }))
    nodes[id] = next
  }
  const withdrawn = withdrawnNodes(before, view)
  Object.assign(nodes, withdrawn.nodes)
  const invites = inviteChanges(before, view)
  const refusals = refusalChanges(before, view)
  return {
    known: {
      mesh: view.mesh.id,
      nodes,
      invites: invites.known,
      ...refusals.known,
      ...(view.trust.size === 0 ? {} : { trust: Object.fromEntries([...view.trust].map(([id, { of }]) => [id, of])) }),
      ...(view.settings === null ? {} : { settings: view.settings.serial, rules: view.settings.settings })
    },
    changes: [
      ...invites.changes,
      ...changes,
      ...withdrawn.changes,
      ...refusals.changes,
      ...trustChanges(before, view),
      ...settingsChanges(before, view)
    ]
  }
}

/** The known nodes that the log does not admit any more. */
function withdrawnNodes(
  before: KnownMembership,
  view: MembershipView
): Pick<KnownMembership, 'nodes'> & { readonly changes: MembershipChange[] } {
  const gone = Object.entries(before.nodes).filter(([id]) => !view.members.has(id))
  const nodes = gone.map(
    ([id, old]) => [id, old.isGone ? old : { ...old, isGone: true, turns: old.turns + 1 }] as const
  )
  const changes = gone.flatMap(([id, old]) => {
    if (old.isGone) return []
    return [
      change('withdrawn', id, `${quoted(old.name)}: the log does not admit it any more`, `${old.sig}/gone/${old.turns}`)
    ]
  })
  return { nodes: Object.fromEntries(nodes), changes }
}

function nextNode(old: KnownNode | undefined, { certificate, revoked }: MemberRecord): KnownNode {
  const isRevoked = revoked !== null
  const turns = (old?.turns ?? 0) + (old?.isRevoked === true && !isRevoked ? 1 : 0)
  return {
    sig: certificate.sig,
    name: certificate.body.name,
    tier: certificate.body.maxTier,
    isRevoked,
    isGone: false,
    turns
  }
}

interface NodeStep {
  readonly id: NodeId
  readonly member: MemberRecord
  readonly old: KnownNode | undefined
  readonly next: KnownNode
}

function nodeChanges({ id, member, old, next }: NodeStep): MembershipChange[] {
  const { certificate, revoked, order } = member
  const { body, by } = certificate
  const mark = `${next.sig}/${next.turns}`
  const changes: MembershipChange[] = []
  if (old === undefined || old.isGone) {
    const what = `${quoted(body.name)} ${tierText(body.maxTier)}${body.mayInvite ? ', admin' : ''}`
    const where = body.sandboxId === undefined ? '' : `, sandbox ${body.sandboxId}`
    const how = body.inviteId === undefined ? '' : `, by invite ${body.inviteId.slice(0, 8)}`
    changes.push(change(order === 0 ? 'founded' : 'admitted', id, what + where + how, mark, by))
  } else if (old.sig !== next.sig) changes.push(...certificateChanges(old, { id, member, next }))
  if (revoked !== null && (old === undefined || !old.isRevoked || old.isGone)) {
    const why = revoked.reason === '' ? '' : `: ${revoked.reason}`
    changes.push(
      change('revoked', id, `${quoted(body.name)}${why}`, `${id}/revoked/${revoked.at}/${next.turns}`, revoked.by)
    )
  }
  if (revoked === null && old?.isRevoked === true) {
    changes.push(
      change(
        'reinstated',
        id,
        `${quoted(body.name)}: the log took its revocation back`,
        `${id}/reinstated/${next.turns}`
      )
    )
  }
  return changes
}

function certificateChanges(old: KnownNode, { id, member, next }: Omit<NodeStep, 'old'>): MembershipChange[] {
  const { body, by } = member.certificate
  const mark = `${next.sig}/${next.turns}`
  const changes: MembershipChange[] = []
  if (old.name !== body.name)
    changes.push(change('renamed', id, `${quoted(old.name)} to ${quoted(body.name)}`, `${mark}/name`, by))
  if (old.tier !== body.maxTier) {
    const before = old.tier === 0 || old.tier === 1 || old.tier === 2 ? old.tier : 3
    const what = `${quoted(body.name)} ${tierText(before)} to ${tierText(body.maxTier)}`
    changes.push(change('tier-changed', id, what, `${mark}/tier`, by))
  }
  if (changes.length === 0)
    changes.push(change('certified', id, `${quoted(body.name)}: a new certificate that grants the same`, mark, by))
  return changes
}

function inviteChanges(
  before: KnownMembership,
  view: MembershipView
): { readonly known: Record<string, boolean>; readonly changes: MembershipChange[] } {
  const changes: MembershipChange[] = []
  // A retracted invite stays known: if it comes again it grants nothing new.
  const known: Record<string, boolean> = { ...before.invites }
  const invites = [...view.invites.values()].sort(
    (a, b) => a.terms.createdAt - b.terms.createdAt || (a.terms.id < b.terms.id ? -1 : 1)
  )
  for (const invite of invites) {
    const { id, tier, uses, admin, sandboxId } = invite.terms
    const old = own(before.invites, id)
    const isRevoked = isRevokedItself(invite, view)
    known[id] = isRevoked || old === true
    const what = `invite ${id.slice(0, 8)}`
    if (old === undefined) {
      const grants = `${what}: ${tierText(tier)}${sandboxId === undefined ? '' : `, sandbox ${sandboxId}`}${admin ? ', admin' : ''}, ${uses} ${uses === 1 ? 'use' : 'uses'}`
      changes.push({ ...change('invited', null, grants, `${id}/invited`), by: invite.by })
    }
    if (isRevoked && old !== true) changes.push(change('invite-revoked', null, what, `${id}/revoked`))
  }
  return { known, changes }
}

/** Ended by hand, not by the revocation of its creator, which has a line of its own. */
function isRevokedItself({ by, revokedAt }: InviteRecord, view: MembershipView): boolean {
  return revokedAt !== null && revokedAt !== view.members.get(by)?.revoked?.at
}

function refusalChanges(
  before: KnownMembership,
  view: MembershipView
): { readonly known: Pick<KnownMembership, 'refusals' | 'refusedUntil'>; readonly changes: MembershipChange[] } {
  const { refusals, refusedUntil = -1 } = before
  const changes: MembershipChange[] = []
  const known = new Map(Object.entries(refusals))
  for (const [id, { code, inviteId, at = 0 }] of [...view.refusals].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const old = own(refusals, id)
    if (old === at || (old === undefined && at <= refusedUntil)) continue
    known.set(id, at)
    changes.push({
      ...change(code, id, `not admitted by invite ${inviteId.slice(0, 8)}`, `${id}/refused/${at}`),
      kind: 'refusal'
    })
  }
  return { known: newest(known, refusedUntil), changes }
}

/** Forgets the oldest beyond the bound, and keeps until when they were. */
function newest(all: ReadonlyMap<string, number>, until: number): Pick<KnownMembership, 'refusals' | 'refusedUntil'> {
  const sorted = all.size <= MAX_REFUSALS ? [...all] : [...all].sort(([, a], [, b]) => b - a)
  const refusals = Object.fromEntries(sorted.slice(0, MAX_REFUSALS))
  const refusedUntil = Math.max(until, sorted[MAX_REFUSALS]?.[1] ?? -1)
  return refusedUntil < 0 ? { refusals } : { refusals, refusedUntil }
}

/** Only the owner signs settings. */
function settingsChanges(before: KnownMembership, { settings, mesh }: MembershipView): MembershipChange[] {
  if (settings === null || settings.serial === before.settings) return []
  const { serial, at } = settings
  return [
    { ...change('settings', null, settingsText(before, settings), `settings/${serial}/${at}`), by: mesh?.owner ?? null }
  ]
}

/** A member regards another otherwise. */
function trustChanges({ trust: known = {} }: KnownMembership, { trust, members }: MembershipView): MembershipChange[] {
  return [...trust].flatMap(([author, { of }]) =>
    Object.entries(of).flatMap(([node, { trust: how, serial }]) => {
      if (own(own(known, author) ?? {}, node)?.trust === how) return []
      const name = members.get(node)?.certificate.body.name ?? ''
      const what = `${quoted(name)} is ${how === 'mine' ? 'a machine of the same person' : 'a guest'}`
      return [change('trust', node, what, `trust/${author}/${node}/${serial}`, author)]
    })
  )
}

/** Serial and differences: rows of the tier table, the allow list, enforcement of sandboxes. */
function settingsText({ settings: known, rules }: KnownMembership, { serial, settings }: SettingsRecord): string {
  // The former settings are unknown where only their serial was stored.
  if (known !== undefined && rules === undefined) return `serial ${serial}`
  const old = rules ?? SHIPPED
  const tiers = TIERS.flatMap((tier) => {
    const [from, to] = [old, settings].map(({ tierRules }) => rowText(tierRules.find((one) => one.sourceTier === tier)))
    return from === to ? [] : [`${tierText(tier)} may open to ${to} (was ${from})`]
  })
  const [was, is] = [old.sandbox, settings.sandbox]
  const added = is.crossSandboxAllowList.filter((one) => !was.crossSandboxAllowList.includes(one))
  const removed = was.crossSandboxAllowList.filter((one) => !is.crossSandboxAllowList.includes(one))
  const changed = [
    ...(tiers.length === 0 ? [] : [`tiers: ${tiers.join(', ')}`]),
    ...(was.enforced === is.enforced ? [] : [`sandboxes: ${is.enforced ? 'enforced' : 'not enforced'}`]),
    ...(added.length + removed.length === 0
      ? []
      : [`allow list: ${[...added.map((one) => `+${one}`), ...removed.map((one) => `-${one}`)].join(' ')}`])
  ]
  return `serial ${serial}; ${changed.length === 0 ? 'nothing changed' : changed.join('; ')}`
}

function rowText(rule: TierRule | undefined): string {
  if (rule === undefined || rule.allowedTargetTiers.length === 0) return 'nobody'
  return `${rule.allowedTargetTiers.map((tier) => tierText(tier)).join(' ')}${rule.requiresEscalationJustification ? ' with a justification' : ''}`
}

function change(
  ...[code, peer, reason, ref, by = null]: [string, NodeId | null, string, string, (NodeId | null)?]
): MembershipChange {
  return { kind: 'membership', code, peer, by, reason, ref }
}

function own<T>(record: { readonly [key: string]: T }, key: string): T | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined
}

function quoted(name: string): string {
  return JSON.stringify(name)
}
