import type { StreamKey } from '../domain/document/client-ids.js'
import type { CountedStream } from '../domain/document/counted.js'
import type { OwnSnapshot } from '../domain/document/own-snapshot.js'
import type { Replica } from '../domain/document/replica.js'
import type { DocumentStreams } from '../ports/documents.js'
import { FedReplica, limitOf, type Stop } from './fed-replica.js'

/** What {@link replicaWith} needs. */
interface ScratchParts {
  make(own: StreamKey | null): Replica
  readonly streams: Pick<DocumentStreams, 'read'>
  seal(block: Uint8Array): Uint8Array
  open(bytes: Uint8Array): Uint8Array | null
}

/** A stream that is to begin, and those that count beside it. */
interface Beginning {
  readonly own: StreamKey
  readonly left: OwnSnapshot
  readonly counted: ReadonlyMap<StreamKey, CountedStream>
  readonly stops: ReadonlyMap<StreamKey, Stop>
}

/** The replica that somebody comes to who has the other streams, and in the place of the own one a stream that begins so. */
export async function replicaWith({ own, left, counted: others, stops }: Beginning, parts: ScratchParts): Promise<Replica> {
  const { blocks, former } = left
  const sealed = blocks.map((block) => parts.seal(block))
  const counted = new Map([...others, [own, { blocks: blocks.length, beginning: { former, blocks: blocks.length } }]])
  const read: DocumentStreams['read'] = async (stream, from, limit) =>
    stream === own ? sealed.slice(from, from + limit) : await parts.streams.read(stream, from, limit)
  const fed = new FedReplica(parts.make(null), {
    streams: { read },
    open: (bytes) => parts.open(bytes),
    limitOf: (stream) => limitOf(stream, counted, stops),
    onStops: () => {},
    isOver: () => false
  })
  fed.begin(counted, stops)
  await fed.feed()
  return fed.replica
}
