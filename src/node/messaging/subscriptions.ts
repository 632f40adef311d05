import { messageOf } from '../../kit/errors.js'
import { Emitter } from '../../kit/events.js'
import type { Unsubscribe } from '../../kit/events.js'
import { headerOf } from '../../domain/envelope/header.js'
import type { EnvelopeHeader } from '../../domain/envelope/header.js'
import type { A2AEnvelope } from '../../domain/envelope/envelope.js'
import { Threads } from '../../domain/envelope/threads.js'
import type { Telemetry } from '../../ports/telemetry.js'

/** Called with each message that was let in for an agent. */
export type EnvelopeHandler = (envelope: A2AEnvelope) => void

/** Threads that are kept. */
const MAX_THREADS = 256
/** Messages of one of them. */
const MAX_MESSAGES = 64

/** Who listens to the messages of this node's agents, and the recent threads of those messages. */
export class Subscriptions {
  readonly #telemetry: Telemetry
  readonly #byAgent = new Map<string, Emitter<A2AEnvelope>>()
  /** null until somebody asks: a node of which nobody does keeps nothing. */
  #threads: Threads<EnvelopeHeader> | null = null

  constructor(telemetry: Telemetry) {
    this.#telemetry = telemetry
  }

  /** Begins to keep threads. */
  keepThreads(): void {
    this.#threads ??= new Threads({ maxThreads: MAX_THREADS, maxMessages: MAX_MESSAGES })
  }

  /** Headers of the messages of a thread that were sent or let in here since threads are kept, by time. */
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

  /** Does anybody listen for this agent? */
  has(agentId: string): boolean {
    return this.#byAgent.has(agentId)
  }

  /** Is anything done with the messages of this agent? */
  isListening(agentId: string): boolean {
    return this.#threads !== null || this.has(agentId)
  }

  /** A message was let in for an agent. */
  received(agentId: string, header: EnvelopeHeader, payload: unknown): void {
    this.#threads?.add(header)
    this.#byAgent.get(agentId)?.emit({ payload, ...header })
  }

  /** A message has left for another node. */
  sent(envelope: A2AEnvelope): void {
    this.#threads?.add(headerOf(envelope))
  }

  #failed(agentId: string, error: unknown): void {
    this.#telemetry.log('error', 'a listener did not take its message', { agent: agentId, reason: messageOf(error) })
  }
}
