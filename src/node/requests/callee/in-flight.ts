import { BoundedSet } from '../../../kit/bounded.js'
import { type ErrorBody, NodeError, messageOf } from '../../../kit/errors.js'
import type { NodeId } from '../../../kit/ids.js'
import { type Mutable, TransientMap } from '../../../kit/transient.js'
import { addressText, defaultCapability } from '../../../domain/card/card.js'
import type { RequestRecord } from '../../../domain/reliable/records.js'
import { type Conversation, historyBytes } from '../../../domain/gateway/conversation.js'
import { workKey, type RequestPayload, requestPayloadSchema } from '../../../domain/task/payloads.js'
import type { AgentTask } from '../../../ports/agent-runtime.js'
import type { Abort } from '../../../kit/abort.js'
import type { HostOutcome, AgentHost } from '../../agents/agent-host.js'
import type { InboundMessage, Thread } from '../../messaging/inbound-message.js'
import type { Clock, Timer } from '../../../kit/clock.js'
import { MAX_HEARTBEAT_KEYS, type ControlBody } from '../../../domain/channel/control.js'
import type { Telemetry } from '../../../ports/telemetry.js'
import type { NextHop } from '../../relay/next-hop.js'
import { isRecord } from '../../../kit/json.js'
import type { CheckShare } from '../../agents/check-share.js'
import type { Directory } from '../../cards/directory.js'
import { sizeOf } from '../../../kit/size.js'

/** Threads that one run answers: a request may be sent again while it is in progress. */
const MAX_THREADS = 8

/** One request in progress, or waiting for its agent. */
export interface Execution {
  /** Unique on this node; keys of notifications never equal keys of requests. */
  readonly key: string
  readonly peer: NodeId
  readonly recipient: InboundMessage['recipient']
  /** Validated, with its capability named. */
  readonly payload: RequestPayload
  /** Why its caller asks, as its message has it; absent for none. */
  readonly justification?: string
  readonly taskId: string
  /** Approximate bytes of its input in memory. */
  readonly bytes: number
  readonly abort: Abort
  /** Threads to answer; the newest gets the progress. */
  readonly threads: Thread[]
  /** Its record in the ledger; null for work of this very node, and for notifications. */
  record: RequestRecord | null
  /** A one-way message: there is no answer to remember. */
  readonly isNotification: boolean
  /** Has its agent begun? Before, it waits for a free slot. */
  isRunning: boolean
  /** Has its agent ended? Then only its end is to be recorded and reported. */
  hasEnded: boolean
  /** Does its caller wait for the answer? */
  isAwaited: boolean
  /** Was it ended because this node stops? */
  isStopped: boolean
  /**
   * Resolves when its end is on record, with the error of a result that fits no message; null while it runs or waits.
   */
  ending: Promise<ErrorBody | null> | null
  /** Monotonic milliseconds at which its caller went offline. */
  lostAt: number | null
}

/** Work for a caller in this process. */
export interface HereWork {
  readonly recipient: InboundMessage['recipient']
  readonly capability: string
  readonly input: unknown
  /** Why its caller asks. */
  readonly justification?: string | undefined
  readonly conversation?: Conversation | undefined
  readonly names: { readonly requestId: string; readonly taskId: string }
}

/** Such work under way. */
export interface HereRun {
  /** Never rejects. */
  readonly outcome: Promise<HostOutcome>
  readonly cancel: () => void
}

/** A request about to be in flight, or to be answered without a run. */
export interface Claim {
  readonly peer: NodeId
  readonly key: string
  /** Threads to answer, including joined ones. */
  readonly threads: Thread[]
}

const NO_LOAD = { count: 0, bytes: 0 } as const

/** Executions in flight, by the requesting peer. */
export class InFlight {
  /** Peers stay after their first request: there are no more of them than members. */
  readonly #byPeer = new Map<NodeId, TransientMap<string, Execution>>()
  /** Threads of claimed requests, by peer and key. */
  readonly #claims = new TransientMap<string, Thread[]>()
  readonly #all = { count: 0, bytes: 0 }
  readonly #loads = new Map<NodeId, { count: number; bytes: number }>()

  /** Count and input bytes of the executions of one peer, or of all. */
  load(peer?: NodeId): { readonly count: number; readonly bytes: number } {
    return peer === undefined ? this.#all : (this.#loads.get(peer) ?? NO_LOAD)
  }

