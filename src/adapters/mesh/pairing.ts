import BlindPairing from 'blind-pairing'
import type { Member, MemberRequest } from 'blind-pairing'
import type Hyperswarm from 'hyperswarm'
import type { Clock } from '../../kit/clock.js'
import { messageOf, NodeError } from '../../kit/errors.js'
import type { ErrorCode } from '../../kit/errors.js'
import { bytesFromText, bytesToText } from '../../kit/ids.js'
import type { NodeId } from '../../kit/ids.js'
import type { Hash, Sign, Verify } from '../../kit/sign.js'
import { considerJoin } from '../../domain/membership/admit.js'
import { decodeJoinData, decodeMeshInfo, encodeJoinData, encodeMeshInfo } from '../../domain/membership/codec.js'
import type { MeshInfo } from '../../domain/membership/codec.js'
import { encodeInviteCode } from '../../domain/membership/invite-code.js'
import { denyCode, denyStatus } from '../../domain/membership/pairing-status.js'
import { seal, sealJoin } from '../../domain/membership/signing.js'
import type { InviteRecord } from '../../domain/membership/types.js'
import { isAdmin } from '../../domain/membership/view.js'
import type { IssuedInvite, Pairing } from '../../ports/mesh.js'
import type { Telemetry } from '../../ports/telemetry.js'
import type { Log } from './log.js'

/** What both sides of a pairing need. */
export interface PairingParts {
  readonly swarm: Hyperswarm
  readonly nodeId: NodeId
  readonly sign: Sign
  readonly verify: Verify
  readonly hash: Hash
  readonly clock: Clock
  readonly telemetry: Telemetry
}

/** How a newcomer reaches the network; goes into every code. */
export interface CodeNetwork {
  readonly network: 'public' | 'private' | 'local'
  readonly bootstrap: readonly string[]
  readonly localPort: number | null
}

/** The admin's side: answers requests while this node may invite. */
export interface AdminPairing extends Pairing {
  /** The view changed: begin or stop to answer. */
  review(): void
}

/** Begins to answer newcomers whenever this node is an admin. */
export function openPairing(parts: PairingParts & { readonly log: Log; readonly network: CodeNetwork }): AdminPairing {
  const { log, clock, telemetry } = parts
  const blind = new BlindPairing(parts.swarm)
  let member: Member | null = null
  review()

  function review(): void {
    const may = isAdmin(log.view(), parts.nodeId)
    if (may && member === null) member = blind.addMember({ discoveryKey: log.discoveryKey, onadd: answer })
    if (!may && member !== null) {
      member.close().catch(() => {})
      member = null
    }
  }

  async function answer(request: MemberRequest): Promise<void> {
    try {
      await consider(request)
    } catch (error) {
      telemetry.log('warn', 'a request to join was not answered', { reason: messageOf(error) })
    }
  }

  async function consider(request: MemberRequest): Promise<void> {
    const inviteId = bytesToText(request.inviteId)
    const record = log.view().invites.get(inviteId)
    const publicKey = record === undefined ? null : bytesFromText(record.terms.publicKey)
    // An invite that this view does not know may be another admin's that is still on its way here.
    if (record === undefined || publicKey === null) return
    const joining = decodeJoinData(request.open(publicKey))
    if (!joining.ok) return request.deny({ status: denyStatus('INVITE_INVALID') })
    const verdict = considerJoin(log.view(), {
      self: parts.nodeId,
      inviteId,
      request: joining.request,
      now: clock.now(),
      verify: parts.verify
    })
    if (verdict.answer === 'silent') return telemetry.log('info', 'a request to join is left to another admin', { reason: verdict.reason })
    if (verdict.answer === 'deny') return request.deny({ status: denyStatus(verdict.code) })
    if (verdict.answer === 'admit') {
      const certificate = seal('certificate', verdict.certificate, { id: parts.nodeId, sign: parts.sign })
      await log.submit({ kind: 'admission', mesh: log.meshId, certificate, coreKey: joining.request.coreKey, request: joining.request })
    }
    // Confirmed only when the own view shows the admission: a confirmation that cannot be kept wedges the newcomer.
    const refusal = log.view().refusals.get(joining.request.nodeKey)
    if (log.view().members.has(joining.request.nodeKey)) confirm(request, record)
    else if (refusal !== undefined) request.deny({ status: denyStatus(refusal.code) })
  }

  function confirm(request: MemberRequest, record: InviteRecord): void {
    const data = bytesFromText(record.terms.additional.data)
    const signature = bytesFromText(record.terms.additional.signature)
    if (data === null || signature === null) return
    request.confirm({ key: log.key, encryptionKey: log.encryptionKey, additional: { data, signature } })
  }

  function create(options: Parameters<Pairing['create']>[0]): IssuedInvite {
    const mesh = log.view().mesh
    if (mesh === null) throw new NodeError('INTERNAL', 'the mesh log is not read yet')
    const createdAt = clock.now()
    const expiresAt = createdAt + options.ttlMs
    const made = BlindPairing.createInvite(log.key, {
      expires: expiresAt,
      data: encodeMeshInfo({ v: 1, owner: mesh.owner, name: mesh.name, mesh: mesh.id })
    })
    if (made.additional === null) throw new NodeError('INTERNAL', 'the invite carries no data')
    const { data, signature } = made.additional
    return {
      terms: {
        id: bytesToText(made.id),
        publicKey: bytesToText(made.publicKey),
        tier: options.tier,
        admin: options.admin,
        ...(options.sandboxId === null ? {} : { sandboxId: options.sandboxId }),
        uses: options.uses,
        createdAt,
        expiresAt,
        additional: { data: bytesToText(data), signature: bytesToText(signature) }
      },
      code: encodeInviteCode({ ...parts.network, invite: made.invite }, parts.hash)
    }
  }

  return {
    create,
    review,
    close: async () => {
      await member?.close()
      await blind.close()
    }
  }
}

