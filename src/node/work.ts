import type { Clock, Timer } from '../kit/clock.js'
import { messageOf, NodeError } from '../kit/errors.js'
import type { ErrorBody } from '../kit/errors.js'
import type { NodeId } from '../kit/ids.js'
import { isRecord } from '../kit/json.js'
import { addressText, defaultCapability } from '../domain/card/card.js'
import type { AgentAddress } from '../domain/card/card.js'
import type { MessageType } from '../domain/envelope/envelope.js'
import { requestPayloadSchema, workKey } from '../domain/task/payloads.js'
import type { RequestPayload } from '../domain/task/payloads.js'
import type { AgentOutcome, AgentTask } from '../ports/agent-runtime.js'
import type { Telemetry } from '../ports/telemetry.js'
import { Abort } from './abort.js'
import type { AgentHost } from './agents.js'
import type { Conversations } from './conversations.js'
import type { Directory } from './directory.js'
import type { Incoming } from './inbox.js'
import type { Outbox } from './outbox.js'
import type { Peers } from './peers.js'
import type { Tasks } from './tasks.js'

/** What doing others' work needs. */
export interface WorkParts {
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly agents: AgentHost
  readonly directory: Directory
  readonly outbox: Outbox
  readonly peers: Peers
  readonly conversations: Conversations
  readonly tasks: Tasks
  readonly self: NodeId
  readonly limits: {
    readonly maxInFlight: number
    readonly maxInFlightPerPeer: number
    readonly leaseMs: number
    readonly heartbeatMs: number
    readonly answerTtlMs: number
  }
  /** Heartbeats of work for this very node. */
  onHeartbeatHere(keys: readonly string[]): void
  /** Makes bytes of attachments into base64 text, as agents get them. */
  toAgentJson(value: unknown): unknown
}

/** Work to begin. */
interface Job {
  readonly key: string
  readonly incoming: Incoming
  /** Checked, its capability named. */
  readonly payload: RequestPayload
  /** Nobody waits for an answer. */
  readonly isSilent?: boolean
}

/** Work under way. */
interface Piece extends Required<Job> {
  readonly peer: NodeId
  readonly taskId: string
  readonly abort: Abort
  lostAt: number | null
}

/** An answer that waits for its caller to be back. */
interface Unsent {
  readonly piece: Piece
  readonly type: MessageType
  readonly payload: unknown
  readonly expiresAt: number
}

/** Finished work that is remembered, so that a request that comes twice is answered, not repeated. */
const REMEMBERED = 4096
/** Answers that wait for callers who are away. */
const MAX_UNSENT = 1024
/** Keys in one heartbeat frame. */
const HEARTBEAT_KEYS = 1000

/** The callee's side of requests: checks, queues, runs, answers, and heartbeats what it works on. */
export class Work {
  readonly #parts: WorkParts
  readonly #running = new Map<string, Piece>()
  readonly #done = new Map<string, { type: MessageType; payload: unknown } | null>()
  #unsent: Unsent[] = []
  #timer: Timer | null = null

  constructor(parts: WorkParts) {
    this.#parts = parts
  }

  /** Begins to heartbeat. */
  start(): void {
    const { clock, limits } = this.#parts
    this.#timer = clock.every(limits.heartbeatMs, () => this.#beat())
  }

