import type { Clock } from '../kit/clock.js'
import { messageOf, NodeError } from '../kit/errors.js'
import type { ErrorBody } from '../kit/errors.js'
import type { NodeId } from '../kit/ids.js'
import { shown } from '../kit/text.js'
import type { AgentAddress } from '../domain/card/card.js'
import { decodeEnvelope } from '../domain/envelope/codec.js'
import { headerOf } from '../domain/envelope/header.js'
import type { EnvelopeHeader } from '../domain/envelope/header.js'
import { isCarried } from '../domain/envelope/origin.js'
import type { ReadEnvelope } from '../domain/envelope/origin.js'
import { OPENING_TYPES } from '../domain/envelope/envelope.js'
import type { A2AEnvelope, EnvelopeMetadata } from '../domain/envelope/envelope.js'
import { askedWork, namedCapabilities } from '../domain/policy/asked.js'
import type { RoutingParty, RoutingQuestion } from '../domain/routing/decide.js'
import { weakened } from '../domain/routing/hops.js'
import type { Links, Strike } from '../ports/mesh.js'
import type { Telemetry } from '../ports/telemetry.js'
import type { Conversations } from './conversations.js'
import type { Directory, NamedAgent } from './directory.js'
import type { Forwarded } from './forwarded.js'
import type { Passing } from './passing.js'
import { refusedArrival } from './router.js'
import type { Decision, Refusal, Router } from './router.js'
import type { Traffic } from './traffic.js'

/** How long the answer to a proposal or the error for a refused message may take to go out, in milliseconds. */
const SHORT_TTL_MS = 60_000
/** How long a stream of a peer may last, in milliseconds. */
export const STREAM_TTL_MS = 600_000

/** What this room refuses by itself; tiers and sandboxes are the router's. */
const REFUSALS = {
  foreignSender: { code: 'FORBIDDEN', rule: 'sender: the key of the stream', reason: 'the sender is not of the node that sent it' },
  foreignRecipient: {
    code: 'AGENT_NOT_FOUND',
    rule: 'recipient: an agent of this node',
    reason: 'the recipient is not on this node'
  },
  lostHop: { code: 'FORBIDDEN', rule: 'hops: members', reason: 'a node on the way was put out of the mesh' },
  noCard: { code: 'FORBIDDEN', rule: 'sender: a signed card', reason: 'the sender has no card that this node knows' },
  claims: {
    code: 'FORBIDDEN',
    rule: 'claims: as certified',
    reason: 'the message claims another tier or sandbox than its sender has'
  },
  noAgent: { code: 'AGENT_NOT_FOUND', rule: 'recipient: an agent of this node', reason: 'no such agent on this node' },
  tooManyOpen: { code: 'OVERLOADED', rule: 'exchanges: bounded', reason: 'too many exchanges are open' },
  noStreams: { code: 'CAPABILITY_NOT_FOUND', rule: 'streams: none', reason: 'this agent takes no streams' }
} as const satisfies Record<string, Refusal>

/** A message that was let in, with its payload read. */
export interface Incoming {
  /** The node it is from, whoever carried it. */
  readonly peer: NodeId
  readonly sender: AgentAddress
  readonly recipient: AgentAddress
  readonly header: EnvelopeHeader
  readonly payload: unknown
}

/** Where replies to a message go. */
export interface Thread {
  /** The agent here that was asked. */
  readonly sender: AgentAddress
  /** The agent that asked. */
  readonly recipient: AgentAddress
  readonly correlationId: string
}

/** The way back along a message's thread. */
export function threadOf({ sender, recipient, header }: Pick<Incoming, 'sender' | 'recipient' | 'header'>): Thread {
  return { sender: recipient, recipient: sender, correlationId: header.correlationId ?? header.id }
}

/** The neighbour that brought a message of another node; null: its own link did. */
function broughtBy({ header }: Pick<Incoming, 'header'>): NodeId | null {
  return header.metadata?.hops?.at(-1) ?? null
}

/** What the road in needs. */
export interface InboxParts {
  readonly clock: Clock
  readonly traffic: Traffic
  readonly telemetry: Telemetry
  readonly directory: Directory
  readonly router: Router
  readonly conversations: Conversations
  readonly forwarded: Forwarded
  readonly passing: Passing
  readonly links: Pick<Links, 'strike'>
  readonly self: NodeId
  /** How long the answer to a request may take to go out, in milliseconds. */
  readonly ttlMs: number
  /** Every message that was let in, before it goes on. */
  onLetIn(incoming: Incoming): void
  /** Opening messages that were let in, by type. */
  onRequest(incoming: Incoming): void
  onNotification(incoming: Incoming): void
  onProposal(incoming: Incoming): void
  /** False: nobody here takes the stream. */
  onStream(incoming: Incoming): boolean
  /** Tells the sender of an opening message that it was refused. */
  refuse(to: Thread, error: ErrorBody): void
  /** Keeps a message until a person has decided, or says why it does not. */
  hold(message: Held): Refusal | null
}

