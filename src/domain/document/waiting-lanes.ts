import { type Lane, Line } from './lane.js'
import type { Missing } from './needs.js'
import type { DocumentStream } from './stream.js'

/** A lane of a stream whose first one may wait. */
export interface WaitingLane {
  readonly stream: DocumentStream
  readonly lane: Lane
  /** What the first one stands on and was not there when it was looked at last: clientIDs, each before its clock. Null: not looked at yet. */
  missing: number[] | null
}

interface Wait {
  readonly end: number
  readonly waiting: WaitingLane
}

/**
 * Lanes by what their first ones wait for, so that what comes finds those that waited for it, however many wait for something
 * else. A lane is here once, or nowhere.
 */
export class WaitingLanes {
  readonly #ready = new Line<WaitingLane>()
  /** By clientID; as heaps, the lowest clock first. */
  readonly #waits = new Map<number, Wait[]>()

  /** Puts one behind those that are to be looked at. */
  push(waiting: WaitingLane): void {
    this.#ready.push(waiting)
  }

  /** Takes the next one that is to be looked at. */
  next(): WaitingLane | undefined {
    return this.#ready.shift()
  }

  /** Keeps one until a clock has come so far. */
  keep(waiting: WaitingLane, { client, end }: Missing): void {
    const heap = this.#waits.get(client) ?? []
    if (heap.length === 0) this.#waits.set(client, heap)
    heap.push({ end, waiting })
    rise(heap)
  }

  /** Does any wait for a clientID? */
  isAwaited(client: number): boolean {
    return this.#waits.has(client)
  }

  /** Does none wait? */
  get isEmpty(): boolean {
    return this.#waits.size === 0
  }

  /** A clock has come so far: those that waited for that are to be looked at. */
  wake(client: number, clock = Number.POSITIVE_INFINITY): void {
    const heap = this.#waits.get(client) ?? []
    for (let first = heap[0]; first !== undefined && first.end <= clock; first = heap[0]) {
      this.#ready.push(first.waiting)
      sink(heap)
    }
    if (heap.length === 0) this.#waits.delete(client)
  }

  /** All are to be looked at. */
  wakeAll(): void {
    for (const client of [...this.#waits.keys()]) this.wake(client)
  }
}

/** Moves the last one of a heap to its place. */
function rise(heap: Wait[]): void {
  for (let at = heap.length - 1; at > 0; ) {
    const above = (at - 1) >>> 1
    if (!swapped(heap, above, at)) return
    at = above
  }
}

/** Takes the first one out of a heap. */
function sink(heap: Wait[]): void {
  const last = heap.pop()
  if (last === undefined || heap.length === 0) return
  heap[0] = last
  for (let at = 0; ; ) {
    const left = 2 * at + 1
    const below = endAt(heap, left + 1) < endAt(heap, left) ? left + 1 : left
    if (below >= heap.length || !swapped(heap, at, below)) return
    at = below
  }
}

/** Puts two in order, the upper one first; false: they are. */
function swapped(heap: Wait[], upper: number, lower: number): boolean {
  const [above, below] = [heap[upper], heap[lower]]
  if (above === undefined || below === undefined || above.end <= below.end) return false
  heap[upper] = below
  heap[lower] = above
  return true
}

function endAt(heap: readonly Wait[], at: number): number {
  return heap[at]?.end ?? Number.POSITIVE_INFINITY
}
