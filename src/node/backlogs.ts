import type { NodeId } from '../kit/ids.js'
import { trimFairly } from './fair-share.js'

/** Answers that wait; and as many of those that neighbours were given a moment ago. */
const MAX_UNSENT = 1024
/** Bytes of them together. */
const MAX_UNSENT_BYTES = 32 * 1024 * 1024
/** How long a neighbour may take to say that it does not carry an answer on, in milliseconds. */
const HANDED_MS = 5000
/** Answers for one node that neighbours have for so long: as many as an honest one carries in the time. */
const WINDOW = 250
/** First wait when a node cannot be reached or an answer is not carried on, in milliseconds; doubled with each. */
const FIRST_WAIT_MS = 1000
/** Longest such wait, in milliseconds. */
const MAX_WAIT_MS = 60_000

/** An answer as far as keeping it goes. */
export interface Kept {
  readonly bytes: number
  /** When it may live no longer, on the monotonic clock. */
  readonly expiresAt: number
}

/** Why an answer is no longer kept: no neighbour has refused it; its time is over; others needed its room; its node will not come back. */
export type Ending = 'taken' | 'expired' | 'crowded' | 'forgotten'

/** The answers for one node. */
class Backlog<A extends Kept> {
  readonly waiting = new Set<A>()
  /** Those that a neighbour was given, oldest first. */
  readonly handed = new Map<string, { readonly answer: A; readonly at: number }>()
  waitingBytes = 0
  handedBytes = 0
  failures = 0
  failedAt = Number.NEGATIVE_INFINITY
  dueAt = Number.NEGATIVE_INFINITY

  wait(answer: A): void {
    this.waiting.add(answer)
    this.waitingBytes += answer.bytes
  }

  hand(id: string, answer: A, at: number): void {
    this.handed.set(id, { answer, at })
    this.handedBytes += answer.bytes
  }

  /** The waiting one, out of the line. */
  take(answer: A): A {
    if (this.waiting.delete(answer)) this.waitingBytes -= answer.bytes
    return answer
  }

  /** The one that a neighbour was given; null when it is not known, or no longer. */
  takeHanded(id: string): A | null {
    const answer = this.handed.get(id)?.answer ?? null
    if (this.handed.delete(id)) this.handedBytes -= answer?.bytes ?? 0
    return answer
  }

  isOpen(now: number): boolean {
    return this.dueAt <= now && this.handed.size < WINDOW
  }
}

/**
 * The answers that have not reached their callers, as far as this node knows: those that wait, and those that a neighbour was
 * given and may still refuse. Bounded in number and bytes; beyond the bounds the node for which most is kept loses its oldest,
 * so none can push out the answers of another. Each that goes in by {@link Backlogs.wait} or {@link Backlogs.hand} comes out
 * once: by {@link Backlogs.next}, or with an ending. No clock inside: every call is told the monotonic time.
 */
export class Backlogs<A extends Kept> {
  readonly #backlogs = new Map<NodeId, Backlog<A>>()
  readonly #onEnd: (answer: A, ending: Ending) => void

  constructor(onEnd: (answer: A, ending: Ending) => void) {
    this.#onEnd = onEnd
  }

  /** Answers that wait. */
  get waiting(): number {
    return [...this.#backlogs.values()].reduce((sum, one) => sum + one.waiting.size, 0)
  }

  /** Need an answer for that node not wait for others? */
  isOpen(peer: NodeId, now: number): boolean {
    const backlog = this.#backlogs.get(peer)
    return backlog === undefined || (backlog.waiting.size === 0 && backlog.isOpen(now))
  }

  /** Puts an answer at the end of the line for its node, unless its time is over. */
  wait(peer: NodeId, answer: A, now: number): void {
    if (answer.expiresAt <= now) return this.#onEnd(answer, 'expired')
    this.#of(peer).wait(answer)
    this.#trim()
  }

  /** A neighbour was given an answer, as the message `id`. */
  hand(peer: NodeId, { id, answer }: { readonly id: string; readonly answer: A }, now: number): void {
    this.#of(peer).hand(id, answer, now)
    this.#trim()
  }

  /** A neighbour does not carry the message on: the answer waits again, and all for its node with it. False: none such. */
  refused(peer: NodeId, id: string, now: number): boolean {
    const backlog = this.#backlogs.get(peer)
    const answer = backlog?.takeHanded(id) ?? null
    if (answer === null) return false
    this.wait(peer, answer, now)
    this.backOff(peer, now)
    return true
  }

  /** The node could not be reached: what is for it waits, twice as long each time; once for what fails meanwhile. */
  backOff(peer: NodeId, now: number): void {
    const backlog = this.#of(peer)
    if (backlog.dueAt > now) return
    backlog.dueAt = now + Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** backlog.failures++)
    backlog.failedAt = now
  }

