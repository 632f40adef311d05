import type { Clock } from '../kit/clock.js'
import { asNodeError, messageOf } from '../kit/errors.js'
import type { ErrorBody, ErrorCode, NodeError } from '../kit/errors.js'
import type { NodeId } from '../kit/ids.js'
import type { MessageType } from '../domain/envelope/envelope.js'
import type { Telemetry } from '../ports/telemetry.js'
import { OPERATOR } from './agents.js'
import type { Conversations } from './conversations.js'
import type { Directory } from './directory.js'
import { trimFairly } from './fair-share.js'
import type { Thread } from './inbox.js'
import type { Outbox } from './outbox.js'
import { sizeOf } from './size.js'
import type { Ways } from './ways.js'

/** Answers that wait for callers who are away. */
const MAX_UNSENT = 1024
/** Bytes of them together. */
const MAX_UNSENT_BYTES = 32 * 1024 * 1024

/** The caller cannot be reached now, but may be later. */
const AWAY: ReadonlySet<ErrorCode> = new Set(['PEER_OFFLINE', 'CHANNEL_CLOSED', 'OVERLOADED'])

/** What answering needs. */
export interface AnswersParts {
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly outbox: Outbox
  readonly conversations: Conversations
  readonly directory: Directory
  readonly ways: Ways
  readonly self: NodeId
  /** How long an answer waits for its caller, in milliseconds. */
  readonly answerTtlMs: number
}

interface Unsent {
  readonly thread: Thread
  readonly payload: unknown
  readonly bytes: number
  readonly expiresAt: number
}

/** The answers that wait for one caller, oldest first. */
class Backlog {
  readonly #answers: Unsent[] = []
  bytes = 0

  get size(): number {
    return this.#answers.length
  }

  push(answer: Unsent): void {
    this.#answers.push(answer)
    this.bytes += answer.bytes
  }

  dropOldest(): void {
    this.bytes -= this.#answers.shift()?.bytes ?? 0
  }

  /** Drops what has waited too long, and gives the rest. */
  live(now: number): readonly Unsent[] {
    while ((this.#answers[0]?.expiresAt ?? now + 1) <= now) this.dropOldest()
    return this.#answers
  }
}

/**
 * Sends answers along their threads; those for callers who are away wait, bounded in number, bytes and time. Beyond the
 * bounds the caller for whom most is kept loses its oldest, so none can push out the answers of another.
 */
export class Answers {
  readonly #parts: AnswersParts
  readonly #unsent = new Map<NodeId, Backlog>()

  constructor(parts: AnswersParts) {
    this.#parts = parts
  }

  /** Answers that wait for a caller who is away. */
  unsentCount(): number {
    return [...this.#unsent.values()].reduce((sum, one) => sum + one.size, 0)
  }

  /** Sends a response now, or when the caller is back; it ends the exchange. */
  respond(thread: Thread, payload: unknown): void {
    if (!this.#isReachable(thread)) return this.#keep(thread, payload)
    this.#send(thread, 'response', payload).catch((error: unknown) => this.#failed(thread, payload, asNodeError(error)))
  }

  /** Sends a response now or never: this node stops. Resolves when it is on its way. */
  async lastWord(thread: Thread, payload: unknown): Promise<void> {
    if (this.#isReachable(thread))
      await this.#send(thread, 'response', payload).catch((error: unknown) => this.#note(thread.correlationId, error))
  }

  /** Sends progress, if the caller is there. */
  progress(thread: Thread, payload: unknown): void {
    if (!this.#isReachable(thread)) return
    this.#parts.outbox
      .send({ ...this.#voiced(thread), type: 'stream-data', payload })
      .catch((error: unknown) => this.#note(thread.correlationId, error))
  }

  /** Sends an error; it ends the exchange. */
  refuse(thread: Thread, error: ErrorBody): void {
    this.#send(thread, 'error', error).catch((failure: unknown) => this.#giveUp(thread, failure))
  }

  /** Time passed: answers for callers who are there, but could not take them, are tried again. */
  tick(): void {
    const now = this.#parts.clock.now()
    for (const [peer, backlog] of [...this.#unsent]) {
      if (backlog.live(now).length === 0) this.#unsent.delete(peer)
      else if (this.#parts.ways.isReachable(peer)) this.onOnline(peer)
    }
  }

  /** A peer is back: answers that waited for it go out. */
  onOnline(peer: NodeId): void {
    const backlog = this.#unsent.get(peer)
    this.#unsent.delete(peer)
    for (const { thread, payload } of backlog?.live(this.#parts.clock.now()) ?? []) this.respond(thread, payload)
  }

  /** A peer will not come back: what waits for it is dropped. */
  forget(peer: NodeId): void {
    this.#unsent.delete(peer)
  }

  #isReachable({ recipient: { nodeId } }: Thread): boolean {
    return nodeId === this.#parts.self || this.#parts.ways.isReachable(nodeId)
  }

  #dropOldest(backlog: Backlog, peer: NodeId): void {
    backlog.dropOldest()
    this.#parts.telemetry.count('errors', 'answer')
    this.#parts.telemetry.log('warn', 'an answer was dropped: too much waits for callers who are away', { peer })
  }

  async #send(thread: Thread, type: MessageType, payload: unknown): Promise<void> {
    await this.#parts.outbox.send({ ...this.#voiced(thread), type, payload, isKept: type === 'response' })
    this.#parts.conversations.end(thread)
  }

  /** An agent that is not there, or no longer, has no voice: the operator speaks for the node. */
  #voiced(thread: Thread): Thread {
    const { directory, self } = this.#parts
    return directory.card(thread.sender) === undefined ? { ...thread, sender: { agentId: OPERATOR, nodeId: self } } : thread
  }

  #keep(thread: Thread, payload: unknown): void {
    const { clock, answerTtlMs } = this.#parts
    const bytes = sizeOf(payload)
    const backlog = this.#unsent.get(thread.recipient.nodeId) ?? new Backlog()
    this.#unsent.set(thread.recipient.nodeId, backlog)
    backlog.push({ thread, payload, bytes, expiresAt: clock.now() + answerTtlMs })
    const drop = (one: Backlog, peer: NodeId): void => this.#dropOldest(one, peer)
    trimFairly(this.#unsent, { most: MAX_UNSENT, measure: (one) => one.size, drop })
    trimFairly(this.#unsent, { most: MAX_UNSENT_BYTES, measure: (one) => one.bytes, drop })
  }

  #failed(thread: Thread, payload: unknown, error: NodeError): void {
    if (AWAY.has(error.code)) this.#keep(thread, payload)
    else if (error.code === 'PAYLOAD_TOO_LARGE' || error.code === 'INVALID_ENVELOPE') this.refuse(thread, error.toBody())
    else this.#giveUp(thread, error)
  }

  /** The caller's deadline tells it the rest. */
  #giveUp(thread: Thread, error: unknown): void {
    this.#note(thread.correlationId, error)
    this.#parts.conversations.end(thread)
  }

  #note(correlationId: string, error: unknown): void {
    this.#parts.telemetry.log('warn', 'an answer could not be sent', { correlationId, reason: messageOf(error) })
  }
}
