import crypto from 'hypercore-crypto'
import type { Hash, Sign, Verify } from '../../../kit/sign.js'

/** ed25519 signature check. */
export const verify: Verify = (message, signature, publicKey) =>
  signature.byteLength === 64 && publicKey.byteLength === 32 && crypto.verify(message, signature, publicKey)

/** BLAKE2b-256 of the parts. */
export const hash: Hash = (...parts) => crypto.hash(parts)

/** Signs with an ed25519 secret key (64 bytes). */
export function signer(secretKey: Uint8Array): Sign {
  return (message) => crypto.sign(message, secretKey)
}
