import type { Clock } from '../../kit/clock.js'
import { asNodeError, messageOf, NodeError } from '../../kit/errors.js'
import type { ErrorCode } from '../../kit/errors.js'
import { Emitter } from '../../kit/events.js'
import type { Unsubscribe } from '../../kit/events.js'
import type { ChannelEffect, ChannelStatus } from '../../domain/channel/machine.js'
import type { A2AEnvelope } from '../../domain/envelope/envelope.js'
import type { AgentEndpoint } from '../../domain/card/card.js'
import type { Telemetry } from '../../ports/telemetry.js'
import { ChannelLife } from '../peers/peer-session.js'
import { sizeOf } from '../../kit/size.js'

/** The most messages of one channel that wait for a link. */
const MAX_WAITING = 1000
/** The most bytes of them, beyond the first. */
const MAX_WAITING_BYTES = 8 * 1024 * 1024
/** Codes of a missing link; the channel waits for the next one. */
const LINK_GONE: ReadonlySet<ErrorCode> = new Set(['PEER_OFFLINE', 'CHANNEL_CLOSED', 'DELIVERY_FAILED'])

/** Dependencies of {@link AgentChannel}. */
export interface AgentChannelDeps {
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly id: string
  /** `agentId@nodeId` of both ends. */
  readonly localAgent: string
  readonly remoteAgent: string
  readonly transport: AgentEndpoint['transport']
  /** The longest time without a link, in milliseconds. */
  readonly giveUpMs: number
  /** Sends one message. @throws NodeError from the outbound pipeline. */
  post(envelope: A2AEnvelope): Promise<void>
  /** True with a link. */
  isLinked(): boolean
  /** Called with the error of each message that was not sent. */
  onRefused(error: NodeError, envelope: A2AEnvelope): void
  /** Called once. */
  onClosed(): void
}

interface WaitingMessage {
  readonly envelope: A2AEnvelope
  readonly bytes: number
  readonly resolve: () => void
  readonly reject: (error: NodeError) => void
}

/**
 * The channel between an agent of this node and another one (spec a2a-mcp-mesh, A2AChannel), over successive links to
 * its node. Messages leave in the order of {@link send}, also across a reconnect.
 */
export class AgentChannel {
  readonly #deps: AgentChannelDeps
  readonly #received: Emitter<A2AEnvelope>
  readonly #moved: Emitter<ChannelStatus>
  readonly #waiting: WaitingMessage[] = []
  readonly #life: ChannelLife
  #waitingBytes = 0
  #isPumping = false

  constructor(deps: AgentChannelDeps) {
    const { clock, giveUpMs, telemetry } = deps
    const onError = (error: unknown): void =>
      telemetry.log('error', 'a listener of a channel failed', { reason: messageOf(error) })
    this.#deps = deps
    this.#received = new Emitter(onError)
    this.#moved = new Emitter(onError)
    this.#life = new ChannelLife({ clock, giveUpMs, onMove: (effect) => this.#moveOn(effect) })
  }

  /** Unique on this node. */
  get id(): string {
    return this.#deps.id
  }

  /** `agentId@nodeId` of the local agent. */
  get localAgentId(): string {
    return this.#deps.localAgent
  }

  /** `agentId@nodeId` of the remote agent. */
  get remoteAgentId(): string {
    return this.#deps.remoteAgent
  }

  /** Its status. */
  get status(): ChannelStatus {
    return this.#life.state.status
  }

  /** `local` for an agent of the same node. */
  get transport(): AgentEndpoint['transport'] {
    return this.#deps.transport
  }

  /**
   * Sends an envelope between its two agents; resolves when the link has it. Without a link it waits.
   * @throws NodeError CHANNEL_CLOSED; USAGE for other agents' envelopes; OVERLOADED when too many wait; the refusal of
   * the outbound pipeline.
   */
  send(envelope: A2AEnvelope): Promise<void> {
    const { localAgent, remoteAgent } = this.#deps
    if (this.status === 'closed') return Promise.reject(this.#refused(this.#closedError(), envelope))
    if (envelope.sender !== localAgent || envelope.recipient !== remoteAgent) {
      const error = new NodeError('USAGE', `this channel carries messages from ${localAgent} to ${remoteAgent}`)
      return Promise.reject(this.#refused(error, envelope))
    }
    const bytes = sizeOf(envelope.payload)
    const isFull = this.#waiting.length > 0 && this.#waitingBytes + bytes > MAX_WAITING_BYTES
    if (isFull || this.#waiting.length >= MAX_WAITING)
      return Promise.reject(
        this.#refused(new NodeError('OVERLOADED', 'too many messages wait for this channel'), envelope)
      )
    return new Promise((resolve, reject) => {
      this.#waitingBytes += bytes
      this.#waiting.push({ envelope, bytes, resolve, reject })
      void this.#pump()
    })
  }

  /** Calls back for each message from the remote agent to the local one. Returns the stop. */
  onMessage(handler: (envelope: A2AEnvelope) => void): Unsubscribe {
    return this.#received.on(handler)
  }

  /** Calls back after each change of status. Returns the stop. */
  onStatus(handler: (status: ChannelStatus) => void): Unsubscribe {
    return this.#moved.on(handler)
  }

  /** Closes it; waiting messages fail. Idempotent. */
  close(): Promise<void> {
    this.#life.step({ type: 'close', reason: 'closed by its agent' })
    return Promise.resolve()
  }

  /** Takes a message to the local agent. */
  received(envelope: A2AEnvelope): void {
    if (this.status !== 'closed' && envelope.sender === this.#deps.remoteAgent) this.#received.emit(envelope)
  }

  /** A link opened: both ends use it. */
  linked(): void {
    this.#life.step({ type: 'acknowledged' })
  }

  /** The last link closed. */
  unlinked(): void {
    this.#life.step({ type: 'disconnected' })
  }

  async #pump(): Promise<void> {
    if (this.#isPumping) return
    this.#isPumping = true
    for (let next = this.#waiting[0]; next !== undefined && this.status === 'open'; next = this.#waiting[0]) {
      const failure = await this.#post(next.envelope)
      // The channel may have been closed meanwhile, which rejected all waiting messages.
      if (this.#waiting[0] !== next) continue
      if (failure !== null && LINK_GONE.has(failure.code) && !this.#deps.isLinked()) break
      this.#waiting.shift()
      this.#waitingBytes -= next.bytes
      if (failure === null) next.resolve()
      else next.reject(this.#refused(failure, next.envelope))
    }
    this.#isPumping = false
    // A link that opened during the last failing try did not start the pump.
    if (this.#waiting.length > 0 && this.status === 'open' && this.#deps.isLinked()) void this.#pump()
  }

  async #post(envelope: A2AEnvelope): Promise<NodeError | null> {
    try {
      await this.#deps.post(envelope)
      return null
    } catch (error) {
      return asNodeError(error)
    }
  }

  #moveOn({ type }: ChannelEffect): void {
    this.#moved.emit(this.status)
    if (type === 'opened') void this.#pump()
    if (type !== 'closed') return
    this.#waitingBytes = 0
    for (const { envelope, reject } of this.#waiting.splice(0)) reject(this.#refused(this.#closedError(), envelope))
    this.#deps.onClosed()
  }

  #refused(error: NodeError, envelope: A2AEnvelope): NodeError {
    this.#deps.onRefused(error, envelope)
    return error
  }

  #closedError(): NodeError {
    return new NodeError(
      'CHANNEL_CLOSED',
      `the channel to ${this.#deps.remoteAgent} is closed: ${this.#life.state.reason ?? ''}`
    )
  }
}
