import { BoundedMap } from '../../kit/bounded.js'
import { threadOf } from './factory.js'
import type { EnvelopeHeader } from './header.js'

/** Limits of {@link Threads}. */
export interface ThreadLimits {
  /** Default 1,000. */
  readonly maxThreads?: number
  /** Messages of one thread. Default 256. */
  readonly maxMessages?: number
}

/**
 * Recent messages by conversation. A message belongs to the thread of its correlation id, or opens one under its own
 * id. Bounded: a new thread replaces the one quiet longest, a new message the earliest of its thread. Messages are kept
 * whole, so pass headers where payloads are large.
 */
export class Threads<M extends Pick<EnvelopeHeader, 'id' | 'correlationId' | 'timestamp'>> {
  // In the order of the last addition: the first is the quietest.
  readonly #threads: BoundedMap<string, M[]>
  readonly #maxMessages: number

  constructor(limits: ThreadLimits = {}) {
    this.#threads = new BoundedMap(limits.maxThreads ?? 1000)
    this.#maxMessages = limits.maxMessages ?? 256
  }

  /** Adds a message. */
  add(message: M): void {
    const key = threadOf(message)
    const thread = this.#threads.get(key) ?? []
    this.#threads.setNewest(key, thread)
    insert(thread, message)
    if (thread.length > this.#maxMessages) thread.shift()
  }

  /** The messages of a thread in the order of their timestamps (equal ones as they came); empty when unknown. */
  thread(correlationId: string): readonly M[] {
    return [...(this.#threads.get(correlationId) ?? [])]
  }

  /** How many threads are kept. */
  get size(): number {
    return this.#threads.size
  }
}

function insert<M extends { readonly timestamp: number }>(thread: M[], message: M): void {
  let at = thread.length
  while (at > 0 && (thread[at - 1]?.timestamp ?? 0) > message.timestamp) at--
  thread.splice(at, 0, message)
}
