import BlindPairing from 'blind-pairing'
import type { DecodedInvite, PairedData } from 'blind-pairing'
import type { PeerDiscovery } from 'hyperswarm'
import { CHOICE_OF_COPY, COPY_STEPS, ERROR_CODES, NodeError } from '../../../kit/errors.js'
import type { Clock, Timer } from '../../../kit/clock.js'
import { formatDuration } from '../../../kit/units.js'
import type { ErrorCode } from '../../../kit/errors.js'
import { bytesToText, keyFromText, keyToText, shortId } from '../../../kit/ids.js'
import type { MeshId } from '../../../kit/ids.js'
import { ownSkew, type PeerClock, skewText } from '../../../domain/membership/clock-skew.js'
import { decodeMeshInfo, encodeJoinData } from '../../../domain/membership/codec.js'
import type { MeshInfo } from '../../../domain/membership/codec.js'
import { decodeInviteCode, type InviteCode } from '../../../domain/membership/invites/invite-code.js'
import { inviteSeed, rendezvousKey } from '../../../domain/membership/invites/short-code.js'
import { rootFault } from '../../../domain/membership/mesh-root.js'
import { denyCode } from '../../../domain/membership/pairing-status.js'
import { sealJoin } from '../../../domain/membership/signing.js'
import type { PairingDeps } from './pairing.js'
import { hash } from '../network/sodium.js'
import { timely } from '../network/timely.js'

/** A newcomer's data of the mesh that its code names, once it is let in. */
export interface Paired {
  readonly key: Uint8Array
  readonly encryptionKey: Uint8Array
  readonly info: MeshInfo
  /** z32 of the invite's id. */
  readonly inviteId: string
}

/** Dependencies of {@link requestJoin}. */
export interface JoinDeps extends PairingDeps {
  /** Clocks of the peers that are connected. */
  clocks(): readonly PeerClock[]
}

/** Options of {@link requestJoin}. */
export interface JoinOptions {
  readonly code: InviteCode
  readonly coreKey: string
  readonly name: string
  readonly timeoutMs: number
}

/** Reads the code of an invite. @throws NodeError INVITE_INVALID when it is garbled, or of another version. */
export function readInviteCode(text: string): InviteCode {
  const decoded = decodeInviteCode(text, hash)
  if (!decoded.ok) throw new NodeError('INVITE_INVALID', `the invite code cannot be used: ${decoded.reason}`)
  return decoded
}

/**
 * Asks any online admin to let this node in. An answer counts only for the owner and the mesh that the code names.
 * @throws NodeError INVITE_EXPIRED, INVITE_USED, INVITE_REVOKED, REVOKED, INVITE_INVALID, AMBIGUOUS_NAME, INVALID_INPUT
 * as an admin answers; INVITE_INVALID as {@link distrustedJoin}; NO_ADMIN_ONLINE when no admin answered in time.
 */
export async function requestJoin(deps: JoinDeps, options: JoinOptions): Promise<Paired> {
  const { coreKey, name, code, timeoutMs } = options
  const { inviteId, invite, topicKey } = askedInvite(code)
  const request = sealJoin({ inviteId, nodeKey: deps.nodeId, coreKey, name }, deps.sign)
  const blind = new BlindPairing(deps.swarm)
  let stopWaiting: () => void = () => {}
  const lookups: Lookups[] = []
  try {
    return await new Promise<Paired>((resolve, reject) => {
      const timer = deps.clock.after(timeoutMs, () => reject(unansweredJoin(timeoutMs)))
      stopWaiting = () => deps.clock.clear(timer)
      const userData = encodeJoinData({ v: 1, request })
      const onadd = (paired: PairedData): void => {
        const read = readPaired(paired, { inviteId, topicKey, root: code.root })
        if (typeof read === 'string') reject(distrustedJoin(read))
        else resolve(read)
      }
      const candidate = blind.addCandidate({ invite, userData, onadd })
      lookups.push(new Lookups(deps, candidate.request.discoveryKey))
      candidate.request.on('rejected', () => {
        const denied = denyCode(candidate.request.response?.status ?? 0)
        if (denied !== null) reject(refusedJoin(denied, ownSkew(deps.clocks())))
      })
    })
  } finally {
    stopWaiting()
    for (const one of lookups) one.close()
    // It tells the DHT, which may not answer.
    await timely(blind.close(), deps.clock, CLOSE_MS)
  }
}

/** How long the end of pairing may take, in milliseconds; it goes on behind. */
const CLOSE_MS = 250

/** Delay between two lookups of admins at a topic, in milliseconds. */
const LOOKUP_MS = 4000

/** Looks up a topic again and again: an admin may announce it after the first lookup, and the next is minutes away. */
class Lookups {
  readonly #clock: Clock
  readonly #session: Pick<PeerDiscovery, 'refresh' | 'destroy'>
  #timer: Timer | null = null

  constructor({ swarm, clock }: Pick<JoinDeps, 'swarm' | 'clock'>, topic: Uint8Array) {
    this.#clock = clock
    this.#session = swarm.join(topic, { server: false, client: true })
    this.#later()
  }

  close(): void {
    this.#clock.clear(this.#timer)
    this.#session.destroy().catch(() => {})
  }

  #later(): void {
    this.#timer = this.#clock.after(LOOKUP_MS, () => {
      this.#session.refresh().catch(() => {})
      this.#later()
    })
  }
}

