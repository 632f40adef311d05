import type { Clock, Timer } from '../../../kit/clock.js'
import type { RequestRecord } from '../../../domain/reliable/records.js'
import { type CalleeRequest, found, recover } from '../../../domain/reliable/request.js'

/** How long an interrupted request gets a turn of its own, unless it ends earlier, in milliseconds. */
const TURN_MS = 1000

/** Dependencies of the record of interrupted runs. */
export interface CutRunsDeps {
  readonly clock: Clock
  /** Did the previous process end by an error of its own? Default false. */
  readonly isAtFault?: boolean
}

/** A request without an end at the start of this node. */
interface LeftRun {
  readonly isCut: boolean
  /** It runs again only in its turn. */
  needsTurn: boolean
}

/**
 * Requests of other nodes without an end at this node's start, until each begins or ends. Interrupted ones run again
 * one by one, in turns of at most {@link TURN_MS}. If one of them ends the node again, few others are running.
 */
export class CutRuns {
  readonly #deps: CutRunsDeps
  /** By the names of the requests. */
  readonly #left = new Map<string, LeftRun>()
  #turn: { readonly name: string; readonly timer: Timer } | null = null
  #onFree: () => void = () => {}

  constructor(deps: CutRunsDeps) {
    this.#deps = deps
  }

  /** Did the previous process end by an error of its own? */
  get isAtFault(): boolean {
    return this.#deps.isAtFault === true
  }

  /** Interrupted requests that still wait for their turn. */
  get waiting(): number {
    return [...this.#left.values()].filter(({ needsTurn }) => needsTurn).length
  }

  /** Sets the callback that takes up the next request when a turn is over. */
  onFree(listener: () => void): void {
    this.#onFree = listener
  }

  /** Adds a request of another node without an end, read from the ledger at the start. */
  add(name: string, record: RequestRecord): void {
    const isCut = record.status === 'started'
    // A request that only ends or is removed is harmless.
    const needsTurn = isCut && record.swarm === null && recover(found(stateOf(record), this.isAtFault)) === 'run'
    this.#left.set(name, { isCut, needsTurn })
  }

  /**
   * The state of a request without an end that is not in flight. Interruptions in this process do not count: its record
   * may be stale.
   */
  found(name: string, record: RequestRecord): CalleeRequest {
    const state = stateOf(record)
    return this.#left.get(name)?.isCut === true ? found(state, this.isAtFault) : state
  }

  /** Does it wait for its turn, whatever copies arrive before? */
  isWaiting(name: string): boolean {
    return this.#left.get(name)?.needsTurn === true
  }

  /** Does it wait for another request's turn to end? */
  isBlocked(name: string): boolean {
    return this.#turn !== null && this.isWaiting(name)
  }

  /** Takes a request up, in a turn if it needs one. */
  take(name: string): void {
    const left = this.#left.get(name)
    if (left?.needsTurn !== true) return
    left.needsTurn = false
    const { clock } = this.#deps
    clock.clear(this.#turn?.timer ?? null)
    this.#turn = { name, timer: clock.after(TURN_MS, () => this.#free()) }
  }

  /**
   * A run begins. True: it is from before this start, so its beginning must be durable, to count another end of the
   * node.
   */
  begins(name: string): boolean {
    return this.#left.delete(name)
  }

  /** A request has ended. */
  ended(name: string): void {
    this.#left.delete(name)
    if (this.#turn?.name === name) this.#free()
  }

  /** Ends all turns. */
  stop(): void {
    this.#onFree = () => {}
    this.#deps.clock.clear(this.#turn?.timer ?? null)
  }

  #free(): void {
    this.#deps.clock.clear(this.#turn?.timer ?? null)
    this.#turn = null
    this.#onFree()
  }
}

function stateOf({ status, isRepeatable, tries: runs, asking }: RequestRecord): CalleeRequest {
  return { status, isRepeatable, runs, cuts: asking?.cuts ?? 0 }
}
