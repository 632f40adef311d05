import type { Clock, Timer } from '../kit/clock.js'
import { messageOf, NodeError } from '../kit/errors.js'
import type { NodeId } from '../kit/ids.js'
import { isRecord } from '../kit/json.js'
import { addressText, defaultCapability } from '../domain/card/card.js'
import { MAX_HEARTBEAT_KEYS } from '../domain/channel/control.js'
import type { ControlBody } from '../domain/channel/control.js'
import { requestPayloadSchema, workKey } from '../domain/task/payloads.js'
import type { RequestPayload } from '../domain/task/payloads.js'
import type { AgentTask } from '../ports/agent-runtime.js'
import type { Telemetry } from '../ports/telemetry.js'
import { Abort } from './abort.js'
import type { AgentHost, HostOutcome } from './agents.js'
import { Answers } from './answers.js'
import type { AnswersParts } from './answers.js'
import { DoneMemory } from './done-memory.js'
import { threadOf } from './inbox.js'
import type { Incoming, Thread } from './inbox.js'
import { InFlight } from './in-flight.js'
import type { Piece } from './in-flight.js'
import type { Peers } from './peers.js'
import { sizeOf } from './size.js'
import type { Tasks } from './tasks.js'

/** Bytes of the inputs of one peer's tasks in flight. */
const MAX_INPUT_BYTES_PER_PEER = 64 * 1024 * 1024
/** Bytes of the inputs of all tasks in flight. */
const MAX_INPUT_BYTES = 256 * 1024 * 1024

/** What doing others' work needs. */
export interface WorkParts extends Omit<AnswersParts, 'answerTtlMs'> {
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly peers: Peers
  readonly agents: AgentHost
  readonly tasks: Tasks
  readonly limits: {
    readonly maxInFlight: number
    readonly maxInFlightPerPeer: number
    readonly leaseMs: number
    readonly heartbeatMs: number
    readonly answerTtlMs: number
  }
  /** Heartbeats of work for this very node. */
  onHeartbeatHere(body: ControlBody<'heartbeat'>): void
  /** Makes bytes of attachments into base64 text, as agents get them. */
  toAgentJson(value: unknown): unknown
}

/** The callee's side of requests: checks, queues, runs, answers, and heartbeats what it works on. */
export class Work {
  readonly #parts: WorkParts
  readonly #answers: Answers
  readonly #inFlight = new InFlight()
  readonly #done = new DoneMemory()
  #timer: Timer | null = null

  constructor(parts: WorkParts) {
    this.#parts = parts
    this.#answers = new Answers({ ...parts, answerTtlMs: parts.limits.answerTtlMs })
  }

  /** Begins to heartbeat. */
  start(): void {
    const { clock, limits } = this.#parts
    this.#timer = clock.every(limits.heartbeatMs, () => this.#beat())
  }

