import type { ErrorBody } from '../../kit/errors.js'
import type { NodeId } from '../../kit/ids.js'
import type { AgentAddress } from '../../domain/card/card.js'
import type { EnvelopeHeader } from '../../domain/envelope/header.js'
import type { RoutingQuestion } from '../../domain/routing/decide.js'

/** What the ledger holds of a request that came. */
export interface RecordedRequest {
  /** What the ledger calls it. */
  readonly name: string
  /** It is the message that was recorded, and no repetition of it: what becomes of it becomes of the request. */
  readonly isFirst: boolean
  /** There was no room to record it: why nothing is done; else null. */
  readonly refusal: ErrorBody | null
  /** It came before, and has an end or will never have one. */
  readonly isDone: boolean
  /** Of one that came before this node started: when its caller waits no longer, in Unix milliseconds. */
  readonly deadline?: number
  /** Of such a one: there is no place for it now, so that it is taken up again later. */
  readonly later?: () => void
}

/** A message that was let in, with its payload read. */
export interface InboundMessage {
  /** The node it is from, whoever carried it. */
  readonly peer: NodeId
  readonly sender: AgentAddress
  readonly recipient: AgentAddress
  readonly header: EnvelopeHeader
  readonly payload: unknown
  /** It came over a lane: what answers it goes the same way, however long that takes. */
  readonly isReliable: boolean
  /** Set for requests of other nodes that the ledger holds. */
  readonly recorded?: RecordedRequest
  /** It asks after a lease of another, if that lease has this digest of its voters. */
  readonly voters?: string
}

/** Where replies to a message go. */
export interface Thread {
  /** The agent here that was asked. */
  readonly sender: AgentAddress
  /** The agent that asked. */
  readonly recipient: AgentAddress
  readonly correlationId: string
  /** Replies wait in the ledger for a node that is away. */
  readonly isReliable?: boolean
  /** What the ledger calls the request that a last reply ends. */
  readonly request?: string
}

/** The way back along a message's thread. */
export function threadOf({
  sender,
  recipient,
  header,
  isReliable,
  recorded
}: Pick<InboundMessage, 'sender' | 'recipient' | 'header' | 'isReliable' | 'recorded'>): Thread {
  const request = recorded?.isFirst === true ? { request: recorded.name } : {}
  return { sender: recipient, recipient: sender, correlationId: header.correlationId ?? header.id, isReliable, ...request }
}

/** A message that a person has to allow. */
export interface AwaitingApproval {
  readonly incoming: InboundMessage
  /** What was asked of the rules, and the rule that asks for a person. */
  readonly question: RoutingQuestion
  readonly rule: string
}
