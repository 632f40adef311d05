import type { AbortSignalLike, Clock } from '../../../kit/clock.js'
import type { NodeId } from '../../../kit/ids.js'
import { type CallPart, decodeCall, encodeCall } from '../../../domain/channel/call.js'
import type { CallHandler, CallPiece, CallRequest, MemberCalls } from '../../../ports/member-calls.js'
import type { Telemetry } from '../../../ports/telemetry.js'
import { InboundCalls } from './inbound-calls.js'
import { OutboundCalls } from './outbound-calls.js'
import type { PeerTable } from '../../peers/peer-table.js'

/** Dependencies of {@link LinkCalls}. */
export interface LinkCallsDeps {
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly peers: Pick<PeerTable, 'reach' | 'send' | 'isAlone'>
}

/**
 * Calls over links, of the A2A protocol and of single paths, in both directions. A call depends on the current links:
 * when one opens or closes, parts in transit may be lost, and both ends drop the call. A follower of a task calls
 * again, from the last event it has.
 */
export class LinkCalls implements MemberCalls {
  readonly #in: InboundCalls
  readonly #out: OutboundCalls

  constructor({ clock, telemetry, peers }: LinkCallsDeps) {
    const send = (peer: NodeId, part: CallPart): void => peers.send(peer, { kind: 'call', bytes: encodeCall(part) })
    this.#in = new InboundCalls({ clock, telemetry, send, isAlone: (peer) => peers.isAlone(peer) })
    this.#out = new OutboundCalls({ reach: (peer) => peers.reach(peer), send })
  }

  serve(handler: CallHandler | null): () => void {
    return this.#in.serve(handler)
  }

  /** Answers calls of one path from now on, also when this node serves no others. */
  serveAt(path: string, handler: CallHandler): void {
    this.#in.serveAt(path, handler)
  }

  open(peer: NodeId, request: CallRequest, signal?: AbortSignalLike): AsyncIterable<CallPiece> {
    return this.#out.open(peer, request, signal)
  }

  /** True while a call from or to the member is open. */
  has(peer: NodeId): boolean {
    return this.#in.has(peer) || this.#out.has(peer)
  }

  /** Takes a part of a call. Returns the fault of a part that no honest peer sends, or null. */
  onPart(peer: NodeId, bytes: Uint8Array): string | null {
    const part = decodeCall(bytes)
    if (part === null) return 'a part of a call that cannot be read'
    if (part.type === 'request' || part.type === 'credit' || part.type === 'hangup') return this.#in.onCall(peer, part)
    return this.#out.onAnswer(peer, part)
  }

  /** A link of the peer opened or closed. */
  onLinks(peer: NodeId): void {
    this.#in.onLinks(peer)
    this.#out.onLinks(peer)
  }

  /** Ends all calls. */
  stop(): void {
    this.#in.stop()
    this.#out.stop()
  }
}