  /** Ends every run. Resolves when those who wait for an answer were told; a swarm gives its leases away by itself. */
  async stop(): Promise<void> {
    this.#parts.clock.clear(this.#timer)
    const pieces = this.#inFlight.all()
    const awaited = pieces.filter((one) => one.isAwaited && one.payload.swarm === null)
    for (const piece of pieces) giveUp(piece)
    await Promise.all(
      awaited.flatMap(({ threads, payload }) => threads.map((thread) => this.#answers.lastWord(thread, responseOf(payload, STOPPED))))
    )
  }

  /** Runs under way, also of agents that were removed meanwhile, and tasks that wait for an agent. */
  counts(): { running: number; queued: number } {
    const pieces = this.#inFlight.all()
    const running = pieces.filter((one) => one.isRunning).length
    return { running, queued: pieces.length - running }
  }

  /** Answers that wait for a caller who is away. */
  unsentCount(): number {
    return this.#answers.unsentCount()
  }

  /** Would a message run nothing new, since the same request is under way or was done already? */
  knows(incoming: Incoming): boolean {
    const parsed = incoming.header.type === 'request' ? requestPayloadSchema.safeParse(incoming.payload) : null
    if (parsed?.success !== true) return false
    const key = keyOf(incoming, parsed.data)
    return this.#inFlight.has(incoming.peer, key) || this.#done.get(incoming.peer, key) !== undefined
  }

  /** A request that the road in let through. */
  onRequest(incoming: Incoming): void {
    const thread = threadOf(incoming)
    const parsed = requestPayloadSchema.safeParse(incoming.payload)
    if (!parsed.success) return this.#answers.refuse(thread, malformed().toBody())
    const key = keyOf(incoming, parsed.data)
    const joined = this.#inFlight.join(incoming.peer, key, thread)
    if (joined !== 'new') return this.#repeated(thread, joined)
    const done = this.#done.get(incoming.peer, key)
    if (done !== undefined)
      return done === null ? this.#answers.refuse(thread, forgotten().toBody()) : this.#answers.respond(thread, done.payload)
    const payload = this.#check(incoming, parsed.data)
    if (payload instanceof NodeError) return this.#answers.refuse(thread, payload.toBody())
    void this.#run(this.#open(incoming, { key, payload, isNotification: false }))
  }

  /** A one-way message: the agent does its default capability when the input fits; nobody waits. False: nothing runs. */
  onNotification(incoming: Incoming): boolean {
    const input = isRecord(incoming.payload) && 'input' in incoming.payload ? incoming.payload.input : incoming.payload
    const asked = { requestId: incoming.header.id, attempt: 1, capability: null, input, description: '', swarm: null }
    // The id is the peer's own choice: without a name of its own it could pass for a request, or for another notification.
    const key = `notification ${keyOf(incoming, asked)}`
    if (this.#inFlight.has(incoming.peer, key)) return false
    const payload = this.#check(incoming, asked)
    if (payload instanceof NodeError) return false
    void this.#run(this.#open(incoming, { key, payload, isNotification: true }))
    return true
  }

  /** A peer asks to stop its request. Only its own: the key is looked up under the peer. */
  onCancel(peer: NodeId, key: string): void {
    for (const piece of this.#inFlight.ofPeer(peer)) {
      if (!piece.isNotification && nameOf(piece) === key) giveUp(piece)
    }
  }

  /** Cancels by a callee's task of this node; its caller is told. */
  cancelTask(taskId: string): boolean {
    const piece = this.#inFlight.all().find((one) => one.taskId === taskId)
    piece?.abort.abort()
    return piece !== undefined
  }

  /** A peer is gone: its leases end here when it stays away for longer than a lease. */
  onOffline(peer: NodeId): void {
    const now = this.#parts.clock.monotonic()
    for (const piece of this.#inFlight.ofPeer(peer)) piece.lostAt = now
  }

  /** A peer is back: answers that waited for it go out. */
  onOnline(peer: NodeId): void {
    for (const piece of this.#inFlight.ofPeer(peer)) piece.lostAt = null
    this.#answers.onOnline(peer)
  }

  /** A peer was put out of the mesh: nothing is done for it any more. */
  onRevoked(peer: NodeId): void {
    for (const piece of this.#inFlight.ofPeer(peer)) giveUp(piece)
    this.#answers.forget(peer)
  }

  /** Sends a response now, or when its caller is back. */
  readonly respond: Answers['respond'] = (thread, payload) => this.#answers.respond(thread, payload)

  /** Tells the sender of an opening message that it was refused. */
  readonly refuse: Answers['refuse'] = (thread, error) => this.#answers.refuse(thread, error)

  /** A request that is in flight came again: its thread is answered with the others, or its exchange ends now. */
  #repeated(thread: Thread, joined: 'joined' | 'known' | 'full'): void {
    if (joined === 'full') this.#answers.refuse(thread, new NodeError('OVERLOADED', 'this request was repeated too often').toBody())
    // The one answer that comes ends one opening of the thread.
    if (joined === 'known') this.#parts.conversations.end(thread)
  }

  /** The payload with its capability named and its input as agents get it, or why it is not taken. */
  #check({ peer, recipient }: Incoming, payload: RequestPayload): RequestPayload | NodeError {
    const { agents, directory, toAgentJson } = this.#parts
    if (!this.#hasRoom(peer, sizeOf(payload.input))) return new NodeError('OVERLOADED', 'too many tasks are in flight on this node')
    const { agentId } = recipient
    const card = directory.card(recipient)
    const capability = payload.capability ?? (card === undefined ? null : (defaultCapability(card)?.id ?? null))
    if (capability === null) return new NodeError('CAPABILITY_NOT_FOUND', `agent ${agentId} takes messages, but has no capability to call`)
    try {
      const input = toAgentJson(payload.input)
      return agents.inputFault(agentId, capability, input) ?? { ...payload, capability, input }
    } catch (error) {
      return error instanceof NodeError ? error : new NodeError('INTERNAL', messageOf(error), { cause: error })
    }
  }

  #hasRoom(peer: NodeId, bytes: number): boolean {
    const { maxInFlight, maxInFlightPerPeer } = this.#parts.limits
    const [all, ofPeer] = [this.#inFlight.load(), this.#inFlight.load(peer)]
    if (all.count >= maxInFlight || ofPeer.count >= maxInFlightPerPeer) return false
    return all.bytes + bytes <= MAX_INPUT_BYTES && ofPeer.bytes + bytes <= MAX_INPUT_BYTES_PER_PEER
  }

  /** Puts work in flight and opens its task. */
  #open(incoming: Incoming, { key, payload, isNotification }: Pick<Piece, 'key' | 'payload' | 'isNotification'>): Piece {
    const { agents, tasks } = this.#parts
    const { peer, recipient } = incoming
    const { capability, description, attempt } = payload
    const agent = addressText(recipient)
    const taskId = tasks.open({ kind: 'request', role: 'callee', agent, capability: capability ?? '', description })
    if (attempt > 1) tasks.attempt(taskId, attempt)
    const load = agents.load(recipient.agentId)
    if (load.running >= load.slots) tasks.waitFor(taskId, 'slot')
    const piece: Piece = {
      key,
      peer,
      recipient,
      payload,
      taskId,
      bytes: sizeOf(payload.input),
      isNotification,
      isRunning: false,
      isAwaited: !isNotification,
      threads: [threadOf(incoming)],
      abort: new Abort((error) =>
        this.#parts.telemetry.log('error', 'a program failed while it was stopped', { agent, reason: messageOf(error) })
      ),
      lostAt: null
    }
    this.#inFlight.add(piece)
    return piece
  }

  async #run(piece: Piece): Promise<void> {
    const { agents, tasks, telemetry } = this.#parts
    const outcome = await agents.run(piece.recipient.agentId, taskOf(piece), {
      signal: piece.abort,
      onStart: () => {
        piece.isRunning = true
        telemetry.count('tasks_started')
        tasks.working(piece.taskId)
      },
      onProgress: (data) => this.#progress(piece, data)
    })
    this.#inFlight.remove(piece)
    telemetry.count(outcome.ok ? 'tasks_completed' : 'tasks_failed')
    if (outcome.ok) tasks.complete(piece.taskId, outcome.result)
    else tasks.fail(piece.taskId, new NodeError(outcome.code, outcome.message).toBody())
    this.#finish(piece, responseOf(piece.payload, outcome), outcome.ok || outcome.code !== 'OVERLOADED')
  }

  #progress({ taskId, isAwaited, threads, payload: { requestId, attempt } }: Piece, data: unknown): void {
    this.#parts.tasks.progress(taskId, data)
    const thread = threads.at(-1)
    if (isAwaited && thread !== undefined) this.#answers.progress(thread, { requestId, attempt, progress: data })
  }

  /** What was done is remembered; what found no place may be asked again. */
  #finish({ key, peer, isNotification, isAwaited, threads }: Piece, response: unknown, hasBegun: boolean): void {
    if (isNotification) return
    if (hasBegun) this.#done.add(peer, key, response)
    for (const thread of threads) {
      if (isAwaited) this.#answers.respond(thread, response)
      else this.#parts.conversations.end(thread)
    }
  }

  /** Tells every caller which of its requests live here, and ends leases whose launcher is gone. */
  #beat(): void {
    const { clock, limits } = this.#parts
    const now = clock.monotonic()
    for (const [peer, pieces] of this.#inFlight.byPeer()) {
      for (const piece of pieces) {
        if (piece.payload.swarm !== null && piece.lostAt !== null && now - piece.lostAt > limits.leaseMs) giveUp(piece)
      }
      const live = pieces.filter((piece) => piece.isAwaited).slice(0, MAX_HEARTBEAT_KEYS)
      const waiting = live.filter((piece) => !piece.isRunning)
      this.#heartbeat(peer, { requests: live.map(nameOf), waiting: waiting.map(nameOf) })
    }
    this.#answers.tick()
  }

