import type { Clock } from '../kit/clock.js'
import { asNodeError, messageOf } from '../kit/errors.js'
import type { ErrorBody, ErrorCode, NodeError } from '../kit/errors.js'
import type { NodeId } from '../kit/ids.js'
import type { MessageType } from '../domain/envelope/envelope.js'
import type { Telemetry } from '../ports/telemetry.js'
import { OPERATOR } from './agents.js'
import { Backlogs } from './backlogs.js'
import type { Ending, Kept } from './backlogs.js'
import type { Conversations } from './conversations.js'
import type { Directory } from './directory.js'
import type { Thread } from './incoming.js'
import type { Outbox } from './outbox.js'
import { sizeOf } from '../kit/size.js'
import type { Ways } from './ways.js'

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

interface Unsent extends Kept {
  readonly thread: Thread
  readonly payload: unknown
}

/**
 * Sends answers along their threads, until their time is over: those for callers who are away or have no room wait, and what
 * a neighbour does not carry on is sent again, less and less often.
 */
export class Answers {
  readonly #parts: AnswersParts
  readonly #backlogs = new Backlogs<Unsent>((answer, ending) => this.#ended(answer, ending))
  /** Callers whose answers are on their way out. */
  readonly #flushing = new Set<NodeId>()

  constructor(parts: AnswersParts) {
    this.#parts = parts
    parts.ways.onLost(({ to, id, code }) => AWAY.has(code) && this.#backlogs.refused(to, id, parts.clock.monotonic()))
  }

  /** Answers that wait for a caller who is away. */
  unsentCount(): number {
    return this.#backlogs.waiting
  }

  /** Sends a response now, or when the caller is back; it ends the exchange. */
  respond(thread: Thread, payload: unknown): void {
    const { clock, answerTtlMs, self } = this.#parts
    const peer = thread.recipient.nodeId
    const now = clock.monotonic()
    const answer = { thread, payload, bytes: sizeOf(payload), expiresAt: now + answerTtlMs }
    if (peer === self || (this.#isReachable(thread) && this.#backlogs.isOpen(peer, now))) void this.#respond(answer)
    else this.#backlogs.wait(peer, answer, now)
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
      .send({ type: 'stream-data', payload, ...voiced(thread, this.#parts) })
      .catch((error: unknown) => this.#note(thread.correlationId, error))
  }

  /** Sends an error; it ends the exchange. */
  refuse(thread: Thread, error: ErrorBody): void {
    this.#send(thread, 'error', error).then(
      () => this.#parts.conversations.end(thread),
      (failure: unknown) => this.#giveUp(thread, failure)
    )
  }

  /** Time passed: what is due is tried again. */
  tick(): void {
    for (const peer of this.#backlogs.tick(this.#parts.clock.monotonic())) void this.#flush(peer)
  }

  /** A peer is back: answers that waited for it go out. */
  onOnline(peer: NodeId): void {
    this.#backlogs.wake(peer)
    void this.#flush(peer)
  }

  /** A peer will not come back: what waits for it is dropped. */
  forget(peer: NodeId): void {
    this.#backlogs.forget(peer)
  }

  #isReachable(thread: Thread): boolean {
    const { nodeId } = thread.recipient
    return nodeId === this.#parts.self || this.#parts.ways.isReachable(nodeId, thread)
  }

  /** Never rejects. */
  async #flush(peer: NodeId): Promise<void> {
    if (this.#flushing.has(peer)) return
    this.#flushing.add(peer)
    for (let isGoing = true; isGoing; ) {
      const answer = this.#backlogs.next(peer, this.#parts.clock.monotonic())
      isGoing = answer !== null && (await this.#respond(answer))
    }
    this.#flushing.delete(peer)
  }

  /** Sends an answer. False: it waits, since its caller cannot take it now. Never rejects. */
  async #respond(answer: Unsent): Promise<boolean> {
    const { thread, payload } = answer
    const { ways, clock, directory, self } = this.#parts
    const peer = thread.recipient.nodeId
    try {
      if (peer !== self) await ways.reach(peer, thread)
      const id = await this.#send(thread, 'response', payload)
      if (ways.isHanded(id)) this.#backlogs.hand(peer, { id, answer }, clock.monotonic())
      else this.#ended(answer, 'taken')
    } catch (error) {
      const failure = asNodeError(error)
      if (AWAY.has(failure.code) && directory.certificate(peer) !== null) {
        this.#backlogs.wait(peer, answer, clock.monotonic())
        // Room comes back soon, a node may not.
        if (failure.code !== 'OVERLOADED') this.#backlogs.backOff(peer, clock.monotonic())
        return false
      }
      this.#failed(thread, failure)
    }
    return true
  }

  /** The id of the message. */
  async #send(thread: Thread, type: MessageType, payload: unknown): Promise<string> {
    const { id } = await this.#parts.outbox.send({ type, payload, isKept: type === 'response', ...voiced(thread, this.#parts) })
    return id
  }

  #ended({ thread }: Unsent, ending: Ending): void {
    const { conversations, telemetry } = this.#parts
    conversations.end(thread)
    if (ending !== 'crowded') return
    telemetry.count('errors', 'answer')
    telemetry.log('warn', 'an answer was dropped: too much waits for callers who are away', { peer: thread.recipient.nodeId })
  }

  #failed(thread: Thread, error: NodeError): void {
    if (error.code === 'PAYLOAD_TOO_LARGE' || error.code === 'INVALID_ENVELOPE') this.refuse(thread, error.toBody())
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

/** An agent that is not there, or no longer, has no voice: the operator speaks for the node. */
export function voiced(thread: Thread, { directory, self }: Pick<AnswersParts, 'directory' | 'self'>): Thread {
  return directory.card(thread.sender) === undefined ? { ...thread, sender: { agentId: OPERATOR, nodeId: self } } : thread
}
