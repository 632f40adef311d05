import { UpdateCursor, UpdateFault } from './bytes.js'
import { readContent } from './content.js'
import { type Id, ITEM, readHead } from './head.js'

/** Bounds of one update of a shared document. */
export const UPDATE_LIMITS = {
  /** The update itself, in bytes. */
  maxBytes: 262_144,
  /** Pieces that it writes and stretches that it deletes, together. */
  maxParts: 16_384,
  /** Highest clock of one clientID: 2^32. */
  maxClock: 4_294_967_296
} as const

/** Bounds of one edit of this node and its programs, before it is cut into updates. */
export const EDIT_LIMITS = {
  /** In bytes: as much as a document may have. */
  maxBytes: 16_777_216,
  maxParts: 1_048_576
} as const
/** Parts of a whole document. */
const MAX_STATE_PARTS = 2_097_152
const BEHIND = 'there are bytes behind its end'

/** A range of clocks of a clientID. */
export interface ClockRange {
  readonly client: number
  readonly clock: number
  readonly length: number
}

/** An item between two of one clientID, of which the right one is not the later one. */
export interface Crossing {
  readonly client: number
  readonly left: number
  readonly right: number
}

/** The effect of an update, without applying it. */
export interface UpdateContents {
  /** The clocks that it writes, of one clientID without a gap; null when it only deletes. */
  readonly writes: ClockRange | null
  /** Clocks of other clientIDs that must be reached before it can be applied, by clientID. */
  readonly needs: ReadonlyMap<number, number>
  /** Its deletions, in order and without overlaps for each clientID. */
  readonly deletes: readonly ClockRange[]
  /** Clocks at which its content does not continue directly behind the clock before, rising. */
  readonly breaks: readonly number[]
  /** Where it writes, if left and right could be the wrong way round. */
  readonly crossings: readonly Crossing[]
}

type EditLimits = Readonly<Record<keyof typeof EDIT_LIMITS, number>>

/** The contents of an update, or why it must not be applied: in words of this node, without the sender's bytes. */
export type UpdateReading =
  | { readonly ok: true; readonly update: UpdateContents }
  | { readonly ok: false; readonly reason: string }

/**
 * Reads an untrusted update in the format v1 of Yjs. Pure and total; time and memory are linear in the bytes. Yjs
 * applies an accepted one without throwing, once {@link UpdateContents.needs} is fulfilled: a throw there would leave
 * half of it in the document. `limits`: of one update, or of an edit that is cut later.
 */
export function readUpdate(bytes: Uint8Array, limits: EditLimits = UPDATE_LIMITS): UpdateReading {
  if (bytes.byteLength > limits.maxBytes) return { ok: false, reason: `larger than ${limits.maxBytes} bytes` }
  try {
    return { ok: true, update: new UpdateWalk(bytes, limits.maxParts).read() }
  } catch (error) {
    if (!(error instanceof UpdateFault)) throw error
    return { ok: false, reason: error.message }
  }
}

/**
 * Why a whole document as one update (v1) must not be given to Yjs; null when it may be. As {@link readUpdate}, for
 * many clientIDs; missing dependencies show when it is applied.
 */
export function stateFault(bytes: Uint8Array): string | null {
  try {
    new UpdateWalk(bytes, MAX_STATE_PARTS).walk()
    return null
  } catch (error) {
    if (!(error instanceof UpdateFault)) throw error
    return error.message
  }
}

class UpdateWalk {
  readonly #cursor: UpdateCursor
  readonly #needs = new Map<number, number>()
  readonly #breaks: number[] = []
  readonly #crossings: Crossing[] = []
  readonly #maxParts: number
  #parts = 0

  constructor(bytes: Uint8Array, maxParts: number) {
    this.#cursor = new UpdateCursor(bytes)
    this.#maxParts = maxParts
  }