  /** Counted, not summed: every request reads the load. */
  #count({ peer, bytes }: Execution, by: 1 | -1): void {
    let ofPeer = this.#loads.get(peer)
    if (ofPeer === undefined) this.#loads.set(peer, (ofPeer = { count: 0, bytes: 0 }))
    ofPeer.count += by
    ofPeer.bytes += by * bytes
    this.#all.count += by
    this.#all.bytes += by * bytes
  }

  /** Is it in flight or claimed? */
  has(peer: NodeId, key: string): boolean {
    return (
      this.#byPeer.get(peer)?.has(key) === true || (this.#claims.size > 0 && this.#claims.has(claimText(peer, key)))
    )
  }

  /** From now on the same request joins, until it is in flight or released. */
  claim(peer: NodeId, key: string, thread: Thread): Claim {
    const threads = [thread]
    this.#claims.set(claimText(peer, key), threads)
    return { peer, key, threads }
  }

  /** Ends a claim without a run. */
  release({ peer, key }: Pick<Claim, 'peer' | 'key'>): void {
    if (this.#claims.size > 0) this.#claims.delete(claimText(peer, key))
  }

  /** Adds an execution. @throws NodeError INTERNAL when its key is in flight. */
  add(piece: Execution): void {
    this.release(piece)
    if (this.has(piece.peer, piece.key)) throw new NodeError('INTERNAL', 'that work is in flight already')
    let ofPeer = this.#byPeer.get(piece.peer)
    if (ofPeer === undefined) this.#byPeer.set(piece.peer, (ofPeer = new TransientMap()))
    ofPeer.set(piece.key, piece)
    this.#count(piece, 1)
  }

  /** Removes an execution. */
  remove({ peer, key }: Execution): void {
    const ofPeer = this.#byPeer.get(peer)
    const piece = ofPeer?.get(key)
    if (ofPeer === undefined || piece === undefined) return
    ofPeer.delete(key)
    this.#count(piece, -1)
  }

  /** Adds the thread of a repeated request, unless it is known or there are too many. */
  join(peer: NodeId, key: string, thread: Thread): 'new' | 'joined' | 'known' | 'full' {
    const threads = this.#byPeer.get(peer)?.get(key)?.threads ?? this.#claims.get(claimText(peer, key))
    if (threads === undefined) return 'new'
    if (threads.some((one) => one.correlationId === thread.correlationId)) return 'known'
    if (threads.length >= MAX_THREADS) return 'full'
    threads.push(thread)
    return 'joined'
  }

  /** The executions of one peer. */
  ofPeer(peer: NodeId): Execution[] {
    return [...(this.#byPeer.get(peer)?.values() ?? [])]
  }

  /** The peer of an execution for a swarm; null when there is none. */
  leaderOf(swarm: string): NodeId | null {
    return this.all().find(({ payload }) => payload.swarm === swarm)?.peer ?? null
  }

  /** The executions that answer to a node, whichever node sent the request first. */
  answeringTo(node: NodeId): readonly Execution[] {
    return this.all().filter(({ threads }) => threads.some(({ recipient }) => recipient.nodeId === node))
  }

  /** The executions by each node that they answer to. */
  byListener(): ReadonlyMap<NodeId, readonly Execution[]> {
    const pieces = new Map<NodeId, Execution[]>()
    for (const piece of this.all())
      for (const node of new Set(piece.threads.map(({ recipient }) => recipient.nodeId))) {
        const named = pieces.get(node)
        if (named === undefined) pieces.set(node, [piece])
        else named.push(piece)
      }
    return pieces
  }

  /** Every execution. */
  all(): Execution[] {
    return [...this.#byPeer.values()].flatMap((pieces) => [...pieces.values()])
  }
}

function claimText(peer: NodeId, key: string): string {
  return `${peer} ${key}`
}

/** Its name in heartbeats. */
export function nameOf({ payload: { requestId, attempt } }: Execution): string {
  return workKey(requestId, attempt)
}

/** The key of work: another agent, peer or attempt is other work. */
export function keyOf(
  { sender, recipient }: Pick<InboundMessage, 'sender' | 'recipient'>,
  { requestId, attempt }: Pick<RequestPayload, 'requestId' | 'attempt'>
): string {
  return `${addressText(sender)} ${recipient.agentId} ${workKey(requestId, attempt)}`
}

/** The task for its agent. */
export function taskOf({ taskId, payload, record, peer, justification }: Execution): AgentTask {
  const { requestId, attempt, capability, description, swarm, input, conversation } = payload
  // Each run after one that ended with its node is a further attempt.
  const tries = record?.tries ?? 0
  const task: Mutable<AgentTask> = {
    taskId,
    requestId,
    attempt: attempt + tries,
    capability: capability ?? '',
    description,
    swarm,
    input,
    peer
  }
  if (justification !== undefined) task.justification = justification
  if (conversation !== undefined) task.conversation = askedAt(conversation, peer)
  return task
}

/** A conversation as its agent gets it. Only the sender of a request is known for sure. */
function askedAt(asked: Conversation, node: NodeId): Conversation {
  const { contextId, taskId, message, history, isCut, thread } = asked
  // Member by member: see notificationPayload.
  const caller = { kind: asked.caller.kind, id: asked.caller.id, node }
  const conversation = { contextId, taskId, message, history, isCut, caller }
  return thread === undefined ? conversation : { ...conversation, thread }
}

/** Ends work without a waiting caller: it is stopped and not answered. */
export function abandon(piece: Execution): void {
  piece.isAwaited = false
  piece.abort.abort()
}

/** Early cancellations kept per peer; the oldest are evicted first. */
const MAX_OF_PEER = 256

/** Runs canceled before their requests arrived: a cancellation is faster than a message that must be recorded first. */
export class EarlyCancels {
  readonly #byPeer = new Map<NodeId, BoundedSet<string>>()

  /** A peer canceled a run, given by its name in heartbeats. */
  add(peer: NodeId, key: string): void {
    const keys = this.#byPeer.get(peer) ?? new BoundedSet(MAX_OF_PEER)
    this.#byPeer.set(peer, keys.add(key))
  }

  /** Was it canceled? True only once. */
  take(peer: NodeId, key: string): boolean {
    return this.#byPeer.get(peer)?.delete(key) ?? false
  }

  /** A peer is gone: its cancellations do not apply to later requests. */
  forget(peer: NodeId): void {
    this.#byPeer.delete(peer)
  }
}

/** Dependencies of heartbeats. */
interface HeartbeatDeps {
  readonly inFlight: InFlight
  readonly self: NodeId
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly nextHop: Pick<NextHop, 'isReachable' | 'seek' | 'sendControl'>
  readonly limits: { readonly leaseMs: number; readonly heartbeatMs: number }
  /** Runs that programs answer in person, by the requesting node. */
  inPerson(): ReadonlyMap<NodeId, readonly string[]>
  /** Heartbeats of work for this very node. */
  onHeartbeatHere(body: ControlBody<'heartbeat'>): void
}

/** Reports its live requests to each caller, and ends leases of lost launchers. */
export class Heartbeats {
  readonly #deps: HeartbeatDeps
  #timer: Timer | null = null

  constructor(deps: HeartbeatDeps) {
    this.#deps = deps
  }

  /** Starts to report. */
  start(): void {
    const { clock, limits } = this.#deps
    this.#timer = clock.every(limits.heartbeatMs, () => this.#send())
  }

  /** Stops. */
  stop(): void {
    this.#deps.clock.clear(this.#timer)
  }

  #send(): void {
    const { inFlight } = this.#deps
    this.#endLost()
    const inPerson = this.#deps.inPerson()
    const ofNode = inFlight.byListener()
    for (const node of new Set([...ofNode.keys(), ...inPerson.keys()])) {
      const live = (ofNode.get(node) ?? []).filter((piece) => piece.isAwaited)
      const waiting = live.filter((piece) => !piece.isRunning)
      const requests = [...live.map(nameOf), ...(inPerson.get(node) ?? [])].slice(0, MAX_HEARTBEAT_KEYS)
      this.#report(node, { requests, waiting: waiting.map(nameOf).slice(0, MAX_HEARTBEAT_KEYS) })
    }
  }

  #endLost(): void {
    const { clock, inFlight, limits, nextHop } = this.#deps
    const now = clock.monotonic()
    for (const piece of inFlight.all()) {
      // Unrepeatable work runs to its end: it is never assigned again.
      const isLease = piece.payload.swarm !== null && piece.record?.isRepeatable !== false
      const isGone = piece.lostAt !== null && now - piece.lostAt > limits.leaseMs && !nextHop.isReachable(piece.peer)
      if (isLease && isGone) abandon(piece)
    }
  }

  #report(peer: NodeId, body: ControlBody<'heartbeat'>): void {
    const { nextHop, self, telemetry } = this.#deps
    if (body.requests.length === 0) return
    if (peer === self) return this.#deps.onHeartbeatHere(body)
    if (!nextHop.isReachable(peer)) return nextHop.seek(peer)
    try {
      nextHop.sendControl(peer, 'heartbeat', body)
    } catch (error) {
      telemetry.log('debug', 'a heartbeat could not be sent', { peer, reason: messageOf(error) })
    }
  }
}

