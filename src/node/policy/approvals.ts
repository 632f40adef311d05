import { BoundedMap } from '../../kit/bounded.js'
import type { Clock, Timer } from '../../kit/clock.js'
import { messageOf, NodeError } from '../../kit/errors.js'
import { Emitter } from '../../kit/events.js'
import type { Unsubscribe } from '../../kit/events.js'
import type { IdSource, NodeId } from '../../kit/ids.js'
import { type IdKind, mayStandFor, resolveId } from '../../kit/resolve-id.js'
import type { RequestPayload } from '../../domain/task/payloads.js'
import type { WrittenRule } from '../../ports/policy.js'
import type { Telemetry } from '../../ports/telemetry.js'
import {
  type ApprovalAudit,
  type Noted,
  type ApprovalNotices,
  MAX_APPROVALS,
  runKeyOf,
  PendingApprovals,
  type PendingApproval,
  type WaitingParts
} from './pending-approvals.js'
import type { ExchangeTable } from '../messaging/exchange-table.js'
import { threadOf } from '../messaging/inbound-message.js'
import type { AwaitingApproval, InboundMessage } from '../messaging/inbound-message.js'
import type { Inbound } from '../messaging/inbound.js'
import type { PolicyStore } from './policy-store.js'
import type { Refusal } from './access-control.js'
import type { NextHop } from '../relay/next-hop.js'
import type { Executor } from '../requests/callee/executor.js'

/** Dependencies of {@link Approvals}. */
interface ApprovalsDeps {
  readonly clock: Clock
  readonly ids: IdSource
  readonly telemetry: Telemetry
  readonly record: ApprovalAudit
  readonly notices: ApprovalNotices
  readonly nextHop: Pick<NextHop, 'isReachable'>
  readonly policy: PolicyStore
  readonly inbound: Pick<Inbound, 'askAgain' | 'pass'>
  readonly exchanges: ExchangeTable
  readonly executor: Pick<Executor, 'knows' | 'onRequest' | 'fail' | 'withdraw' | 'refuse'>
  readonly limits: { readonly approvalTimeoutMs: number; readonly heartbeatMs: number; readonly leaseMs: number }
}

/** The principal of a decision, and whether the policy file shall remember it. */
export interface ApprovalChoice {
  /** Name of the principal. */
  readonly by: string
  /** The other machine of the owner at which it decides; absent: this node. */
  readonly node?: NodeId
  readonly remember: boolean
}

const APPROVAL_IDS: IdKind = {
  one: 'waiting approval',
  several: 'approvals',
  prefix: 'app_',
  code: 'APPROVAL_NOT_FOUND',
  list: 'a2a-node approvals ls'
}
const FULL: Refusal = {
  code: 'OVERLOADED',
  rule: 'approvals: bounded',
  reason: 'too many messages wait for approval on this node'
}
const OTHER: Refusal = {
  code: 'POLICY_DENIED',
  rule: 'approvals: as asked',
  reason: 'another message with the same id waits for approval; ask again under an id of its own'
}
const CHANGED: Refusal = {
  code: 'POLICY_DENIED',
  rule: 'approvals: as asked',
  reason: 'the agent or its capability changed while the message waited for approval; ask again'
}
const AWAY: Refusal = {
  code: 'PEER_OFFLINE',
  rule: 'approvals: the sender stays',
  reason: 'the sender went away while its message waited for approval; nothing was done'
}

/** Why a wait ended without a decision, by the node's or the caller's time limit. */
const TOO_LATE = {
  node: { reason: 'nobody allowed it in time', why: 'nobody decided in time' },
  caller: { reason: "nobody allowed it before its caller's time was over", why: "its caller's time was over" }
} as const

/** A person's decision. */
export interface ApprovalDecision {
  readonly one: PendingApproval
  /** The rule that was written; null when none was requested, or no rule asks any more. */
  readonly remembered: WrittenRule | null
  /** Other messages decided by this rule. */
  readonly thereby: readonly Thereby[]
}

/** A message decided by a rule that was written for another one. */
export interface Thereby {
  readonly one: PendingApproval
  readonly outcome: 'allowed' | 'denied'
}

const NOT_REMEMBERED = { remembered: null, thereby: [] } as const

/**
 * Messages held for approval by a policy rule. Each leaves the list exactly once: allowed (and decided on anew),
 * denied, timed out, canceled, or because its sender is gone.
 */
