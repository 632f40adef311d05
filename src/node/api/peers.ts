import { asNodeError, NodeError } from '../../kit/errors.js'
import { type NodeId, shortId } from '../../kit/ids.js'
import { LookAlikes } from '../../kit/names/look-alikes.js'
import { refuseName } from '../../kit/names/refuse-name.js'
import { NODE_NAME } from '../../kit/names/rule.js'
import { safeName } from '../../kit/names/safe-name.js'
import { type IdKind, resolveId } from '../../kit/resolve-id.js'
import { shellWord, shown } from '../../kit/text.js'
import { sandboxIdSchema } from '../../domain/card/schema.js'
import { amendCertificate } from '../../domain/membership/admit.js'
import { changeFault, endInviteFault } from '../../domain/membership/grant.js'
import { MAX_INVITES_OF_MEMBER, mayInviteMore } from '../../domain/membership/invites/invite-share.js'
import { seal } from '../../domain/membership/signing.js'
import type { Trust } from '../../domain/membership/types.js'
import { inviteState, isAdmin, isWriter } from '../../domain/membership/view.js'
import type { CallerAuthority } from '../../domain/routing/effective.js'
import { tierText, weakest } from '../../domain/routing/tier.js'
import type { Tier } from '../../domain/routing/tier.js'
import type { Calls, IdInfo, Problem } from '../../ports/node-api.js'
import type { InviteInfo, PeerDetail, PeerInfo, PeerList } from '../../ports/peer-api.js'
import { OPERATOR } from '../../domain/card/card.js'
import { shareOf } from '../documents/left-documents.js'
import type { NodeDeps } from '../dependencies.js'
import type { Services } from '../services.js'

/** Dependencies of the calls about peers and invites. */
export interface PeersApiDeps
  extends Pick<
    Services,
    'directory' | 'documents' | 'peers' | 'policy' | 'presence' | 'registry' | 'routes' | 'trust' | 'visibility'
  > {
  readonly deps: Pick<
    NodeDeps,
    'clock' | 'givenAddresses' | 'links' | 'log' | 'logState' | 'membership' | 'pairing' | 'sign'
  >
}

/** The caller of a change, and its time to enter the log: milliseconds, 10,000 when undefined. */
interface ChangeBy {
  readonly by: CallerAuthority
  readonly timeoutMs?: number | undefined
}

/** The default life of an invite, in milliseconds. */
const INVITE_TTL_MS = 600_000
/** How long an invite waits until newcomers find this node by its short code, in milliseconds. */
const ANNOUNCE_MS = 5000
const INVITE_IDS: IdKind = {
  one: 'invite',
  several: 'invites',
  prefix: '',
  code: 'INVITE_NOT_FOUND',
  list: 'a2a-node invite ls'
}

/** Rows of `peers`: every other member, revoked ones only with `all`, without agents that the caller does not see. */
export function listPeers(
  node: PeersApiDeps,
  { all = false }: Calls['peers.list']['params'],
  by: CallerAuthority
): PeerList {
  const { membership } = node.deps
  const members = node.directory.nodes().filter((one) => one.id !== membership.nodeId)
  const peers = members.map((one) => peerInfo(node, one.id, by)).filter((one) => all || one.status !== 'revoked')
  return { peers, problems: node.deps.logState.problems() }
}

/** One peer in full. @throws NodeError PEER_NOT_FOUND, AMBIGUOUS_NAME. */
export function showPeer(node: PeersApiDeps, nodeId: NodeId, by: CallerAuthority): PeerDetail {
  const view = node.deps.log.view()
  const member = view.members.get(nodeId)
  const certificate = member?.certificate.body ?? node.directory.certificate(nodeId)
  if (certificate === null || certificate === undefined)
    throw new NodeError('PEER_NOT_FOUND', 'that node is no member of the mesh')
  const revoked = member?.revoked ?? null
  return {
    ...peerInfo(node, nodeId, by),
    self: nodeId === node.deps.membership.nodeId,
    admin: certificate.mayInvite && revoked === null,
    writer: isWriter(view, nodeId),
    owner: nodeId === node.deps.membership.owner,
    sandboxId: certificate.sandboxId ?? null,
    issuer: node.directory.ref(certificate.issuer),
    version: node.peers.link(nodeId)?.peerVersion ?? null,
    addresses: node.deps.givenAddresses.list(nodeId),
    documents: shareOf(node.documents, view, nodeId),
    revoked:
      revoked === null
        ? null
        : { by: node.directory.ref(revoked.by), at: iso(revoked.at), reason: shown(revoked.reason) }
  }
}

