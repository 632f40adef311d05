import c from 'compact-encoding'
import * as Y from 'yjs'
import { z } from 'zod'
import { fromUtf8, isKeyText, utf8 } from '../../kit/ids.js'
import { parseJson } from '../../kit/json.js'
import { MAX_SESSIONS } from './client-ids.js'

/** Bounds of a snapshot in bytes: what it says of the streams, and the document. */
export const SNAPSHOT_LIMITS = { maxHeadBytes: 1_048_576, maxDocumentBytes: 33_554_432 } as const

const Length = z.int().nonnegative()
const HeadSchema = z.object({
  guid: z.string().min(1).max(128),
  streams: z
    .array(
      z.object({
        key: z.custom<string>(isKeyText),
        /** Blocks that are in the snapshot, and which of them opened each session. */
        length: Length,
        opened: z.array(Length).max(MAX_SESSIONS),
        /** Of each of its clientIDs how far it got, and where its runs begin: the first one, then how much further on each. */
        clients: z.array(z.object({ client: Length, clock: Length, runs: z.array(Length) })),
        /** How the stream ended; null while it goes on. */
        end: z.object({ at: Length, reason: z.string().max(256) }).nullable()
      })
    )
    .max(4096)
})

/** Which document a snapshot is of, and how far it follows each stream. */
export type SnapshotHead = z.infer<typeof HeadSchema>

/** A snapshot's document, read once. */
interface SnapshotState {
  /** How far each clientID got. */
  readonly clocks: ReadonlyMap<number, number>
  /** In the format v2 of Yjs. */
  readonly update: Uint8Array
}

/** A snapshot; `open` reads its document, null when Yjs cannot. */
export type SnapshotReading =
  | { readonly ok: true; readonly head: SnapshotHead; open(): SnapshotState | null }
  | { readonly ok: false; readonly reason: string }

/** A document with what its replica knows of streams, as bytes: length and JSON of the head, then an update of Yjs (v2). */
export function encodeSnapshot(head: SnapshotHead, doc: Y.Doc): Uint8Array {
  const text = c.encode(c.buffer, utf8(JSON.stringify(head)))
  const update = Y.encodeStateAsUpdateV2(doc)
  const bytes = new Uint8Array(text.byteLength + update.byteLength)
  bytes.set(text)
  bytes.set(update, text.byteLength)
  return bytes
}

/** Reads what {@link encodeSnapshot} wrote. Never throws. */
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

/** Read into a document that is thrown away: Yjs throws in the middle, and half of it must not get into the real one. */
function opened(update: Uint8Array): SnapshotState | null {
  const doc = new Y.Doc({ guid: 'snapshot', gc: true })
  try {
    Y.applyUpdateV2(doc, update)
    const isWhole = doc.store.pendingStructs === null && doc.store.pendingDs === null
    return isWhole ? { clocks: Y.decodeStateVector(Y.encodeStateVector(doc)), update } : null
  } catch {
    return null
  } finally {
    doc.destroy()
  }
}
