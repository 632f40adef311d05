import b4a from 'b4a'
import z32 from 'z32'

/** A 32-byte ed25519 public key of a node as 52 characters of z32. */
export type NodeId = string & { readonly __brand?: 'NodeId' }
/** The key of a mesh (its Autobase) as 52 characters of z32. */
export type MeshId = string & { readonly __brand?: 'MeshId' }

const NODE_ID = /^[ybndrfg8ejkmcpqxot1uwisza345h769]{52}$/

/** Makes identifiers; the random source is the adapter's. */
export interface IdSource {
  /** A fresh, unguessable id with a readable prefix, e.g. `task_8kq...`. At most 40 characters. */
  next(prefix: string): string
}

/** Is it the z32 text of a 32-byte key? */
export function isKeyText(text: unknown): text is NodeId {
  return typeof text === 'string' && NODE_ID.test(text)
}

/** Key bytes (32) to z32 text: of a node unless the caller wants a mesh's. */
export function keyToText<Id extends NodeId | MeshId = NodeId>(key: Uint8Array): Id {
  return flat(z32.encode(key)) as Id
}

/** z32 text of a key back to its 32 bytes. @throws Error when it is no such text. */
export function keyFromText(text: string): Uint8Array {
  if (!isKeyText(text)) throw new Error('not a key in z32')
  return z32.decode(text)
}

/** Any bytes to z32 text (signatures, invite codes). */
export function bytesToText(bytes: Uint8Array): string {
  return z32.encode(bytes)
}

/** z32 text to bytes, or null when it has a foreign character. */
export function bytesFromText(text: string): Uint8Array | null {
  try {
    return z32.decode(text)
  } catch {
    return null
  }
}

/** UTF-8 bytes of a text. */
export function utf8(text: string): Uint8Array {
  return b4a.from(text, 'utf8')
}

/** Text of UTF-8 bytes; broken sequences become U+FFFD. */
export function fromUtf8(bytes: Uint8Array): string {
  return b4a.toString(bytes, 'utf8')
}

/**
 * The same well-formed text in one piece. A concatenated or sliced text stays a reference to its parts, which makes
 * comparisons and map look-ups several times slower. Names that every message is compared with are kept flat.
 */
export function flat<Text extends string>(text: Text): Text {
  return fromUtf8(utf8(text)) as Text
}

/** The short form shown to people: `k7f2...9d3a`. */
export function shortId(id: string): string {
  return id.length <= 12 ? id : `${id.slice(0, 4)}...${id.slice(-4)}`
}
