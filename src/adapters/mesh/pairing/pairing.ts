import BlindPairing from 'blind-pairing'
import crypto from 'hypercore-crypto'
import type { Member, MemberRequest, SwarmOfPairing } from 'blind-pairing'
import { sameBytes } from '../../../kit/bytes.js'
import type { Clock } from '../../../kit/clock.js'
import { messageOf, NodeError } from '../../../kit/errors.js'
import { bytesFromText, bytesToText, keyToText } from '../../../kit/ids.js'
import type { NodeId } from '../../../kit/ids.js'
import type { Hash, Sign, Verify } from '../../../kit/sign.js'
import { considerJoin } from '../../../domain/membership/admit.js'
import { decodeJoinData, encodeMeshInfo } from '../../../domain/membership/codec.js'
import type { MeshInfo } from '../../../domain/membership/codec.js'
import { encodeInviteCode } from '../../../domain/membership/invites/invite-code.js'
import { answeredInvites, hasRendezvousLeft } from '../../../domain/membership/invites/rendezvous.js'
import {
  fitsShortCode,
  inviteSeed,
  rendezvousKey,
  SHORT_SECRET_BYTES
} from '../../../domain/membership/invites/short-code.js'
import { rootFingerprint, SHORT_ROOT_BYTES } from '../../../domain/membership/mesh-root.js'
import { denyStatus } from '../../../domain/membership/pairing-status.js'
import { seal } from '../../../domain/membership/signing.js'
import type { Certificate, InviteRecord, JoinRequest } from '../../../domain/membership/types.js'
import { isAdmin } from '../../../domain/membership/view.js'
import type { IssuedInvite, Pairing } from '../../../ports/mesh.js'
import type { Telemetry } from '../../../ports/telemetry.js'
import type { AutobaseLog } from '../log/log.js'
import { timely } from '../network/timely.js'
import { LOG_NOT_HERE } from '../log/missing-log.js'
import { AskedPairing } from './asked-pairing.js'

/** Where blind-pairing takes a request, from a stream or out of the DHT; see {@link total}. */
const ADD_REQUEST = '_addRequest'

/** Name of the topic of the mesh, at which long codes are answered. */
const MESH_TOPIC = 'mesh'

/** Dependencies of both sides of a pairing. */
export interface PairingDeps {
  readonly swarm: SwarmOfPairing
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

/** Further dependencies of the admin's side. */
export interface PairingAdminDeps extends PairingDeps {
  readonly log: AutobaseLog
  readonly network: CodeNetwork
  /** Is it known that no other node of the DHT answers? Then nothing can be announced there. */
  isCutOff(): boolean
}

/** The admin's side of pairing: answers newcomers while this node may invite. */
export class AdminPairing implements Pairing {
  readonly #deps: PairingAdminDeps
  readonly #blind: BlindPairing
  /** By the id of the invite of a short code, or `mesh` for the topic of all long codes. */
  readonly #members = new Map<string, Member>()
  #isClosed = false

  constructor(deps: PairingAdminDeps) {
    this.#deps = deps
    const { swarm, log } = deps
    this.#blind = new AskedPairing(swarm, (key) => log.view().members.has(keyToText(key)))
    this.review()
  }

  /**
   * The view changed: begins or stops to answer, at the topic of the mesh and at those of short codes. After `close` it
   * does nothing: the log may change until it is closed too.
   */
  review(): void {
    if (this.#isClosed) return
    const { log, nodeId, clock } = this.#deps
    const view = log.view()
    const wanted = isAdmin(view, nodeId)
      ? new Set([MESH_TOPIC, ...answeredInvites(view, { self: nodeId, now: clock.now() })])
      : new Set<string>()
    for (const [id, member] of this.#members) {
      if (wanted.has(id)) continue
      this.#members.delete(id)
      member.close().catch(() => {})
    }
    for (const id of wanted) if (!this.#members.has(id)) this.#listen(id)
  }

  #listen(id: string): void {
    const key = this.#keyOf(id)
    if (key === null) return
    const discoveryKey = crypto.discoveryKey(key)
    const member = this.#blind.addMember({ discoveryKey, onadd: (request) => this.#answer(request) })
    this.#members.set(id, total(member))
  }

  /** The key whose discovery key is the topic; null for an id of an invite that is no id. */
  #keyOf(id: string): Uint8Array | null {
    const { log, hash } = this.#deps
    if (id === MESH_TOPIC) return log.key
    const bytes = bytesFromText(id)
    return bytes === null ? null : rendezvousKey(bytes, hash)
  }

