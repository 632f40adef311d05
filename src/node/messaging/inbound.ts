import type { Clock } from '../../kit/clock.js'
import { messageOf } from '../../kit/errors.js'
import type { NodeId } from '../../kit/ids.js'
import { shown } from '../../kit/text.js'
import { headerOf } from '../../domain/envelope/header.js'
import { OPENING_TYPES } from '../../domain/envelope/envelope.js'
import type { A2AEnvelope } from '../../domain/envelope/envelope.js'
import { askedWork, namedCapabilities } from '../../domain/policy/requested-work.js'
import type { RoutingQuestion } from '../../domain/routing/decide.js'
import type { LedgerChange } from '../../ports/ledger.js'
import type { Telemetry } from '../../ports/telemetry.js'
import { EarlyClaims, SHORT_TTL_MS, type Arrival, type Refusals, type Verification, type Verified } from './verify.js'
import type { ExchangeTable } from './exchange-table.js'
import { threadOf } from './inbound-message.js'
import type { AwaitingApproval, InboundMessage, RecordedRequest } from './inbound-message.js'
import type { Admission, LaneMessage } from '../reliable/lane-receiver.js'
import type { AccessControl, Decision, Refusal } from '../policy/access-control.js'
import type { Traffic } from '../observe/traffic.js'

/** The longest stream of a peer, in milliseconds. */
export const STREAM_TTL_MS = 600_000

/** The refusals of this stage; the rules decide on tiers and sandboxes. */
const REFUSALS = {
  noAgent: { code: 'AGENT_NOT_FOUND', rule: 'recipient: an agent of this node', reason: 'no such agent on this node' },
  tooManyOpen: { code: 'OVERLOADED', rule: 'exchanges: bounded', reason: 'too many exchanges are open' },
  noStreams: { code: 'CAPABILITY_NOT_FOUND', rule: 'streams: none', reason: 'this agent takes no streams' },
  noRecord: { code: 'OVERLOADED', rule: 'ledger: recorded first', reason: 'this node cannot record requests now' }
} as const satisfies Record<string, Refusal>

/** The ledger changes to commit before a message goes on. */
export interface Recording {
  readonly changes: readonly LedgerChange[]
  readonly recorded: RecordedRequest
  /** Called after the commit, also when it failed. */
  end(): void
}

/** Dependencies of {@link Inbound}. */
interface InboundDeps {
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly traffic: Traffic
  readonly accessControl: AccessControl
  readonly verification: Verification
  readonly refusals: Refusals
  readonly exchanges: ExchangeTable
  readonly self: NodeId
  /** Time limit of the answer to a request, in milliseconds. */
  readonly ttlMs: number
  readonly records: MessageRecords
  readonly receivers: MessageReceivers
  /** Holds a message for approval, or returns why it cannot. */
  hold(message: AwaitingApproval): Refusal | null
}

/** The records of messages in the ledger. */
interface MessageRecords {
  /** The ledger record to commit before a request goes on; null for a message that is not recorded. */
  record(incoming: InboundMessage, envelope: Uint8Array): Promise<Recording | null>
  /** The ledger changes of an admitted reply. */
  onReply(incoming: InboundMessage): Pick<Admission, 'changes' | 'failed'>
  /** Commits changes to the ledger. @throws NodeError from the ledger. */
  commit(changes: readonly LedgerChange[]): Promise<void>
}

/** The receivers of admitted messages. */
interface MessageReceivers {
  /** Called with every admitted message, before it goes on. */
  onLetIn(incoming: InboundMessage): void
  /** Called with admitted opening messages, by type. */
  onRequest(incoming: InboundMessage): void
  onNotification(incoming: InboundMessage): void
  onProposal(incoming: InboundMessage): void
  /** False: no subscriber takes the stream. */
  onStream(incoming: InboundMessage): boolean
}

/** The outcome of a message within this node. */
export interface ReceivedHere {
  /** True when it was refused or awaits approval: the inbound pipeline reports that decision. */
  readonly isReported: boolean
  /** Why the message was refused before any decision; already on record. */
  readonly refusal: Refusal | null
}

