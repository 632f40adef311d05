import type { Clock } from '../../kit/clock.js'
import { NodeError } from '../../kit/errors.js'
import type { ErrorBody } from '../../kit/errors.js'
import { Emitter } from '../../kit/events.js'
import type { Unsubscribe } from '../../kit/events.js'
import type { NodeId } from '../../kit/ids.js'
import { type AgentAddress, OPERATOR, parseAddress } from '../../domain/card/card.js'
import { decodeEnvelope, decodePayload } from '../../domain/envelope/codec.js'
import type { A2AEnvelope } from '../../domain/envelope/envelope.js'
import type { RequestRecord } from '../../domain/reliable/records.js'
import { REQUEST_POLICY, SETTLED } from '../../domain/reliable/request.js'
import { retryDelay } from '../../domain/reliable/retry-policy.js'
import type { Answer } from '../requests/caller/request-codec.js'
import type { Directory } from '../cards/directory.js'
import type { Lanes } from '../reliable/lanes.js'
import type { Subscriptions } from '../messaging/subscriptions.js'
import type { RequestStore } from '../requests/store.js'
import type { Asked, Requests } from '../requests/caller/requests.js'

/** How something that was sent reliably stands (spec mcp-runtime, AACPOutcome). */
export type ReliableOutcome = 'COMPLETED' | 'FAILED' | 'UNKNOWN'

/** What is on record of a request (spec mcp-runtime, AACPRequestRecord). Times are ISO 8601. */
export interface ReliableRequest {
  readonly requestId: string
  /** `id@node key`. */
  readonly sourceAgentId: string
  readonly targetAgentId: string
  readonly messageType: 'REQUEST'
  /** What it was asked with; null when that is no longer kept. */
  readonly payload: unknown
  /** UNKNOWN for every request without an outcome. */
  readonly status: ReliableOutcome
  /** When it was made. */
  readonly timestamp: string
  readonly expiresAt: string
  /** Times that it was sent (asked here) or begun (asked of an agent here). */
  readonly retryCount: number
  readonly nextRetryAt: string | null
  readonly error: ErrorBody | null
}

/** A message that its node has not acknowledged. */
export interface UnacknowledgedMessage {
  readonly messageId: string
  readonly seq: number
  readonly envelope: A2AEnvelope
}

/** What reliable delivery for programs needs. */
export interface ReliableDeps {
  readonly clock: Clock
  readonly self: NodeId
  readonly requests: Requests
  readonly requestStore: RequestStore
  readonly lanes: Lanes
  readonly directory: Directory
  readonly subscriptions: Subscriptions
  readonly deps: { readonly settings: { readonly requestTimeoutMs: number; readonly defaultTtlMs: number }; readonly chance: () => number }
}

/**
 * Reliable delivery for programs in the node's process: the operations of the specification mcp-runtime that its
 * AgentCoordinator, persistence adapter and retransmitter have. Records are written by the node's own machines alone.
 */
export class Reliable {
  readonly #deps: ReliableDeps
  readonly #completed: Emitter<string>
  readonly #failed: Emitter<{ readonly id: string; readonly error: ErrorBody }>

  constructor(deps: ReliableDeps) {
    this.#deps = deps
    // A handler that throws is its program's own business.
    this.#completed = new Emitter(() => {})
    this.#failed = new Emitter(() => {})
  }

