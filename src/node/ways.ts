import type { Clock } from '../kit/clock.js'
import { NodeError } from '../kit/errors.js'
import type { ErrorCode } from '../kit/errors.js'
import type { MeshId, NodeId } from '../kit/ids.js'
import type { Hash, Sign } from '../kit/sign.js'
import { shown } from '../kit/text.js'
import type { ControlBody } from '../domain/channel/control.js'
import { OPENING_TYPES } from '../domain/envelope/envelope.js'
import type { A2AEnvelope } from '../domain/envelope/envelope.js'
import type { EnvelopeHeader } from '../domain/envelope/header.js'
import { threadOf } from '../domain/envelope/factory.js'
import { signOrigin } from '../domain/envelope/origin.js'
import type { Telemetry } from '../ports/telemetry.js'
import type { Conversations } from './conversations.js'
import { parseAddress } from './directory.js'
import type { Directory } from './directory.js'
import type { NodeEvents } from './events.js'
import type { Thread } from './incoming.js'
import type { Peers } from './peers.js'
import type { Routes } from './routes.js'

/** Messages handed to a neighbour of which it may still say that it does not carry them on. */
const MAX_HANDED = 4096

/** What sending by any way needs. */
export interface WaysParts {
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly self: NodeId
  readonly membership: { readonly meshId: MeshId }
  readonly sign: Sign
  readonly hash: Hash
  readonly peers: Peers
  readonly routes: Routes
  readonly directory: Directory
  readonly conversations: Conversations
  readonly events: NodeEvents
}

/** What was handed to a neighbour. */
interface Handed {
  readonly via: NodeId
  readonly header: EnvelopeHeader
}

/** A reply that a neighbour did not carry on. */
export interface LostReply {
  readonly to: NodeId
  readonly id: string
  readonly code: ErrorCode
}

/** The ways of this node's own messages: over the link to their node, or carried by a neighbour that has one. */
export class Ways {
  readonly #parts: WaysParts
  readonly #handed = new Map<string, Handed>()
  #keepsReply: (reply: LostReply) => boolean = () => false

  constructor(parts: WaysParts) {
    this.#parts = parts
  }

  /** Is there a link, or a way that is remembered? `thread`: of a reply, which goes the way of what it answers. */
  isReachable(node: NodeId, thread: Thread | null = null): boolean {
    return this.#parts.peers.isOnline(node) || this.#via(node, thread) !== null
  }

  /** Sees to a link; where none comes about, to a way through a neighbour. @throws NodeError PEER_OFFLINE. */
  async reach(node: NodeId, thread: Thread | null = null): Promise<void> {
    const { peers, routes, directory } = this.#parts
    if (this.isReachable(node, thread)) return
    try {
      await peers.reach(node)
    } catch (error) {
      if (directory.certificate(node) === null || !(await routes.find(node))) throw error
    }
  }

  /** Sends an encoded envelope. @throws NodeError PEER_OFFLINE, CHANNEL_CLOSED, OVERLOADED; PAYLOAD_TOO_LARGE for what no other can carry. */
  send(node: NodeId, envelope: A2AEnvelope, bytes: Uint8Array): void {
    const { peers, membership, hash, sign, conversations } = this.#parts
    const thread = ownThread(envelope)
    const isOpening = OPENING_TYPES.has(envelope.type)
    const via = peers.isOnline(node) ? null : this.#via(node, isOpening ? null : thread)
    if (via === null) return peers.send(node, { kind: 'envelope', bytes })
    // Signed only here: over a link of its own the stream says whose it is.
    const signed = signOrigin(bytes, { mesh: membership.meshId, firstHop: via, hash, sign })
    peers.send(via, { kind: 'envelope', bytes: signed })
    if (isOpening && thread !== null) conversations.setWay(thread, via)
    const { payload: _payload, ...header } = envelope
    this.#handed.set(header.id, { via, header })
    for (const oldest of this.#handed.keys()) {
      if (this.#handed.size <= MAX_HANDED) break
      this.#handed.delete(oldest)
    }
  }

  /** No other neighbour has the exchange of a reply open. */
  #via(node: NodeId, thread: Thread | null): NodeId | null {
    const { peers, routes, conversations } = this.#parts
    const way = thread === null ? null : conversations.way(thread)
    return way !== null && peers.isOnline(way) ? way : routes.next(node)
  }

  /** Was the message given to a neighbour, which may still say that it does not carry it on? */
  isHanded(id: string): boolean {
    return this.#handed.has(id)
  }

  /** Tells of replies that are not carried on; true: the handler sends them again. One handler, the last one counts. */
  onLost(handler: (reply: LostReply) => boolean): void {
    this.#keepsReply = handler
  }

  /** A neighbour says that a message of this node is not carried on: whoever waits for its answer hears of it. */
  onUndelivered(peer: NodeId, { id, to, code, rule }: ControlBody<'undelivered'>): void {
    const handed = this.#handed.get(id)
    if (handed === undefined || handed.via !== peer || parseAddress(handed.header.recipient)?.nodeId !== to) return
    const { routes, conversations, directory, events, telemetry } = this.#parts
    this.#handed.delete(id)
    if (code === 'PEER_OFFLINE') routes.drop(to, peer)
    if (this.#keepsReply({ to, id, code })) return
    telemetry.count('errors', 'delivery')
    const [via, node] = [directory.ref(peer).name, directory.ref(to).name]
    events.add('delivery-failed', 'a message was not carried on', { code, peer: node, via, rule: shown(rule) })
    const error = new NodeError(code, `on the way to ${node}, ${via} says: ${shown(rule)}`, { data: { via: peer, rule: shown(rule) } })
    const { sender, recipient } = handed.header
    const thread = ownThread(handed.header)
    if (thread === null || !conversations.isAwaited(thread)) return
    const { correlationId } = thread
    conversations.deliver(thread, { ...handed.header, sender: recipient, recipient: sender, correlationId, type: 'error' }, error.toBody())
  }
}

/** The thread of a message of this node; null for what names no addresses. */
function ownThread(header: Pick<EnvelopeHeader, 'id' | 'sender' | 'recipient' | 'correlationId'>): Thread | null {
  const [sender, recipient] = [parseAddress(header.sender), parseAddress(header.recipient)]
  return sender === null || recipient === null ? null : { sender, recipient, correlationId: threadOf(header) }
}