/** The result of `id`: the facts of this node. */
export function showId(node: PeersApiDeps): IdInfo {
  const { membership } = node.deps
  const { maxTier, sandboxId, mayInvite, mayWrite, issuer, issuedAt, expiresAt, serial } = membership.certificate().body
  return {
    node: selfInfo(node),
    mesh: {
      id: membership.meshId,
      name: safeName(membership.meshName, NODE_NAME),
      owner: node.directory.ref(membership.owner)
    },
    certificate: {
      tier: tierText(maxTier),
      sandboxId: sandboxId ?? null,
      mayInvite,
      mayWrite,
      issuer: node.directory.ref(issuer),
      issuedAt: iso(issuedAt),
      expiresAt: expiresAt === undefined ? null : iso(expiresAt),
      serial
    }
  }
}

/** Id, name and tier of this node. */
export function selfInfo(node: PeersApiDeps): IdInfo['node'] {
  const { membership } = node.deps
  return { ...node.directory.ref(membership.nodeId), tier: tierText(membership.certificate().body.maxTier) }
}

/**
 * Changes the name or tier of a member. `by`: nobody gives another member more rights than its own.
 * @throws NodeError NOT_ADMIN, PEER_NOT_FOUND, REVOKED, FORBIDDEN, TIMEOUT; CONFLICT for a name in use.
 */
export async function amendPeer(
  node: PeersApiDeps,
  nodeId: NodeId,
  { by, timeoutMs, ...change }: { readonly name?: string; readonly tier?: Tier } & ChangeBy
): Promise<PeerDetail> {
  const { membership, log, sign, clock } = node.deps
  mayChange(node, nodeId)
  if (change.name !== undefined) checkName(node, nodeId, change.name)
  const own = membership.certificate().body
  const power = weakest(own.maxTier, by.maxTier)
  if (change.tier !== undefined && change.tier < power)
    throw new NodeError('FORBIDDEN', `an ${tierText(power)} caller cannot make another ${tierText(change.tier)}`)
  if (change.tier !== undefined && change.tier !== 0 && nodeId === membership.owner)
    throw new NodeError('FORBIDDEN', 'the owner stays L0')
  refuseRevoked(node, nodeId)
  const body = amendCertificate(log.view(), { self: membership.nodeId, nodeKey: nodeId, ...change, now: clock.now() })
  if (body === null) throw new NodeError('PEER_NOT_FOUND', 'that node is no member of the mesh')
  const certificate = seal('certificate', body, { id: membership.nodeId, sign })
  await log.submit({ kind: 'certificate', mesh: own.mesh, certificate }, timeoutMs)
  return showPeer(node, nodeId, by)
}

/** Changes the name of a member. @throws NodeError as {@link amendPeer}. */
export async function renamePeer(
  node: PeersApiDeps,
  nodeId: NodeId,
  change: { readonly name: string } & ChangeBy
): Promise<Calls['peers.rename']['result']> {
  const before = node.policy.named()
  const detail = await amendPeer(node, nodeId, change)
  const { file } = node.policy.state()
  const policy = before.flatMap(({ line, name, nodes }) => {
    const now = node.directory.nodesOfName(name)
    if (nodes.length === 0 || now.join() === nodes.join()) return []
    const [one] = now
    return [
      {
        file,
        line,
        name: shown(name, 64),
        means: one === undefined || now.length > 1 ? null : node.directory.ref(one).name
      }
    ]
  })
  return { ...detail, policy }
}

/**
 * Refuses a name in use: a second member with it would change the displayed name of the first, and break scripts that
 * use it.
 */
function checkName(node: PeersApiDeps, nodeId: NodeId, name: string): void {
  const command = (better: string): string => `a2a-node peers rename ${nodeId} ${better}`
  refuseName(name, NODE_NAME, { code: 'USAGE', label: 'the new name', command })
  const others = node.directory.nodes().filter((one) => one.id !== nodeId)
  const like = new LookAlikes(others.map((one) => one.name)).find(name)
  const other = others.find((one) => [name, like].includes(one.name) || node.directory.ref(one.id).name === name)
  if (other === undefined) return
  const isRevoked = (node.deps.log.view().members.get(other.id)?.revoked ?? null) !== null
  const who = isRevoked ? 'a node that was put out of the mesh' : 'another node'
  const how =
    like === null
      ? `is called ${shown(name)} already`
      : `is called ${safeName(like, NODE_NAME)}, which looks like ${shown(name)}`
  throw new NodeError('CONFLICT', `${who} ${how}`, {
    data: { candidates: [`${node.directory.ref(other.id).name} (${shortId(other.id)})`] },
    next: ['a2a-node peers --all']
  })
}