  #heartbeat(peer: NodeId, body: ControlBody<'heartbeat'>): void {
    const { peers, self, onHeartbeatHere, telemetry } = this.#parts
    if (body.requests.length === 0) return
    if (peer === self) return onHeartbeatHere(body)
    if (!peers.isOnline(peer)) return
    try {
      peers.send(peer, { kind: 'control', name: 'heartbeat', body })
    } catch (error) {
      telemetry.log('debug', 'a heartbeat could not be sent', { peer, reason: messageOf(error) })
    }
  }
}

const STOPPED = { ok: false, code: 'PEER_OFFLINE', message: 'the node that had it was stopped, which ended the work' } as const

/** Ends work that nobody wants any more: it is stopped, and not answered. */
function giveUp(piece: Piece): void {
  piece.isAwaited = false
  piece.abort.abort()
}

/** As heartbeats name it. */
function nameOf({ payload: { requestId, attempt } }: Piece): string {
  return workKey(requestId, attempt)
}

/** Another agent, peer or attempt is other work. */
function keyOf({ sender, recipient }: Incoming, { requestId, attempt }: RequestPayload): string {
  return `${addressText(sender)} ${recipient.agentId} ${workKey(requestId, attempt)}`
}

function taskOf({ taskId, payload }: Piece): AgentTask {
  const { requestId, attempt, capability, description, input } = payload
  return { taskId, requestId, attempt, capability: capability ?? '', description, input }
}

function responseOf({ requestId, attempt }: RequestPayload, outcome: HostOutcome | typeof STOPPED): unknown {
  if (outcome.ok) return { requestId, attempt, outcome: 'COMPLETED', result: outcome.result, error: null }
  return { requestId, attempt, outcome: 'FAILED', error: new NodeError(outcome.code, outcome.message).toBody() }
}

function malformed(): NodeError {
  return new NodeError('INVALID_ENVELOPE', 'the request has no requestId, attempt or input')
}

function forgotten(): NodeError {
  return new NodeError('DELIVERY_FAILED', 'the work was done before, but its result is no longer kept')
}
