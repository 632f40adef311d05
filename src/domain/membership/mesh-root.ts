import { concatBytes, sameBytes } from '../../kit/bytes.js'
import { keyFromText, utf8 } from '../../kit/ids.js'
import type { Hash } from '../../kit/sign.js'
import { encodeMeshInfo, type MeshInfo } from './codec.js'

/**
 * Bytes of the fingerprint in an invite code: 128 bits, so that no other owner or mesh with the same one can be found.
 */
export const ROOT_FINGERPRINT_BYTES = 16
/** Bytes of it in a short code: 96 bits, the shortest part that proves a root. */
export const SHORT_ROOT_BYTES = 12

const DOMAIN = 'a2a-node/root/1'

/** The facts that a newcomer cannot check: the owner of the mesh, its log, and its encryption key. */
export interface MeshRoot {
  readonly info: MeshInfo
  /** Of the log, 32 bytes. */
  readonly encryptionKey: Uint8Array
}

/**
 * Fingerprint of the owner's key and the mesh: the first 16 bytes of a hash. Its input is `a2a-node/root/1`, the
 * owner's key, the key of the log, its encryption key (32 bytes each) and the canonical JSON of `info`.
 * @throws Error when a key of `info` is no key
 */
export function rootFingerprint({ info, encryptionKey }: MeshRoot, hash: Hash): Uint8Array {
  const parts = [utf8(DOMAIN), keyFromText(info.owner), keyFromText(info.mesh), encryptionKey, encodeMeshInfo(info)]
  return hash(concatBytes(parts)).slice(0, ROOT_FINGERPRINT_BYTES)
}

/**
 * Why `root` in an answer does not have the fingerprint of the invite code, or its first 12 bytes; null when it
 * does. Every node with the code can answer for the mesh and sign with the key of the invite. So only the fingerprint
 * proves the owner. Total.
 */
export function rootFault(root: MeshRoot, fingerprint: Uint8Array, hash: Hash): string | null {
  try {
    if (root.encryptionKey.byteLength !== 32) return 'its key of the mesh log is not of 32 bytes'
    const bytes = fingerprint.byteLength === SHORT_ROOT_BYTES ? SHORT_ROOT_BYTES : ROOT_FINGERPRINT_BYTES
    return sameBytes(rootFingerprint(root, hash).subarray(0, bytes), fingerprint)
      ? null
      : 'it names another owner or another mesh than the code'
  } catch {
    return 'it is malformed'
  }
}