/**
 * Revokes a member for good; does nothing for a revoked one.
 * @throws NodeError NOT_ADMIN, PEER_NOT_FOUND, FORBIDDEN, TIMEOUT.
 */
export async function revokePeer(
  node: PeersApiDeps,
  nodeId: NodeId,
  { reason, by, timeoutMs }: { readonly reason: string } & ChangeBy
): Promise<Calls['peers.revoke']['result']> {
  const { membership, clock, log } = node.deps
  if (nodeId === membership.nodeId)
    throw new NodeError('FORBIDDEN', 'a node cannot revoke itself', { next: ['a2a-node stop', 'a2a-node leave'] })
  mayChange(node, nodeId)
  if ((log.view().members.get(nodeId)?.revoked ?? null) !== null)
    return { ...showPeer(node, nodeId, by), wasRevoked: true }
  const { mesh } = membership.certificate().body
  await log.submit({ kind: 'revocation', mesh, nodeKey: nodeId, at: clock.now(), reason }, timeoutMs)
  return { ...showPeer(node, nodeId, by), wasRevoked: false }
}

/**
 * Sets how this node regards a member, above what its invite said.
 * @throws NodeError PEER_NOT_FOUND, REVOKED, USAGE for itself, OVERLOADED, TIMEOUT.
 */
export async function trustPeer(
  node: PeersApiDeps,
  nodeId: NodeId,
  { trust, by, timeoutMs }: { readonly trust: Trust } & ChangeBy
): Promise<Calls['peers.trust']['result']> {
  if (nodeId === node.deps.membership.nodeId) throw new NodeError('USAGE', 'that is this node itself')
  refuseRevoked(node, nodeId)
  if (!node.deps.log.view().members.has(nodeId))
    throw new NodeError('PEER_NOT_FOUND', 'that node is no member of the mesh')
  const before = node.trust.of(nodeId)
  await node.trust.set(nodeId, trust, timeoutMs)
  return { ...showPeer(node, nodeId, by), changed: before !== trust }
}

/**
 * Pings a peer `count` times in sequence, over a direct link only. `timeoutMs`: of all pings together; without it each
 * has 5,000.
 * @throws NodeError PEER_OFFLINE, REVOKED, TIMEOUT.
 */
export async function pingPeer(
  node: PeersApiDeps,
  nodeId: NodeId,
  { count, timeoutMs }: { readonly count: number; readonly timeoutMs?: number | undefined }
): Promise<Calls['peers.ping']['result']> {
  if (nodeId === node.deps.membership.nodeId)
    throw new NodeError('USAGE', 'that is this node itself', { next: ['a2a-node peers'] })
  refuseRevoked(node, nodeId)
  const rttMs: number[] = []
  const { clock } = node.deps
  const until = timeoutMs === undefined ? null : clock.monotonic() + timeoutMs
  try {
    while (rttMs.length < count) {
      const leftMs = until === null ? undefined : Math.max(1, until - clock.monotonic())
      rttMs.push(rounded(await node.peers.ping(nodeId, leftMs)))
    }
    const link = node.peers.link(nodeId)
    if (link === null) throw new NodeError('PEER_OFFLINE', 'the peer is gone')
    return { peer: node.directory.ref(nodeId), path: link.path, rttMs }
  } catch (error) {
    const { code, message, data } = asNodeError(error)
    if (code === 'PEER_OFFLINE') throw await unlinked(node, nodeId, asNodeError(error))
    if (code !== 'TIMEOUT') throw error
    const { name } = node.directory.ref(nodeId)
    throw new NodeError(
      'TIMEOUT',
      `${name}: ${message}, after ${rttMs.length} of ${count} answers; no further ping is sent`,
      {
        data: timeoutMs === undefined ? data : { timeoutMs },
        next: [`a2a-node peers show ${shellWord(name)}`],
        cause: error
      }
    )
  }
}

