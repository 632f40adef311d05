import type { Clock } from '../kit/clock.js'
import { asNodeError, messageOf } from '../kit/errors.js'
import type { ErrorBody, ErrorCode, NodeError } from '../kit/errors.js'
import type { NodeId } from '../kit/ids.js'
import type { MessageType } from '../domain/envelope/envelope.js'
import type { Telemetry } from '../ports/telemetry.js'
import { OPERATOR } from './agents.js'
import type { Conversations } from './conversations.js'
import type { Directory } from './directory.js'
import type { Thread } from './inbox.js'
import type { Outbox } from './outbox.js'
import type { Peers } from './peers.js'
import { sizeOf } from './size.js'

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
  readonly peers: Peers
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

/** Sends answers along their threads; those for callers who are away wait, bounded in number, bytes and time. */
export class Answers {
  readonly #parts: AnswersParts
  #unsent: Unsent[] = []
  #unsentBytes = 0

  constructor(parts: AnswersParts) {
    this.#parts = parts
  }

  /** Answers that wait for a caller who is away. */
  unsentCount(): number {
    return this.#unsent.length
  }

  /** Sends a response now, or when the caller is back; it ends the exchange. */
  respond(thread: Thread, payload: unknown): void {
    if (!this.#isReachable(thread)) return this.#keep(thread, payload)
    this.#send(thread, 'response', payload).catch((error: unknown) => this.#failed(thread, payload, asNodeError(error)))
  }

  /** Sends progress, if the caller is there. */
  progress(thread: Thread, payload: unknown): void {
    if (!this.#isReachable(thread)) return
    this.#parts.outbox.send({ ...this.#voiced(thread), type: 'stream-data', payload }).catch((error: unknown) => this.#note(error))
  }

  /** Sends an error; it ends the exchange. */
  refuse(thread: Thread, error: ErrorBody): void {
    this.#send(thread, 'error', error).catch((failure: unknown) => this.#giveUp(thread, failure))
  }

  /** Time passed: answers for callers who are there, but could not take them, are tried again. */
  tick(): void {
    if (this.#unsent.length === 0) return
    const peers = new Set(this.#unsent.map((one) => one.thread.recipient.nodeId))
    for (const peer of peers) if (this.#parts.peers.isOnline(peer)) this.onOnline(peer)
  }

  /** A peer is back: answers that waited for it go out. */
  onOnline(peer: NodeId): void {
    for (const { thread, payload } of this.#take(peer)) this.respond(thread, payload)
  }

  /** A peer will not come back: what waits for it is dropped. */
  forget(peer: NodeId): void {
    this.#take(peer)
  }

  #isReachable({ recipient: { nodeId } }: Thread): boolean {
    return nodeId === this.#parts.self || this.#parts.peers.isOnline(nodeId)
  }

  /** Takes the answers for a peer out. What has expired is dropped on the way. */
  #take(peer: NodeId): Unsent[] {
    const now = this.#parts.clock.now()
    const live = this.#unsent.filter((one) => one.expiresAt > now)
    this.#unsent = live.filter((one) => one.thread.recipient.nodeId !== peer)
    this.#unsentBytes = this.#unsent.reduce((sum, one) => sum + one.bytes, 0)
    return live.filter((one) => one.thread.recipient.nodeId === peer)
  }

  #dropOldest(): void {
    const oldest = this.#unsent.shift()
    if (oldest === undefined) return
    this.#unsentBytes -= oldest.bytes
    this.#parts.telemetry.count('errors', 'answer')
    this.#parts.telemetry.log('warn', 'an answer was dropped: too much waits for callers who are away', {
      peer: oldest.thread.recipient.nodeId
    })
  }

  async #send(thread: Thread, type: MessageType, payload: unknown): Promise<void> {
    await this.#parts.outbox.send({ ...this.#voiced(thread), type, payload, isKept: type === 'response' })
    this.#parts.conversations.end(thread.recipient.nodeId, thread.correlationId)
  }

  /** An agent that is not there, or no longer, has no voice: the operator speaks for the node. */
  #voiced(thread: Thread): Thread {
    const { directory, self } = this.#parts
    return directory.card(thread.sender) === undefined ? { ...thread, sender: { agentId: OPERATOR, nodeId: self } } : thread
  }

  #keep(thread: Thread, payload: unknown): void {
    const { clock, answerTtlMs } = this.#parts
    const bytes = sizeOf(payload)
    this.#unsent.push({ thread, payload, bytes, expiresAt: clock.now() + answerTtlMs })
    this.#unsentBytes += bytes
    while (this.#unsent.length > MAX_UNSENT || this.#unsentBytes > MAX_UNSENT_BYTES) this.#dropOldest()
  }

  #failed(thread: Thread, payload: unknown, error: NodeError): void {
    if (AWAY.has(error.code)) this.#keep(thread, payload)
    else if (error.code === 'PAYLOAD_TOO_LARGE' || error.code === 'INVALID_ENVELOPE') this.refuse(thread, error.toBody())
    else this.#giveUp(thread, error)
  }

  /** The caller's deadline tells it the rest. */
  #giveUp({ recipient, correlationId }: Thread, error: unknown): void {
    this.#note(error)
    this.#parts.conversations.end(recipient.nodeId, correlationId)
  }

  #note(error: unknown): void {
    this.#parts.telemetry.log('warn', 'an answer could not be sent', { reason: messageOf(error) })
  }
}
