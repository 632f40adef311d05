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

/** Is all here that a stream begins with which continues another, and was it written by who says that it is its own? */
export type HasBegun = (stream: DocumentStreamRecord) => boolean

/**
 * Which streams of a document count, and how far. A stream that continues another takes its place once all that it begins with
 * is here (`hasBegun`); until then the other one counts, and this one does not.
 */
export function countedStreams(view: MembershipView, document: DocumentRecord, hasBegun: HasBegun): Map<StreamKey, CountedStream> {
  const counted = new Map<StreamKey, CountedStream>()
  const streams = standing(document, hasBegun)
  for (const key of streamsToHave(document, hasBegun)) {
    const stream = streams.get(key)
    if (stream === undefined || (stream.continues !== undefined && !hasBegun(stream))) continue
    const former = formerOf(document, stream, hasBegun)
    const blocks = blocksOf(view, document, { key, begun: stream.continues?.blocks ?? 0, former })
    counted.set(key, { blocks, beginning: beginningOf(stream, former) })
  }
  return counted
}

/** The streams of a document that are needed: all but those whose place was taken, in log order. */
export function streamsToHave(document: DocumentRecord, hasBegun: HasBegun): StreamKey[] {
  const streams = standing(document, hasBegun)
  const replaced = new Set<StreamKey>()
  // A stream stands behind the one that it continues.
  for (const [key, stream] of [...streams].toReversed()) {
    const { continues } = stream
    if (continues !== undefined && (replaced.has(key) || hasBegun(stream))) replaced.add(continues.from)
  }
  return [...streams.keys()].filter((key) => !replaced.has(key))
}

/** The streams in whose place one goes on, the last one first. */
export function formerOf(document: DocumentRecord, stream: DocumentStreamRecord, hasBegun: HasBegun): StreamKey[] {
  const streams = standing(document, hasBegun)
  const former: StreamKey[] = []
  for (let key = stream.continues?.from; key !== undefined; key = streams.get(key)?.continues?.from) former.push(key)
  return former
}

/**
 * How many blocks of a stream count, by what the log says alone, so that it is the same on every node: all (infinitely many)
 * while a member whose stream it is may write; else as many as there were for whoever signed the access list in force, and
 * what it began with if the list names a stream that it continues. A member that was put out is judged by its last
 * certificate: what it wrote stays until a list leaves it out.
 */
export function countedBlocks(view: MembershipView, document: DocumentRecord, stream: StreamKey): number {
  return blocksOf(view, document, { key: stream, begun: 0, former: [] })
}

interface Named {
  readonly key: StreamKey
  /** How many blocks it begins with. */
  readonly begun: number
  /** The streams that it continues. */
  readonly former: readonly StreamKey[]
}

function blocksOf(view: MembershipView, document: DocumentRecord, { key, begun, former }: Named): number {
  const { access, creator, streams } = document
  const guarded = { owner: view.mesh?.owner ?? '', creator, access: access?.access ?? null }
  const mayWrite = streams.some(({ nodeKey, coreKey }) => {
    const member = coreKey === key ? view.members.get(nodeKey) : undefined
    return member !== undefined && accessOf(guarded, memberOf(member.certificate.body)).mayWrite
  })
  if (mayWrite) return Number.POSITIVE_INFINITY
  const lengths = access?.lengths ?? {}
  const known = (one: StreamKey): number => (Object.hasOwn(lengths, one) ? (lengths[one] ?? 0) : 0)
  return [key, ...former].some((one) => known(one) > 0) ? Math.max(known(key), begun) : 0
}

/**
 * The streams of a document by their cores, in log order, each as one node says: what several name is as the one that wrote it
 * says, where that is known, else as the first of them.
 */
function standing({ streams }: DocumentRecord, hasBegun: HasBegun): Map<StreamKey, DocumentStreamRecord> {
  const byKey = new Map<StreamKey, DocumentStreamRecord>()
  const isProven = (stream: DocumentStreamRecord): boolean => stream.continues !== undefined && hasBegun(stream)
  for (const stream of streams) {
    const known = byKey.get(stream.coreKey)
    if (known === undefined || (!isProven(known) && isProven(stream))) byKey.set(stream.coreKey, stream)
  }
  return byKey
}

/**
 * With what a stream begins. Streams before it that its author leaves out belong to it as well: nobody writes with their clientIDs
 * any more, and what others built on these must not wait for ever.
 */
function beginningOf({ continues }: DocumentStreamRecord, former: readonly StreamKey[]): StreamBeginning | null {
  if (continues === undefined) return null
  const named = new Set(continues.former.map(({ stream }) => stream))
  const leftOut = former.filter((key) => !named.has(key)).map((stream) => ({ stream, sessions: 1 }))
  return { former: [...leftOut.toReversed(), ...continues.former], blocks: continues.blocks }
}
