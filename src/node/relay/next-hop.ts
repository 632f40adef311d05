import { jitteredBackoffMs } from '../../kit/backoff.js'
import { BoundedMap } from '../../kit/bounded.js'
import type { Clock } from '../../kit/clock.js'
import { messageOf, NodeError } from '../../kit/errors.js'
import type { ErrorCode } from '../../kit/errors.js'
import { Emitter } from '../../kit/events.js'
import type { Unsubscribe } from '../../kit/events.js'
import type { MeshId, NodeId } from '../../kit/ids.js'
import type { Hash, Sign } from '../../kit/sign.js'
import { shown } from '../../kit/text.js'
import type { ControlBody, ControlName } from '../../domain/channel/control.js'
import { encodeWhole, envelopeOf } from '../../domain/channel/frames.js'
import type { RelayableMessage } from '../../domain/channel/frames.js'
import { relayedId, signRelayed } from '../../domain/channel/relayed.js'
import { decodeEnvelope } from '../../domain/envelope/codec.js'
import { OPENING_TYPES } from '../../domain/envelope/envelope.js'
import type { A2AEnvelope } from '../../domain/envelope/envelope.js'
import { threadOf } from '../../domain/envelope/factory.js'
import type { EnvelopeHeader } from '../../domain/envelope/header.js'
import type { ReliableFrame } from '../../domain/reliable/frame.js'
import type { Telemetry } from '../../ports/telemetry.js'
import type { ExchangeTable } from '../messaging/exchange-table.js'
import { parseAddress } from '../../domain/card/card.js'
import type { Directory } from '../cards/directory.js'
import type { NodeEvents } from '../observe/events.js'
import type { Thread } from '../messaging/inbound-message.js'
import type { PeerTable } from '../peers/peer-table.js'
import type { RouteDiscovery } from './route-discovery.js'

/** Frames handed to neighbours that are remembered, so that a refusal finds its message. */
const MAX_HANDED = 4096
/**
 * Delays between searches for a route to a node with pending messages: 1 s, and up to 1 s, 2 s, ... 30 s more, without
 * end.
 */
const SEEK = { baseMs: 1000, maxMs: 30_000 }

/** Dependencies of the next hop. */
export interface NextHopDeps {
  readonly clock: Clock
  readonly telemetry: Telemetry
  /** In [0, 1). */
  readonly chance: () => number
  readonly self: NodeId
  readonly membership: { readonly meshId: MeshId }
  readonly sign: Sign
  readonly hash: Hash
  readonly peers: PeerTable
  readonly routes: RouteDiscovery
  readonly directory: Directory
  readonly exchanges: ExchangeTable
  readonly events: NodeEvents
}

/** Identifies a message of a lane by the lane's agents. */
export type LaneMessageName = Pick<ReliableFrame, 'source' | 'target' | 'messageId'>

/** A frame that was handed to a neighbour, without its content. */
interface Handed {
  readonly via: NodeId
  readonly to: NodeId
  /** Header of its envelope; null when it has none. */
  readonly header: EnvelopeHeader | null
  /** Its lane message; null when it has none. */
  readonly lane: LaneMessageName | null
}

/** A lane message that a neighbour did not relay. */
export interface RefusedFrame extends LaneMessageName {
  readonly to: NodeId
  readonly code: ErrorCode
  /** Is it of a type that opens an exchange? */
  readonly isOpening: boolean
}

/** A search for a route. */
interface HopSearch {
  /** Monotonic milliseconds before which the search does not start again. */
  dueAt: number
  failures: number
  isRunning: boolean
}

/** Sends this node's messages to other nodes: over a link, or through a neighbour that has one. */
export class NextHop {
  readonly #deps: NextHopDeps
  readonly #handed = new BoundedMap<string, Handed>(MAX_HANDED)
  readonly #searches = new Map<NodeId, HopSearch>()
  readonly #found: Emitter<NodeId>
  #onRefused: (refused: RefusedFrame) => boolean = () => false

