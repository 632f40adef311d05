import * as Y from 'yjs'
import { concatBytes } from '../../kit/bytes.js'
import { encodeBlock } from './block.js'
import { MAX_FORMER_STREAMS } from '../membership/schema.js'
import type { ClientIds, FormerStream } from './client-ids.js'
import { grouped } from './local-edits.js'
import { sevens } from './needs.js'
import { countUpTo } from './sorted.js'
import type { DocumentStream } from './stream.js'
import { readUpdate, UPDATE_LIMITS } from './update.js'

/** What stands around the parts of an update that writes: three counts, a clientID and a clock. */
const FRAME_BYTES = 32
/** Stretches that one update deletes: each has up to 20 bytes, with a clientID of its own. */
const MAX_STRETCHES = 8192

/** All that a member wrote into a document, to begin another stream with. */
export interface OwnSnapshot {
  readonly blocks: readonly Uint8Array[]
  /** The streams with whose clientIDs it writes, the oldest first. */
  readonly former: readonly FormerStream[]
}

interface OwnWriting {
  readonly doc: Y.Doc
  readonly ids: ClientIds
  readonly stream: DocumentStream
  /** Those that this one continues. */
  readonly former: readonly FormerStream[]
}

/**
 * All that the member of a stream wrote and all that is deleted in the document: first pieces, each of one clientID, then what is
 * deleted. Null when that is nothing, is of too many streams, or something cannot be cut to the size of an update.
 */
export function snapshotOf({ doc, ids, stream, former }: OwnWriting): OwnSnapshot | null {
  const clients = [...doc.store.clients.keys()].filter((client) => ids.ownerOf(client) === stream.key).sort((a, b) => a - b)
  const pieces = clients.flatMap((client) => piecesOf(client, partsOf(doc.store.clients.get(client) ?? [], stream.runsOf(client))))
  const deletes = deletesOf(doc)
  const blocks = [...grouped(pieces), ...grouped(deletes)].map((updates) => encodeBlock({ sessions: 0, updates }))
  // What others would end the stream for is not written.
  if (blocks.length === 0 || [...pieces, ...deletes].some((update) => !readUpdate(update).ok)) return null
  const used = new Set(clients.map((client) => ids.streamOf(client)))
  const own = { stream: stream.key, sessions: ids.sessionsOf(stream.key) }
  const left = [...former, own].filter((one) => used.has(one.stream))
  return left.length > MAX_FORMER_STREAMS ? null : { blocks, former: left }
}

/** A stretch of what one clientID wrote, as an update holds it. */
interface Part {
  readonly bytes: Uint8Array
  readonly clock: number
  readonly length: number
  /** The places that it names. */
  readonly names: readonly Y.ID[]
}

type Struct = Y.Item | Y.GC

function* partsOf(structs: readonly Struct[], runs: readonly number[]): Generator<Part> {
  for (const struct of structs) {
    if (struct instanceof Y.Item) yield* partsOfItem(struct, 0, struct.length)
    else yield* partsOfGone(struct, runs)
  }
}

/** What is gone with its parent has forgotten where its runs began, and what others wrote beside it is judged by that: so it is cut there. */
function* partsOfGone({ id, length }: Y.GC, runs: readonly number[]): Generator<Part> {
  const end = id.clock + length
  const begins = [id.clock, ...runs.slice(countUpTo(runs, id.clock), countUpTo(runs, end - 1))]
  for (const [place, clock] of begins.entries()) {
    const size = (begins[place + 1] ?? end) - clock
    yield { bytes: Uint8Array.from([0, ...sevens(size)]), clock, length: size, names: [] }
  }
}

/** Yjs joins what was typed in many updates to one item, so that it may be larger than an update. */
function* partsOfItem(item: Y.Item, from: number, to: number): Generator<Part> {
  const part = encoded(item, from, to)
  const middle = to - from > 1 ? middleOf(item.content, from, to) : from
  if (middle === from || part.bytes.byteLength <= UPDATE_LIMITS.maxBytes - FRAME_BYTES) {
    yield part
    return
  }
  yield* partsOfItem(item, from, middle)
  yield* partsOfItem(item, middle, to)
}