  /**
   * Has an agent do its default capability; resolves when that is durable here, wherever the agent is. It lives for
   * `ledger.defaultTtlMs`. Gives the id of the request: what becomes of it is told under this id.
   * @throws NodeError AGENT_NOT_FOUND, AMBIGUOUS_NAME; what the outbound pipeline or the ledger refuses
   */
  async sendReliableMessage(target: string, payload: unknown): Promise<string> {
    const asked = await this.#ask(target, payload, { mayQueue: true })
    void asked.answer.then((answer) => this.#ended(asked.requestId, answer))
    return asked.requestId
  }

  /**
   * Has an agent do its default capability, and gives its result. After `timeoutMs` (default `tasks.requestTimeoutMs`) it
   * fails with TIMEOUT; the outcome is then unknown, and can be read later.
   * @throws NodeError as {@link Reliable.sendReliableMessage}; what the agent failed with
   */
  async sendRequest(target: string, payload: unknown, timeoutMs?: number): Promise<unknown> {
    const asked = await this.#ask(target, payload, { mayQueue: false, timeoutMs })
    const answer = await asked.answer
    this.#ended(asked.requestId, answer)
    if (answer.outcome === 'COMPLETED') return answer.result
    throw NodeError.fromBody(answer.error)
  }

  /** Calls back with each message that was let in for an agent of this node. */
  onMessageReceived(agentId: string, handler: (envelope: A2AEnvelope) => void): Unsubscribe {
    return this.#deps.subscriptions.onReceive(agentId, handler)
  }

  /** Calls back with the id of each request of this object that was completed. */
  onMessageCompleted(handler: (requestId: string) => void): Unsubscribe {
    return this.#completed.on(handler)
  }

  /** Calls back with each request of this object that failed, or of which the outcome is not known. */
  onMessageFailed(handler: (requestId: string, error: ErrorBody) => void): Unsubscribe {
    return this.#failed.on(({ id, error }) => handler(id, error))
  }

  /** What is on record of a request of this node; null for none. @throws NodeError STORE_DAMAGED */
  async getRequestRecord(requestId: string): Promise<ReliableRequest | null> {
    const record = await this.#deps.requestStore.asked(requestId)
    return record === null ? null : await this.#shown(record)
  }

  /** Requests without an outcome, at either end, oldest first; with `olderThan` those that were made up to then. */
  async *listPendingRequests(olderThan?: Date): AsyncGenerator<ReliableRequest> {
    for await (const record of this.#deps.requestStore.pending(olderThan?.getTime())) yield await this.#shown(record)
  }

  /** Requests with an outcome, at either end; with `olderThan` those that were made up to then. */
  async *listMessagesInState(outcome: ReliableOutcome, olderThan?: Date): AsyncGenerator<ReliableRequest> {
    const until = olderThan?.getTime() ?? Number.POSITIVE_INFINITY
    for await (const record of outcome === 'UNKNOWN' ? this.#deps.requestStore.pending() : this.#deps.requestStore.settled())
      if (statusOf(record) === outcome && record.createdAt <= until) yield await this.#shown(record)
  }

  /** Messages of an agent of this node that the node of another agent has not acknowledged, in order. @throws NodeError USAGE, STORE_DAMAGED */
  async getUnacknowledgedMessages(sourceAgentId: string, targetAgentId: string): Promise<UnacknowledgedMessage[]> {
    const messages = await this.#deps.lanes.unacknowledged(laneOf(sourceAgentId, targetAgentId))
    return messages.flatMap(({ envelope: bytes, ...rest }) => {
      const read = decodeEnvelope(bytes)
      const payload = read.ok ? read.payload() : null
      return read.ok && payload?.ok === true ? [{ ...rest, envelope: { ...read.header, payload: payload.value } }] : []
    })
  }

  /** Number of the last message of an agent of this node to another agent; 0 for none. @throws NodeError USAGE */
  getLastSequence(sourceAgentId: string, targetAgentId: string): number {
    return this.#deps.lanes.lastSequence(laneOf(sourceAgentId, targetAgentId))
  }

  /** Removes the records of requests that expire up to then; gives how many. */
  purgeExpired(now: Date): Promise<number> {
    return this.#deps.requestStore.purgeExpired(now.getTime())
  }

  /** Is a request of this node asked for again? Only one whose outcome is not known, and not for ever. */
  shouldRetry({ status, retryCount }: Pick<ReliableRequest, 'status' | 'retryCount'>): boolean {
    return status === 'UNKNOWN' && retryCount < this.getMaxAttempts()
  }

  /** Milliseconds until it is, after so many retries: exponential, with full jitter. */
  getBackoffDelay(retryCount: number): number {
    return retryDelay(REQUEST_POLICY, retryCount, this.#deps.deps.chance())
  }

  /** Times in all that a request is asked for: 5. */
  getMaxAttempts(): number {
    return REQUEST_POLICY.maxAttempts
  }

  async #ask(text: string, input: unknown, { mayQueue, timeoutMs }: { mayQueue: boolean; timeoutMs?: number | undefined }): Promise<Asked> {
    const { directory, requests, self } = this.#deps
    const { requestTimeoutMs, defaultTtlMs } = this.#deps.deps.settings
    return await requests.ask({
      sender: { agentId: OPERATOR, nodeId: self },
      target: directory.agent(text),
      capability: null,
      input,
      description: '',
      timeoutMs: timeoutMs ?? (mayQueue ? defaultTtlMs : requestTimeoutMs),
      mayQueue
    })
  }

  #ended(id: string, answer: Answer): void {
    if (answer.outcome === 'COMPLETED') this.#completed.emit(id)
    else this.#failed.emit({ id, error: answer.error })
  }

  async #shown(record: RequestRecord): Promise<ReliableRequest> {
    const { role, requestId, source, target, createdAt, expiresAt, tries, retryAt, error } = record
    return {
      requestId,
      sourceAgentId: source,
      targetAgentId: target,
      messageType: 'REQUEST',
      payload: inputOf(role, await this.#deps.requestStore.input(this.#deps.requestStore.name(record))),
      status: statusOf(record),
      timestamp: new Date(createdAt).toISOString(),
      expiresAt: new Date(expiresAt).toISOString(),
      retryCount: tries,
      nextRetryAt: retryAt === null ? null : new Date(retryAt).toISOString(),
      error
    }
  }
}

/** The caller keeps the input, the callee the envelope that it came in. */
function inputOf(role: RequestRecord['role'], bytes: Uint8Array | null): unknown {
  if (bytes === null) return null
  const read = role === 'caller' ? null : decodeEnvelope(bytes)
  const payload = read === null ? decodePayload(bytes) : read.ok ? read.payload() : null
  return payload?.ok === true ? payload.value : null
}

function statusOf({ status }: RequestRecord): ReliableOutcome {
  if (!SETTLED.has(status)) return 'UNKNOWN'
  return status === 'completed' ? 'COMPLETED' : 'FAILED'
}

function laneOf(sourceAgentId: string, targetAgentId: string): { readonly source: AgentAddress; readonly target: AgentAddress } {
  const [source, target] = [parseAddress(sourceAgentId), parseAddress(targetAgentId)]
  if (source === null || target === null) throw new NodeError('USAGE', 'agents are named by their addresses: id@node key')
  return { source, target }
}
