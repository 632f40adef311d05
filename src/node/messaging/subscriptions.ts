import { messageOf } from '../../kit/errors.js'
import { Emitter } from '../../kit/events.js'
import type { Unsubscribe } from '../../kit/events.js'
import { headerOf } from '../../domain/envelope/header.js'
import type { EnvelopeHeader } from '../../domain/envelope/header.js'
import type { A2AEnvelope } from '../../domain/envelope/envelope.js'
import { Threads } from '../../domain/envelope/threads.js'
import type { Telemetry } from '../../ports/telemetry.js'

/** Called with each admitted message for an agent. */
export type EnvelopeHandler = (envelope: A2AEnvelope) => void

/** The most kept threads. */
const MAX_THREADS = 256
/** The most messages of one thread. */
const MAX_MESSAGES = 64

/** The subscribers to messages of this node's agents, and the recent threads of those messages. */
export class Subscriptions {
  readonly #telemetry: Telemetry
  readonly #byAgent = new Map<string, Emitter<A2AEnvelope>>()
  /** null until {@link keepThreads}: other nodes keep no threads. */
  #threads: Threads<EnvelopeHeader> | null = null

  constructor(telemetry: Telemetry) {
    this.#telemetry = telemetry
  }

  /** Starts to keep threads. */
  keepThreads(): void {
    this.#threads ??= new Threads({ maxThreads: MAX_THREADS, maxMessages: MAX_MESSAGES })
  }

  /** Headers of the messages of a thread that passed here since {@link keepThreads}, by time. */
  thread(correlationId: string): readonly EnvelopeHeader[] {
    return this.#threads?.thread(correlationId) ?? []
  }

  /** Calls back for each message to an agent of this node. */
  onReceive(agentId: string, handler: EnvelopeHandler): Unsubscribe {
    const known = this.#byAgent.get(agentId)
    const emitter = known ?? new Emitter<A2AEnvelope>((error) => this.#failed(agentId, error))
    if (known === undefined) this.#byAgent.set(agentId, emitter)
    const stop = emitter.on(handler)
    return () => {
      stop()
      if (emitter.size === 0 && this.#byAgent.get(agentId) === emitter) this.#byAgent.delete(agentId)
    }
  }

  /** True when the agent has a subscriber. */
  has(agentId: string): boolean {
    return this.#byAgent.has(agentId)
  }

  /** True when the messages of this agent have any use: a subscriber, or kept threads. */
  isListening(agentId: string): boolean {
    return this.#threads !== null || this.has(agentId)
  }

  /** Passes an admitted message to the agent's subscribers. */
  received(agentId: string, header: EnvelopeHeader, payload: unknown): void {
    this.#threads?.add(header)
    this.#byAgent.get(agentId)?.emit({ payload, ...header })
  }

  /** Notes a message sent to another node. */
  sent(envelope: A2AEnvelope): void {
    this.#threads?.add(headerOf(envelope))
  }

  #failed(agentId: string, error: unknown): void {
    this.#telemetry.log('error', 'a listener did not take its message', { agent: agentId, reason: messageOf(error) })
  }
}
