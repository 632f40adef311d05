import { commandFault } from '../../kit/names/rule.js'
import type { Clock } from '../../kit/clock.js'
import { messageOf, NodeError } from '../../kit/errors.js'
import { isKeyText } from '../../kit/ids.js'
import type { NodeId } from '../../kit/ids.js'
import { jsonCopy } from '../../kit/json.js'
import { addressText, type AgentAddress, type CapabilityDescriptor, parseAddress } from '../../domain/card/card.js'
import { isPathStep } from '../../domain/card/schema.js'
import { OPENING_TYPES } from '../../domain/envelope/envelope.js'
import type { A2AEnvelope, MessageType } from '../../domain/envelope/envelope.js'
import type { Conversation } from '../../domain/gateway/conversation.js'
import { namedCapabilities } from '../../domain/policy/requested-work.js'
import type { Tier } from '../../domain/routing/tier.js'
import { readRequest, workKey } from '../../domain/task/payloads.js'
import type { AgentOutcome, AgentRun, AgentTask, HostedAgent } from '../../ports/agent-runtime.js'
import type { Telemetry } from '../../ports/telemetry.js'
import type { AgentHost } from './agent-host.js'
import type { CardGossip } from '../cards/card-gossip.js'
import type { ExchangeTable, ReplyHandler } from '../messaging/exchange-table.js'
import type { Directory } from '../cards/directory.js'
import { threadOf } from '../messaging/inbound-message.js'
import type { InboundMessage, Thread } from '../messaging/inbound-message.js'
import type { Subscriptions } from '../messaging/subscriptions.js'
import type { OutboundDraft, Outbound } from '../messaging/outbound.js'
import type { Traffic } from '../observe/traffic.js'
import type { LocalCards } from '../cards/local-cards.js'
import { surplusReason } from './health.js'

/** How long replies to a program's messages are accepted, in milliseconds. */
const REPLY_TTL_MS = 600_000
/** The default limits of a program's agent. */
const LIMITS = { timeoutMs: 300_000, concurrency: 1, maxOutputBytes: 10 * 1024 * 1024 }

/** Replies that end an exchange. */
const FINAL_REPLIES: ReadonlySet<MessageType> = new Set(['response', 'error', 'task-reject', 'stream-end'])

/** Sends a reply on the thread of the message. @throws NodeError the refusal of the outbound pipeline. */
export type InProcessReply = (payload: unknown) => Promise<void>

/** An agent that is a program in the node's own process. */
export interface AttachOptions {
  /** Unique on the node; 1..64 of `[a-z0-9._-]`, not `.` or `..`. */
  readonly id: string
  readonly description?: string
  /** The requested tier, capped by the node's certificate. Default: the certificate's. */
  readonly tier?: Tier
  /** Its sandbox. Default: the node's; any other one is INVALID_CARD. */
  readonly sandboxId?: string
  /** Its capabilities; they need `run`. */
  readonly capabilities?: readonly CapabilityDescriptor[]
  /** Works for this node's operator alone: tokens, clients and other agents of the node do not find it. */
  readonly isReserved?: true
  /** Runs at once. Default 1. */
  readonly concurrency?: number
  /**
   * Called with each notification, with replies to its messages, and with requests when there is no `run`. `reply`
   * answers a request with its response, a notification with a notification.
   */
  onMessage?(message: A2AEnvelope, reply: InProcessReply): void
  /** Does one task; an exception is a failure. It must end soon after its signal aborts. */
  run?(task: AgentTask, run: AgentRun): unknown
}

/** A message of a program's agent. */
export interface OutgoingMessage {
  /** `id@node key`, or any name that people may type for an agent. */
  readonly recipient: string
  readonly type: MessageType
  readonly payload: unknown
  readonly correlationId?: string
  readonly justification?: string
}

/** A program's agent in the mesh. */
export interface AttachedAgent {
  /** `id@node key`. */
  readonly address: string
  /** Sends a message as this agent. @throws NodeError from names, rules and the channel. */
  send(message: OutgoingMessage): Promise<A2AEnvelope>
  /** Removes it from the mesh. Idempotent. */
  close(): Promise<void>
}

/** Dependencies of {@link InProcessAgents}. */
export interface InProcessAgentsDeps {
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly agents: AgentHost
  readonly localCards: LocalCards
  readonly cardGossip: CardGossip
  readonly directory: Directory
  readonly exchanges: ExchangeTable
  readonly outbound: Outbound
  /** Subscribed programs answer requests themselves. */
  readonly subscriptions: Subscriptions
  readonly self: NodeId
  readonly traffic: Traffic
}

/**
 * The agents that are programs in this process: they have signed cards like any other, and get their messages directly.
 */
export class InProcessAgents {
  readonly #deps: InProcessAgentsDeps
  readonly #programs = new Map<string, AttachOptions>()
  /** Requests given directly to programs, by thread, while their exchanges are open. */
  readonly #open = new Map<string, { readonly thread: Thread; readonly key: string }>()

