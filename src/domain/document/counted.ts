import { memberOf } from '../membership/fold-document.js'
import type { DocumentRecord, DocumentStreamRecord, MembershipView } from '../membership/types.js'
import { accessOf } from './access.js'
import type { StreamKey } from './client-ids.js'
import type { StreamBeginning } from './stream.js'

/** A stream that counts. */
export interface CountedStream {
  /** How many of its blocks do; infinitely many while its member may write. */
  readonly blocks: number
  /** With what it begins when it continues another; null: with nothing. */
  readonly beginning: StreamBeginning | null
}

/**
 * Which streams of a document count, and how far. A stream that continues another takes its place once all that it begins with
 * is here (`hasBegun`); until then the other one counts, and this one does not.
 */
export function countedStreams(
  view: MembershipView,
  document: DocumentRecord,
  hasBegun: (stream: StreamKey) => boolean
): Map<StreamKey, CountedStream> {
  const counted = new Map<StreamKey, CountedStream>()
  const streams = streamsByKey(document)
  for (const key of streamsToHave(document, hasBegun)) {
    const { continues } = streams.get(key) ?? {}
    if (continues !== undefined && !hasBegun(key)) continue
    const beginning = continues === undefined ? null : { former: continues.former, blocks: continues.blocks }
    counted.set(key, { blocks: countedBlocks(view, document, key), beginning })
  }
  return counted
}

/** The streams of a document that are needed: all but those whose place was taken, in log order. */
export function streamsToHave(document: DocumentRecord, hasBegun: (stream: StreamKey) => boolean): StreamKey[] {
  const streams = streamsByKey(document)
  const replaced = new Set<StreamKey>()
  // A stream stands behind the one that it continues.
  for (const [key, { continues }] of [...streams].toReversed()) {
    if (continues !== undefined && (replaced.has(key) || hasBegun(key))) replaced.add(continues.from)
  }
  return [...streams.keys()].filter((key) => !replaced.has(key))
}

/**
 * How many blocks of a stream count, by what the log says alone, so that it is the same on every node: all (infinitely many)
 * while a member whose stream it is may write; else as many as there were for whoever signed the access list in force, and
 * what it began with if the list names a stream that it continues. A member that was put out is judged by its last
 * certificate: what it wrote stays until a list leaves it out.
 */
export function countedBlocks(view: MembershipView, document: DocumentRecord, stream: StreamKey): number {
  const { access, creator, streams } = document
  const guarded = { owner: view.mesh?.owner ?? '', creator, access: access?.access ?? null }
  const mayWrite = streams.some(({ nodeKey, coreKey }) => {
    const member = coreKey === stream ? view.members.get(nodeKey) : undefined
    return member !== undefined && accessOf(guarded, memberOf(member.certificate.body)).mayWrite
  })
  if (mayWrite) return Number.POSITIVE_INFINITY
  const lengths = access?.lengths ?? {}
  const known = (key: StreamKey): number => (Object.hasOwn(lengths, key) ? (lengths[key] ?? 0) : 0)
  const byKey = streamsByKey(document)
  const { continues } = byKey.get(stream) ?? {}
  if (continues === undefined) return known(stream)
  let isNamed = known(stream) > 0
  for (let key: StreamKey | undefined = continues.from; key !== undefined && !isNamed; key = byKey.get(key)?.continues?.from) {
    isNamed = known(key) > 0
  }
  return isNamed ? Math.max(known(stream), continues.blocks) : 0
}

/** The streams of a document by their cores, in log order. What several nodes name is as the first of them named it. */
export function streamsByKey({ streams }: Pick<DocumentRecord, 'streams'>): Map<StreamKey, DocumentStreamRecord> {
  const first = new Map<StreamKey, DocumentStreamRecord>()
  for (const stream of streams) if (!first.has(stream.coreKey)) first.set(stream.coreKey, stream)
  return first
}