  constructor(deps: NextHopDeps) {
    this.#deps = deps
    this.#found = new Emitter((error) =>
      deps.telemetry.log('error', 'a listener to ways failed', { reason: messageOf(error) })
    )
  }

  /**
   * Is there a link, or a neighbour known to reach the node? `isOpening`: only a route found for opening messages
   * counts.
   */
  isReachable(node: NodeId, isOpening = false): boolean {
    return this.#deps.peers.isOnline(node) || this.#via(node, isOpening) !== null
  }

  /** Opens a link, or else finds a route through a neighbour. @throws NodeError PEER_OFFLINE. */
  async reach(node: NodeId, isOpening = true): Promise<void> {
    const { peers, routes, directory } = this.#deps
    if (this.isReachable(node, isOpening)) return
    try {
      await peers.reach(node)
    } catch (error) {
      if (directory.certificate(node) === null || !(await routes.find(node))) throw error
    }
  }

  /** Looks for a route to a node with pending messages, at growing intervals. Never rejects. */
  seek(node: NodeId): void {
    const { clock, chance } = this.#deps
    const search = this.#searches.get(node) ?? { dueAt: 0, failures: 0, isRunning: false }
    if (search.isRunning || clock.monotonic() < search.dueAt) return
    this.#searches.set(node, search)
    search.isRunning = true
    this.reach(node)
      .then(
        () => this.found(node),
        () => {
          search.dueAt = clock.monotonic() + SEEK.baseMs + jitteredBackoffMs(SEEK, search.failures++, chance())
        }
      )
      .finally(() => {
        search.isRunning = false
      })
  }

  /** A node is reachable again: pending messages for it may be sent. */
  found(node: NodeId): void {
    this.#searches.delete(node)
    this.#found.emit(node)
  }

  /** Calls back with each node that became reachable. */
  onFound(listener: (node: NodeId) => void): Unsubscribe {
    return this.#found.on(listener)
  }

  /** A node does not answer over its relay: another route is preferred for a while. */
  doubt(node: NodeId): void {
    const via = this.#deps.peers.isOnline(node) ? null : this.#via(node, false)
    if (via !== null) this.#deps.routes.drop(node, via)
  }

  /** Sends an encoded envelope. @throws NodeError PEER_OFFLINE, CHANNEL_CLOSED, OVERLOADED, PAYLOAD_TOO_LARGE. */
  send(node: NodeId, envelope: A2AEnvelope, bytes: Uint8Array): void {
    this.#send(node, { kind: 'envelope', bytes }, OPENING_TYPES.has(envelope.type))
  }

  /** Sends a message of a lane. @throws NodeError as {@link NextHop.send}. */
  sendFrame(node: NodeId, frame: ReliableFrame): void {
    this.#send(node, { kind: 'reliable', frame }, false)
  }

  /** Sends a control message. @throws NodeError as {@link NextHop.send}. */
  sendControl<N extends ControlName>(node: NodeId, name: N, body: ControlBody<N>): void {
    this.#send(node, { kind: 'control', name, body }, false)
  }

  #send(node: NodeId, message: RelayableMessage, isOpening: boolean): void {
    const { peers } = this.#deps
    if (peers.isOnline(node)) return peers.send(node, message)
    const via = this.#via(node, isOpening)
    if (via === null)
      throw new NodeError('PEER_OFFLINE', 'no link to the peer, and no neighbour that has one', {
        data: { peer: node }
      })
    this.#relay(node, via, message)
  }

  #relay(node: NodeId, via: NodeId, message: RelayableMessage): void {
    const { peers, membership, hash, sign, clock, self } = this.#deps
    const content = encodeWhole(message)
    // Signed only here: over a direct link the stream proves the sender.
    const frame = signRelayed(
      { origin: self, target: node, timestamp: clock.now(), content },
      { mesh: membership.meshId, firstHop: via, hash, sign }
    )
    peers.send(via, { kind: 'relayed', frame })
    this.#handed.set(relayedId(frame), { via, to: node, header: headerOf(message), lane: laneOf(message) })
  }

  #via(node: NodeId, isOpening: boolean): NodeId | null {
    const { routes } = this.#deps
    return isOpening ? routes.next(node) : routes.back(node)
  }

  /**
   * Sets the one handler for lane messages that a neighbour did not relay. It returns true when it gives the message
   * up.
   */
  onRefusedFrame(handler: (refused: RefusedFrame) => boolean): void {
    this.#onRefused = handler
  }

  /** A neighbour did not relay a frame of this node: the sender of a lost message is notified. */
  onUndelivered(peer: NodeId, { id, to, code, rule }: ControlBody<'undelivered'>): void {
    const handed = this.#handed.get(id)
    if (handed === undefined || handed.via !== peer || handed.to !== to) return
    const { routes, directory, events, telemetry } = this.#deps
    this.#handed.delete(id)
    if (code === 'PEER_OFFLINE') routes.drop(to, peer)
    const { header, lane } = handed
    if (
      header === null ||
      (lane !== null && !this.#onRefused({ to, code, isOpening: OPENING_TYPES.has(header.type), ...lane }))
    )
      return
    telemetry.count('errors', 'delivery')
    const [via, node] = [directory.ref(peer).name, directory.ref(to).name]
    events.add('delivery-failed', 'a message was not relayed', { code, peer: node, via, rule: shown(rule) })
    this.#fail(
      header,
      new NodeError(code, `on the way to ${node}, ${via} says: ${shown(rule)}`, {
        data: { via: peer, rule: shown(rule) }
      })
    )
  }

  #fail(header: EnvelopeHeader, error: NodeError): void {
    const { exchanges } = this.#deps
    const thread = ownThread(header)
    if (thread === null || !exchanges.isAwaited(thread)) return
    const { sender, recipient } = header
    const { correlationId } = thread
    exchanges.deliver(
      thread,
      { ...header, sender: recipient, recipient: sender, correlationId, type: 'error' },
      error.toBody()
    )
  }
}

/** The header of the envelope in a message; null when it has none. */
function headerOf(message: RelayableMessage): EnvelopeHeader | null {
  const bytes = envelopeOf(message)
  const read = bytes === null ? null : decodeEnvelope(bytes)
  return read?.ok === true ? read.header : null
}

function laneOf(message: RelayableMessage): LaneMessageName | null {
  if (message.kind !== 'reliable') return null
  const { source, target, messageId } = message.frame
  return { source, target, messageId }
}

/** The thread of a message of this node; null when the header names no addresses. */
function ownThread(header: Pick<EnvelopeHeader, 'id' | 'sender' | 'recipient' | 'correlationId'>): Thread | null {
  const [sender, recipient] = [parseAddress(header.sender), parseAddress(header.recipient)]
  return sender === null || recipient === null ? null : { sender, recipient, correlationId: threadOf(header) }
}