/** What became of a message within this node. */
export interface ReceivedHere {
  /** It was refused or waits for a person: the road in tells of that decision, or will. */
  readonly isTold: boolean
  /** Why it could not be taken at all; on record. */
  readonly refusal: Refusal | null
}

/** A message that a person has to allow. */
export interface Held {
  readonly incoming: Incoming
  /** What was asked of the rules, and the rule that asks for a person. */
  readonly question: RoutingQuestion
  readonly rule: string
}

/** What was asked of the rules, and what they said. */
interface Asked extends Decision {
  readonly question: RoutingQuestion
}

/** Who speaks to whom, as far as the message says so truly. */
interface Parties {
  readonly sender: AgentAddress
  readonly recipient: AgentAddress
}

/** A message that is not let in; with `parties` its sender is told why. */
interface Struck {
  readonly refusal: Refusal
  readonly parties: Parties | null
  /** What it counts against its peer; null: an honest peer may send it. */
  readonly strike: Strike | null
}

interface Arrival extends Incoming {
  /** The sender as the message says it is, and as it is. */
  readonly party: RoutingParty
  readonly certified: RoutingParty
  /** The recipient, looked up. */
  readonly target: NamedAgent
  /** When it came, monotonic milliseconds. */
  readonly since: number
}

type Verified = Pick<Arrival, 'sender' | 'recipient' | 'party' | 'certified' | 'target'>

/** The road in: decode, whose it is, verify, pass on what is for another node, receive, decide, dispatch. Nothing that a peer sends can throw out of it. */
export class Inbox {
  readonly #parts: InboxParts

  constructor(parts: InboxParts) {
    this.#parts = parts
  }

  /** Takes an encoded envelope from a neighbour's channel. */
  receive(neighbour: NodeId, bytes: Uint8Array): void {
    let correlationId: string | null = null
    try {
      const since = this.#parts.clock.monotonic()
      const decoded = decodeEnvelope(bytes)
      if (!decoded.ok) {
        this.#parts.traffic.unreadable()
        // Whoever speaks another version is no forger.
        const strike = decoded.code === 'SCHEMA_VERSION_MISMATCH' ? 'doubtful' : 'forged'
        return this.#strike({ code: decoded.code, rule: 'envelope', reason: decoded.reason }, { peer: neighbour, header: null }, strike)
      }
      const { header } = decoded
      correlationId = header.correlationId ?? header.id
      this.#parts.traffic.received(header, since)
      const peer = this.#origin(neighbour, decoded, bytes)
      if (peer === null) return
      const verified = this.#verify(peer, header)
      if ('refusal' in verified) return this.#struck(verified, { peer, header })
      if (verified.recipient.nodeId !== this.#parts.self)
        return this.#parts.passing.pass({ peer, header, since, ...verified }, { read: decoded, bytes })
      const payload = decoded.payload()
      if (!payload.ok) return this.#strike({ code: 'INVALID_ENVELOPE', rule: 'payload', reason: payload.reason }, { peer, header })
      this.#decideAndDispatch({ peer, header, payload: payload.value, since, ...verified })
    } catch (error) {
      this.#parts.telemetry.count('errors', 'inbox')
      this.#parts.telemetry.log('error', 'a message could not be handled', { correlationId, peer: neighbour, reason: messageOf(error) })
    }
  }

  /** Takes an envelope of an agent of this node for another; the same rules, nothing to decode. */
  receiveHere(envelope: A2AEnvelope): ReceivedHere {
    const header = headerOf(envelope)
    const peer = this.#parts.self
    const since = this.#parts.clock.monotonic()
    const verified = this.#verify(peer, header)
    if ('refusal' in verified) {
      this.#parts.router.record('refusal', verified.refusal, { peer: null, header })
      return { isTold: true, refusal: verified.refusal }
    }
    this.#parts.traffic.received(header, since)
    const { sender, recipient, party, certified, target } = verified
    const isTold = this.#decideAndDispatch({ peer, sender, recipient, party, certified, target, header, payload: envelope.payload, since })
    return { isTold, refusal: null }
  }

  /** Whose message it is: of the stream's key, or of the node that signed it for others to carry. null: it is refused. */
  #origin(neighbour: NodeId, read: ReadEnvelope, bytes: Uint8Array): NodeId | null {
    if (!isCarried(read.header)) return neighbour
    const accepted = this.#parts.forwarded.accept(neighbour, read, bytes)
    if (accepted.ok) return accepted.origin
    const { refusal, isForged, isTold } = accepted
    if (isForged) this.#strike(refusal, { peer: neighbour, header: read.header })
    else {
      this.#parts.router.record('refusal', refusal, { peer: neighbour, header: read.header })
      if (isTold) this.#parts.passing.refuse(read.header, refusal)
    }
    return null
  }