  constructor(deps: InProcessAgentsDeps) {
    this.#deps = deps
  }

  /**
   * Makes a program an agent. Resolves when its card is signed.
   * @throws NodeError USAGE (id taken, too many agents), INVALID_CARD.
   */
  async attach(options: AttachOptions): Promise<AttachedAgent> {
    const { agents, localCards, self } = this.#deps
    const hosted = hostedOf(options)
    const { id } = options
    localCards.check(hosted.definition)
    agents.attach(hosted)
    this.#programs.set(id, options)
    const close = (): Promise<void> => this.#detach(options, hosted)
    try {
      await this.#deps.cardGossip.refresh()
      if (localCards.surplus().includes(id))
        throw new NodeError('USAGE', `the mesh takes no more agents of this node: ${surplusReason(localCards)}`)
    } catch (error) {
      await close().catch(() => {})
      throw error
    }
    const address = { agentId: id, nodeId: self }
    return { address: addressText(address), send: (message) => this.#send(address, options, message), close }
  }

  async #detach(program: AttachOptions, hosted: HostedAgent): Promise<void> {
    if (this.#programs.get(program.id) !== program) return
    this.#programs.delete(program.id)
    this.#deps.agents.detach(hosted)
    await this.#deps.cardGossip.refresh()
  }

  /** Passes a notification to its program; false when there is none. */
  onNotification(incoming: InboundMessage): boolean {
    const program = this.#programs.get(incoming.recipient.agentId)
    if (program?.onMessage === undefined) return false
    this.#deliver(program, incoming, (payload) => this.#post({ type: 'notification', payload, ...threadOf(incoming) }))
    return true
  }

  /** True when a program answers the requests of that agent itself. */
  isInPerson(agentId: string): boolean {
    const program = this.#programs.get(agentId)
    return (
      program !== undefined &&
      program.run === undefined &&
      (program.onMessage !== undefined || this.#deps.subscriptions.has(agentId))
    )
  }

  /** Passes a request to a program without `run`; false when there is none. */
  onRequest(incoming: InboundMessage): boolean {
    const program = this.#programs.get(incoming.recipient.agentId)
    if (program === undefined || program.run !== undefined) return false
    if (program.onMessage === undefined && !this.#deps.subscriptions.has(program.id)) return false
    const thread = threadOf(incoming)
    this.#noteOpen(incoming, thread)
    if (program.onMessage === undefined) return true
    this.#deliver(program, incoming, async (payload) => {
      await this.#post({ type: 'response', payload: responseTo(incoming.payload, payload), ...thread })
      this.#deps.exchanges.end(thread)
    })
    return true
  }

  /** Unanswered requests given directly to programs here, by requesting node: for heartbeats to their callers. */
  inPerson(): ReadonlyMap<NodeId, readonly string[]> {
    const runs = new Map<NodeId, string[]>()
    for (const [id, { thread, key }] of this.#open) {
      const { nodeId } = thread.recipient
      if (!this.#deps.exchanges.maySend(thread)) this.#open.delete(id)
      else if (nodeId !== this.#deps.self) runs.set(nodeId, [...(runs.get(nodeId) ?? []), key])
    }
    return runs
  }

  /** Each entry is an open exchange, and these are bounded. */
  #noteOpen({ payload }: InboundMessage, thread: Thread): void {
    const request = readRequest(payload)
    if (request !== null)
      this.#open.set(`${thread.recipient.nodeId} ${thread.correlationId}`, {
        thread,
        key: workKey(request.requestId, request.attempt)
      })
  }

  async #send(sender: AgentAddress, program: AttachOptions, message: OutgoingMessage): Promise<A2AEnvelope> {
    const { recipient: _recipient, ...rest } = message
    const recipient = this.#target(sender, message)
    const isAsking = OPENING_TYPES.has(message.type) && message.type !== 'notification'
    const replies = isAsking
      ? { replies: { ttlMs: REPLY_TTL_MS, handler: this.#replyHandler({ sender, recipient }, program) } }
      : {}
    const [capability] = namedCapabilities(message.type, message.payload)
    return await this.#deps.outbound.send({ sender, recipient, ...rest, capability, ...replies })
  }

  /** Passes replies to the requesting program; the last one ends the exchange. */
  #replyHandler(parties: Omit<Thread, 'correlationId'>, program: AttachOptions): ReplyHandler {
    return (header, payload) => {
      if (FINAL_REPLIES.has(header.type))
        this.#deps.exchanges.end({ ...parties, correlationId: header.correlationId ?? '' })
      this.#deliver(program, { header, payload }, () =>
        Promise.reject(new NodeError('USAGE', 'a reply takes no reply'))
      )
    }
  }

  /** Addresses with a node key, as in messages, need no look-up. */
  #target(sender: AgentAddress, { recipient, type }: OutgoingMessage): AgentAddress {
    const address = parseAddress(recipient)
    if (address !== null && isKeyText(address.nodeId)) return address
    try {
      return this.#deps.directory.agent(recipient)
    } catch (error) {
      this.#deps.traffic.notSent(error, { sender: addressText(sender), recipient, type })
      throw error
    }
  }

  async #post(draft: OutboundDraft): Promise<void> {
    await this.#deps.outbound.send(draft)
  }

  #deliver(
    program: AttachOptions,
    { header, payload }: Pick<InboundMessage, 'header' | 'payload'>,
    reply: InProcessReply
  ): void {
    try {
      program.onMessage?.({ payload, ...header }, reply)
    } catch (error) {
      this.#deps.telemetry.log('error', 'a program did not take its message', {
        correlationId: header.correlationId ?? header.id,
        agent: program.id,
        reason: messageOf(error)
      })
    }
  }
}