/** Not between the two halves of a character: Yjs would replace both. */
function middleOf(content: Y.Item['content'], from: number, to: number): number {
  const middle = (from + to) >>> 1
  return content instanceof Y.ContentString && /[\uDC00-\uDFFF]/.test(content.str.charAt(middle)) ? middle - 1 : middle
}

function encoded(item: Y.Item, from: number, to: number): Part {
  const encoder = new Y.UpdateEncoderV1()
  const part = from === 0 && to === item.length ? item : cutOut(item, from, to)
  part.write(encoder, 0)
  return { bytes: encoder.toUint8Array(), clock: part.id.clock, length: part.length, names: namesOf(part) }
}

/** A part of an item as one of its own; the document is left as it is. */
function cutOut({ id, origin, rightOrigin, parent, parentSub, content }: Y.Item, from: number, to: number): Y.Item {
  const copy = content.copy()
  const part = from === 0 ? copy : copy.splice(from)
  if (to - from < part.getLength()) part.splice(to - from)
  const left = from === 0 ? origin : Y.createID(id.client, id.clock + from - 1)
  return new Y.Item(Y.createID(id.client, id.clock + from), null, left, null, rightOrigin, parent, parentSub, part)
}

function namesOf({ origin, rightOrigin, parent }: Y.Item): Y.ID[] {
  const names = [origin, rightOrigin].filter((id) => id !== null)
  if (names.length > 0 || !(parent instanceof Y.AbstractType)) return names
  const { _item: within } = parent
  return within === null ? [] : [within.id]
}

/** The parts of one clientID as updates, in the order of its clocks. */
function piecesOf(client: number, parts: Iterable<Part>): Uint8Array[] {
  const pieces: Piece[] = []
  for (const part of parts) {
    let piece = pieces.at(-1)
    if (piece === undefined || !piece.mayHave(part)) pieces.push((piece = new Piece(client)))
    piece.push(part)
  }
  return pieces.map((piece) => piece.update())
}

/**
 * One update of a snapshot. It stands on nothing that came after its first part was written, however many follow: else two
 * members' pieces could stand on each other, and wait for ever.
 */
class Piece {
  readonly #client: number
  readonly #parts: Part[] = []
  readonly #needs = new Map<number, number>()
  #size = FRAME_BYTES

  constructor(client: number) {
    this.#client = client
  }

  mayHave({ bytes, names }: Part): boolean {
    if (this.#parts.length >= UPDATE_LIMITS.maxParts || this.#size + bytes.byteLength > UPDATE_LIMITS.maxBytes) return false
    return names.every(({ client, clock }) => client === this.#client || clock < (this.#needs.get(client) ?? 0))
  }

  push(part: Part): void {
    this.#parts.push(part)
    this.#size += part.bytes.byteLength
    for (const { client, clock } of part.names) this.#needs.set(client, Math.max(clock + 1, this.#needs.get(client) ?? 0))
  }

  update(): Uint8Array {
    const head = [1, this.#parts.length, this.#client, this.#parts[0]?.clock ?? 0].flatMap(sevens)
    return concatBytes([Uint8Array.from(head), ...this.#parts.map(({ bytes }) => bytes), Uint8Array.of(0)])
  }
}

/** All that is deleted in a document, as updates that may come in any order. */
function deletesOf(doc: Y.Doc): Uint8Array[] {
  const stretches = [...Y.createDeleteSetFromStructStore(doc.store).clients].flatMap(([client, items]) =>
    items.map(({ clock, len }) => ({ client, clock, len }))
  )
  const updates: Uint8Array[] = []
  for (let at = 0; at < stretches.length; at += MAX_STRETCHES) {
    const byClient = new Map<number, number[]>()
    for (const { client, clock, len } of stretches.slice(at, at + MAX_STRETCHES)) {
      const numbers = byClient.get(client) ?? []
      numbers.push(clock, len)
      byClient.set(client, numbers)
    }
    const numbers = [...byClient].flatMap(([client, some]) => [client, some.length / 2, ...some])
    updates.push(Uint8Array.from([0, byClient.size, ...numbers].flatMap(sevens)))
  }
  return updates
}
