import type { Clock, Timer } from '../../../kit/clock.js'
import type { RequestRecord } from '../../../domain/reliable/records.js'
import { type CalleeRequest, found, recover } from '../../../domain/reliable/request.js'

/** How long a request whose run was cut short is taken up alone, unless it ends before, in milliseconds. */
const TURN_MS = 1000

/** What telling which runs were cut short needs. */
export interface CutRunsDeps {
  readonly clock: Clock
  /** Did the process before end by an error of its own? Default false. */
  readonly isAtFault?: boolean
}

/** A request that had no end when this node started. */
interface LeftRun {
  readonly isCut: boolean
  /** It runs again only when it has its turn. */
  needsTurn: boolean
}

/**
 * Requests of others that had no end when this node started, until each begins or ends. Those whose run was cut short are taken up one
 * after the other, in turns of {@link TURN_MS} at most: when one of them ends the node again, few others run.
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

  /** Did the process before end by an error of its own? */
  get isAtFault(): boolean {
    return this.#deps.isAtFault === true
  }

  /** Requests whose run was cut short, and that were not taken up yet. */
  get waiting(): number {
    return [...this.#left.values()].filter(({ needsTurn }) => needsTurn).length
  }

  /** Who takes the next one up when a turn is over. */
  onFree(listener: () => void): void {
    this.#onFree = listener
  }

  /** The node starts, and its ledger holds this request of another node, without an end. */
  add(name: string, record: RequestRecord): void {
    const isCut = record.status === 'started'
    // What is only removed, or ends, harms nobody.
    const needsTurn = isCut && record.swarm === null && recover(found(stateOf(record), this.isAtFault)) === 'run'
    this.#left.set(name, { isCut, needsTurn })
  }

  /** A request without an end that is not in flight. An end of this very process counts for nothing: its record may not be up to date. */
  found(name: string, record: RequestRecord): CalleeRequest {
    const state = stateOf(record)
    return this.#left.get(name)?.isCut === true ? found(state, this.isAtFault) : state
  }

  /** Is it to be taken up when it has its turn, and not by a copy that comes before? */
  isWaiting(name: string): boolean {
    return this.#left.get(name)?.needsTurn === true
  }

  /** Does it wait for the turn of another one to be over? */
  isBlocked(name: string): boolean {
    return this.#turn !== null && this.isWaiting(name)
  }

  /** It is taken up, and has its turn if it needs one. */
  take(name: string): void {
    const left = this.#left.get(name)
    if (left?.needsTurn !== true) return
    left.needsTurn = false
    const { clock } = this.#deps
    clock.clear(this.#turn?.timer ?? null)
    this.#turn = { name, timer: clock.after(TURN_MS, () => this.#free()) }
  }

  /** It begins. True: it is of before this start, so that it begins durably, and a further end of the node is counted. */
  begins(name: string): boolean {
    return this.#left.delete(name)
  }

  /** It has ended. */
  ended(name: string): void {
    this.#left.delete(name)
    if (this.#turn?.name === name) this.#free()
  }

  /** Nobody gets a turn any more. */
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
