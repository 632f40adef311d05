import type { Clock } from '../../kit/clock.js'
import { NodeError } from '../../kit/errors.js'
import type { ErrorBody } from '../../kit/errors.js'
import { Emitter } from '../../kit/events.js'
import type { Unsubscribe } from '../../kit/events.js'
import type { NodeId } from '../../kit/ids.js'
import { type AgentAddress, OPERATOR, parseAddress } from '../../domain/card/card.js'
import { decodeEnvelope, decodeStored } from '../../domain/envelope/codec.js'
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

/** The outcome of a reliable request (spec mcp-runtime, AACPOutcome). */
export type ReliableOutcome = 'COMPLETED' | 'FAILED' | 'UNKNOWN'

/** The record of a request (spec mcp-runtime, AACPRequestRecord). Times are ISO 8601. */
export interface ReliableRequest {
  readonly requestId: string
  /** `id@node key`. */
  readonly sourceAgentId: string
  readonly targetAgentId: string
  readonly messageType: 'REQUEST'
  /** Its input; null when it is no longer kept. */
  readonly payload: unknown
  /** UNKNOWN for every request without an outcome. */
  readonly status: ReliableOutcome
  /** When the request was made. */
  readonly timestamp: string
  readonly expiresAt: string
  /** Times that it was sent (by its caller) or begun (by its agent here). */
  readonly retryCount: number
  readonly nextRetryAt: string | null
  readonly error: ErrorBody | null
}

/** Options of a reliable request. */
export interface ReliableOptions {
  /** The sender: id or address of an agent of this node. Default: the operator. */
  readonly from?: string
  /** Id of the capability. Default: the default capability of the target. */
  readonly capability?: string
}

/** Options of a request whose answer is awaited. */
export interface ReliableRequestOptions extends ReliableOptions {
  /** Milliseconds to wait. Default: `tasks.requestTimeoutMs`. */
  readonly timeoutMs?: number
}

/** A message that its node has not acknowledged. */
export interface UnacknowledgedMessage {
  readonly messageId: string
  readonly seq: number
  readonly envelope: A2AEnvelope
}

/** Dependencies of {@link Reliable}. */
export interface ReliableDeps {
  readonly clock: Clock
  readonly self: NodeId
  readonly requests: Requests
  readonly requestStore: RequestStore
  readonly lanes: Lanes
  readonly directory: Directory
  readonly subscriptions: Subscriptions
  readonly deps: {
    readonly settings: { readonly requestTimeoutMs: number; readonly defaultTtlMs: number }
    readonly chance: () => number
  }
}

/**
 * Reliable delivery for programs in the node's process: the operations of the specification mcp-runtime for its
 * AgentCoordinator, persistence adapter and retransmitter. Only the node's own state machines write records.
 */
export class Reliable {
  readonly #deps: ReliableDeps
  readonly #completed: Emitter<string>
  readonly #failed: Emitter<{ readonly id: string; readonly error: ErrorBody }>

  constructor(deps: ReliableDeps) {
    this.#deps = deps
    // Errors of a program's handler are ignored.
    this.#completed = new Emitter(() => {})
    this.#failed = new Emitter(() => {})
  }

