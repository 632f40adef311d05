import { sameBytes } from '../../kit/bytes.js'
import type { Hash } from '../../kit/sign.js'
import type { StreamKey } from '../../domain/document/client-ids.js'
import type { Replica } from '../../domain/document/replica.js'
import type { DocumentStreams } from '../../ports/documents.js'
import { NOT_ALLOWED } from './access.js'

const HASH_BYTES = 32

/** Dependencies of {@link keptDocument}. */
export interface KeptDeps {
  readonly hash: Hash
  readonly documents: Pick<DocumentStreams, 'kept' | 'keep'>
  onError(error: unknown): void
}

/** The cached snapshot of one document, so that opening it does not read all blocks of its streams. */
export interface KeptDocument {
  /** Null when there is no snapshot, or it is damaged. Never rejects. */
  read(): Promise<Uint8Array | null>
  write(snapshot: Uint8Array): Promise<void>
}

/** The cached snapshot of a document by its id, stored behind a hash of it. */
export function keptDocument(id: string, { hash, documents, onError }: KeptDeps): KeptDocument {
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

interface CachedBeginning {
  /** The number of counted blocks of each stream. */
  readonly counted: ReadonlyMap<StreamKey, number>
  readonly streams: Pick<DocumentStreams, 'read' | 'size'>
  /** Makes an empty replica. */
  make(): Replica
}

/**
 * A replica that continues from the cached snapshot, if all of that still counts and is in the streams; null: read the
 * streams.
 */
export async function replicaOfKept(
  kept: KeptDocument,
  { counted, streams, make }: CachedBeginning
): Promise<Replica | null> {
  const snapshot = await kept.read()
  if (snapshot === null) return null
  const replica = make()
  if (replica.load(snapshot) === null && (await holds(replica, { counted, streams }))) return replica
  replica.doc.destroy()
  return null
}

async function holds(
  replica: Replica,
  { counted, streams }: Pick<CachedBeginning, 'counted' | 'streams'>
): Promise<boolean> {
  for (const [stream, { at, reason }] of replica.ends())
    if (reason === NOT_ALLOWED && counted.get(stream) !== at) return false
  const clock = replica.vectorClock()
  if (Object.entries(clock).some(([stream, length]) => (counted.get(stream) ?? 0) < length)) return false
  for (const stream of counted.keys()) if (!(await goesOn(streams, stream, clock[stream] ?? 0))) return false
  return true
}

/** True when the block before `length` is here, or the stream begins at `length`. */
async function goesOn(streams: CachedBeginning['streams'], stream: StreamKey, length: number): Promise<boolean> {
  const last = await streams.read(stream, Math.max(length - 1, 0), 1)
  const { from } = streams.size(stream)
  return length === from || (length > from && last.length > 0)
}