/** Bytes of the inputs of one peer's tasks in flight. */
const MAX_INPUT_BYTES_PER_PEER = 64 * 1024 * 1024
/** Bytes of the inputs of all tasks in flight. */
const MAX_INPUT_BYTES = 256 * 1024 * 1024

/** Dependencies of admission. */
interface AdmissionsDeps {
  readonly checkShare: Pick<CheckShare, 'payerOf' | 'within'>
  readonly agents: Pick<AgentHost, 'inputFault'>
  readonly directory: Pick<Directory, 'card'>
  readonly inFlight: Pick<InFlight, 'load'>
  readonly limits: { readonly maxInFlight: number; readonly maxInFlightPerPeer: number }
  /** Does another node coordinate the swarm now, as far as this node has promised? */
  isPast(peer: NodeId, swarm: string, epoch: number): boolean
  /** Makes bytes of attachments into base64 text, as agents get them. */
  toAgentJson(value: unknown): unknown
}

/** The request of a notification, without id and input. */
const NOTIFICATION = requestPayloadSchema.omit({ requestId: true, input: true }).parse({ attempt: 1, capability: null })

/** A notification as a request: the agent's default capability, without a waiting caller. */
export function notificationRequest({ header, payload }: Pick<InboundMessage, 'header' | 'payload'>): RequestPayload {
  return notificationPayload(header.id, isRecord(payload) && 'input' in payload ? payload.input : payload)
}

