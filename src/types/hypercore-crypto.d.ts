declare module 'hypercore-crypto' {
  import type { KeyPair } from '@hyperswarm/secret-stream'

  const crypto: {
    /** ed25519; the seed has 32 bytes. */
    keyPair(seed?: Uint8Array): KeyPair
    validateKeyPair(keyPair: KeyPair): boolean
    /** Returns 64 bytes. */
    sign(message: Uint8Array, secretKey: Uint8Array): Uint8Array
    /** False for wrong lengths. */
    verify(message: Uint8Array, signature: Uint8Array, publicKey: Uint8Array): boolean
    /** BLAKE2b-256 of the parts in order. */
    hash(parts: Uint8Array | readonly Uint8Array[]): Uint8Array
    /** Hash of a leaf of a Hypercore's tree. */
    data(block: Uint8Array): Uint8Array
    discoveryKey(key: Uint8Array): Uint8Array
    randomBytes(size: number): Uint8Array
    /** Distinct 32-byte prefixes for signatures and hashes. */
    namespace(name: string, count: number | readonly number[]): Uint8Array[]
    encrypt(message: Uint8Array, publicKey: Uint8Array): Uint8Array
    decrypt(ciphertext: Uint8Array, keyPair: KeyPair): Uint8Array | null
    encryptionKeyPair(seed?: Uint8Array): KeyPair
  }
  export default crypto
}
