import { sameBytes } from '../../kit/bytes.js'
import type { Clock, Timer } from '../../kit/clock.js'
import { type NodeId, shortId } from '../../kit/ids.js'
import { isRecord } from '../../kit/json.js'
import { addressText } from '../../domain/card/card.js'
import { readRequest, workKey } from '../../domain/task/payloads.js'
import type { RequestPayload } from '../../domain/task/payloads.js'
import { threadOf, type AwaitingApproval, type InboundMessage, type Thread } from '../messaging/inbound-message.js'
import { sizeOf } from '../../kit/size.js'
import { type ErrorCode, messageOf } from '../../kit/errors.js'
import { shown } from '../../kit/text.js'
import { tierText } from '../../domain/routing/tier.js'
import type { Audit } from '../../ports/audit.js'
import type { Telemetry } from '../../ports/telemetry.js'
import type { Directory } from '../cards/directory.js'
import type { NodeEvents } from '../observe/events.js'
import type { Traffic } from '../observe/traffic.js'
import { MAX_HEARTBEAT_KEYS } from '../../domain/channel/control.js'
import type { Requests } from '../requests/caller/requests.js'
import type { SwarmTable } from '../swarms/swarm-table.js'
import type { NextHop } from '../relay/next-hop.js'

/** The most held messages. */
export const MAX_APPROVALS = 256
/** The most held messages of one peer. */
export const MAX_APPROVALS_PER_PEER = 64
/** Their most bytes together. */
const MAX_BYTES = 32 * 1024 * 1024
/** The most bytes of one peer's messages. */
const MAX_BYTES_PER_PEER = 16 * 1024 * 1024
/** Deepest nesting of compared payloads; deeper ones never count as equal. */
const MAX_DEPTH = 64
/** The most threads of one message: it may be sent again while it waits. */
const MAX_THREADS = 8

/** A message that waits for approval. */
export interface PendingApproval extends AwaitingApproval {
  readonly id: string
  /** The rule that asks, at its present line. */
  rule: string
  /** Equal for the same message sent again. */
  readonly key: string
  /** The payload of a request; null for other messages and for requests of another form. */
  readonly request: RequestPayload | null
  /** The threads of the answer. */
  readonly threads: Thread[]
  readonly bytes: number
  /** Unix milliseconds. */
  readonly askedAt: number
  /** When it ends without a decision: the earlier of this node's limit and the caller's. */
  readonly expiresAt: number
  readonly endsBy: 'caller' | 'node'
  /** The end of its caller's wait, on the monotonic clock; Infinity: the caller waits until this node ends it. */
  readonly callerEndsAt: number
  readonly timer: Timer
  /** When its sender went offline, on the monotonic clock. */
  lostAt: number | null
}

/** The parts of a held message that its holder makes. */
export type WaitingParts = Pick<PendingApproval, 'id' | 'askedAt' | 'expiresAt' | 'endsBy' | 'callerEndsAt' | 'timer'>

/** The key of a request in heartbeats and cancellations; null for any other message. */
export function runKeyOf({ request }: PendingApproval): string | null {
  return request === null ? null : workKey(request.requestId, request.attempt)
}

/** The messages that wait for approval: bounded in number and bytes, in all and for each peer. */
export class PendingApprovals {
  readonly #byId = new Map<string, PendingApproval>()
  readonly #byKey = new Map<string, PendingApproval>()
  #bytes = 0