  /** The sender is of the node it is from, has a signed card, and claims no more than certificate and card give it. */
  #verify(peer: NodeId, header: EnvelopeHeader): Verified | Struck {
    const { directory } = this.#parts
    const source = directory.named(header.sender)
    if (source === null || source.address.nodeId !== peer) return { refusal: REFUSALS.foreignSender, parties: null, strike: 'forged' }
    const target = directory.named(header.recipient)
    if (target === null || !this.#mayBeFor(target.address.nodeId, header))
      return { refusal: REFUSALS.foreignRecipient, parties: null, strike: 'forged' }
    const { address: sender, party: known } = source
    const recipient = target.address
    // These two an honest sender can meet as well, while cards and certificates are on their way: it is told. Cards come by
    // other ways than messages, and not all are kept: to be ahead of one's card is no offence.
    if (known === null) return { refusal: REFUSALS.noCard, parties: { sender, recipient }, strike: null }
    const party = claimed(known, header.metadata)
    if (party === null) return { refusal: REFUSALS.claims, parties: { sender, recipient }, strike: 'doubtful' }
    const hops = header.metadata?.hops
    if (hops === undefined) return { sender, recipient, party, certified: known, target }
    const powers = hops.flatMap((hop) => directory.certificate(hop) ?? [])
    // A hop may have been put out since the message came.
    if (powers.length < hops.length) return { refusal: REFUSALS.lostHop, parties: { sender, recipient }, strike: null }
    // What it passed makes the sender weaker, but does not take it out of the reach of rules for what it is.
    return { sender, recipient, party: weakened(party, powers), certified: known, target }
  }