/** The error for a peer without a link: pings are not relayed. `data.path` is `relayed` when its messages are. */
async function unlinked(
  { directory, presence, routes }: PeersApiDeps,
  nodeId: NodeId,
  cause: NodeError
): Promise<NodeError> {
  const via = (await routes.confirm(nodeId)) ? routes.next(nodeId) : null
  const { name } = directory.ref(nodeId)
  if (via === null && !presence.isOnline(nodeId))
    return new NodeError('PEER_OFFLINE', `no link to ${name}: ${cause.message}`, {
      data: cause.data,
      next: [`a2a-node doctor ${shellWord(name)}`],
      cause
    })
  const by =
    via === null
      ? 'another had one to it within the last minute (relayed), but none carries anything to it now'
      : `it is reached by way of ${directory.ref(via).name} (relayed), which carries messages but no pings`
  return new NodeError('PEER_OFFLINE', `${name} has no direct link; ${by}`, {
    ...(via === null ? {} : { data: { path: 'relayed' } }),
    next: via === null ? ['a2a-node peers'] : ['a2a-node agents --remote', 'a2a-node call <agent> <capability> <json>'],
    cause
  })
}

/**
 * Submits a new invite to the log. `by`: no invite exceeds its rights.
 * @throws NodeError NOT_ADMIN, FORBIDDEN, OVERLOADED, TIMEOUT.
 */
export async function createInvite(
  node: PeersApiDeps,
  params: Calls['invite.create']['params'],
  { by, timeoutMs }: ChangeBy
): Promise<Calls['invite.create']['result']> {
  const { membership, pairing, log } = node.deps
  const own = membership.certificate().body
  if (!own.mayInvite) throw new NodeError('NOT_ADMIN', 'this node may not invite; an admin node can')
  const power = weakest(own.maxTier, by.maxTier)
  if (params.sandboxId !== undefined && !sandboxIdSchema.safeParse(params.sandboxId).success) {
    throw new NodeError('USAGE', 'the id of a sandbox has 1 to 64 of A-Z a-z 0-9 . _ -, a letter or digit first')
  }
  const tier = params.tier ?? weakest(1, power)
  if (tier < power) throw new NodeError('FORBIDDEN', `an ${tierText(power)} caller cannot invite as ${tierText(tier)}`)
  const sandboxId = params.sandboxId ?? by.sandboxId ?? own.sandboxId ?? null
  if ((by.sandboxId ?? sandboxId) !== sandboxId)
    throw new NodeError('FORBIDDEN', 'a sandboxed caller invites into its own sandbox only')
  const trust = params.trust ?? (tier === 0 ? 'mine' : 'guest')
  const { terms, code, shortCode } = pairing.create({
    tier,
    admin: params.admin ?? false,
    sandboxId,
    trust,
    ttlMs: params.ttlMs ?? INVITE_TTL_MS,
    uses: params.uses ?? 1
  })
  if (!mayInviteMore(log.view(), own.nodeKey, terms)) throw noMoreInvites()
  await log.submit({ kind: 'invite', mesh: own.mesh, invite: terms }, timeoutMs)
  if (shortCode !== null) await pairing.announced(terms.id, ANNOUNCE_MS)
  return {
    id: terms.id,
    code: shortCode ?? code,
    longCode: code,
    expiresAt: iso(terms.expiresAt),
    uses: terms.uses,
    tier: tierText(tier),
    sandboxId,
    trust
  }
}

function noMoreInvites(): NodeError {
  const message = `this node has made ${MAX_INVITES_OF_MEMBER} invites, or as many bytes of them as one member may; the owner or another admin can invite`
  return new NodeError('OVERLOADED', message, { next: ['a2a-node peers', 'a2a-node invite ls'] })
}

/** Rows of `invite ls`, newest first. */
export function listInvites(node: PeersApiDeps): Calls['invite.list']['result'] {
  const records = [...node.deps.log.view().invites.values()].sort((a, b) => b.terms.createdAt - a.terms.createdAt)
  return { invites: records.map((one) => inviteInfo(node, one.terms.id)), problems: node.deps.logState.problems() }
}

/** Revokes an invite. @throws NodeError NOT_ADMIN, INVITE_NOT_FOUND, AMBIGUOUS_NAME, TIMEOUT. */
export async function revokeInvite(node: PeersApiDeps, text: string, timeoutMs?: number): Promise<InviteInfo> {
  const { membership, log, clock } = node.deps
  const own = membership.certificate().body
  if (!own.mayInvite) throw new NodeError('NOT_ADMIN', 'this node may not revoke invites; an admin node can')
  const invite = resolveId(text, log.view().invites, INVITE_IDS)
  const { id } = invite.terms
  if (invite.revokedAt === null) {
    const fault = invite.by === own.nodeKey ? null : endInviteFault(own, invite.terms, membership)
    if (fault !== null) throw new NodeError('FORBIDDEN', fault)
    await log.submit({ kind: 'invite-revoked', mesh: own.mesh, inviteId: id, at: clock.now() }, timeoutMs)
  }
  return inviteInfo(node, id)
}