/** The invite of a code, as blind-pairing takes it. */
interface AskedInvite {
  /** z32 of its id. */
  readonly inviteId: string
  readonly invite: Uint8Array
  /** The key that the answer must have; null: the key of the mesh log that it names. */
  readonly topicKey: Uint8Array | null
}

/** Its expiry is not checked: the clock of the admin decides, and that of this machine may be wrong. */
function askedInvite(code: InviteCode): AskedInvite {
  if (code.kind === 'long') {
    return { inviteId: bytesToText(readInvite(code.invite).id), invite: code.invite, topicKey: null }
  }
  const seed = inviteSeed(code.secret, hash)
  // The id follows from the seed alone, so any key serves for the first one.
  const topicKey = rendezvousKey(BlindPairing.createInvite(seed, { seed }).id, hash)
  const { id, invite } = BlindPairing.createInvite(topicKey, { seed })
  return { inviteId: bytesToText(id), invite, topicKey }
}

/** A code may carry anything, even with the right checksum. */
function readInvite(invite: Uint8Array): DecodedInvite {
  try {
    const decoded = BlindPairing.decodeInvite(invite)
    if (decoded.discoveryKey !== null) return decoded
  } catch {
    // Refused below.
  }
  throw refusedJoin('INVITE_INVALID')
}

/** The mesh of an answer, or why it is not the mesh of the code. */
function readPaired(
  { key, encryptionKey, data }: PairedData,
  { inviteId, topicKey, root }: Pick<AskedInvite, 'inviteId' | 'topicKey'> & { readonly root: Uint8Array }
): Paired | string {
  const decoded = data === null ? null : decodeMeshInfo(data)
  if (encryptionKey === null || decoded === null || !decoded.ok) return 'it does not say whose mesh it is'
  const { info } = decoded
  if (topicKey === null && info.mesh !== keyToText<MeshId>(key)) return 'the mesh that it names has another log'
  const fault = rootFault({ info, encryptionKey }, root, hash)
  return fault ?? { key: keyFromText(info.mesh), encryptionKey, info, inviteId }
}

const REFUSALS: Partial<Record<ErrorCode, string>> = {
  INVITE_EXPIRED: 'the invite has expired; an admin node can make a fresh one',
  INVITE_USED: 'the invite has been used up; an admin node can make a fresh one',
  INVITE_REVOKED: 'the invite has been revoked; an admin node can make a fresh one',
  INVITE_INVALID: 'the invite was not accepted',
  AMBIGUOUS_NAME:
    'the name of this node looks like the name of another member; the invite is still good, join by it with another name',
  INVALID_INPUT:
    'the admin does not take the name of this node; the invite is still good, join by it with another name',
  REVOKED: 'this node has been revoked from the mesh; with --leave it joins by a fresh invite under a new key',
  CONFLICT: `another home of this node, restored from a backup or repaired later, replaced this one in the mesh. ${CHOICE_OF_COPY}, which then stops`
}

/** Next steps beside those in the table of errors. */
const NEXT: Partial<Record<ErrorCode, readonly string[]>> = {
  CONFLICT: COPY_STEPS,
  REVOKED: ['a2a-node start --join - --leave'],
  AMBIGUOUS_NAME: ['a2a-node start --join - --name <name>'],
  INVALID_INPUT: ['a2a-node start --join - --name <name>']
}

/** The impostor would answer newcomers by this code again: only another code is of use. */
const END_INVITE = [
  'a2a-node invite ls   # on a machine of an admin',
  'a2a-node invite revoke <id>   # on a machine of an admin',
  'a2a-node invite   # on a machine of an admin'
]

/**
 * The error of a newcomer whose answer does not lead to the owner that the code names: INVITE_INVALID. `fault` says
 * why.
 */
export function distrustedJoin(fault: string): NodeError {
  const state = `the answer to this code comes neither from the owner of the mesh nor from an admin: ${fault}`
  const advice = 'somebody else may have the code, so end the invite and make a new one'
  return new NodeError('INVITE_INVALID', `${state}. This node did not join; ${advice}`, { next: END_INVITE })
}

/**
 * The error of a node in whose mesh the log names another owner than it joined by: INVITE_INVALID. It is in no mesh any
 * more.
 */
export function otherOwner(): NodeError {
  const message =
    'the log of the mesh names another owner than the one by whose invite this node joined, so it leaves the mesh'
  return new NodeError('INVITE_INVALID', message, { next: ['a2a-node start --join -'] })
}

/** The error of a join that no admin answered in `waitedMs`: NO_ADMIN_ONLINE. */
export function unansweredJoin(waitedMs: number): NodeError {
  const state = `no admin of the mesh answered within ${formatDuration(waitedMs)}, so this node did not start`
  return new NodeError(
    'NO_ADMIN_ONLINE',
    `${state}: the node of the invite, or another admin, must run and be reachable; then join again`,
    {
      data: { timeoutMs: waitedMs }
    }
  )
}

/**
 * The error of a node that the mesh does not let in, or puts out. `skew`: a measured skew of its clock, for a refusal
 * that is about time.
 */
export function refusedJoin(code: ErrorCode, skew: PeerClock | null = null): NodeError {
  const message = REFUSALS[code] ?? 'the mesh did not let this node in'
  if (skew === null || code !== 'INVITE_EXPIRED') return new NodeError(code, message, { next: NEXT[code] ?? [] })
  const clocks = `the clock of this machine is ${skewText(skew, `the node ${shortId(skew.peer)}`)}: set the wrong one of both`
  return new NodeError(code, `${message}; ${clocks}`, { data: { ...skew }, next: ['date', ...ERROR_CODES[code].next] })
}
