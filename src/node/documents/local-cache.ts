import { sameBytes } from '../../kit/bytes.js'
import type { Hash } from '../../kit/sign.js'
import type { StreamKey } from '../../domain/document/client-ids.js'
import type { Replica } from '../../domain/document/replica.js'
import type { DocumentStreams } from '../../ports/documents.js'
import { NOT_ALLOWED } from './access.js'

const HASH_BYTES = 32

/** What {@link keptDocument} needs. */
export interface KeptDeps {
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
  /** How many blocks of each stream count. */
  readonly counted: ReadonlyMap<StreamKey, number>
  readonly streams: Pick<DocumentStreams, 'read' | 'size'>
  /** A replica that has seen nothing yet. */
  make(): Replica
}

/** A replica that goes on from what was kept, if all of that counts still and is in the streams; null: it is to be made of these. */
export async function replicaOfKept(kept: KeptDocument, { counted, streams, make }: CachedBeginning): Promise<Replica | null> {
  const snapshot = await kept.read()
  if (snapshot === null) return null
  const replica = make()
  if (replica.load(snapshot) === null && (await holds(replica, { counted, streams }))) return replica
  replica.doc.destroy()
  return null
}

async function holds(replica: Replica, { counted, streams }: Pick<CachedBeginning, 'counted' | 'streams'>): Promise<boolean> {
  for (const [stream, { at, reason }] of replica.ends()) if (reason === NOT_ALLOWED && counted.get(stream) !== at) return false
  const clock = replica.vectorClock()
  if (Object.entries(clock).some(([stream, length]) => (counted.get(stream) ?? 0) < length)) return false
  for (const stream of counted.keys()) if (!(await goesOn(streams, stream, clock[stream] ?? 0))) return false
  return true
}

/** Is the last of so many blocks of a stream here, or does the stream begin behind it? */
async function goesOn(streams: CachedBeginning['streams'], stream: StreamKey, length: number): Promise<boolean> {
  const last = await streams.read(stream, Math.max(length - 1, 0), 1)
  const { from } = streams.size(stream)
  return length === from || (length > from && last.length > 0)
}
