import type { AbortSignalLike } from '../kit/clock.js'
import type { Unsubscribe } from '../kit/events.js'
import type { NodeId } from '../kit/ids.js'
import type { CallRequest } from '../domain/channel/call.js'
import type { ContentsTurn } from './gateway.js'

export type { CallRequest }

/** A call of a member at this node. */
export interface MemberCall extends CallRequest {
  /** The member whose stream brought it. */
  readonly peer: NodeId
  /** Aborts when the member hangs up, or its link is gone. */
  readonly signal: AbortSignalLike
  /** Its turn to be answered, which lasts until the answer is sent; one call of a member at a time has the turn. */
  readonly turn: ContentsTurn
}

/** A part of an answer. */
export interface AnswerItem {
  /** The place of its event in the task's log; null: it has none. */
  readonly generation: number | null
  /** Makes the bytes, when it is the turn of the call. */
  body(): Uint8Array
}

/** The result of a call: one answer, or a stream that may end with an answer (a failure). */
export type CallAnswer =
  | Pick<AnswerItem, 'body'>
  | { readonly items: AsyncIterable<AnswerItem>; readonly faultBody: (error: unknown) => Uint8Array }

/** An item of a stream, as it came. */
export interface CallItem {
  /** The place of its event in the task's log; null: it has none. */
  readonly generation: number | null
  readonly body: Uint8Array
}

/** Answers calls of members. Never rejects. */
export type CallHandler = (call: MemberCall) => Promise<CallAnswer>

/** A piece of the response to a call: an item, or the one answer, which is the last. */
export type CallPiece = ({ readonly type: 'item' } & CallItem) | { readonly type: 'answer'; readonly body: Uint8Array }

/** Calls of the A2A protocol between members, over their links. */
export interface MemberCalls {
  /** Answers calls from now on, also those that came before; null: says that it answers none. Returns the stop. */
  serve(handler: CallHandler | null): Unsubscribe
  /**
   * Calls a member. Ends after the answer, or with its stream.
   * @throws NodeError PEER_OFFLINE: it was not reached; CHANNEL_CLOSED: it was cut off, and may have been done;
   * OVERLOADED: too many calls are open; CAPABILITY_NOT_FOUND: that node serves no calls
   */
  open(peer: NodeId, request: CallRequest, signal?: AbortSignalLike): AsyncIterable<CallPiece>
}