  /**
   * Requests a capability of an agent. Resolves with the request id once the request is durable here, wherever the
   * agent is. It lives for `ledger.defaultTtlMs`; its outcome is reported under its id. The rules apply to the sender's
   * tier and sandbox.
   * @throws NodeError AGENT_NOT_FOUND, AMBIGUOUS_NAME; CAPABILITY_NOT_FOUND; errors of the outbound pipeline or the
   * ledger
   */
  async sendReliableMessage(target: string, payload: unknown, options: ReliableOptions = {}): Promise<string> {
    const asked = await this.#ask(target, payload, { ...options, mayQueue: true })
    void asked.answer.then((answer) => this.#ended(asked.requestId, answer))
    return asked.requestId
  }

  /**
   * Requests a capability of an agent, and returns the result. `options` as a number is its `timeoutMs`. After that
   * time it fails with TIMEOUT; the outcome is then unknown, and can be read later.
   * @throws NodeError as {@link Reliable.sendReliableMessage}; the failure of the agent
   */
  async sendRequest(target: string, payload: unknown, options: number | ReliableRequestOptions = {}): Promise<unknown> {
    const given = typeof options === 'number' ? { timeoutMs: options } : options
    const asked = await this.#ask(target, payload, { ...given, mayQueue: false })
    const answer = await asked.answer
    this.#ended(asked.requestId, answer)
    if (answer.outcome === 'COMPLETED') return answer.result
    throw NodeError.fromBody(answer.error)
  }

  /** Calls back with each admitted message for an agent of this node. */
  onMessageReceived(agentId: string, handler: (envelope: A2AEnvelope) => void): Unsubscribe {
    return this.#deps.subscriptions.onReceive(agentId, handler)
  }

  /** Calls back with the id of each completed request of this object. */
  onMessageCompleted(handler: (requestId: string) => void): Unsubscribe {
    return this.#completed.on(handler)
  }

  /** Calls back with each request of this object that failed, or has an unknown outcome. */
  onMessageFailed(handler: (requestId: string, error: ErrorBody) => void): Unsubscribe {
    return this.#failed.on(({ id, error }) => handler(id, error))
  }

  /** The record of a request of this node; null for none. @throws NodeError STORE_DAMAGED */
  async getRequestRecord(requestId: string): Promise<ReliableRequest | null> {
    const record = await this.#deps.requestStore.asked(requestId)
    return record === null ? null : await this.#shown(record)
  }

  /** Requests without an outcome, at either end, oldest first; with `olderThan` those made up to then. */
  async *listPendingRequests(olderThan?: Date): AsyncGenerator<ReliableRequest> {
    for await (const record of this.#deps.requestStore.pending(olderThan?.getTime())) yield await this.#shown(record)
  }

  /** Requests with an outcome, at either end; with `olderThan` those made up to then. */
  async *listMessagesInState(outcome: ReliableOutcome, olderThan?: Date): AsyncGenerator<ReliableRequest> {
    const until = olderThan?.getTime() ?? Number.POSITIVE_INFINITY
    for await (const record of outcome === 'UNKNOWN'
      ? this.#deps.requestStore.pending()
      : this.#deps.requestStore.settled())
      if (statusOf(record) === outcome && record.createdAt <= until) yield await this.#shown(record)
  }

  /**
   * Messages of a local agent that the target's node has not acknowledged, in order.
   * @throws NodeError USAGE, STORE_DAMAGED
   */
  async getUnacknowledgedMessages(sourceAgentId: string, targetAgentId: string): Promise<UnacknowledgedMessage[]> {
    const messages = await this.#deps.lanes.unacknowledged(laneOf(sourceAgentId, targetAgentId))
    return messages.flatMap(({ envelope: bytes, ...rest }) => {
      const read = decodeEnvelope(bytes)
      const payload = read.ok ? read.payload() : null
      return read.ok && payload?.ok === true ? [{ ...rest, envelope: { ...read.header, payload: payload.value } }] : []
    })
  }

  /** Number of the last message of a local agent to another agent; 0 for none. @throws NodeError USAGE */
  getLastSequence(sourceAgentId: string, targetAgentId: string): number {
    return this.#deps.lanes.lastSequence(laneOf(sourceAgentId, targetAgentId))
  }

  /** Removes the records of requests that expire up to `now`; returns their number. */
  purgeExpired(now: Date): Promise<number> {
    return this.#deps.requestStore.purgeExpired(now.getTime())
  }

  /** True when a request of this node will be retried: one with an unknown outcome, a limited number of times. */
  shouldRetry({ status, retryCount }: Pick<ReliableRequest, 'status' | 'retryCount'>): boolean {
    return status === 'UNKNOWN' && retryCount < this.getMaxAttempts()
  }

  /** Milliseconds until the next retry: exponential in `retryCount`, with full jitter. */
  getBackoffDelay(retryCount: number): number {
    return retryDelay(REQUEST_POLICY, retryCount, this.#deps.deps.chance())
  }

  /** The most tries of a request: 5. */
  getMaxAttempts(): number {
    return REQUEST_POLICY.maxAttempts
  }

  async #ask(
    text: string,
    input: unknown,
    options: ReliableRequestOptions & { readonly mayQueue: boolean }
  ): Promise<Asked> {
    const { directory, requests } = this.#deps
    const { mayQueue, timeoutMs, from = OPERATOR, capability = null } = options
    const { requestTimeoutMs, defaultTtlMs } = this.#deps.deps.settings
    return await requests.ask({
      sender: this.#sender(from),
      target: directory.agent(text),
      capability,
      input,
      description: '',
      timeoutMs: timeoutMs ?? (mayQueue ? defaultTtlMs : requestTimeoutMs),
      mayQueue
    })
  }

  /** An agent of this node. @throws NodeError AGENT_NOT_FOUND */
  #sender(from: string): AgentAddress {
    const { directory, self } = this.#deps
    const sender = parseAddress(from) ?? { agentId: from, nodeId: self }
    if (sender.nodeId === self && directory.card(sender) !== undefined) return sender
    throw new NodeError('AGENT_NOT_FOUND', `no agent ${directory.shownAddress(sender)} on this node`)
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

/** The caller's record has the input, the callee's the envelope. */
function inputOf(role: RequestRecord['role'], bytes: Uint8Array | null): unknown {
  if (bytes === null) return null
  const read = role === 'caller' ? null : decodeEnvelope(bytes)
  const payload = read === null ? decodeStored(bytes) : read.ok ? read.payload() : null
  return payload?.ok === true ? payload.value : null
}

function statusOf({ status }: RequestRecord): ReliableOutcome {
  if (!SETTLED.has(status)) return 'UNKNOWN'
  return status === 'completed' ? 'COMPLETED' : 'FAILED'
}

function laneOf(
  sourceAgentId: string,
  targetAgentId: string
): { readonly source: AgentAddress; readonly target: AgentAddress } {
  const [source, target] = [parseAddress(sourceAgentId), parseAddress(targetAgentId)]
  if (source === null || target === null)
    throw new NodeError('USAGE', 'agents are named by their addresses: id@node key')
  return { source, target }
}
