import { concatBytes } from '../../../kit/bytes.js'
import { NodeError } from '../../../kit/errors.js'
import { fromUtf8 } from '../../../kit/ids.js'
import { sevens, UpdateCursor, UpdateFault } from './bytes.js'
import { readContent, readElement } from './content.js'
import { type Id, ITEM, readHead } from './head.js'
import { type ClockRange, EDIT_LIMITS, readUpdate, UPDATE_LIMITS } from './update.js'

/** Updates that together make one edit, in this order; or why it cannot be sent. */
export type UpdateCutting =
  | { readonly ok: true; readonly pieces: readonly Uint8Array[] }
  | { readonly ok: false; readonly reason: string }

/** For the frame of a piece: counts, its clientID and its first clock. */
const AROUND_BYTES = 32
/** For the clientID and the count of its deletions. */
const CLIENT_BYTES = 12
/** For the head of an item that continues another one, and for the length of its content. */
const BEHIND_BYTES = 48
const MAX_PAYLOAD = UPDATE_LIMITS.maxBytes - AROUND_BYTES

const TEXT = 4
/** Kinds of content that is a list of values. */
const LISTS: ReadonlySet<number> = new Set([2, 8])

/** An item or an emptiness where it stands in the update. */
interface Struct {
  readonly start: number
  readonly content: number
  readonly end: number
  readonly clock: number
}

/** Part of the content of an item: its bytes, and the clocks that it takes. */
interface StructRun {
  readonly content: Uint8Array
  readonly length: number
}

/**
 * Cuts a too large update (v1) of one clientID into smaller ones of consecutive clocks. Pure and total. Applied in
 * order they make the same document. The first piece has the deletions of older items, so the document never exceeds
 * its size before or after. Texts are cut between characters and lists between values. A value that is too large, or
 * has a key, cannot be cut. Small updates are returned unread.
 */
export function cutUpdate(update: Uint8Array): UpdateCutting {
  // A part takes two bytes at least.
  if (update.byteLength <= 2 * UPDATE_LIMITS.maxParts) return { ok: true, pieces: [update] }
  const reading = readUpdate(update, EDIT_LIMITS)
  if (!reading.ok) return reading
  const { writes, deletes } = reading.update
  try {
    const structs = writes === null ? [] : structsOf(update, writes.clock)
    const isWhole =
      update.byteLength <= UPDATE_LIMITS.maxBytes && structs.length + deletes.length <= UPDATE_LIMITS.maxParts
    return { ok: true, pieces: isWhole ? [update] : piecesOf(update, structs, { writes, deletes }) }
  } catch (error) {
    if (!(error instanceof UpdateFault)) throw error
    return { ok: false, reason: error.message }
  }
}

/** The same, for a caller that sends the pieces. @throws NodeError PAYLOAD_TOO_LARGE */
export function mustCutUpdate(update: Uint8Array): readonly Uint8Array[] {
  const cutting = cutUpdate(update)
  if (cutting.ok) return cutting.pieces
  throw new NodeError('PAYLOAD_TOO_LARGE', `the edit cannot be sent to others: ${cutting.reason}`, {
    next: ['a2a-node doc set --help']
  })
}

function piecesOf(
  update: Uint8Array,
  structs: readonly Struct[],
  { writes, deletes }: { readonly writes: ClockRange | null; readonly deletes: readonly ClockRange[] }
): Uint8Array[] {
  const pieces = new Pieces(writes?.client ?? 0)
  const late: ClockRange[] = []
  for (const { client, clock, length } of deletes) {
    // Items of this update can be deleted only after they are written.
    const early = client === writes?.client ? Math.min(length, Math.max(0, writes.clock - clock)) : length
    if (early > 0) pieces.delete({ client, clock, length: early })
    if (early < length) late.push({ client, clock: clock + early, length: length - early })
  }
  for (const struct of structs) {
    const { start, end, clock } = struct
    if (end - start <= MAX_PAYLOAD) pieces.write(update.subarray(start, end), clock)
    else cutItem(update, { client: writes?.client ?? 0, clock }, { struct, pieces })
  }
  for (const range of late) pieces.delete(range)
  return pieces.end()
}

/** Where the structs of a checked update stand. */
function structsOf(update: Uint8Array, first: number): Struct[] {
  const cursor = new UpdateCursor(update)
  cursor.uint()
  const count = cursor.uint()
  cursor.uint()
  cursor.uint()
  const structs: Struct[] = []
  for (let i = 0, clock = first; i < count; i++) {
    const start = cursor.at
    const info = cursor.byte()
    if (info !== 0) readHead(cursor, info)
    const content = cursor.at
    const length = info === 0 ? cursor.uint() : readContent(cursor, info & ITEM.kind)
    structs.push({ start, content, end: cursor.at, clock })
    clock += length
  }
  return structs
}

/**
 * Cuts an item as Yjs splits one: the left neighbour of the rest is the last clock before it, its right neighbour
 * stays.
 */