  /** Over a whole document. */
  walk(): void {
    for (let left = this.#cursor.count(2); left > 0; left--) this.#structs()
    this.#deletes(null)
    if (this.#cursor.left > 0) throw new UpdateFault(BEHIND)
  }

  read(): UpdateContents {
    const clients = this.#cursor.uint()
    // Structs of two clientIDs can wait for each other for ever; each writer has a clientID of its own.
    if (clients > 1) throw new UpdateFault('it writes for more than one clientID')
    const writes = clients === 1 ? this.#structs() : null
    const deletes = this.#deletes(writes)
    if (this.#cursor.left > 0) throw new UpdateFault(BEHIND)
    return { writes, needs: this.#needs, deletes, breaks: this.#breaks, crossings: this.#crossings }
  }

  #part(): void {
    if (++this.#parts > this.#maxParts) throw new UpdateFault(`more than ${this.#maxParts} parts`)
  }

  #structs(): ClockRange {
    const count = this.#cursor.count(2)
    const client = this.#cursor.uint()
    const clock = this.#cursor.uint()
    let end = clock
    for (let i = 0; i < count; i++) {
      this.#part()
      const length = this.#struct(client, end)
      if (length === 0) throw new UpdateFault('a part of no length')
      end += length
      if (end > UPDATE_LIMITS.maxClock) throw new UpdateFault('a clock is too large')
    }
    if (count === 0) throw new UpdateFault('a clientID without anything written')
    return { client, clock, length: end - clock }
  }

  #struct(client: number, clock: number): number {
    const info = this.#cursor.byte()
    if (info === 0) {
      this.#breaks.push(clock)
      return this.#cursor.uint()
    }
    const { left, right, parent } = readHead(this.#cursor, info)
    if (left !== null) this.#standOn(left, { client, clock })
    if (right !== null) this.#standOn(right, { client, clock })
    if (parent !== null) this.#standOn(parent, { client, clock })
    if (left?.client !== client || left.clock !== clock - 1) this.#breaks.push(clock)
    if (left !== null && left.client === right?.client && right.clock <= left.clock) {
      this.#crossings.push({ client: left.client, left: left.clock, right: right.clock })
    }
    return readContent(this.#cursor, info & ITEM.kind)
  }

  /** An item may only name earlier items: of its own clientID by order, of others by the needs. */
  #standOn(named: Id, { client, clock }: Id): void {
    if (named.client !== client) this.#need(named.client, named.clock + 1)
    else if (named.clock >= clock) throw new UpdateFault('an item comes before its dependency')
  }

  #need(client: number, end: number): void {
    if (end > UPDATE_LIMITS.maxClock) throw new UpdateFault('a clock is too large')
    if (end > (this.#needs.get(client) ?? 0)) this.#needs.set(client, end)
  }

  #deletes(writes: ClockRange | null): ClockRange[] {
    const deletes: ClockRange[] = []
    const seen = new Set<number>()
    const clients = this.#cursor.count(2)
    for (let i = 0; i < clients; i++) {
      const client = this.#cursor.uint()
      if (seen.has(client)) throw new UpdateFault('a clientID is deleted from twice')
      seen.add(client)
      const end = this.#ranges(client, deletes)
      if (client !== writes?.client) this.#need(client, end)
      else if (end > writes.clock + writes.length) throw new UpdateFault('it deletes items that it has not written yet')
    }
    return deletes
  }

  /** Rising and apart, as Yjs writes them: else a few bytes could delete the same stretch over and over. */
  #ranges(client: number, deletes: ClockRange[]): number {
    const count = this.#cursor.count(2)
    let end = 0
    for (let i = 0; i < count; i++) {
      this.#part()
      const clock = this.#cursor.uint()
      const length = this.#cursor.uint()
      if (length === 0 || clock < end) throw new UpdateFault('its deletions are not in order')
      end = clock + length
      if (end > UPDATE_LIMITS.maxClock) throw new UpdateFault('a clock is too large')
      deletes.push({ client, clock, length })
    }
    return end
  }
}
