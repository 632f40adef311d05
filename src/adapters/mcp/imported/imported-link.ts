import type { Clock, Timer } from '../../../kit/clock.js'
import { messageOf } from '../../../kit/errors.js'
import { shown } from '../../../kit/text.js'
import type { Connection, OpenConnection } from './imported-connection.js'
import { ImportedFault } from './imported-fault.js'
import { IDLE, type LinkEffect, type LinkInput, type LinkState, step } from './imported-state.js'

/** How long a server may take to list its tools, in milliseconds. */
export const LIST_TIMEOUT_MS = 10_000
/** How long whoever asks for a new list waits, in milliseconds: less than a command waits for its node. */
const REFRESH_WAIT_MS = 12_000
/** After so many failures in a row nobody waits for a server that is to be tried again. */
const HOPELESS_FAILURES = 3
/** Characters of the reason of a failure. */
const MAX_REASON = 1000

/** What {@link ImportedLink} needs. */
export interface ImportedLinkDeps {
  readonly open: OpenConnection
  readonly clock: Clock
  /** In [0, 1). */
  readonly chance: () => number
  /** How long a list is good, in milliseconds. */
  readonly ttlMs: number
  /** A list came; resolves when it is taken. */
  onList(tools: readonly unknown[]): Promise<void>
  /** The state changed. */
  onState(state: LinkState): void
}

/** The link to one server: does what {@link step} says, so that all decisions are in one pure place. Never throws. */
export class ImportedLink {
  readonly #deps: ImportedLinkDeps
  #state: LinkState = IDLE
  #connection: Connection | null = null
  /** Rises with each connection: what an older one brings is late. */
  #number = 0
  #timer: Timer | null = null
  /** Ends an opening that is under way. */
  #opening: AbortController | null = null
  /** Connections that are being closed. */
  #closing: Promise<void> = Promise.resolve()
  readonly #waiting = new Set<() => void>()
  /** When each call that is under way began, the oldest first: monotonic milliseconds. */
  readonly #calls = new Set<{ readonly at: number }>()
  /** When the list was asked for that has not come. */
  #askedAt: number | null = null

  constructor(deps: ImportedLinkDeps) {
    this.#deps = deps
  }

  /** Where it stands now. */
  get state(): LinkState {
    return this.#state
  }

  /** When the last good list came, unix milliseconds; null: none yet. */
  get listedAt(): number | null {
    const { clock } = this.#deps
    const { listedAt } = this.#state
    return listedAt === null ? null : Math.round(clock.now() - (clock.monotonic() - listedAt))
  }