  /** Adds a message. False: there is no room. `parts` is called only when there is. */
  add(awaiting: AwaitingApproval, parts: (request: RequestPayload | null) => WaitingParts): boolean {
    const { incoming } = awaiting
    const bytes = sizeOf(incoming.payload)
    const ofPeer = this.ofPeer(incoming.peer)
    const peerBytes = ofPeer.reduce((sum, one) => sum + one.bytes, 0)
    if (this.#byId.size >= MAX_APPROVALS || ofPeer.length >= MAX_APPROVALS_PER_PEER) return false
    if (this.#bytes + bytes > MAX_BYTES || peerBytes + bytes > MAX_BYTES_PER_PEER) return false
    const request = requestOf(incoming)
    const key = keyOf(incoming, request)
    const one: PendingApproval = {
      ...awaiting,
      ...parts(request),
      key,
      request,
      threads: [threadOf(incoming)],
      bytes,
      lostAt: null
    }
    this.#byId.set(one.id, one)
    this.#byKey.set(key, one)
    this.#bytes += bytes
    return true
  }

  /**
   * Joins a repeated message, or a query for it, to a held one, so that it gets the same decision. `joined`: done.
   * `known`: its thread had joined. `full`: too many threads. `new`: none is held. `other`: a held one has the same ids
   * but other content, so that its approval must not count for this one.
   */
  join({ incoming }: AwaitingApproval): 'new' | 'joined' | 'known' | 'full' | 'other' {
    const request = requestOf(incoming)
    const one = this.#byKey.get(keyOf(incoming, request))
    if (one === undefined) return 'new'
    if (request?.isQuery !== true && !isEqual(untimed(one.incoming.payload), untimed(incoming.payload))) return 'other'
    const thread = threadOf(incoming)
    if (one.threads.some(({ correlationId }) => correlationId === thread.correlationId)) return 'known'
    if (one.threads.length >= MAX_THREADS) return 'full'
    one.threads.push(thread)
    return 'joined'
  }

  /** The held message that a message is, or has joined. */
  find({ incoming }: AwaitingApproval): PendingApproval | undefined {
    return this.#byKey.get(keyOf(incoming, requestOf(incoming)))
  }

  /** Removes a message. False when it was removed before: the remover decides its outcome. */
  remove({ id, key, bytes }: PendingApproval): boolean {
    if (!this.#byId.delete(id)) return false
    this.#byKey.delete(key)
    this.#bytes -= bytes
    return true
  }

  /** The message of an id; undefined when it waits no longer. */
  get(id: string): PendingApproval | undefined {
    return this.#byId.get(id)
  }

  /** The messages of one peer. */
  ofPeer(peer: NodeId): PendingApproval[] {
    return this.all().filter(({ incoming }) => incoming.peer === peer)
  }

  /** Every message, oldest first. */
  all(): PendingApproval[] {
    return [...this.#byId.values()]
  }
}

function requestOf({ header, payload }: InboundMessage): RequestPayload | null {
  return header.type === 'request' ? readRequest(payload) : null
}

function keyOf({ peer, sender, recipient, header }: InboundMessage, request: RequestPayload | null): string {
  const what = request === null ? header.id : workKey(request.requestId, request.attempt)
  return `${peer} ${addressText(sender)} ${recipient.agentId} ${header.type} ${what}`
}

/** A payload without time limits and the caller's abilities, which differ when it is sent again after a restart. */
function untimed(payload: unknown): unknown {
  return isRecord(payload)
    ? { ...payload, timeoutMs: null, approvalMs: null, ttlMs: null, isAgain: null, takes: null, logLevel: null }
    : payload
}

/** True for equal payloads of JSON values and bytes. */
function isEqual(a: unknown, b: unknown, depth = 0): boolean {
  if (Object.is(a, b)) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null || depth > MAX_DEPTH) return false
  if (a instanceof Uint8Array || b instanceof Uint8Array) {
    return a instanceof Uint8Array && b instanceof Uint8Array && sameBytes(a, b)
  }
  const [left, right] = [a, b].map((one) => new Map<string, unknown>(Object.entries(one)))
  if (left === undefined || right === undefined || Array.isArray(a) !== Array.isArray(b) || left.size !== right.size)
    return false
  return [...left].every(([key, value]) => right.has(key) && isEqual(value, right.get(key), depth + 1))
}

/**
 * How the end of a wait is recorded: as an approval after a person's decision, else as a refusal. A peer may cause any
 * number of refusals, and repeats share a line.
 */
export interface Noted {
  readonly kind: 'approval' | 'refusal'
  readonly why: string
  /** The deciding node; absent: this one, or none. */
  readonly by?: NodeId
}

/** Dependencies of {@link ApprovalAudit}. */
interface ApprovalAuditDeps {
  readonly audit: Audit
  readonly directory: Directory
  readonly events: NodeEvents
  readonly telemetry: Telemetry
  readonly traffic: Traffic
  readonly self: NodeId
}

/** Records held messages: events, counts and the audit log. */
export class ApprovalAudit {
  readonly #deps: ApprovalAuditDeps

  constructor(deps: ApprovalAuditDeps) {
    this.#deps = deps
  }

  /** Records a new held message. */
  asked({ incoming, rule, question }: AwaitingApproval): void {
    const { events, directory, telemetry } = this.#deps
    const { sender, recipient, header } = incoming
    const name = directory.namer()
    const from = { from: shown(name(sender)), fromKey: shortId(sender.nodeId) }
    const facts = { ...from, to: shown(name(recipient)), capability: question.capability, rule }
    events.add('approval', 'a message waits for approval: a2a-node approvals ls', facts)
    telemetry.log('info', 'a message waits for approval', {
      correlationId: header.correlationId ?? header.id,
      ...facts
    })
  }

  /** Counts a held message that does not pass. */
  notPassed(one: PendingApproval, code: ErrorCode): void {
    const { telemetry, traffic } = this.#deps
    telemetry.count('messages_refused', code)
    traffic.refused(code, one.incoming.header)
  }

  /** Records the end of a wait. `code`: `ALLOWED` or the reason. */
  ended(
    one: PendingApproval,
    outcome: { readonly code: string; readonly rule: string },
    { kind, why, by }: Noted
  ): void {
    const { audit, events, directory, telemetry, self } = this.#deps
    const { peer, sender, recipient, header } = one.incoming
    const what = one.question.capability === null ? '' : `: ${shown(one.question.capability, 128)}`
    telemetry.count('approvals', outcome.code)
    audit.append({
      kind,
      code: outcome.code,
      rule: outcome.rule,
      reason: `${one.id} ${why}${what}`,
      ...(peer === self ? {} : { peer }),
      ...(by === undefined ? {} : { by }),
      sender: addressText(sender),
      recipient: addressText(recipient),
      messageType: header.type,
      sourceTier: tierText(one.question.sender.tier),
      targetTier: tierText(one.question.target.tier)
    })
    const name = directory.namer()
    events.add('approval', `a message that waited for approval: ${outcome.code}`, {
      id: one.id,
      why,
      from: shown(name(sender)),
      fromKey: shortId(sender.nodeId),
      to: shown(name(recipient))
    })
  }
}

/** Dependencies of {@link ApprovalNotices}. */
interface ApprovalNoticesDeps {
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly nextHop: Pick<NextHop, 'isReachable' | 'seek' | 'sendControl'>
  readonly self: NodeId
  /** Notified when this node's own requests wait for its approval. */
  readonly requests: Pick<Requests, 'reports'>
  readonly swarms: Pick<SwarmTable, 'onHeartbeat'>
}

/** Notifies senders once per heartbeat of their requests that wait for approval. */
export class ApprovalNotices {
  readonly #deps: ApprovalNoticesDeps

  constructor(deps: ApprovalNoticesDeps) {
    this.#deps = deps
  }

  /** Sends a peer its held requests, if it is reachable. Never throws. */
  tell(peer: NodeId, waiting: readonly PendingApproval[]): void {
    const { clock, nextHop, self, telemetry, requests, swarms } = this.#deps
    const named = waiting.filter((one) => runKeyOf(one) !== null).slice(0, MAX_HEARTBEAT_KEYS)
    const keys = named.flatMap((one) => runKeyOf(one) ?? [])
    if (keys.length === 0) return
    const now = clock.now()
    const approvals = named.map(({ id, expiresAt }) => ({ id, leftMs: Math.max(0, Math.round(expiresAt - now)) }))
    if (peer === self) {
      requests.reports.onApproval(self, keys, approvals)
      return swarms.onHeartbeat(self, keys, true)
    }
    if (!nextHop.isReachable(peer)) return nextHop.seek(peer)
    try {
      nextHop.sendControl(peer, 'approval', { requests: keys, approvals })
    } catch (error) {
      telemetry.log('debug', 'a sender could not be told that it waits', { peer, reason: messageOf(error) })
    }
  }
}
