import { Emitter, type Unsubscribe } from '../../kit/events.js'
import type { CRDTSyncMessage } from './sync-message.js'
import { MAX_CLOCK_ENTRIES, readSyncMessage } from './sync-message.js'

/** Carries messages between this agent and every connected one. */
export interface SyncWire {
  /** Sends the payload of a `stream-data` envelope to all. */
  send(payload: CRDTSyncMessage): Promise<void>
  /**
   * Listens to messages of others; `from`: the sender, as verified by the inbound pipeline. Returns the function that
   * stops it.
   */
  listen(handler: (payload: unknown, from: string) => void): () => void
}

/** Dependencies of a channel. */
export interface SyncChannelParts {
  readonly wire: SyncWire
  /** Unix milliseconds. */
  readonly now: () => number
  /** Can the update of a message be read? Null, or why not. */
  readonly faultOf: (update: unknown) => string | null
  /** Called with the error of a handler; the other handlers still run. */
  readonly onError: (error: unknown) => void
  /** Called with each skipped update and its sender. Must not throw. */
  readonly onSkipped: (skipped: {
    readonly code: 'CRDT_DESERIALIZATION_FAILED'
    readonly source: string
    readonly reason: string
  }) => void
}

/** Spreads the updates of documents among connected agents (spec a2a-mcp-mesh, CRDTSyncChannel). */
export class CRDTSyncChannel {
  readonly #parts: SyncChannelParts
  readonly #received: Emitter<CRDTSyncMessage>
  readonly #clock = new Map<string, number>()
  readonly #stop: () => void
  #isClosed = false

  constructor(parts: SyncChannelParts) {
    this.#parts = parts
    this.#received = new Emitter(parts.onError)
    this.#stop = parts.wire.listen((payload, from) => this.#hear(payload, from))
  }

  /**
   * Sends an update to all connected agents, counted as one more of `sourceAgentId`. On a closed channel it does
   * nothing.
   */
  async broadcast(update: unknown, sourceAgentId: string): Promise<void> {
    if (this.#isClosed) return
    this.#clock.set(sourceAgentId, (this.#clock.get(sourceAgentId) ?? 0) + 1)
    await this.#parts.wire.send({
      sourceAgentId,
      vectorClock: this.getVectorClock(),
      payload: update,
      timestamp: this.#parts.now()
    })
  }

  /** Hands every update of others to `handler`, in the order of arrival. Returns how to stop. */
  onUpdate(handler: (message: CRDTSyncMessage) => void): Unsubscribe {
    return this.#received.on(handler)
  }

  /** How many updates of each agent were sent or came in here. */
  getVectorClock(): Record<string, number> {
    return Object.fromEntries(this.#clock)
  }

  /** Ends the channel: nothing is sent or received any more. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#stop()
  }

  #hear(payload: unknown, from: string): void {
    if (this.#isClosed) return
    const message = readSyncMessage(payload)
    const reason = message === null ? 'no message of a document' : this.#faultOf(message, from)
    if (message === null || reason !== null) {
      this.#parts.onSkipped({ code: 'CRDT_DESERIALIZATION_FAILED', source: from, reason: reason ?? '' })
      return
    }
    // Only the source's own count is reliable; the other counts come from their own sources.
    this.#clock.set(from, Math.max(this.#clock.get(from) ?? 0, message.vectorClock[from] ?? 0))
    this.#received.emit(message)
  }

  #faultOf({ sourceAgentId, payload }: CRDTSyncMessage, from: string): string | null {
    if (sourceAgentId !== from) return 'the source is not the sender'
    if (!this.#clock.has(from) && this.#clock.size >= MAX_CLOCK_ENTRIES)
      return 'of one agent more than a vector clock names'
    return this.#parts.faultOf(payload)
  }
}
