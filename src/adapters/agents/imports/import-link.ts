import type { AbortSignalLike, Clock, Timer } from '../../../kit/clock.js'
import { messageOf } from '../../../kit/errors.js'
import { shown } from '../../../kit/text.js'
import { IDLE, type LinkEffect, type LinkInput, type LinkState, step } from '../../../domain/pinning/link-state.js'
import type { ImportAdapter, ImportCalls, ImportConnection } from '../../../ports/imports.js'

/** How long a refresh waits for the list, in milliseconds: less than a command waits for its node. */
const REFRESH_WAIT_MS = 12_000
/** After this number of failures in a row calls do not wait for the next try. */
const HOPELESS_FAILURES = 3
/** Characters of the reason of a failure. */
const MAX_REASON = 1000

/** Dependencies of {@link ImportLink}. */
export interface ImportLinkDeps {
  readonly adapter: Pick<ImportAdapter, 'open' | 'listTimeoutMs' | 'words'>
  readonly clock: Clock
  /** In [0, 1). */
  readonly chance: () => number
  /** How long a list is good, in milliseconds. */
  readonly ttlMs: number
  /** A list came; resolves when it is taken. */
  onList(value: object): Promise<void>
  /** The state changed. */
  onState(state: LinkState): void
}

/** The link to one import: performs the effects of {@link step}. Never throws. */
export class ImportLink implements ImportCalls {
  readonly #deps: ImportLinkDeps
  #state: LinkState = IDLE
  #connection: ImportConnection | null = null
  /** Rises with each connection: events of an older one are ignored. */
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

  constructor(deps: ImportLinkDeps) {
    this.#deps = deps
  }

  /** Its current state. */
  get state(): LinkState {
    return this.#state
  }

  /** When the last good list came, unix milliseconds; null: none yet. */
  get listedAt(): number | null {
    const { clock } = this.#deps
    const { listedAt } = this.#state
    return listedAt === null ? null : Math.round(clock.now() - (clock.monotonic() - listedAt))
  }

  calling(): () => void {
    const call = { at: this.#deps.clock.monotonic() }
    this.#calls.add(call)
    return () => void this.#calls.delete(call)
  }

  doubt(): void {
    this.input({ type: 'changed' })
  }

  async ready(waitMs: number, signal: AbortSignalLike): Promise<ImportConnection | string> {
    const { clock, adapter } = this.#deps
    const end = clock.monotonic() + waitMs
    for (;;) {
      const { phase, lastError, wakeAt, failures } = this.#state
      if (phase === 'ready' && this.#connection !== null) return this.#connection
      const left = end - clock.monotonic()
      const isFar = phase === 'backoff' && (failures >= HOPELESS_FAILURES || (wakeAt ?? 0) - clock.monotonic() > left)
      if (phase === 'closed') return 'this node closes'
      if (isFar || left <= 0 || signal.aborted) return lastError ?? `it ${adapter.words.notYet}`
      await this.#changed(left, signal)
    }
  }

  /** Resolves when the requested list has come, or does not come in time. */
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

  /** Applies one input to the state machine and performs the effects. */
  input(input: LinkInput): void {
    const { clock, ttlMs, onState } = this.#deps
    const now = clock.monotonic()
    const { state, effects } = step(this.#state, input, { now, ttlMs })
    const isChanged = state !== this.#state
    this.#state = state
    clock.clear(this.#timer)
    // Set again each time: a timer may fire a moment early.
    this.#timer =
      state.wakeAt === null ? null : clock.after(Math.max(1, state.wakeAt - now), () => this.input({ type: 'wake' }))
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
    // A program that is being ended may still hold resources of its successor.
    await this.#closing
    if (number !== this.#number) return
    const stop = (this.#opening = new AbortController())
    const onChanged = (): void => (number === this.#number ? this.input({ type: 'changed' }) : undefined)
    const events = {
      onChanged,
      onLost: (reason: string) => this.#lost(number, reason),
      onClosed: (reason: string) => this.#failed(number, reason)
    }
    const opening = this.#deps.adapter.open(events, stop.signal)
    // A close during the opening waits for it.
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
    const { clock, onList, adapter } = this.#deps
    const { listTimeoutMs, words } = adapter
    const number = this.#number
    const askedAt = (this.#askedAt ??= clock.monotonic())
    const stop = new AbortController()
    const timer = clock.after(listTimeoutMs, () => stop.abort())
    try {
      const value = await this.#connection?.list(stop.signal)
      if (number !== this.#number || value === undefined) return
      await onList(value)
      if (number !== this.#number) return
      this.#askedAt = null
      this.input({ type: 'listed' })
    } catch (error) {
      if (stop.signal.aborted && number === this.#number && this.#isBusySince(askedAt))
        return this.input({ type: 'busy' })
      this.#failed(
        number,
        stop.signal.aborted ? `it did not list its ${words.items} within ${listTimeoutMs / 1000} s` : messageOf(error)
      )
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
    if (number === this.#number)
      this.input({ type: 'failed', reason: shown(reason, MAX_REASON), chance: this.#deps.chance() })
  }

  #lost(number: number, reason: string): void {
    if (number === this.#number) this.input({ type: 'lost', reason, chance: this.#deps.chance() })
  }

  #changed(waitMs: number, signal: AbortSignalLike | null): Promise<void> {
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