  /** The node is there: nothing waits for another try. */
  wake(peer: NodeId): void {
    const backlog = this.#backlogs.get(peer)
    if (backlog === undefined) return
    backlog.failures = 0
    backlog.dueAt = Number.NEGATIVE_INFINITY
  }

  /** The answer that is to be sent next, out of the line; null for none now. */
  next(peer: NodeId, now: number): A | null {
    const backlog = this.#backlogs.get(peer)
    if (backlog === undefined || !backlog.isOpen(now)) return null
    for (const answer of backlog.waiting) {
      backlog.take(answer)
      if (answer.expiresAt > now) return answer
      this.#onEnd(answer, 'expired')
    }
    return null
  }

  /** Time passed: drops what is over. The nodes for which something is due. */
  tick(now: number): NodeId[] {
    const due: NodeId[] = []
    for (const [peer, backlog] of this.#backlogs) {
      for (const [id, { at }] of backlog.handed) {
        if (now - at < HANDED_MS) break
        // What came after the last refusal was carried: the way is free again.
        if (at > backlog.failedAt) backlog.failures = 0
        this.#end(backlog.takeHanded(id), 'taken')
      }
      for (const answer of backlog.waiting) if (answer.expiresAt <= now) this.#end(backlog.take(answer), 'expired')
      if (backlog.waiting.size > 0 && backlog.isOpen(now)) due.push(peer)
      if (backlog.waiting.size + backlog.handed.size === 0 && backlog.dueAt <= now) this.#backlogs.delete(peer)
    }
    return due
  }

  /** The node will not come back. */
  forget(peer: NodeId): void {
    const backlog = this.#backlogs.get(peer)
    this.#backlogs.delete(peer)
    for (const answer of backlog?.waiting ?? []) this.#end(answer, 'forgotten')
    for (const { answer } of backlog?.handed.values() ?? []) this.#end(answer, 'forgotten')
  }

  #of(peer: NodeId): Backlog<A> {
    const backlog = this.#backlogs.get(peer) ?? new Backlog()
    this.#backlogs.set(peer, backlog)
    return backlog
  }

  #end(answer: A | null, ending: Ending): void {
    if (answer !== null) this.#onEnd(answer, ending)
  }

  #trim(): void {
    const dropOldest = (one: Backlog<A>): void => {
      for (const answer of one.waiting) return this.#end(one.take(answer), 'crowded')
    }
    // Nobody has said in the meantime that it was not carried on.
    const dropHanded = (one: Backlog<A>): void => {
      for (const id of one.handed.keys()) return this.#end(one.takeHanded(id), 'taken')
    }
    trimFairly(this.#backlogs, { most: MAX_UNSENT, measure: (one) => one.waiting.size, drop: dropOldest })
    trimFairly(this.#backlogs, { most: MAX_UNSENT_BYTES, measure: (one) => one.waitingBytes, drop: dropOldest })
    trimFairly(this.#backlogs, { most: MAX_UNSENT, measure: (one) => one.handed.size, drop: dropHanded })
    trimFairly(this.#backlogs, { most: MAX_UNSENT_BYTES, measure: (one) => one.handedBytes, drop: dropHanded })
  }
}
