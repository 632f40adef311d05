import { sameBytes } from '../kit/bytes.js'
import type { Hash } from '../kit/sign.js'
import type { DocumentStreams } from '../ports/documents.js'

const HASH_BYTES = 32

/** What {@link keptDocument} needs. */
export interface KeptParts {
  readonly hash: Hash
  readonly documents: Pick<DocumentStreams, 'kept' | 'keep'>
  onError(error: unknown): void
}

/** What this node keeps of one document, so that opening it does not take all blocks of its streams. */
export interface KeptDocument {
  /** Null when there is nothing, or it is damaged. Never rejects. */
  read(): Promise<Uint8Array | null>
  write(snapshot: Uint8Array): Promise<void>
}

/** The snapshot of a document, by its id, behind a hash of it. */
export function keptDocument(id: string, { hash, documents, onError }: KeptParts): KeptDocument {
  return {
    read: async () => {
      const bytes = await documents.kept(id).catch((error: unknown) => {
        onError(error)
        return null
      })
      const snapshot = bytes?.subarray(HASH_BYTES)
      if (bytes === null || snapshot === undefined) return null
      return sameBytes(bytes.subarray(0, HASH_BYTES), hash(snapshot)) ? snapshot : null
    },
    write: async (snapshot) => {
      const bytes = new Uint8Array(HASH_BYTES + snapshot.byteLength)
      bytes.set(hash(snapshot).subarray(0, HASH_BYTES))
      bytes.set(snapshot, HASH_BYTES)
      await documents.keep(id, bytes)
    }
  }
}
