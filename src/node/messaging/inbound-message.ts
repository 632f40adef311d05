import type { ErrorBody } from '../../kit/errors.js'
import type { NodeId } from '../../kit/ids.js'
import type { AgentAddress } from '../../domain/card/card.js'
import type { EnvelopeHeader } from '../../domain/envelope/header.js'
import type { RoutingQuestion } from '../../domain/routing/decide.js'

/** The ledger record of an incoming request. */
export interface RecordedRequest {
  /** Its name in the ledger. */
  readonly name: string
  /**
   * True for the recorded message itself, false for a repetition. The outcome of the message is the outcome of the
   * request.
   */
  readonly isFirst: boolean
  /** The reason when there was no room to record it; else null. */
  readonly refusal: ErrorBody | null
  /** True for a repeated request that has an outcome or will never have one. */
  readonly isDone: boolean
  /** For a request from before this start: the end of its caller's wait, in Unix milliseconds. */
  readonly deadline?: number
  /** For such a request: called when it has no place now, so that it is tried again later. */
  readonly later?: () => void
}

/** An admitted message, with its payload decoded. */
export interface InboundMessage {
  /** The node it is from, even when relayed. */
  readonly peer: NodeId
  readonly sender: AgentAddress
  readonly recipient: AgentAddress
  readonly header: EnvelopeHeader
  readonly payload: unknown
  /** True when it came over a lane: its answers take the same way, however long that takes. */
  readonly isReliable: boolean
  /** Set for recorded requests of other nodes. */
  readonly recorded?: RecordedRequest
  /** Set after a wait for a person's approval: its end, in Unix milliseconds. */
  readonly approvedAt?: number
  /** Set for a question about a lease of another node: the digest of the lease's voters. */
  readonly voters?: string
}

/** The address of replies to a message. */
export interface Thread {
  /** The local agent that received the message. */
  readonly sender: AgentAddress
  /** The agent that sent the message. */
  readonly recipient: AgentAddress
  readonly correlationId: string
  /** True when replies wait in the ledger for an offline node. */
  readonly isReliable?: boolean
  /** Ledger name of the request that a last reply ends. */
  readonly request?: string
}

/** The thread for replies to a message. */
export function threadOf({
  sender,
  recipient,
  header,
  isReliable,
  recorded
}: Pick<InboundMessage, 'sender' | 'recipient' | 'header' | 'isReliable' | 'recorded'>): Thread {
  const request = recorded?.isFirst === true ? { request: recorded.name } : {}
  return {
    sender: recipient,
    recipient: sender,
    correlationId: header.correlationId ?? header.id,
    isReliable,
    ...request
  }
}

/** A message that needs the approval of a person. */
export interface AwaitingApproval {
  readonly incoming: InboundMessage
  /** The question to the rules, and the rule that requires approval. */
  readonly question: RoutingQuestion
  readonly rule: string
}
