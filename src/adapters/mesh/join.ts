import BlindPairing from 'blind-pairing'
import type { DecodedInvite, PairedData } from 'blind-pairing'
import { NodeError } from '../../kit/errors.js'
import type { ErrorCode } from '../../kit/errors.js'
import { bytesToText } from '../../kit/ids.js'
import { decodeMeshInfo, encodeJoinData } from '../../domain/membership/codec.js'
import type { MeshInfo } from '../../domain/membership/codec.js'
import { denyCode } from '../../domain/membership/pairing-status.js'
import { sealJoin } from '../../domain/membership/signing.js'
import type { PairingParts } from './pairing.js'

/** What a newcomer learns when it is let in. */
export interface Paired {
  readonly key: Uint8Array
  readonly encryptionKey: Uint8Array
  readonly info: MeshInfo
  /** z32 of the invite's id. */
  readonly inviteId: string
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
 * @throws NodeError INVITE_EXPIRED, INVITE_USED, INVITE_REVOKED, REVOKED, INVITE_INVALID, AMBIGUOUS_NAME, INVALID_INPUT as an admin answers;
 * NO_ADMIN_ONLINE when nobody did in time.
 */
export async function requestJoin(parts: PairingParts, options: JoinOptions): Promise<Paired> {
  const { id, expires } = readInvite(options.invite)
  if (expires !== 0 && expires <= parts.clock.now()) throw refusedJoin('INVITE_EXPIRED')
  const { coreKey, name, invite, timeoutMs } = options
  const inviteId = bytesToText(id)
  const request = sealJoin({ inviteId, nodeKey: parts.nodeId, coreKey, name }, parts.sign)
  const blind = new BlindPairing(parts.swarm)
  let stopWaiting: () => void = () => {}
  try {
    return await new Promise<Paired>((resolve, reject) => {
      const timer = parts.clock.after(timeoutMs, () => reject(refusedJoin('NO_ADMIN_ONLINE')))
      stopWaiting = () => parts.clock.clear(timer)
      const userData = encodeJoinData({ v: 1, request })
      const onadd = (paired: PairedData): void => {
        const read = readPaired(paired, inviteId)
        if (read === null) reject(refusedJoin('INVITE_INVALID'))
        else resolve(read)
      }
      const candidate = blind.addCandidate({ invite, userData, onadd })
      candidate.request.on('rejected', () => {
        const code = denyCode(candidate.request.response?.status ?? 0)
        if (code !== null) reject(refusedJoin(code))
      })
    })
  } finally {
    stopWaiting()
    await blind.close()
  }
}

/** What a code carries may be anything, even with the right checksum. */
function readInvite(invite: Uint8Array): DecodedInvite {
  try {
    const decoded = BlindPairing.decodeInvite(invite)
    if (decoded.discoveryKey !== null) return decoded
  } catch {
    // Refused below.
  }
  throw refusedJoin('INVITE_INVALID')
}

function readPaired({ key, encryptionKey, data }: PairedData, inviteId: string): Paired | null {
  const info = data === null ? null : decodeMeshInfo(data)
  return encryptionKey === null || info === null || !info.ok ? null : { key, encryptionKey, info: info.info, inviteId }
}

const REFUSALS: Partial<Record<ErrorCode, string>> = {
  INVITE_EXPIRED: 'the invite has expired; an admin node can make a fresh one',
  INVITE_USED: 'the invite has been used up; an admin node can make a fresh one',
  INVITE_REVOKED: 'the invite has been revoked; an admin node can make a fresh one',
  INVITE_INVALID: 'the invite was not accepted',
  AMBIGUOUS_NAME: 'the name of this node looks like the name of another member; the invite is still good, join by it with another name',
  INVALID_INPUT: 'the admin does not take the name of this node; the invite is still good, join by it with another name',
  REVOKED: 'this node has been revoked from the mesh and cannot join it again with the same key',
  NO_ADMIN_ONLINE:
    'no admin of the mesh answered: the node that made the invite, or another admin, must run and be reachable; then join again',
  CONFLICT:
    'another home of this node has taken its place in the mesh: one that was restored from a backup, or repaired, since; a repair of this one takes it back, and the other one stops then'
}

/** What to do beside what the table of errors says. */
const NEXT: Partial<Record<ErrorCode, readonly string[]>> = {
  CONFLICT: ['a2a-node doctor --repair'],
  AMBIGUOUS_NAME: ['a2a-node start --join - --name <name>'],
  INVALID_INPUT: ['a2a-node start --join - --name <name>']
}

/** The error of a node that the mesh does not let in, or puts out. */
export function refusedJoin(code: ErrorCode): NodeError {
  return new NodeError(code, REFUSALS[code] ?? 'the mesh did not let this node in', { next: NEXT[code] ?? [] })
}