/** What a newcomer learns when it is let in. */
export interface Paired {
  readonly key: Uint8Array
  readonly encryptionKey: Uint8Array
  readonly info: MeshInfo
}

/** What a newcomer asks with. */
export interface JoinOptions {
  /** The invite of blind-pairing, out of the code. */
  readonly invite: Uint8Array
  readonly coreKey: string
  readonly name: string
  readonly timeoutMs: number
}

/**
 * Asks any online admin to let this node in.
 * @throws NodeError INVITE_EXPIRED, INVITE_USED, INVITE_REVOKED, REVOKED, INVITE_INVALID as an admin answers;
 * NO_ADMIN_ONLINE when nobody did in time.
 */
export async function requestJoin(parts: PairingParts, options: JoinOptions): Promise<Paired> {
  const decoded = BlindPairing.decodeInvite(options.invite)
  if (decoded.expires !== 0 && decoded.expires <= parts.clock.now()) throw refusal('INVITE_EXPIRED')
  const inviteId = bytesToText(decoded.id)
  const { coreKey, name } = options
  const request = sealJoin({ inviteId, nodeKey: parts.nodeId, coreKey, name }, parts.sign)
  const blind = new BlindPairing(parts.swarm)
  let stopWaiting: () => void = () => {}
  try {
    return await new Promise<Paired>((resolve, reject) => {
      const timer = parts.clock.after(options.timeoutMs, () => reject(refusal('NO_ADMIN_ONLINE')))
      stopWaiting = () => parts.clock.clear(timer)
      const candidate = blind.addCandidate({
        invite: options.invite,
        userData: encodeJoinData({ v: 1, request }),
        onadd: ({ key, encryptionKey, data }) => {
          const info = data === null ? null : decodeMeshInfo(data)
          if (encryptionKey === null || info === null || !info.ok) return reject(refusal('INVITE_INVALID'))
          resolve({ key, encryptionKey, info: info.info })
        }
      })
      candidate.request.on('rejected', () => {
        const code = denyCode(candidate.request.response?.status ?? 0)
        if (code !== null) reject(refusal(code))
      })
    })
  } finally {
    stopWaiting()
    await blind.close()
  }
}

const REFUSALS: Partial<Record<ErrorCode, string>> = {
  INVITE_EXPIRED: 'the invite has expired',
  INVITE_USED: 'the invite has been used up',
  INVITE_REVOKED: 'the invite has been revoked',
  INVITE_INVALID: 'the invite was not accepted',
  REVOKED: 'this node has been revoked from the mesh and cannot join it again with the same key',
  NO_ADMIN_ONLINE: 'no admin of the mesh answered; one must be online to let a node in'
}

/** The error of a join that was refused. */
export function refusal(code: ErrorCode): NodeError {
  return new NodeError(code, REFUSALS[code] ?? 'the mesh did not let this node in')
}