  async announced(inviteId: string, limitMs: number): Promise<void> {
    this.review()
    const member = this.#members.get(inviteId)
    // Before it is ready it has no announcement to wait for.
    if (member !== undefined && !this.#deps.isCutOff())
      await timely(
        member.ready().then(() => member.flushed()),
        this.#deps.clock,
        limitMs
      )
  }

  create({ tier, admin, sandboxId, trust, ttlMs, uses }: Parameters<Pairing['create']>[0]): IssuedInvite {
    const { log, nodeId, clock, hash, network } = this.#deps
    const mesh = log.view().mesh
    if (mesh === null) throw new NodeError(LOG_NOT_HERE.code, LOG_NOT_HERE.message, { next: [LOG_NOT_HERE.next] })
    const createdAt = clock.now()
    const expiresAt = createdAt + ttlMs
    const info: MeshInfo = { v: 1, owner: mesh.owner, name: mesh.name, mesh: mesh.id }
    const root = rootFingerprint({ info, encryptionKey: log.encryptionKey }, hash)
    const secret = crypto.randomBytes(SHORT_SECRET_BYTES)
    const { id, publicKey, invite, additional } = BlindPairing.createInvite(log.key, {
      seed: inviteSeed(secret, hash),
      expires: expiresAt,
      data: encodeMeshInfo(info)
    })
    const isShort = fitsShortCode(network) && hasRendezvousLeft(log.view(), { self: nodeId, now: createdAt })
    if (additional === null) throw new NodeError('INTERNAL', 'the invite carries no data')
    return {
      terms: {
        id: bytesToText(id),
        publicKey: bytesToText(publicKey),
        tier,
        admin,
        ...(sandboxId === null ? {} : { sandboxId }),
        ...(trust === 'mine' ? { trust } : {}),
        uses,
        createdAt,
        expiresAt,
        additional: { data: bytesToText(additional.data), signature: bytesToText(additional.signature) }
      },
      code: encodeInviteCode({ kind: 'long', ...network, root, invite, trust }, hash),
      shortCode: isShort
        ? encodeInviteCode({ kind: 'short', ...network, root: root.slice(0, SHORT_ROOT_BYTES), secret, trust }, hash)
        : null
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all([...this.#members.values()].map((member) => member.close()))
    await this.#blind.close()
  }

  async #answer(request: MemberRequest): Promise<void> {
    try {
      await this.#consider(request)
    } catch (error) {
      this.#deps.telemetry.log('warn', 'a request to join was not answered', { reason: messageOf(error) })
    }
  }

  async #consider(request: MemberRequest): Promise<void> {
    const { log, nodeId, clock, verify, telemetry } = this.#deps
    const inviteId = bytesToText(request.inviteId)
    const record = log.view().invites.get(inviteId)
    const publicKey = record === undefined ? null : bytesFromText(record.terms.publicKey)
    // An invite that this view does not know may be another admin's that is still on its way here.
    if (record === undefined || publicKey === null) return
    const joining = decodeJoinData(request.open(publicKey))
    if (!joining.ok) return request.deny({ status: denyStatus('INVITE_INVALID') })
    // The DHT also gives requests that their senders gave up long ago; a waiting sender has a stream to some admin.
    if (!this.#isHere(joining.request.nodeKey)) return telemetry.log('info', 'a request to join came without a stream')
    const answer = considerJoin(log.view(), {
      self: nodeId,
      inviteId,
      request: joining.request,
      now: clock.now(),
      verify
    })
    if (answer.answer === 'silent')
      return telemetry.log('info', 'a request to join is left to another admin', { reason: answer.reason })
    if (answer.answer === 'deny') return request.deny({ status: denyStatus(answer.code) })
    if (answer.answer === 'admit') await this.#admit(joining.request, answer.certificate)
    this.#tell(request, record, joining.request.nodeKey)
  }

  /** Is a stream of the newcomer open now? */
  #isHere(newcomer: NodeId): boolean {
    return [...this.#deps.swarm.connections].some(
      (stream) => !stream.destroying && keyToText(stream.remotePublicKey) === newcomer
    )
  }

  async #admit(request: JoinRequest, body: Certificate): Promise<void> {
    const { log, nodeId, sign } = this.#deps
    const certificate = seal('certificate', body, { id: nodeId, sign })
    await log.submit({ kind: 'admission', mesh: log.meshId, certificate, coreKey: request.coreKey, request })
  }

  /** Confirms only members of the own view: a confirmation that cannot be kept wedges the newcomer. */
  #tell(request: MemberRequest, record: InviteRecord, newcomer: NodeId): void {
    const { log } = this.#deps
    const refusal = log.view().refusals.get(newcomer)
    if (log.view().members.has(newcomer)) this.#confirm(request, record)
    else if (refusal !== undefined) request.deny({ status: denyStatus(refusal.code) })
  }

  #confirm(request: MemberRequest, { terms }: InviteRecord): void {
    const { log, hash } = this.#deps
    const { encryptionKey } = log
    // A newcomer checks that the key of its answer has its topic as discovery key.
    const isOfMesh = sameBytes(request.discoveryKey, log.discoveryKey)
    const key = isOfMesh ? log.key : rendezvousKey(request.inviteId, hash)
    const data = bytesFromText(terms.additional.data)
    const signature = bytesFromText(terms.additional.signature)
    if (data === null || signature === null) return
    request.confirm({ key, encryptionKey, additional: { data, signature } })
  }
}

/**
 * Makes a member take any bytes. A request without a session makes blind-pairing 2.3.1 throw a TypeError, and Protomux
 * then lets the process end. Anyone who knows the pairing topic could cause that, over a stream or by a record in the
 * DHT.
 */
function total(member: Member): Member {
  const inner = member as unknown as Record<typeof ADD_REQUEST, (request: unknown) => Promise<unknown>>
  const addRequest = inner[ADD_REQUEST].bind(member)
  inner[ADD_REQUEST] = (request) => addRequest(request).catch(() => null)
  return member
}