export class Approvals {
  readonly #deps: ApprovalsDeps
  readonly #list = new PendingApprovals()
  readonly #changes: Emitter<null>
  readonly #outcomes: ApprovalOutcomes
  /** By id, which time limit passed: the last undecided messages. */
  readonly #late = new BoundedMap<string, PendingApproval['endsBy']>(MAX_APPROVALS)
  readonly #remembering = new RememberedDecisions()
  /** Runs while messages wait. */
  #timer: Timer | null = null

  constructor(deps: ApprovalsDeps) {
    this.#deps = deps
    this.#outcomes = new ApprovalOutcomes(deps)
    this.#changes = new Emitter((error) =>
      deps.telemetry.log('error', 'a listener of approvals failed', { error: messageOf(error) })
    )
  }

  /** Holds a message, or returns why not. Its sender gets a notice that it waits. */
  hold(awaiting: AwaitingApproval): Refusal | null {
    const { clock, executor, inbound, exchanges, limits } = this.#deps
    const { incoming } = awaiting
    const joining = this.#list.join(awaiting)
    // A running or finished request runs nothing again: it joins its answer. Nobody approved this message, so no
    // listener gets it.
    if (joining === 'new' && executor.knows(incoming)) {
      inbound.pass(awaiting, (one) => executor.onRequest(one))
      return null
    }
    if (joining === 'full') return FULL
    if (joining === 'other') return OTHER
    if (joining === 'known' && incoming.header.type !== 'notification') exchanges.end(threadOf(incoming))
    if (joining === 'new') {
      if (!this.#list.add(awaiting, (request) => this.#begin(request, incoming.recorded))) return FULL
      this.#deps.record.asked(awaiting)
      this.#changes.emit(null)
    }
    this.#timer ??= clock.every(limits.heartbeatMs, () => this.#sendHeartbeats())
    this.#tell(incoming.peer)
    return null
  }

  #begin(request: RequestPayload | null, recorded: InboundMessage['recorded']): WaitingParts {
    const { clock, ids, limits } = this.#deps
    const id = ids.next('app')
    const askedAt = clock.now()
    const { isCallers, leftMs } = waitOf(request, { recorded, askedAt }, limits)
    // A caller with a link cancels it by itself at that moment.
    const timer = clock.after(isCallers ? leftMs + limits.heartbeatMs : leftMs, () => this.#timedOut(id))
    const callerEndsAt = isCallers ? clock.monotonic() + leftMs : Number.POSITIVE_INFINITY
    return { id, askedAt, expiresAt: askedAt + leftMs, endsBy: isCallers ? 'caller' : 'node', callerEndsAt, timer }
  }

  /** The messages whose callers still wait, oldest first. */
  list(): readonly PendingApproval[] {
    return this.#list.all().filter((one) => !this.#isLate(one))
  }

  #isLate({ callerEndsAt }: PendingApproval): boolean {
    return this.#deps.clock.monotonic() >= callerEndsAt
  }

  /** Calls back after each added or removed message. */
  onChange(listener: () => void): Unsubscribe {
    return this.#changes.on(listener)
  }

  /**
   * Allows a message: it passes unless the rules refuse it by now.
   * @throws NodeError APPROVAL_NOT_FOUND, AMBIGUOUS_NAME; APPROVAL_TIMEOUT after its time limit or its caller's;
   * POLICY_DENIED and the like when the rules refuse it by now; CONFIG_INVALID, DISK_FULL, NO_PERMISSION when it cannot
   * be remembered (then it keeps waiting).
   */
  async allow(text: string, choice: ApprovalChoice): Promise<ApprovalDecision> {
    const decision = await this.#decided(text, 'allow', choice)
    const { one, remembered } = decision
    const refusal = refusalNow(this.#deps.inbound, one)
    if (refusal !== null) {
      this.#outcomes.refuse(one, refusal, {
        ...notedBy(choice),
        why: `allowed by ${choice.by}, but refused by the rules in force now`
      })
      throw new NodeError(refusal.code, refusal.reason, { data: { rule: refusal.rule } })
    }
    const why = `allowed by ${choice.by}${remembered === null ? '' : ', remembered'}`
    this.#outcomes.pass(one, one.rule, { ...notedBy(choice), why })
    return decision
  }

  /** Denies a message; its sender gets POLICY_DENIED. @throws NodeError as {@link Approvals.allow}. */
  async deny(text: string, choice: ApprovalChoice): Promise<ApprovalDecision> {
    const decision = await this.#decided(text, 'deny', choice)
    const { one, remembered } = decision
    const refusal: Refusal = { code: 'POLICY_DENIED', rule: one.rule, reason: 'a person denied it' }
    this.#outcomes.refuse(one, refusal, {
      ...notedBy(choice),
      why: `denied by ${choice.by}${remembered === null ? '' : ', remembered'}`
    })
    return decision
  }

  /** The policy changed: messages that it now allows or denies wait no longer. */
  onPolicy(): void {
    for (const one of this.list()) {
      const again = this.#deps.inbound.askAgain(one.incoming)
      if ('verdict' in again && !again.verdict.allowed && again.verdict.asks === true) one.rule = again.verdict.rule
      else if (!this.#remembering.has(one.id)) this.#settled(one, again)
    }
  }

  #settled(one: PendingApproval, again: ReturnType<ApprovalsDeps['inbound']['askAgain']>): void {
    if (!('verdict' in again)) return this.#end(one, again, 'refused when the policy changed')
    const { verdict } = again
    if (verdict.line !== undefined)
      this.#remembering.note(verdict.line, { one, outcome: verdict.allowed ? 'allowed' : 'denied' })
    if (verdict.allowed) this.#release(one, verdict.rule)
    else this.#end(one, verdict, 'the policy changed')
  }

  /**
   * The message of an id or prefix.
   * @throws NodeError APPROVAL_NOT_FOUND, AMBIGUOUS_NAME; APPROVAL_TIMEOUT after its time limit.
   */
  get(text: string): PendingApproval {
    const waiting = this.#list.all()
    const open = new Map(
      waiting.filter((one) => !this.#isLate(one) && !this.#remembering.has(one.id)).map((one) => [one.id, one])
    )
    const late = [
      ...waiting.filter((one) => this.#isLate(one)),
      ...[...this.#late].map(([id, endsBy]) => ({ id, endsBy }))
    ]
    const isMeant = ({ id }: { readonly id: string }): boolean =>
      id === text || (mayStandFor(text, APPROVAL_IDS) && id.startsWith(text))
    const ended = [...open.values()].some(isMeant) ? undefined : late.find(isMeant)
    if (ended !== undefined) throw tooLate(ended)
    return resolveId(text, open, APPROVAL_IDS)
  }

  /** A sender cancels its own request, which gets no answer. */
  onCancel(peer: NodeId, key: string): void {
    for (const one of this.#list.ofPeer(peer))
      if (runKeyOf(one) === key) this.#drop(one, 'CANCELED', 'canceled by its sender')
  }

  /** A peer went offline: its requests end here when it stays offline for longer than a lease. */
  onOffline(peer: NodeId): void {
    const now = this.#deps.clock.monotonic()
    for (const one of this.#list.ofPeer(peer)) one.lostAt = now
  }

  /** A peer is online again. */
  onOnline(peer: NodeId): void {
    for (const one of this.#list.ofPeer(peer)) one.lostAt = null
    this.#tell(peer)
  }

  /** A peer was revoked: none of its messages may run. */
  onRevoked(peer: NodeId): void {
    for (const one of this.#list.ofPeer(peer)) this.#drop(one, 'REVOKED', 'its sender was put out of the mesh')
  }

  /** Drops all messages. */
  stop(): void {
    for (const one of this.#list.all()) this.#take(one)
  }

  /**
   * Removes a message after a person's decision. The policy file is written first: if that fails, the message keeps
   * waiting.
   */
  async #decided(
    text: string,
    decision: 'allow' | 'deny',
    { by, remember }: ApprovalChoice
  ): Promise<ApprovalDecision> {
    const one = this.get(text)
    const kept = remember ? await this.#remember(one, decision, by) : NOT_REMEMBERED
    if (!this.#isLate(one) && this.#take(one)) return { one, ...kept }
    // The written rule counts from now on, even if this message ended.
    const rule = kept.remembered === null ? '' : '; the rule was written down all the same'
    if (this.#isLate(one)) throw tooLate(one, rule)
    throw new NodeError('APPROVAL_NOT_FOUND', `${one.id} ended while the decision was written down${rule}`)
  }

  /** Removes a message from the list. False: it was removed before, and its outcome is decided there. */
  #take(one: PendingApproval): boolean {
    const { clock } = this.#deps
    if (!this.#list.remove(one)) return false
    clock.clear(one.timer)
    if (this.#list.all().length === 0) {
      clock.clear(this.#timer)
      this.#timer = null
    }
    this.#changes.emit(null)
    return true
  }

  async #remember(
    one: PendingApproval,
    decision: 'allow' | 'deny',
    by: string
  ): Promise<Omit<ApprovalDecision, 'one'>> {
    const { inbound, policy } = this.#deps
    // A message that changed since the person saw it is not remembered.
    if (decision === 'allow' && refusalNow(inbound, one) !== null) return NOT_REMEMBERED
    const askingLine = (): number | null => askingLineOf(inbound, one)
    return await this.#remembering.during(one.id, () =>
      policy.remember(one, { decision, note: `remembered by ${by}`, askingLine })
    )
  }

  #timedOut(id: string): void {
    const one = this.#list.get(id)
    if (one === undefined) return
    this.#late.set(id, one.endsBy)
    const { reason, why } = TOO_LATE[one.endsBy]
    this.#end(one, { code: 'APPROVAL_TIMEOUT', rule: one.rule, reason }, why)
  }

  /** Passes a message that the rules now allow without approval. */
  #release(one: PendingApproval, rule: string): void {
    if (this.#take(one)) this.#outcomes.pass(one, rule, { kind: 'approval', why: 'allowed by the policy that changed' })
  }

  #end(one: PendingApproval, refusal: Refusal, why: string): void {
    if (this.#take(one)) this.#outcomes.refuse(one, refusal, { kind: 'refusal', why })
  }

  #drop(one: PendingApproval, code: 'CANCELED' | 'REVOKED', why: string): void {
    if (this.#take(one)) this.#outcomes.drop(one, code, why)
  }

  /** Repeats the notices of waiting messages, and ends requests of senders that are gone. */
  #sendHeartbeats(): void {
    const { clock, limits, nextHop } = this.#deps
    const now = clock.monotonic()
    for (const one of this.#list.all()) {
      // A notification has no waiting caller that could be gone.
      const isAway = one.lostAt !== null && now - one.lostAt > limits.leaseMs && !nextHop.isReachable(one.incoming.peer)
      if (isAway && one.incoming.header.type !== 'notification') this.#end(one, AWAY, 'its sender went away')
    }
    for (const peer of new Set(this.#list.all().map(({ incoming }) => incoming.peer))) this.#tell(peer)
  }

  #tell(peer: NodeId): void {
    this.#deps.notices.tell(peer, this.#list.ofPeer(peer))
  }
}

/** The outcomes of messages that left the list: passes or answers them, and records it. */
class ApprovalOutcomes {
  readonly #deps: Pick<ApprovalsDeps, 'clock' | 'record' | 'executor' | 'exchanges' | 'inbound'>

  constructor(deps: Pick<ApprovalsDeps, 'clock' | 'record' | 'executor' | 'exchanges' | 'inbound'>) {
    this.#deps = deps
  }

  /** Passes a message that is allowed by now. */
  pass(one: PendingApproval, rule: string, line: Noted): void {
    this.#deps.record.ended(one, { code: 'ALLOWED', rule }, line)
    const [, ...others] = one.threads
    const { incoming, question } = one
    const approved = { ...incoming, approvedAt: this.#deps.clock.now() }
    const repeats = one.request === null ? [] : others
    // Only requests are answered on several threads; any other message passes once.
    if (one.request === null && incoming.header.type !== 'notification')
      for (const thread of others) this.#deps.exchanges.end(thread)
    this.#deps.inbound.pass({ incoming: approved, question, rule })
    // The same request, sent again during the wait: it joins the run, or gets its answer.
    for (const { correlationId } of repeats) {
      this.#deps.inbound.pass({
        incoming: { ...approved, header: { ...incoming.header, correlationId } },
        question,
        rule
      })
    }
  }

  /** Answers a message with a refusal. */
  refuse(one: PendingApproval, { code, rule, reason }: Refusal, line: Noted): void {
    const { executor } = this.#deps
    this.#deps.record.notPassed(one, code)
    this.#deps.record.ended(one, { code, rule }, line)
    const error = new NodeError(code, reason, { data: { rule } }).toBody()
    for (const thread of one.threads) {
      // A response waits for an offline sender, an error does not.
      if (one.request !== null) {
        executor.fail(thread, one.request, error)
      } else if (one.incoming.header.type !== 'notification') executor.refuse(thread, error)
    }
  }

  /** Withdraws a message without an answer: no caller waits for one. */
  drop(one: PendingApproval, code: 'CANCELED' | 'REVOKED', why: string): void {
    this.#deps.record.notPassed(one, code)
    this.#deps.record.ended(one, { code, rule: one.rule }, { kind: 'refusal', why })
    if (one.incoming.header.type === 'notification') return
    for (const thread of one.threads) this.#deps.executor.withdraw(thread)
  }
}

/** How the decision of a person is recorded. */
function notedBy({ node }: ApprovalChoice): Omit<Noted, 'why'> {
  return { kind: 'approval', ...(node === undefined ? {} : { by: node }) }
}

function tooLate(
  { id, endsBy }: { readonly id: string; readonly endsBy: PendingApproval['endsBy'] },
  also = ''
): NodeError {
  return new NodeError(
    'APPROVAL_TIMEOUT',
    `${id} does not wait any more: ${TOO_LATE[endsBy].reason}; nothing was done${also}`,
    {
      next: ['a2a-node approvals ls', 'a2a-node audit']
    }
  )
}

/**
 * How long a message waits, and whether the caller set the limit. The caller gives durations, so the clocks need not
 * agree.
 */
function waitOf(
  request: RequestPayload | null,
  { recorded, askedAt }: { readonly recorded: InboundMessage['recorded']; readonly askedAt: number },
  limits: Pick<ApprovalsDeps['limits'], 'approvalTimeoutMs'>
): { readonly isCallers: boolean; readonly leftMs: number } {
  const { timeoutMs, approvalMs = 0 } = request ?? { timeoutMs: Number.POSITIVE_INFINITY }
  const leftOfTimeout =
    recorded?.deadline === undefined ? timeoutMs : Math.max(0, Math.min(timeoutMs, recorded.deadline - askedAt))
  const callerMs = leftOfTimeout + Math.max(0, approvalMs - timeoutMs)
  const isCallers = callerMs < limits.approvalTimeoutMs
  return { isCallers, leftMs: isCallers ? callerMs : limits.approvalTimeoutMs }
}

/** Why a message may not pass now even with approval; null when it may. */
function refusalNow(inbound: Pick<Inbound, 'askAgain'>, one: PendingApproval): Refusal | null {
  const again = inbound.askAgain(one.incoming)
  if (!('verdict' in again)) return again
  const { question, verdict } = again
  if (!verdict.allowed && verdict.asks !== true) return verdict
  const isSame = question.capability === one.question.capability && question.sideEffect === one.question.sideEffect
  return isSame ? null : CHANGED
}

/** Line of the rule that asks about a message now; null for none. */
function askingLineOf(inbound: Pick<Inbound, 'askAgain'>, { incoming }: PendingApproval): number | null {
  const again = inbound.askAgain(incoming)
  return 'verdict' in again && !again.verdict.allowed && again.verdict.asks === true
    ? (again.verdict.line ?? null)
    : null
}

/** Decisions that are being written into the policy file, and the messages decided by rules meanwhile. */
class RememberedDecisions {
  /** Ids of messages whose rule is being written. */
  readonly #writing = new Set<string>()
  readonly #byLine: (Thereby & { readonly line: number })[] = []

  /** True while a rule for this message is being written: then the person's decision counts, not the rule. */
  has(id: string): boolean {
    return this.#writing.has(id)
  }

  /** Notes a message decided by the rule of a line. */
  note(line: number, thereby: Thereby): void {
    if (this.#writing.size > 0) this.#byLine.push({ line, ...thereby })
  }

  /** Writes the rule for a message. Returns it with the messages it decided. @throws NodeError from `write` */
  async during(id: string, write: () => Promise<WrittenRule | null>): Promise<Omit<ApprovalDecision, 'one'>> {
    this.#writing.add(id)
    try {
      const remembered = await write()
      return { remembered, thereby: this.#byLine.filter(({ line }) => line === remembered?.line) }
    } finally {
      this.#writing.delete(id)
      if (this.#writing.size === 0) this.#byLine.length = 0
    }
  }
}
