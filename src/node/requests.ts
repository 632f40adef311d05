import type { AbortSignalLike, Clock } from '../kit/clock.js'
import { asNodeError, NodeError } from '../kit/errors.js'
import type { ErrorBody } from '../kit/errors.js'
import type { IdSource, NodeId } from '../kit/ids.js'
import { addressText } from '../domain/card/card.js'
import type { AgentAddress } from '../domain/card/card.js'
import type { EnvelopeHeader } from '../domain/envelope/codec.js'
import { errorBodySchema, progressPayloadSchema, responsePayloadSchema } from '../domain/task/payloads.js'
import type { RequestPayload } from '../domain/task/payloads.js'
import type { Conversations } from './conversations.js'
import type { Outbox } from './outbox.js'
import type { Peers } from './peers.js'
import type { Tasks } from './tasks.js'

/** What asking others needs. */
export interface RequestsParts {
  readonly clock: Clock
  readonly ids: IdSource
  readonly outbox: Outbox
  readonly peers: Peers
  readonly conversations: Conversations
  readonly tasks: Tasks
  readonly self: string
  /** Cancels work on this very node. */
  cancelHere(key: string): void
}

/** A request to one agent. */
export interface Asking {
  readonly sender: AgentAddress
  readonly target: AgentAddress
  /** null: the agent's default capability. */
  readonly capability: string | null
  readonly input: unknown
  readonly description: string
  readonly justification?: string
  /** How long the answer may take; past it the outcome is unknown, and a late answer still counts. */
  readonly timeoutMs: number
  /** Waits for an agent that is offline now, as long as `timeoutMs` lasts. */
  readonly mayQueue: boolean
  /** Set for the lease of a swarm's item. */
  readonly lease?: { readonly swarm: string; readonly requestId: string; readonly attempt: number }
}

/** How a request ended for its caller. */
export type Answer =
  | { readonly outcome: 'COMPLETED'; readonly result: unknown }
  | { readonly outcome: 'FAILED'; readonly error: ErrorBody }
  | { readonly outcome: 'UNKNOWN'; readonly error: ErrorBody }

/** A request under way. */
export interface Asked {
  readonly requestId: string
  readonly correlationId: string
  /** null for leases: the swarm keeps their books. */
  readonly taskId: string | null
  /** Never rejects. */
  readonly answer: Promise<Answer>
  /** Asks the other side to stop; the answer is then a failure with CANCELED. */
  cancel(): void
}

/** How long a late answer is still taken, beyond the caller's patience, in milliseconds. */
const LATE_MS = 3_600_000

/** The caller's side of requests. */
export class Requests {
  readonly #parts: RequestsParts
  readonly #waitingForPeer = new Map<string, Set<() => void>>()
  readonly #live = new Map<string, { readonly key: string; readonly peer: NodeId; readonly cancel: () => void }>()

  constructor(parts: RequestsParts) {
    this.#parts = parts
  }

  /**
   * Sends a request. Resolves when it is on its way (or queued).
   * @throws NodeError what {@link Outbox.send} refuses.
   */
  async ask(asking: Asking): Promise<Asked> {
    const { ids, tasks } = this.#parts
    const requestId = asking.lease?.requestId ?? ids.next('req')
    const attempt = asking.lease?.attempt ?? 1
    const correlationId = ids.next('thr')
    const agent = addressText(asking.target)
    const taskId =
      asking.lease === undefined
        ? tasks.open({ kind: 'request', role: 'caller', agent, capability: asking.capability ?? '', description: asking.description })
        : null
    let settle: (answer: Answer) => void = () => {}
    const answer = new Promise<Answer>((resolve) => {
      settle = resolve
    })
    const run = this.#follow({ asking, requestId, attempt, correlationId, taskId, settle })
    try {
      await run.send()
    } catch (error) {
      const failure = asNodeError(error)
      if (failure.code !== 'PEER_OFFLINE' || !asking.mayQueue) {
        if (taskId !== null) tasks.fail(taskId, failure.toBody())
        run.end()
        throw failure
      }
      run.queue()
    }
    if (taskId !== null) this.#live.set(taskId, { key: workKey(requestId, attempt), peer: asking.target.nodeId, cancel: run.cancel })
    return { requestId, correlationId, taskId, answer, cancel: run.cancel }
  }

  /** Cancels the request of a caller's task; false when it is not under way. */
  cancelTask(taskId: string): boolean {
    const live = this.#live.get(taskId)
    live?.cancel()
    return live !== undefined
  }