  /** Only what its node signed may be for another one. */
  #mayBeFor(nodeId: NodeId, header: EnvelopeHeader): boolean {
    return nodeId === this.#parts.self || isCarried(header)
  }

  /** True: it was refused, or waits for a person. */
  #decideAndDispatch(arrival: Arrival): boolean {
    const refusal = this.#decide(arrival)
    if (refusal === 'late') this.#parts.telemetry.count('messages_refused', 'late')
    else if (refusal === null) this.#dispatch(arrival)
    else if (refusal !== 'held') this.#refuse(arrival, refusal)
    return refusal !== null && refusal !== 'late'
  }

  /** Gives a message that was held to those whom it concerns, or to `taker` alone. Its exchange is open. */
  pass({ incoming, question, rule }: Held, taker = (one: Incoming): void => this.#dispatch(one)): void {
    const { peer, header } = incoming
    const { clock, traffic, self } = this.#parts
    const [from, to] = [question.sender.tier, question.target.tier]
    const at = clock.monotonic()
    traffic.delivered({ peer: peer === self ? null : peer, header, from, to, rule, since: at, at }, false)
    taker(incoming)
  }

  /** What the rules say now of a message that was held: cards, certificates and policy may have changed. */
  askAgain(incoming: Incoming): Asked | Refusal {
    const verified = this.#verify(incoming.peer, incoming.header)
    if ('refusal' in verified) return verified.refusal
    const { clock, router } = this.#parts
    const target = verified.target.party
    if (target === null) return REFUSALS.noAgent
    return this.#ask(
      { ...incoming, ...verified },
      { target, isReply: false, ask: (question) => ({ verdict: router.ask(question), at: clock.monotonic() }) }
    )
  }

  /** `late`: a reply that nobody waits for any more, which any honest peer may send. `held`: a person has to allow it. */
  #decide(arrival: Arrival): Refusal | 'late' | 'held' | null {
    const { peer, header, recipient, party, since } = arrival
    const { conversations, router, traffic, self } = this.#parts
    const target = arrival.target.party
    if (target === null) return { ...REFUSALS.noAgent, reason: `no agent ${shown(recipient.agentId, 64)} on this node` }
    const isOpening = OPENING_TYPES.has(header.type)
    const thread = isOpening || header.correlationId === undefined ? null : threadOf(arrival)
    const isReply = thread !== null && conversations.mayReceive(thread)
    if (thread !== null && !isReply && conversations.hasEnded(thread)) return 'late'
    const { question, verdict, at } = this.#ask(arrival, { target, isReply, ask: (asked) => router.decide(asked, since) })
    const { rule } = verdict
    const asks = !verdict.allowed && verdict.asks === true
    if (!verdict.allowed && !asks) return { code: verdict.code, rule, reason: verdict.reason }
    if (!isOpening && (thread === null || !conversations.isAwaited(thread))) return 'late'
    if (!this.#open(arrival)) return REFUSALS.tooManyOpen
    if (asks) return this.#hold({ incoming: arrival, question, rule })
    traffic.delivered({ peer: peer === self ? null : peer, header, from: party.tier, to: target.tier, rule, since, at })
    return null
  }

  #hold(held: Held): Refusal | 'held' {
    const refusal = this.#parts.hold(held)
    if (refusal === null) return 'held'
    if (held.incoming.header.type !== 'notification') this.#parts.conversations.end(threadOf(held.incoming))
    return refusal
  }

  /** Asks the rules; of several capabilities that a proposal names, the first that is refused decides. */
  #ask(
    { header, party, certified, payload, target: { card } }: Omit<Arrival, 'since'>,
    { ask, target, isReply }: Pick<RoutingQuestion, 'target' | 'isReply'> & { readonly ask: (question: RoutingQuestion) => Decision }
  ): Asked {
    const justification = header.metadata?.justification ?? null
    const { type } = header
    const decided = (named: string | null): Asked => {
      // Member by member: every message comes through here, and spreading is slow.
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

  /** What awaits a reply opens an exchange; a notification awaits none. */
  #open(arrival: Arrival): boolean {
    const { type } = arrival.header
    if (type === 'notification' || !OPENING_TYPES.has(type)) return true
    const ttlMs = type === 'task-proposal' ? SHORT_TTL_MS : type === 'stream-start' ? STREAM_TTL_MS : this.#parts.ttlMs
    return this.#parts.conversations.letIn(threadOf(arrival), ttlMs, broughtBy(arrival))
  }

  #dispatch(incoming: Incoming): void {
    this.#parts.onLetIn(incoming)
    switch (incoming.header.type) {
      case 'request':
        return this.#parts.onRequest(incoming)
      case 'notification':
        return this.#parts.onNotification(incoming)
      case 'task-proposal':
        return this.#parts.onProposal(incoming)
      case 'stream-start':
        if (!this.#parts.onStream(incoming)) this.#tell(threadOf(incoming), REFUSALS.noStreams)
        return
      default:
        return this.#parts.conversations.deliver(threadOf(incoming), incoming.header, incoming.payload)
    }
  }

  #strike(refusal: Refusal, from: { readonly peer: NodeId; readonly header: EnvelopeHeader | null }, strike: Strike = 'forged'): void {
    this.#parts.router.record('strike', refusal, from)
    this.#parts.links.strike(from.peer, strike, refusal.reason)
  }

  #struck({ refusal, parties, strike }: Struck, from: { readonly peer: NodeId; readonly header: EnvelopeHeader }): void {
    if (strike === null) this.#parts.router.record('refusal', refusal, from)
    else this.#strike(refusal, from, strike)
    if (parties !== null) this.#answer({ ...from, ...parties }, refusal)
  }

  #refuse(arrival: Arrival, refusal: Refusal): void {
    const { router, directory } = this.#parts
    router.record('refusal', refusal, refusedArrival(directory, arrival))
    this.#answer(arrival, refusal)
  }

  /** Tells who awaits an answer that there is none. */
  #answer(refused: Omit<Incoming, 'payload'>, refusal: Refusal): void {
    const { type } = refused.header
    if (refused.recipient.nodeId !== this.#parts.self) return this.#parts.passing.refuse(refused.header, refusal)
    if (type === 'notification' || !OPENING_TYPES.has(type)) return
    const thread = threadOf(refused)
    // The error goes back along the thread, so the thread must be open for it.
    if (this.#parts.conversations.letIn(thread, SHORT_TTL_MS, broughtBy(refused))) this.#tell(thread, refusal)
  }

  #tell(thread: Thread, { code, rule, reason }: Refusal): void {
    this.#parts.refuse(thread, new NodeError(code, reason, { data: { rule } }).toBody())
  }
}

/** The sender as weak as the message says it is; null when it claims to be more, or elsewhere, than it is. */
function claimed(party: RoutingParty, metadata: EnvelopeMetadata | undefined): RoutingParty | null {
  if (metadata === undefined) return party
  const sandboxId = metadata.sandboxId ?? null
  if (metadata.tier < party.tier || (party.sandboxId !== null && sandboxId !== party.sandboxId)) return null
  if (metadata.tier === party.tier && sandboxId === party.sandboxId) return party
  // A weaker claim is honoured: who sends on behalf of somebody weaker says so, and may know of a change before this node.
  return { ...party, tier: metadata.tier, sandboxId: party.sandboxId ?? sandboxId }
}