  /** A call is under way until what this gives is called. */
  calling(): () => void {
    const call = { at: this.#deps.clock.monotonic() }
    this.#calls.add(call)
    return () => void this.#calls.delete(call)
  }

  /** What was wrong with a call that had no answer: asks the server whether it is alive. */
  doubt(): void {
    this.input({ type: 'changed' })
  }

  /** A call found that the server cannot be reached: it has failed, and is tried again. */
  unreachable(connection: Connection, reason: string): void {
    if (connection === this.#connection) this.#failed(this.#number, reason)
  }

  /** The session was lost; a new one begins. */
  lost(connection: Connection, reason: string): void {
    if (connection === this.#connection) this.input({ type: 'lost', reason, chance: this.#deps.chance() })
  }

  /** The connection, when the server is ready; waits for it `waitMs` at most. @throws ImportedFault unsent */
  async ready(waitMs: number, signal: AbortSignal): Promise<Connection> {
    const { clock } = this.#deps
    const end = clock.monotonic() + waitMs
    for (;;) {
      const { phase, lastError, wakeAt, failures } = this.#state
      if (phase === 'ready' && this.#connection !== null) return this.#connection
      const left = end - clock.monotonic()
      const isFar = phase === 'backoff' && (failures >= HOPELESS_FAILURES || (wakeAt ?? 0) - clock.monotonic() > left)
      if (phase === 'closed' || isFar || left <= 0 || signal.aborted)
        throw new ImportedFault('unsent', phase === 'closed' ? 'this node closes' : (lastError ?? 'it has not come up yet'))
      await this.#changed(left, signal)
    }
  }

  /** Resolves when the list that is asked for now is there, or does not come in time. */
  async refresh(): Promise<void> {
    const { clock } = this.#deps
    this.input({ type: 'refresh' })
    const end = clock.monotonic() + REFRESH_WAIT_MS
    const isInFlight = (): boolean => this.#state.phase === 'starting' || this.#state.isListing
    while (isInFlight() && clock.monotonic() < end) await this.#changed(end - clock.monotonic(), null)
  }

  /** Ends the link; resolves when nothing of it is left. */
  async close(): Promise<void> {
    this.input({ type: 'close' })
    await this.#closing
  }

  /** Takes what happened. */
  input(input: LinkInput): void {
    const { clock, ttlMs, onState } = this.#deps
    const now = clock.monotonic()
    const { state, effects } = step(this.#state, input, { now, ttlMs })
    const isChanged = state !== this.#state
    this.#state = state
    clock.clear(this.#timer)
    // Set anew each time: a timer may come a moment early.
    this.#timer = state.wakeAt === null ? null : clock.after(Math.max(1, state.wakeAt - now), () => this.input({ type: 'wake' }))
    if (!isChanged) return
    onState(state)
    for (const effect of effects) this.#perform(effect)
    for (const tell of [...this.#waiting]) tell()
  }

  #perform(effect: LinkEffect): void {
    if (effect === 'connect') void this.#connect()
    else if (effect === 'list') void this.#list()
    else this.#disconnect()
  }

  #disconnect(): void {
    const connection = this.#connection
    this.#connection = null
    this.#askedAt = null
    this.#number++
    this.#opening?.abort()
    if (connection !== null) this.#closing = Promise.all([this.#closing, connection.close()]).then(() => {})
  }

  async #connect(): Promise<void> {
    const number = ++this.#number
    // A program that is being ended may still hold what its successor needs.
    await this.#closing
    if (number !== this.#number) return
    const stop = (this.#opening = new AbortController())
    const onChanged = (): void => (number === this.#number ? this.input({ type: 'changed' }) : undefined)
    const opening = this.#deps.open({ onChanged, onClosed: (reason) => this.#failed(number, reason) }, stop.signal)
    // Whoever closes meanwhile waits for it.
    this.#closing = opening.then(
      (connection) => (number === this.#number ? undefined : connection.close()),
      () => {}
    )
    try {
      const connection = await opening
      if (number !== this.#number) return
      this.#connection = connection
      this.input({ type: 'connected' })
    } catch (error) {
      this.#failed(number, messageOf(error))
    }
  }

  async #list(): Promise<void> {
    const { clock, onList } = this.#deps
    const number = this.#number
    const askedAt = (this.#askedAt ??= clock.monotonic())
    const stop = new AbortController()
    const timer = clock.after(LIST_TIMEOUT_MS, () => stop.abort())
    try {
      const tools = await this.#connection?.list(stop.signal)
      if (number !== this.#number || tools === undefined) return
      await onList(tools)
      if (number !== this.#number) return
      this.#askedAt = null
      this.input({ type: 'listed' })
    } catch (error) {
      const reason = stop.signal.aborted ? `it did not list its tools within ${LIST_TIMEOUT_MS / 1000} s` : messageOf(error)
      if (error instanceof ImportedFault && error.kind === 'session' && number === this.#number)
        this.input({ type: 'lost', reason, chance: this.#deps.chance() })
      else if (stop.signal.aborted && number === this.#number && this.#isBusySince(askedAt)) this.input({ type: 'busy' })
      else this.#failed(number, reason)
    } finally {
      clock.clear(timer)
    }
  }

  /** Was a call under way already when the list was asked for? Many servers do one thing at a time. */
  #isBusySince(askedAt: number): boolean {
    const [oldest] = this.#calls
    return oldest !== undefined && oldest.at <= askedAt
  }

  #failed(number: number, reason: string): void {
    // The last words of a program are in it.
    if (number === this.#number) this.input({ type: 'failed', reason: shown(reason, MAX_REASON), chance: this.#deps.chance() })
  }

  #changed(waitMs: number, signal: AbortSignal | null): Promise<void> {
    const { clock } = this.#deps
    return new Promise((resolve) => {
      const done = (): void => {
        this.#waiting.delete(done)
        clock.clear(timer)
        signal?.removeEventListener('abort', done)
        resolve()
      }
      const timer = clock.after(waitMs, done)
      this.#waiting.add(done)
      signal?.addEventListener('abort', done)
    })
  }
}