  /** Ends every run; what was not answered stays unanswered. */
  stop(): void {
    this.#parts.clock.clear(this.#timer)
    for (const piece of this.#running.values()) piece.abort.abort()
  }

  /** Runs under way or waiting for an agent. */
  counts(): { running: number; queued: number } {
    let running = 0
    let queued = 0
    for (const { id } of this.#parts.agents.definitions()) {
      const load = this.#parts.agents.load(id)
      running += load.running
      queued += load.waiting
    }
    return { running, queued }
  }

  /** Answers that wait for a caller who is away. */
  unsentCount(): number {
    return this.#unsent.length
  }

  /** A request that the road in let through. */
  onRequest(incoming: Incoming): void {
    const parsed = requestPayloadSchema.safeParse(incoming.payload)
    if (!parsed.success) return this.#refuse(incoming, new NodeError('INVALID_ENVELOPE', 'the request has no requestId, attempt or input'))
    const payload = parsed.data
    const key = `${incoming.peer}/${addressText(incoming.sender)}/${workKey(payload.requestId, payload.attempt)}`
    if (this.#running.has(key)) return
    const before = this.#done.get(key)
    if (before !== undefined) {
      if (before !== null) this.#reply(incoming, before.type, before.payload)
      return
    }
    const accepted = this.#check(incoming, payload)
    if (accepted instanceof NodeError) return this.#refuse(incoming, accepted)
    void this.#run({ key, incoming, payload: accepted })
  }

  /** A one-way message: the agent does its default capability when the input fits; nobody waits. */
  onNotification(incoming: Incoming): boolean {
    const { agents, directory } = this.#parts
    const card = directory.card(incoming.recipient)
    const capability = card === undefined ? null : defaultCapability(card)
    if (capability === null || !agents.has(incoming.recipient.agentId)) return false
    const input = isRecord(incoming.payload) && 'input' in incoming.payload ? incoming.payload.input : incoming.payload
    const payload: RequestPayload = {
      requestId: incoming.header.id,
      attempt: 1,
      capability: capability.id,
      input,
      description: '',
      swarm: null
    }
    const accepted = this.#check(incoming, payload)
    if (accepted instanceof NodeError) return false
    void this.#run({ key: `${incoming.peer}/${incoming.header.id}`, incoming, payload: accepted, isSilent: true })
    return true
  }

  /** A peer asks to stop its request. Only its own: the key is looked up under the peer. */
  onCancel(peer: NodeId, key: string): void {
    for (const piece of this.#running.values()) {
      if (piece.peer === peer && workKey(piece.payload.requestId, piece.payload.attempt) === key) piece.abort.abort()
    }
  }

  /** Cancels by a callee's task of this node. */
  cancelTask(taskId: string): boolean {
    const piece = [...this.#running.values()].find((one) => one.taskId === taskId)
    piece?.abort.abort()
    return piece !== undefined
  }

  /** A peer is gone: its leases end here when it stays away for longer than a lease. */
  onOffline(peer: NodeId): void {
    for (const piece of this.#running.values()) if (piece.peer === peer) piece.lostAt = this.#parts.clock.now()
  }

  /** A peer is back: answers that waited for it go out. */
  onOnline(peer: NodeId): void {
    for (const piece of this.#running.values()) if (piece.peer === peer) piece.lostAt = null
    const now = this.#parts.clock.now()
    const mine = this.#unsent.filter((one) => one.piece.peer === peer && one.expiresAt > now)
    this.#unsent = this.#unsent.filter((one) => one.piece.peer !== peer && one.expiresAt > now)
    for (const one of mine) this.#answer(one.piece, one.type, one.payload)
  }

  #check(incoming: Incoming, payload: RequestPayload): RequestPayload | NodeError {
    const { agents, directory, limits, toAgentJson } = this.#parts
    const { agentId } = incoming.recipient
    const ofPeer = [...this.#running.values()].filter((one) => one.peer === incoming.peer).length
    if (this.#running.size >= limits.maxInFlight || ofPeer >= limits.maxInFlightPerPeer)
      return new NodeError('OVERLOADED', 'too many tasks are in flight on this node')
    const card = directory.card(incoming.recipient)
    const capability = payload.capability ?? (card === undefined ? null : (defaultCapability(card)?.id ?? null))
    if (capability === null) return new NodeError('CAPABILITY_NOT_FOUND', `agent ${agentId} takes messages, but has no capability to call`)
    try {
      const input = toAgentJson(payload.input)
      return agents.inputFault(agentId, capability, input) ?? { ...payload, capability, input }
    } catch (error) {
      return error instanceof NodeError ? error : new NodeError('INTERNAL', messageOf(error), { cause: error })
    }
  }

  async #run({ key, incoming, payload, isSilent = false }: Job): Promise<void> {
    const { agents, tasks, telemetry } = this.#parts
    const piece: Piece = {
      key,
      incoming,
      payload,
      isSilent,
      peer: incoming.peer,
      taskId: this.#open(incoming, payload),
      abort: new Abort(),
      lostAt: null
    }
    this.#running.set(key, piece)
    const outcome = await agents.run(incoming.recipient.agentId, this.#taskOf(piece), {
      signal: piece.abort,
      onStart: () => {
        telemetry.count('tasks_started')
        tasks.working(piece.taskId)
      },
      onProgress: (data) => {
        tasks.progress(piece.taskId, data)
        if (!isSilent) this.#progress(piece, data)
      }
    })
    this.#running.delete(key)
    telemetry.count(outcome.ok ? 'tasks_completed' : 'tasks_failed')
    if (outcome.ok) tasks.complete(piece.taskId, outcome.result)
    else tasks.fail(piece.taskId, new NodeError(outcome.code, outcome.message).toBody())
    if (isSilent) return
    const response = responseOf(payload, outcome)
    this.#remember(key, response)
    this.#answer(piece, 'response', response)
  }

  /** Opens the callee's task of a request. */
  #open({ recipient }: Incoming, { capability, description, attempt }: RequestPayload): string {
    const { agents, tasks } = this.#parts
    const agent = addressText(recipient)
    const taskId = tasks.open({ kind: 'request', role: 'callee', agent, capability: capability ?? '', description })
    if (attempt > 1) tasks.attempt(taskId, attempt)
    const load = agents.load(recipient.agentId)
    if (load.running >= load.slots) tasks.waitFor(taskId, 'slot')
    return taskId
  }

  #taskOf({ taskId, payload }: Piece): AgentTask {
    const { requestId, attempt, capability, description, input } = payload
    return { taskId, requestId, attempt, capability: capability ?? '', description, input }
  }

  #remember(key: string, payload: unknown): void {
    this.#done.set(key, { type: 'response', payload })
    for (const oldest of this.#done.keys()) {
      if (this.#done.size <= REMEMBERED) break
      this.#done.delete(oldest)
    }
  }

  /** Answers now, or when the caller is back. */
  #answer(piece: Piece, type: MessageType, payload: unknown): void {
    const { peers, self, clock, limits } = this.#parts
    if (piece.peer === self || peers.isOnline(piece.peer)) return this.#reply(piece.incoming, type, payload)
    this.#unsent.push({ piece, type, payload, expiresAt: clock.now() + limits.answerTtlMs })
    if (this.#unsent.length > MAX_UNSENT) this.#unsent.shift()
  }

  #progress(piece: Piece, data: unknown): void {
    const { requestId, attempt } = piece.payload
    const { peers, self } = this.#parts
    if (piece.peer === self || peers.isOnline(piece.peer))
      this.#reply(piece.incoming, 'stream-data', { requestId, attempt, progress: data })
  }

  #refuse(incoming: Incoming, error: NodeError): void {
    this.refuse({ sender: incoming.recipient, recipient: incoming.sender, correlationId: threadOf(incoming) }, error.toBody())
  }