/** A request without a message to answer. */
export function notificationPayload(
  requestId: string,
  input: unknown,
  {
    capability = null,
    conversation
  }: { readonly capability?: string | null; readonly conversation?: Conversation | undefined } = {}
): RequestPayload {
  // Member by member: a spread makes an object of another hidden class each time, and every call makes one.
  const { attempt, description, swarm, timeoutMs, ttlMs, allowRepeat, isQuery, isAgain, isUnrecorded } = NOTIFICATION
  const payload: Mutable<RequestPayload> = {
    requestId,
    attempt,
    capability,
    input,
    description,
    swarm,
    timeoutMs,
    ttlMs,
    allowRepeat,
    isQuery,
    isAgain,
    isUnrecorded
  }
  if (conversation !== undefined) payload.conversation = conversation
  return payload
}

/** Bytes of the input of a request and its conversation, about. */
export function bytesOfRequest({ input, conversation }: RequestPayload): number {
  return (
    sizeOf(input) +
    (conversation === undefined ? 0 : sizeOf(conversation.message.parts) + historyBytes(conversation.history))
  )
}

/** Admits work when there is room and its agent accepts the input. */
export class Admissions {
  readonly #deps: AdmissionsDeps

  constructor(deps: AdmissionsDeps) {
    this.#deps = deps
  }

  /** The payload with its capability named and its input as agents get it, or the reason of the refusal. */
  check(
    { peer, recipient }: Pick<InboundMessage, 'peer' | 'recipient'>,
    payload: RequestPayload
  ): RequestPayload | NodeError {
    const { agents, checkShare, directory, isPast, toAgentJson } = this.#deps
    if (payload.swarm !== null && payload.epoch !== undefined && isPast(peer, payload.swarm, payload.epoch))
      return new NodeError('CONFLICT', 'another node coordinates the swarm now')
    if (!this.#hasCapacity(peer, bytesOfRequest(payload)))
      return new NodeError('OVERLOADED', 'too many tasks are in flight on this node')
    const { agentId } = recipient
    const card = directory.card(recipient)
    const capability = payload.capability ?? (card === undefined ? null : (defaultCapability(card)?.id ?? null))
    if (capability === null)
      return new NodeError('CAPABILITY_NOT_FOUND', `agent ${agentId} takes messages, but has no capability to call`)
    try {
      const input = toAgentJson(payload.input)
      const payer = checkShare.payerOf(payload.requestId, peer)
      const fault = checkShare.within(payer, () => agents.inputFault(agentId, capability, input))
      if (fault !== null) return fault
      return capability === payload.capability && input === payload.input ? payload : { ...payload, capability, input }
    } catch (error) {
      return error instanceof NodeError ? error : new NodeError('INTERNAL', messageOf(error), { cause: error })
    }
  }

  #hasCapacity(peer: string, bytes: number): boolean {
    const { inFlight, limits } = this.#deps
    const [all, ofPeer] = [inFlight.load(), inFlight.load(peer)]
    if (all.count >= limits.maxInFlight || ofPeer.count >= limits.maxInFlightPerPeer) return false
    return all.bytes + bytes <= MAX_INPUT_BYTES && ofPeer.bytes + bytes <= MAX_INPUT_BYTES_PER_PEER
  }
}
