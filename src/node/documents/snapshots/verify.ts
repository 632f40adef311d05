import { canonicalJson } from '../../../kit/json.js'
import type { Replica } from '../../../domain/document/replica.js'
import { isPartOfReplica, isSameReplica } from '../../../domain/document/same-replica.js'
import { decodeSnapshot, type SnapshotHead } from '../../../domain/document/snapshot.js'
import { lengthOf } from '../../../domain/membership/fold/document.js'
import type { StreamLengths } from '../../../domain/membership/types.js'
import type { DocumentStreams } from '../../../ports/documents.js'
import { ReplicaFeed } from '../replica-feed.js'

/** The state to compare a snapshot with. */
export interface Compared {
  /** The number of blocks of each stream in the snapshot, by the log. */
  readonly lengths: StreamLengths['lengths']
  /** The snapshot behind which the streams begin here, or null. */
  readonly base: Uint8Array | null
  /** Makes an empty replica. */
  make(): Replica
  readonly streams: Pick<DocumentStreams, 'read' | 'size'>
  open(bytes: Uint8Array): Uint8Array | null
  /** True when the result is no longer needed. */
  isOver(): boolean
}

/**
 * Compares a snapshot of a document with its local streams; reads all of their blocks in the snapshot. `other`: a local
 * block contradicts it. `incomplete`: some of its blocks are not here, and the local ones are in it or were deleted.
 */
export async function compareSnapshot(bytes: Uint8Array, compared: Compared): Promise<'same' | 'other' | 'incomplete'> {
  const [theirs, ours] = [compared.make(), compared.make()]
  try {
    const snapshot = decodeSnapshot(bytes)
    if (!snapshot.ok || !isSame(lengthsOf(snapshot.head), compared.lengths) || theirs.load(bytes, true) !== null)
      return 'other'
    if (compared.base !== null && ours.load(compared.base, true) !== null) return 'incomplete'
    await feed(ours, compared)
    if (!isPartOfReplica(ours, theirs)) return 'other'
    return !isSame(ours.vectorClock(), compared.lengths) ? 'incomplete' : isSameReplica(theirs, ours) ? 'same' : 'other'
  } finally {
    for (const replica of [theirs, ours]) replica.doc.destroy()
  }
}

/** Feeds a replica with the local blocks that the snapshot holds. */
async function feed(replica: Replica, { lengths, streams, open, isOver }: Compared): Promise<void> {
  const fed = new ReplicaFeed(replica, {
    streams,
    open,
    limitOf: (stream) => lengthOf(lengths, stream),
    onStops: () => {},
    onLater: () => {},
    isOver
  })
  for (const stream of Object.keys(lengths)) fed.offer(stream)
  await fed.feed()
}

/** The number of blocks of each stream, by the snapshot itself. */
function lengthsOf({ streams }: SnapshotHead): StreamLengths['lengths'] {
  return Object.fromEntries(streams.flatMap(({ key, length }) => (length > 0 ? [[key, length] as const] : [])))
}

function isSame(one: unknown, other: unknown): boolean {
  return canonicalJson(one) === canonicalJson(other)
}
