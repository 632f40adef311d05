import c from 'compact-encoding'
import * as Y from 'yjs'
import { z } from 'zod'
import { fromUtf8, isKeyText, utf8 } from '../../kit/ids.js'
import { parseJson } from '../../kit/json.js'
import { type ClientIds, MAX_SESSIONS, type StreamKey } from './client-ids.js'
import { SNAPSHOT_LIMITS } from './snapshot-limits.js'
import { isPossible, type StreamEnd, type StreamPast } from './stream.js'
import { stateFault } from './update/update.js'

const Length = z.int().nonnegative()
const HeadSchema = z.object({
  guid: z.string().min(1).max(128),
  /** Does emptiness stand in it where an ended stream never wrote? */
  hasGaps: z.boolean(),
  streams: z
    .array(
      z.object({
        key: z.custom<string>(isKeyText),
        /** Blocks that are in the snapshot, and which of them opened each session. */
        length: Length,
        opened: z.array(Length).max(MAX_SESSIONS),
        /**
         * The clock of each of its clientIDs, and the beginnings of its runs, rising. As bytes: the first one, then the
         * differences.
         */
        clients: z.array(z.object({ client: Length, clock: Length, runs: z.array(Length).transform(sums) })),
        /** How the stream ended; null while it goes on. */
        end: z.object({ at: Length, reason: z.string().max(256) }).nullable()
      })
    )
    .max(4096)
    .refine((streams) => new Set(streams.map(({ key }) => key)).size === streams.length, 'a stream is in it twice')
})

/** The document of a snapshot, and its position in each stream. */
export interface SnapshotHead {
  readonly guid: string
  readonly hasGaps: boolean
  readonly streams: readonly (StreamPast & { readonly key: StreamKey; readonly end: StreamEnd | null })[]
}

/** A snapshot's document, read once. */
export interface SnapshotState {
  /** The clock of each clientID. */
  readonly clocks: ReadonlyMap<number, number>
  /** In the format v1 of Yjs. */
  readonly update: Uint8Array
}

/** A snapshot; `open` reads its document, null when Yjs cannot. */
export type SnapshotReading =
  | { readonly ok: true; readonly head: SnapshotHead; open(): SnapshotState | null }
  | { readonly ok: false; readonly reason: string }

/**
 * A document with the stream state of its replica, as bytes: length and JSON of the head, then an update of Yjs (v1).
 */
export function encodeSnapshot(head: SnapshotHead, doc: Y.Doc): Uint8Array {
  const text = c.encode(c.buffer, utf8(JSON.stringify({ ...head, streams: head.streams.map(written) })))
  const update = Y.encodeStateAsUpdate(doc)
  const bytes = new Uint8Array(text.byteLength + update.byteLength)
  bytes.set(text)
  bytes.set(update, text.byteLength)
  return bytes
}

function written(stream: SnapshotHead['streams'][number]): unknown {
  return { ...stream, clients: stream.clients.map((one) => ({ ...one, runs: steps(one.runs) })) }
}

/** Rising numbers as the first one and then the differences, which are short. And back. */
function steps(numbers: readonly number[]): number[] {
  return numbers.map((number, place) => number - (numbers[place - 1] ?? 0))
}

function sums(numbers: readonly number[]): number[] {
  let sum = 0
  return numbers.map((step) => (sum += step))
}

/** Decodes the bytes of {@link encodeSnapshot}. Never throws. */
export function decodeSnapshot(bytes: Uint8Array): SnapshotReading {
  if (bytes.byteLength > SNAPSHOT_LIMITS.maxHeadBytes + SNAPSHOT_LIMITS.maxDocumentBytes)
    return { ok: false, reason: 'a snapshot is too large' }
  try {
    const state = c.state(0, bytes.byteLength, bytes)
    const text = c.buffer.decode(state) ?? new Uint8Array()
    if (text.byteLength > SNAPSHOT_LIMITS.maxHeadBytes) return { ok: false, reason: 'a snapshot is too large' }
    const json = parseJson(fromUtf8(text))
    const head = HeadSchema.safeParse(json.ok ? json.value : null)
    if (!head.success) return { ok: false, reason: 'a snapshot is malformed' }
    const update = bytes.subarray(state.start)
    return { ok: true, head: head.data, open: () => opened(update) }
  } catch {
    return { ok: false, reason: 'a snapshot is malformed' }
  }
}

/**
 * The head of a current snapshot, without streams of which it has no block, as in the log. null: no blocks can have
 * this result.
 */
export function headInForce(head: SnapshotHead): SnapshotHead | null {
  return head.streams.every(isPossible) ? { ...head, streams: head.streams.filter(({ length }) => length > 0) } : null
}

/**
 * Does each stream state the true clock of each of its clientIDs, and of no other? A false clock would end its stream
 * at the next block that writes it.
 */
export function hasWritten(
  streams: SnapshotHead['streams'],
  { clocks, ids }: Pick<SnapshotState, 'clocks'> & { readonly ids: Pick<ClientIds, 'ownerOf'> }
): boolean {
  const stated = streams.flatMap(({ key, clients }) => clients.map((one) => ({ ...one, key })))
  const isRight = stated.every(({ key, client, clock }) => clocks.get(client) === clock && ids.ownerOf(client) === key)
  return isRight && new Set(stated.map(({ client }) => client)).size === clocks.size
}

/** Read into a temporary document: content with missing dependencies must not get into the real one. */
function opened(update: Uint8Array): SnapshotState | null {
  if (stateFault(update) !== null) return null
  const doc = new Y.Doc({ guid: 'snapshot', gc: true })
  try {
    Y.applyUpdate(doc, update)
    const isWhole = doc.store.pendingStructs === null && doc.store.pendingDs === null
    return isWhole ? { clocks: Y.decodeStateVector(Y.encodeStateVector(doc)), update } : null
  } catch {
    return null
  } finally {
    doc.destroy()
  }
}
