/** Signs bytes with the node's key. Returns 64 bytes (ed25519). */
export type Sign = (message: Uint8Array) => Uint8Array
/** Checks an ed25519 signature. Total: wrong lengths give false. */
export type Verify = (message: Uint8Array, signature: Uint8Array, publicKey: Uint8Array) => boolean
/** BLAKE2b-256 of the parts, in order. Returns 32 bytes. */
export type Hash = (...parts: Uint8Array[]) => Uint8Array

/** One place where a value does not fit its schema. */
export interface SchemaFault {
  /** JSON pointer into the value; '' is the root. */
  readonly path: string
  readonly message: string
}

/** A compiled check: the faults of a value, empty when it fits. */
export type Check = (value: unknown) => readonly SchemaFault[]
/** Compiles a JSON Schema (draft-07 or 2020-12). @throws NodeError INVALID_CARD when it is no schema. */
export type CompileSchema = (schema: unknown) => Check
