import type { Duplex } from 'node:stream'
import { type Backoff, backoffMs } from '../../kit/backoff.js'
import type { Clock, Timer } from '../../kit/clock.js'
import { asNodeError, type NodeError } from '../../kit/errors.js'

/** Waits between two attempts to connect. */
const RETRY: Backoff = { baseMs: 50, maxMs: 2000 }
/** Milliseconds after the end of a connection in which an orderly stop of the node is told from a crash. */
const CRASH_MS = 1000
/** Milliseconds between two attempts to start a node. */
const START_MS = 30_000
/** Milliseconds after the end of a connection in which the node is expected to return. */
const RETURN_MS = 20_000

/** Milliseconds after which a connection counts as a working one. */
const STEADY_MS = 1000

/** Dependencies of a {@link NodeLink}. */
export interface NodeLinkDeps {
  readonly clock: Pick<Clock, 'monotonic' | 'after' | 'clear'>
  /** Opens a stream to the node. @throws NodeError */
  connect(): Promise<Duplex>
  /** Starts a node, or waits for another start of the same home. Absent: nodes are started by others. */
  readonly start?: () => Promise<void>
  /** Has the last node ended without removing its socket? */
  hasCrashed(): boolean
  /** A fault that no client can read. */
  note(text: string): void
}

/** Listener of a {@link NodeLink}. */
export interface LinkListener {
  /** A connection: it is served until it closes. */
  opened(stream: Duplex): void
  /** An attempt failed; the next one follows. */
  failed(error: NodeError): void
}

/**
 * The connection of a client to the node of a home, for as long as the client lives: it is opened again with backoff
 * after each end. A node is started at the beginning, and after a crash; never after an orderly stop, which a person
 * wanted.
 */
export class NodeLink {
  readonly #deps: NodeLinkDeps
  readonly #listener: LinkListener
  #stream: Duplex | null = null
  #isClosed = false
  #isStarting = false
  #attempts = 0
  /** Monotonic times in milliseconds. */
  #lostAt: number
  #nextStart = Number.NEGATIVE_INFINITY
  #hadNode = false
  #pause: { readonly timer: Timer; end(): void } | null = null

  constructor(deps: NodeLinkDeps, listener: LinkListener) {
    this.#deps = deps
    this.#listener = listener
    this.#lostAt = deps.clock.monotonic()
  }

  /** Is a node expected within seconds? */
  get isExpected(): boolean {
    if (!this.#hadNode) return this.#isStarting || this.#attempts === 0
    return this.#isStarting || this.#deps.clock.monotonic() - this.#lostAt < RETURN_MS
  }

  /**
   * Connects again and again until {@link close}.
   * @throws NodeError USAGE, NO_PERMISSION of the first attempt: no later one would do better
   */
  async run(): Promise<void> {
    while (!this.#isClosed) {
      try {
        await this.#serve(await this.#deps.connect())
        await this.#paused()
      } catch (thrown) {
        const error = asNodeError(thrown)
        const isFirst = !this.#hadNode && this.#attempts === 0
        if (isFirst && (error.code === 'USAGE' || error.code === 'NO_PERMISSION')) throw error
        if (this.#isClosed) return
        this.#listener.failed(error)
        if (this.#mayStart(error) && (await this.#started())) continue
        await this.#paused()
      }
    }
  }

  /** Ends the pause between two attempts: somebody waits. */
  hurry(): void {
    this.#pause?.end()
  }

  /** Ends the connection, and attempts to open one. */
  close(): void {
    this.#isClosed = true
    this.#pause?.end()
    this.#stream?.destroy()
  }

  async #serve(stream: Duplex): Promise<void> {
    const closed = new Promise<void>((resolve) => stream.once('close', resolve))
    stream.on('error', () => stream.destroy())
    this.#stream = stream
    this.#hadNode = true
    const openedAt = this.#deps.clock.monotonic()
    if (this.#isClosed) stream.destroy()
    else this.#listener.opened(stream)
    await closed
    this.#stream = null
    this.#lostAt = this.#deps.clock.monotonic()
    // One that ends connections at once must not be asked in a loop without pauses.
    if (this.#lostAt - openedAt >= STEADY_MS) this.#attempts = 0
  }

  #mayStart({ code }: NodeError): boolean {
    const { clock, start, hasCrashed } = this.#deps
    const now = clock.monotonic()
    if (start === undefined || code !== 'NODE_NOT_RUNNING' || now < this.#nextStart) return false
    return !this.#hadNode || (now - this.#lostAt >= CRASH_MS && hasCrashed())
  }

  async #started(): Promise<boolean> {
    this.#isStarting = true
    this.#nextStart = this.#deps.clock.monotonic() + START_MS
    try {
      await this.#deps.start?.()
      return true
    } catch (error) {
      const { message, code } = asNodeError(error)
      // Another client starts one: its node is waited for.
      if (code === 'ALREADY_RUNNING' || code === 'STORE_LOCKED') return false
      if (code === 'FORBIDDEN') this.#nextStart = Number.POSITIVE_INFINITY
      this.#deps.note(`the node could not be started: ${message}  [${code}]`)
      this.#listener.failed(asNodeError(error))
      return false
    } finally {
      this.#isStarting = false
    }
  }

  #paused(): Promise<void> {
    const { clock } = this.#deps
    return new Promise((resolve) => {
      const end = (): void => {
        clock.clear(timer)
        this.#pause = null
        resolve()
      }
      const timer = clock.after(backoffMs(RETRY, this.#attempts++), end)
      this.#pause = { timer, end }
    })
  }
}