function hostedOf(options: AttachOptions): HostedAgent {
  const {
    id,
    description = '',
    tier = null,
    sandboxId = null,
    capabilities = [],
    concurrency = LIMITS.concurrency
  } = options
  const fault = id === '' || isPathStep(id) ? null : commandFault(id)
  if (fault !== null)
    throw new NodeError('INVALID_CARD', `the agent's card is not valid: id: ${fault}; choose another id`)
  if (isPathStep(id))
    throw new NodeError('INVALID_CARD', `the agent's card is not valid: id: no URL can name ${id}; choose another id`)
  if (capabilities.length > 0 && options.run === undefined)
    throw new NodeError('USAGE', `agent ${id} has capabilities, but no run`)
  return {
    definition: {
      id,
      name: id,
      version: '1.0.0',
      description,
      tier,
      sandboxId,
      protocols: [],
      capabilities,
      limits: { ...LIMITS, concurrency: Math.max(1, concurrency) },
      ...(options.isReserved === true ? { isReserved: true } : {}),
      runtime: 'attached',
      source: 'in process'
    },
    run: (task, run) => runOf(options, task, run),
    close: () => Promise.resolve()
  }
}

async function runOf(options: AttachOptions, task: AgentTask, run: AgentRun): Promise<AgentOutcome> {
  try {
    // Copies, so that later changes of the input or the result by the program have no effect.
    const given = options.run?.(copyOf(task), { signal: run.signal, progress: (data) => reported(run, data) })
    // A synchronous result waits for no turn.
    const result = jsonCopy((isThenable(given) ? await given : given) ?? null)
    if (run.signal.aborted) return { ok: false, code: 'CANCELED', message: 'canceled' }
    if (result === undefined) return { ok: false, code: 'INVALID_OUTPUT', message: 'the result has no form as JSON' }
    return { ok: true, result }
  } catch (error) {
    return { ok: false, code: run.signal.aborted ? 'CANCELED' : 'TASK_FAILED', message: messageOf(error) }
  }
}

function copyOf(task: AgentTask): AgentTask {
  const input = jsonCopy(task.input)
  const { conversation } = task
  return conversation === undefined ? { ...task, input } : new TurnCopy(task, input, conversation)
}

/** A copy of the task of one turn. The conversation is copied when the program looks at it: most do not. */
class TurnCopy implements AgentTask {
  readonly taskId: string
  readonly requestId: string
  readonly attempt: number
  readonly capability: string
  readonly description: string
  readonly swarm: string | null
  readonly input: unknown
  declare readonly peer?: NodeId
  declare readonly justification?: string
  declare readonly conversation: Conversation
  readonly #original: Conversation
  #copy: Conversation | null = null
  /** One accessor for all copies: with one each, every object would have a hidden class of its own. */
  static readonly #CONVERSATION: PropertyDescriptor & ThisType<TurnCopy> = {
    enumerable: true,
    get() {
      return (this.#copy ??= jsonCopy(this.#original) as Conversation)
    }
  }

  constructor(task: AgentTask, input: unknown, conversation: Conversation) {
    this.taskId = task.taskId
    this.requestId = task.requestId
    this.attempt = task.attempt
    this.capability = task.capability
    this.description = task.description
    this.swarm = task.swarm
    this.input = input
    if (task.peer !== undefined) this.peer = task.peer
    if (task.justification !== undefined) this.justification = task.justification
    this.#original = conversation
    Object.defineProperty(this, 'conversation', TurnCopy.#CONVERSATION)
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  const mayBe = (typeof value === 'object' && value !== null) || typeof value === 'function'
  return mayBe && 'then' in value && typeof value.then === 'function'
}

/** Ignores a report that has no form as JSON. */
function reported(run: AgentRun, data: unknown): void {
  const copy = jsonCopy(data)
  if (copy !== undefined) run.progress(copy)
}

/** The answer in the form for callers of requests; unchanged for a request of another form. */
function responseTo(request: unknown, result: unknown): unknown {
  const asked = readRequest(request)
  if (asked === null) return result
  const { requestId, attempt } = asked
  return { requestId, attempt, outcome: 'COMPLETED', result, error: null }
}