function cutItem(
  update: Uint8Array,
  id: Id,
  { struct, pieces }: { readonly struct: Struct; readonly pieces: Pieces }
): void {
  const cursor = new UpdateCursor(update.subarray(struct.start, struct.end))
  const info = cursor.byte()
  const { right } = readHead(cursor, info)
  const first = update.subarray(struct.start, struct.content)
  const most = MAX_PAYLOAD - Math.max(first.byteLength, BEHIND_BYTES) - BEHIND_BYTES
  // A key has one value: a second part would replace the first.
  const isOne = (info & ITEM.hasKey) !== 0 || most < UPDATE_LIMITS.maxBytes / 2
  let { clock } = id
  for (const { content, length } of isOne
    ? tooLarge()
    : runsOf(update.subarray(struct.content, struct.end), info & ITEM.kind, most)) {
    const left = [...sevens(id.client), ...sevens(clock - 1)]
    const rightId = right === null ? [] : [...sevens(right.client), ...sevens(right.clock)]
    const head = clock === id.clock ? first : Uint8Array.from([info | ITEM.hasLeft, ...left, ...rightId])
    pieces.write(concatBytes([head, content]), clock)
    clock += length
  }
}

function runsOf(content: Uint8Array, kind: number, most: number): StructRun[] {
  if (kind === TEXT) return textRuns(content, most)
  return LISTS.has(kind) ? listRuns(content, kind, most) : tooLarge()
}

function textRuns(content: Uint8Array, most: number): StructRun[] {
  const cursor = new UpdateCursor(content)
  const text = cursor.take(cursor.uint())
  const runs: StructRun[] = []
  for (let at = 0; at < text.byteLength; ) {
    let end = Math.min(at + most, text.byteLength)
    // Never inside of a character: of half a surrogate pair Yjs makes U+FFFD.
    while (((text[end] ?? 0) & 0xc0) === 0x80) end--
    const part = text.subarray(at, end)
    runs.push({ content: concatBytes([Uint8Array.from(sevens(part.byteLength)), part]), length: fromUtf8(part).length })
    at = end
  }
  return runs
}

function listRuns(content: Uint8Array, kind: number, most: number): StructRun[] {
  const cursor = new UpdateCursor(content)
  const count = cursor.uint()
  const runs: StructRun[] = []
  let [from, length] = [cursor.at, 0]
  const end = (to: number): void => {
    if (length > 0)
      runs.push({ content: concatBytes([Uint8Array.from(sevens(length)), content.subarray(from, to)]), length })
    from = to
    length = 0
  }
  for (let i = 0; i < count; i++) {
    const start = cursor.at
    readElement(cursor, kind)
    if (cursor.at - start > most) tooLarge()
    if (cursor.at - from > most) end(start)
    length++
  }
  end(cursor.at)
  return runs
}

function tooLarge(): never {
  throw new UpdateFault(
    `a single value of it is larger than ${UPDATE_LIMITS.maxBytes} bytes, and cannot be cut: write several values instead, or a text`
  )
}

class Pieces {
  readonly #client: number
  readonly #done: Uint8Array[] = []
  #structs: Uint8Array[] = []
  #clock = 0
  #deletes = new Map<number, Uint8Array[]>()
  #bytes = 0
  #parts = 0

  constructor(client: number) {
    this.#client = client
  }

  write(struct: Uint8Array, clock: number): void {
    this.#flushIfFull(struct.byteLength)
    if (this.#structs.length === 0) this.#clock = clock
    this.#structs.push(struct)
    this.#bytes += struct.byteLength
    this.#parts++
  }

  delete({ client, clock, length }: ClockRange): void {
    const range = Uint8Array.from([...sevens(clock), ...sevens(length)])
    this.#flushIfFull(range.byteLength + CLIENT_BYTES)
    const ranges = this.#deletes.get(client) ?? []
    this.#bytes += range.byteLength + (ranges.length === 0 ? CLIENT_BYTES : 0)
    this.#deletes.set(client, ranges)
    ranges.push(range)
    this.#parts++
  }

  end(): Uint8Array[] {
    if (this.#parts > 0) this.#finish()
    return this.#done
  }

  #flushIfFull(bytes: number): void {
    if (this.#parts > 0 && (this.#bytes + bytes > MAX_PAYLOAD || this.#parts >= UPDATE_LIMITS.maxParts)) this.#finish()
  }

  #finish(): void {
    const structs = this.#structs
    const written = structs.length === 0 ? [0] : [1, structs.length, this.#client, this.#clock].flatMap(sevens)
    const deletes = [...this.#deletes].flatMap(([client, ranges]) => [bytesOf(client, ranges.length), ...ranges])
    this.#done.push(concatBytes([Uint8Array.from(written), ...structs, bytesOf(this.#deletes.size), ...deletes]))
    this.#structs = []
    this.#deletes = new Map()
    this.#bytes = 0
    this.#parts = 0
  }
}

function bytesOf(...numbers: readonly number[]): Uint8Array {
  return Uint8Array.from(numbers.flatMap(sevens))
}