/** Checks a change before its submission, to report at once what the fold of the log would decide. */
function mayChange(node: PeersApiDeps, nodeId: NodeId): void {
  const { membership, log } = node.deps
  const { owner } = membership
  const view = log.view()
  const own = membership.certificate().body
  if (own.nodeKey !== owner && !isAdmin(view, own.nodeKey))
    throw new NodeError('NOT_ADMIN', 'this node is no admin of the mesh')
  const target = view.members.get(nodeId)
  // A revoked member does not change.
  if (target === undefined || target.revoked !== null) return
  const fault = changeFault(own, target.certificate.body, { owner })
  if (fault !== null) throw new NodeError('FORBIDDEN', fault)
}

/** @throws NodeError REVOKED for a revoked node. */
export function refuseRevoked(node: PeersApiDeps, nodeId: NodeId): void {
  if ((node.deps.log.view().members.get(nodeId)?.revoked ?? null) === null) return
  const { name } = node.directory.ref(nodeId)
  throw new NodeError('REVOKED', `${name} was put out of the mesh for good; an invite lets it in with a new home`, {
    next: [`a2a-node peers show ${nodeId}`, 'a2a-node invite']
  })
}

function inviteInfo(node: PeersApiDeps, id: string): InviteInfo {
  const one = node.deps.log.view().invites.get(id)
  if (one === undefined) throw new NodeError('INVITE_NOT_FOUND', 'no such invite')
  return {
    id,
    tier: tierText(one.terms.tier),
    admin: one.terms.admin,
    sandboxId: one.terms.sandboxId ?? null,
    uses: one.terms.uses,
    used: one.admitted.length,
    expiresAt: iso(one.terms.expiresAt),
    state: inviteState(one, node.deps.clock.now()),
    by: node.directory.ref(one.by),
    trust: one.terms.trust ?? 'guest'
  }
}

/** The problem of a member that this node keeps out for its strikes; null for any other. */
export function keptOutProblem(
  { deps, directory }: Pick<PeersApiDeps, 'deps' | 'directory'>,
  nodeId: NodeId
): Problem | null {
  if (!deps.links.isKeptOut(nodeId)) return null
  const name = shown(directory.ref(nodeId).name)
  const message = `this node keeps ${name} out for a while: too many of its messages were refused as forged or faulty`
  return { code: 'PEER_KEPT_OUT', message, next: `a2a-node audit --peer ${shellWord(name)}` }
}

function peerInfo(node: PeersApiDeps, nodeId: NodeId, by: CallerAuthority): PeerInfo {
  const { log, membership } = node.deps
  const member = log.view().members.get(nodeId)
  const certificate = member?.certificate.body ?? node.directory.certificate(nodeId)
  const link = node.peers.link(nodeId)
  const isRevoked = (member?.revoked ?? null) !== null
  const rttMs = link?.rttMs() ?? null
  const isOnline = nodeId === membership.nodeId || node.presence.isOnline(nodeId)
  const lastSeenAt = node.presence.lastSeenAt(nodeId)
  return {
    ...node.directory.ref(nodeId),
    tier: tierText(certificate?.maxTier ?? 3),
    status: isRevoked ? 'revoked' : isOnline ? 'online' : 'offline',
    path: isRevoked ? null : (link?.path ?? (isOnline && nodeId !== membership.nodeId ? 'relayed' : null)),
    rttMs: isRevoked || rttMs === null ? null : rounded(rttMs),
    agents: node.registry
      .ofNode(nodeId)
      .filter((card) => card.id !== OPERATOR && node.visibility.toCaller(card, by))
      .map((card) => card.id)
      .sort(),
    lastSeenAt: lastSeenAt === null ? null : iso(lastSeenAt),
    problem: membership.problemOf(nodeId) ?? keptOutProblem(node, nodeId),
    trust: node.trust.of(nodeId)
  }
}

function rounded(ms: number): number {
  return Math.round(ms * 100) / 100
}

function iso(at: number): string {
  return new Date(at).toISOString()
}