/** The question to the rules, and their decision. */
interface Decided extends Decision {
  readonly question: RoutingQuestion
}

/** For a message within this node, which is never encoded. */
const NO_BYTES = new Uint8Array(0)

const NOTHING: Admission = { changes: [], done: () => {}, failed: () => {} }

/**
 * The inbound pipeline: decode and verify (by {@link Verification}), record, decide, dispatch. No input of a peer can
 * throw out of it.
 */
export class Inbound {
  readonly #deps: InboundDeps
  readonly #early: EarlyClaims

  constructor(deps: InboundDeps) {
    this.#deps = deps
    this.#early = new EarlyClaims(deps)
  }

  /** Takes an encoded envelope of a peer that came outside of lanes; `hops`: the nodes that relayed it. */
  receive(peer: NodeId, bytes: Uint8Array, hops: readonly NodeId[] = []): void {
    const arrival = this.#guarded(peer, () => this.#early.read(peer, { bytes, lane: null, hops }))
    if (arrival instanceof Promise) void this.#late(peer, arrival).then((late) => this.#arrived(peer, late))
    else this.#arrived(peer, arrival)
  }

  #arrived(peer: NodeId, arrival: Arrival | null): void {
    if (arrival?.header.type === 'request') void this.#recordFirst(arrival)
    else if (arrival !== null) this.#guarded(peer, () => this.#decideAndDispatch(arrival))
  }

  /**
   * Returns the ledger changes of a lane message, which goes on once they are durable. A reply is decided on first: its
   * content must be durable with its number. Never rejects for a peer's input.
   * @throws NodeError from the ledger
   */
  async admit({ lane, envelope, hops }: LaneMessage): Promise<Admission> {
    const peer = lane.source.nodeId
    const read = this.#guarded(peer, () => this.#early.read(peer, { bytes: envelope, lane, hops }))
    const arrival = read instanceof Promise ? await this.#late(peer, read) : read
    return arrival === null ? NOTHING : this.#admitted(arrival)
  }

  /**
   * Resumes a request that was recorded before this node stopped. Returns the recorded reason when it cannot, or null.
   */
  recover(
    peer: NodeId,
    { envelope, recorded }: { readonly envelope: Uint8Array; readonly recorded: RecordedRequest }
  ): Refusal | null {
    const again = this.#deps.verification.again(peer, envelope)
    if (!('party' in again)) {
      this.#deps.accessControl.record('refusal', again, { peer, header: null })
      return again
    }
    // A request that had begun was admitted: report its end, whichever the rules are now.
    if (recorded.isDone)
      this.#guarded(peer, () => this.#open(again) && this.#deps.receivers.onRequest({ ...again, recorded }))
    else this.#guarded(peer, () => this.#decideAndDispatch({ ...again, recorded }))
    return null
  }

  /** Takes an envelope between two agents of this node: the same rules, without decoding. */
  receiveHere(envelope: A2AEnvelope): ReceivedHere {
    const header = headerOf(envelope)
    const peer = this.#deps.self
    const since = this.#deps.clock.monotonic()
    const verified = this.#deps.verification.verify(peer, header)
    if ('refusal' in verified) {
      this.#deps.accessControl.record('refusal', verified.refusal, { peer: null, header })
      return { isReported: true, refusal: verified.refusal }
    }
    this.#deps.traffic.received(header, since)
    const { sender, recipient, party, certified, target } = verified
    const { payload } = envelope
    const isReported = this.#decideAndDispatch({
      peer,
      sender,
      recipient,
      party,
      certified,
      target,
      header,
      payload,
      isReliable: false,
      since,
      bytes: NO_BYTES
    })
    return { isReported, refusal: null }
  }

  /** Dispatches a held message, or passes it to `taker` alone. Its exchange is open. */
  pass(
    { incoming, question, rule }: AwaitingApproval,
    taker = (one: InboundMessage): void => this.#dispatch(one)
  ): void {
    const { peer, header } = incoming
    const { clock, traffic, self } = this.#deps
    const [from, to] = [question.sender.tier, question.target.tier]
    const at = clock.monotonic()
    traffic.delivered({ peer: peer === self ? null : peer, header, from, to, rule, since: at, at }, false)
    taker(incoming)
  }

  /**
   * Asks the rules again about a held message: cards, certificates and policy may have changed. `as`: about the same
   * message of another sender, without a justification.
   */
  askAgain(incoming: InboundMessage, as?: Pick<Verified, 'party' | 'certified'>): Decided | Refusal {
    const verified = this.#deps.verification.verify(incoming.peer, incoming.header)
    if ('refusal' in verified) return verified.refusal
    const { clock, accessControl } = this.#deps
    const target = verified.target.party
    if (target === null) return REFUSALS.noAgent
    const ask = (question: RoutingQuestion): Decision => ({
      verdict: accessControl.ask(as === undefined ? question : { ...question, justification: null }),
      at: clock.monotonic()
    })
    return askRules({ ...incoming, ...verified, ...as }, { target, isReply: false, ask })
  }

  /** A request outside of lanes is recorded as well: it must not run again after a restart either. */
  async #recordFirst(arrival: Arrival): Promise<void> {
    const { peer, header } = arrival
    try {
      const recording = await this.#deps.records.record(arrival, arrival.bytes)
      if (recording === null) return void this.#guarded(peer, () => this.#decideAndDispatch(arrival))
      await this.#deps.records.commit(recording.changes).finally(() => recording.end())
      this.#guarded(peer, () => this.#goOn({ recorded: recording.recorded, ...arrival }))
    } catch (error) {
      this.#note(peer, error, header.correlationId ?? header.id)
      this.#guarded(peer, () => this.#deps.refusals.answer(arrival, REFUSALS.noRecord))
    }
  }

  async #admitted(arrival: Arrival): Promise<Admission> {
    if (!OPENING_TYPES.has(arrival.header.type)) {
      if (this.#fate(arrival) !== null) return NOTHING
      return { done: () => this.#dispatch(arrival), ...this.#deps.records.onReply(arrival) }
    }
    const recording = await this.#deps.records.record(arrival, arrival.bytes)
    if (recording === null) return { changes: [], done: () => this.#goOn(arrival), failed: () => {} }
    const { changes, recorded } = recording
    const done = (): void => {
      recording.end()
      this.#goOn({ recorded, ...arrival })
    }
    return { changes, done, failed: () => recording.end() }
  }

  /** Verifies a second time: during the commit, its sender may have been revoked, or lost a tier. */
  #goOn(arrival: Arrival): void {
    const verified = this.#deps.verification.verify(arrival.peer, arrival.header)
    if ('refusal' in verified) this.#deps.refusals.refuse(arrival, verified.refusal)
    else this.#decideAndDispatch({ ...arrival, ...verified })
  }

  /** The result of `run`; null when it throws. */
  #guarded<T>(peer: NodeId, run: () => T): T | null {
    try {
      return run()
    } catch (error) {
      this.#note(peer, error, null)
      return null
    }
  }

  /** As {@link Inbound.#guarded}, for a message that waited. */
  #late(peer: NodeId, read: Promise<Arrival | null>): Promise<Arrival | null> {
    return read.catch((error: unknown) => {
      this.#note(peer, error, null)
      return null
    })
  }

  #note(peer: NodeId, error: unknown, correlationId: string | null): void {
    const { telemetry } = this.#deps
    telemetry.count('errors', 'inbox')
    telemetry.log('error', 'a message could not be handled', { correlationId, peer, reason: messageOf(error) })
  }

  /** True when the message was refused or awaits approval. */
  #decideAndDispatch(arrival: Arrival): boolean {
    const fate = this.#fate(arrival)
    if (fate === null) this.#dispatch(arrival)
    return fate !== null && fate !== 'late'
  }

  /** Decides on a message, with all effects of a refusal or hold. null: it goes on. */
  #fate(arrival: Arrival): Refusal | 'late' | 'held' | null {
    const fate = this.#decide(arrival)
    if (fate === 'late') this.#deps.telemetry.count('messages_refused', 'late')
    else if (fate !== null && fate !== 'held') this.#deps.refusals.refuse(arrival, fate)
    return fate
  }

  /** `late`: a reply that no handler awaits any more; any honest peer may send one. `held`: it awaits approval. */
  #decide(arrival: Arrival): Refusal | 'late' | 'held' | null {
    const { peer, header, recipient, party, since } = arrival
    const { exchanges, accessControl, traffic, self } = this.#deps
    const target = arrival.target.party
    if (target === null) return { ...REFUSALS.noAgent, reason: `no agent ${shown(recipient.agentId, 64)} on this node` }
    const isOpening = OPENING_TYPES.has(header.type)
    const thread = isOpening || header.correlationId === undefined ? null : threadOf(arrival)
    const isReply = thread !== null && exchanges.mayReceive(thread)
    if (thread !== null && !isReply && exchanges.hasEnded(thread)) return 'late'
    const { question, verdict, at } = askRules(arrival, {
      target,
      isReply,
      ask: (asked) => accessControl.decide(asked, since)
    })
    const { rule } = verdict
    const asks = !verdict.allowed && verdict.asks === true
    if (!verdict.allowed && !asks) return { code: verdict.code, rule, reason: verdict.reason }
    if (!isOpening && (thread === null || !exchanges.isAwaited(thread))) return 'late'
    if (!this.#open(arrival)) return REFUSALS.tooManyOpen
    if (asks) return this.#hold({ incoming: arrival, question, rule })
    traffic.delivered({ peer: peer === self ? null : peer, header, from: party.tier, to: target.tier, rule, since, at })
    return null
  }

  #hold(awaiting: AwaitingApproval): Refusal | 'held' {
    const refusal = this.#deps.hold(awaiting)
    if (refusal === null) return 'held'
    if (awaiting.incoming.header.type !== 'notification') this.#deps.exchanges.end(threadOf(awaiting.incoming))
    return refusal
  }

  /** Opens an exchange for a message that awaits a reply; a notification awaits none. */
  #open(arrival: Arrival): boolean {
    const { type } = arrival.header
    if (type === 'notification' || !OPENING_TYPES.has(type)) return true
    const ttlMs = type === 'task-proposal' ? SHORT_TTL_MS : type === 'stream-start' ? STREAM_TTL_MS : this.#deps.ttlMs
    return this.#deps.exchanges.letIn(threadOf(arrival), ttlMs)
  }

  #dispatch(incoming: InboundMessage): void {
    this.#deps.receivers.onLetIn(incoming)
    switch (incoming.header.type) {
      case 'request':
        return this.#deps.receivers.onRequest(incoming)
      case 'notification':
        return this.#deps.receivers.onNotification(incoming)
      case 'task-proposal':
        return this.#deps.receivers.onProposal(incoming)
      case 'stream-start':
        if (!this.#deps.receivers.onStream(incoming)) this.#deps.refusals.tell(threadOf(incoming), REFUSALS.noStreams)
        return
      default:
        return this.#deps.exchanges.deliver(threadOf(incoming), incoming.header, incoming.payload)
    }
  }
}

/** Asks the rules; of several capabilities in a proposal, the first refused one decides. */
function askRules(
  { header, party, certified, payload, target: { card } }: Omit<Arrival, 'since' | 'bytes'>,
  {
    ask,
    target,
    isReply
  }: Pick<RoutingQuestion, 'target' | 'isReply'> & { readonly ask: (question: RoutingQuestion) => Decision }
): Decided {
  const justification = header.metadata?.justification ?? null
  const { type } = header
  const decided = (named: string | null): Decided => {
    // Name each member: every message comes through here, and spreading is slow.
    const { capability, sideEffect } = askedWork(card, named)
    const asked = { sender: party, target, type, justification, isReply, isArriving: true, capability, sideEffect }
    const question = certified === party ? asked : { ...asked, certified }
    const { verdict, at } = ask(question)
    return { question, verdict, at }
  }
  const [first, ...others] = namedCapabilities(type, payload)
  let answer = decided(first)
  for (const named of others) if (answer.verdict.allowed) answer = decided(named)
  return answer
}