  /** A peer says which requests it works on. */
  onHeartbeat(peer: NodeId, keys: readonly string[]): void {
    const named = new Set(keys)
    for (const [taskId, one] of this.#live) if (one.peer === peer && named.has(one.key)) this.#parts.tasks.working(taskId)
  }

  /** Requests that wait for their peer to come back. */
  waitingCount(): number {
    let count = 0
    for (const waiting of this.#waitingForPeer.values()) count += waiting.size
    return count
  }

  /** A peer is back: send what waited for it. */
  onOnline(peer: string): void {
    const waiting = this.#waitingForPeer.get(peer)
    this.#waitingForPeer.delete(peer)
    for (const send of waiting ?? []) send()
  }

  #follow(one: {
    asking: Asking
    requestId: string
    attempt: number
    correlationId: string
    taskId: string | null
    settle: (answer: Answer) => void
  }): {
    send(): Promise<void>
    queue(): void
    cancel: () => void
    end(): void
  } {
    const { asking, requestId, attempt, correlationId, taskId } = one
    const { clock, tasks, outbox, conversations, peers, self, cancelHere } = this.#parts
    const peer = asking.target.nodeId
    let isOver = false
    const timer = clock.after(asking.timeoutMs, () => {
      const error = new NodeError('TIMEOUT', 'no answer in time; the work may still go on').toBody()
      if (taskId !== null && !isOver) tasks.unknown(taskId)
      one.settle({ outcome: 'UNKNOWN', error })
    })

    const end = (): void => {
      isOver = true
      clock.clear(timer)
      conversations.end(peer, correlationId)
      if (taskId !== null) this.#live.delete(taskId)
    }
    const finish = (answer: Answer): void => {
      if (isOver) return
      end()
      if (taskId !== null && answer.outcome === 'COMPLETED') tasks.complete(taskId, answer.result)
      if (taskId !== null && answer.outcome === 'FAILED') tasks.fail(taskId, answer.error)
      one.settle(answer)
    }
    const onReply = (header: EnvelopeHeader, payload: unknown): void => {
      const answer = readReply(header, payload, { requestId, attempt })
      if (answer === 'working' || answer === null) return
      if ('progress' in answer) {
        if (taskId !== null) tasks.progress(taskId, answer.progress)
      } else finish(answer)
    }
    const payload: RequestPayload = {
      requestId,
      attempt,
      capability: asking.capability,
      input: asking.input,
      description: asking.description,
      swarm: asking.lease?.swarm ?? null
    }
    const send = async (): Promise<void> => {
      await outbox.send({
        sender: asking.sender,
        recipient: asking.target,
        type: 'request',
        payload,
        correlationId,
        ...(asking.justification === undefined ? {} : { justification: asking.justification }),
        replies: { ttlMs: asking.timeoutMs + LATE_MS, handler: onReply }
      })
      if (taskId !== null) tasks.waitFor(taskId, null)
    }
    const queue = (): void => {
      if (taskId !== null) tasks.waitFor(taskId, 'peer')
      const waiting = this.#waitingForPeer.get(peer) ?? new Set()
      this.#waitingForPeer.set(peer, waiting)
      waiting.add(() => {
        if (!isOver) send().catch(queue)
      })
    }
    const cancel = (): void => {
      if (isOver) return
      const key = workKey(requestId, attempt)
      if (peer === self) cancelHere(key)
      else if (peers.isOnline(peer)) peers.send(peer, { kind: 'control', name: 'cancel', body: { requestId: key } })
      finish({ outcome: 'FAILED', error: new NodeError('CANCELED', 'canceled by its caller').toBody() })
    }
    return { send, queue, cancel, end }
  }
}

/** One run of one request, as heartbeats and cancellations name it. */
export function workKey(requestId: string, attempt: number): string {
  return `${requestId}#${attempt}`
}

function readReply(
  header: EnvelopeHeader,
  payload: unknown,
  expected: { requestId: string; attempt: number }
): Answer | { progress: unknown } | 'working' | null {
  if (header.type === 'error') {
    const error = errorBodySchema.safeParse(payload)
    return error.success ? { outcome: 'FAILED', error: error.data } : null
  }
  if (header.type === 'stream-data') {
    const data = progressPayloadSchema.safeParse(payload)
    return data.success ? { progress: data.data.progress } : null
  }
  if (header.type !== 'response') return 'working'
  const response = responsePayloadSchema.safeParse(payload)
  if (!response.success || response.data.requestId !== expected.requestId || response.data.attempt !== expected.attempt) return null
  if (response.data.outcome === 'COMPLETED') return { outcome: 'COMPLETED', result: response.data.result ?? null }
  return { outcome: 'FAILED', error: response.data.error ?? new NodeError('TASK_FAILED', 'the agent failed').toBody() }
}

/** A signal that a caller can abort, without the host's AbortController. */
export class Abort implements AbortSignalLike {
  readonly #listeners = new Set<() => void>()
  aborted = false

  addEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners.add(listener)
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners.delete(listener)
  }

  /** Aborts; the listeners are called once. */
  abort(): void {
    if (this.aborted) return
    this.aborted = true
    for (const listener of [...this.#listeners]) listener()
    this.#listeners.clear()
  }
}