  /** Sends an error along a thread and ends it. */
  refuse(to: { sender: AgentAddress; recipient: AgentAddress; correlationId: string }, error: ErrorBody): void {
    const { directory, self } = this.#parts
    // An agent that is not there cannot sign anything: the operator speaks for the node.
    const sender = directory.card(to.sender) === undefined ? { agentId: 'operator', nodeId: self } : to.sender
    this.#post({ ...to, sender, type: 'error', payload: error })
  }

  #reply(incoming: Incoming, type: MessageType, payload: unknown): void {
    this.#post({ sender: incoming.recipient, recipient: incoming.sender, correlationId: threadOf(incoming), type, payload })
  }

  /** Sends along a thread; what cannot be sent is logged: the caller's deadline tells it the rest. */
  #post(one: { sender: AgentAddress; recipient: AgentAddress; correlationId: string; type: MessageType; payload: unknown }): void {
    const { outbox, conversations, telemetry } = this.#parts
    outbox
      .send(one)
      .catch((error: unknown) => {
        if (!(error instanceof NodeError) || error.code !== 'PAYLOAD_TOO_LARGE') throw error
        return outbox.send({ ...one, type: 'error', payload: error.toBody() })
      })
      .catch((error: unknown) => telemetry.log('warn', 'an answer could not be sent', { reason: messageOf(error) }))
      .finally(() => {
        if (one.type === 'response' || one.type === 'error') conversations.end(one.recipient.nodeId, one.correlationId)
      })
  }

  /** Tells every caller which of its requests live here, and ends leases whose launcher is gone. */
  #beat(): void {
    const { clock, limits, peers, self } = this.#parts
    const now = clock.now()
    const keys = new Map<NodeId, string[]>()
    for (const piece of this.#running.values()) {
      if (piece.payload.swarm !== null && piece.lostAt !== null && now - piece.lostAt > limits.leaseMs) piece.abort.abort()
      const list = keys.get(piece.peer) ?? []
      keys.set(piece.peer, list)
      if (list.length < HEARTBEAT_KEYS) list.push(workKey(piece.payload.requestId, piece.payload.attempt))
    }
    for (const [peer, requests] of keys) {
      if (peer === self) this.#parts.onHeartbeatHere(requests)
      else if (peers.isOnline(peer)) this.#send(peer, requests)
    }
  }

  #send(peer: NodeId, requests: string[]): void {
    try {
      this.#parts.peers.send(peer, { kind: 'control', name: 'heartbeat', body: { requests } })
    } catch (error) {
      this.#parts.telemetry.log('debug', 'a heartbeat could not be sent', { peer, reason: messageOf(error) })
    }
  }
}

function threadOf(incoming: Incoming): string {
  return incoming.header.correlationId ?? incoming.header.id
}

function responseOf(payload: RequestPayload, outcome: AgentOutcome): unknown {
  const { requestId, attempt } = payload
  if (outcome.ok) return { requestId, attempt, outcome: 'COMPLETED', result: outcome.result, error: null }
  return { requestId, attempt, outcome: 'FAILED', error: new NodeError(outcome.code, outcome.message).toBody() }
}
