import { bytesFromText, bytesToText, keyFromText, type NodeId, utf8 } from '../../kit/ids.js'
import { canonicalJson } from '../../kit/json.js'
import type { Sign, Verify } from '../../kit/sign.js'
import type { JoinRequest, Signed } from './types.js'

/** Signed kinds. Each has its own prefix, so that a signature of one never passes for another. */
export const SIGNED_KINDS = ['certificate', 'entry', 'card', 'join'] as const

/** One of {@link SIGNED_KINDS}. */
export type SignedKind = (typeof SIGNED_KINDS)[number]

/** A node's own key: its id and its signing function. */
export interface Signer {
  readonly id: NodeId
  readonly sign: Sign
}

/** Signed by a candidate: its key, its writer core and its name, bound to one invite. */
export interface JoinBody {
  /** z32 of the invite's id. */
  readonly inviteId: string
  readonly nodeKey: NodeId
  readonly coreKey: string
  readonly name: string
}

const SIGNATURE_BYTES = 64
/** The last character holds one bit of the key and four of padding, which are zero: `y` or `o`. */
const CANONICAL_KEY = /^[ybndrfg8ejkmcpqxot1uwisza345h769]{51}[yo]$/

/**
 * The bytes that are signed: UTF-8 of `a2a-node/<kind>/1`, a line feed and the canonical JSON (RFC 8785) of the body.
 * @throws TypeError for values without a JSON form.
 */
export function signedBytes(kind: SignedKind, body: unknown): Uint8Array {
  return utf8(`a2a-node/${kind}/1\n${canonicalJson(body)}`)
}

/** Signs a body as `signer`. @throws TypeError for values without a JSON form. */
export function seal<T>(kind: SignedKind, body: T, signer: Signer): Signed<T> {
  return { body, by: signer.id, sig: bytesToText(signer.sign(signedBytes(kind, body))) }
}

/** Did `signed.by` sign `signed.body` as this kind? Total: anything malformed is false. */
export function isSealed(kind: SignedKind, signed: Signed<unknown>, verify: Verify): boolean {
  try {
    return isSignatureOf(signed, signedBytes(kind, signed.body), verify)
  } catch {
    return false
  }
}

/** The bytes that a candidate signs. */
export function joinBytes(join: JoinBody): Uint8Array {
  const { inviteId, nodeKey, coreKey, name } = join
  return signedBytes('join', { inviteId, nodeKey, coreKey, name })
}

/** Makes the request of a candidate; `sign` is the node key's. */
export function sealJoin(join: JoinBody, sign: Sign): JoinRequest {
  const { nodeKey, coreKey, name } = join
  return { nodeKey, coreKey, name, sig: bytesToText(sign(joinBytes(join))) }
}

/** Did the request's node key sign it for this invite? Total: anything malformed is false. */
export function isJoinSealed(inviteId: string, request: JoinRequest, verify: Verify): boolean {
  try {
    const { nodeKey, coreKey, name, sig } = request
    return isSignatureOf({ by: nodeKey, sig }, joinBytes({ inviteId, nodeKey, coreKey, name }), verify)
  } catch {
    return false
  }
}

/**
 * Is it a key in the one form that `keyToText` gives? 52 characters hold 260 bits, so every key has 16 spellings;
 * a revoked node must not come back under another spelling of its key.
 */
export function isCanonicalKey(text: unknown): text is NodeId {
  return typeof text === 'string' && CANONICAL_KEY.test(text)
}

function isSignatureOf({ by, sig }: Pick<Signed<unknown>, 'by' | 'sig'>, bytes: Uint8Array, verify: Verify): boolean {
  if (!isCanonicalKey(by) || typeof sig !== 'string' || sig.length > 2 * SIGNATURE_BYTES) return false
  const signature = bytesFromText(sig)
  if (signature === null || signature.byteLength !== SIGNATURE_BYTES || bytesToText(signature) !== sig) return false
  return verify(bytes, signature, keyFromText(by))
}
