import type { NodeId } from '../kit/ids.js'
import { decodeControl } from '../domain/channel/control.js'
import type { ControlBody, ControlName } from '../domain/channel/control.js'
import type { ChannelMessage, RelayableMessage } from '../domain/channel/frames.js'
import type { LinkCalls } from './gateway/mesh/calls.js'
import type { Inbound } from './messaging/inbound.js'
import type { PeerHandlers } from './peers/peer-table.js'
import type { NextHop } from './relay/next-hop.js'
import type { RelayReceiver } from './relay/relay-receiver.js'
import type { Lanes } from './reliable/lanes.js'

type PeerListener = (peer: NodeId) => void

/** The listeners to the links of peers, each list in the order of its calls. See {@link PeerHandlers}. */
export interface PeerListeners {
  readonly onOnline: readonly PeerListener[]
  readonly onRelinked: readonly PeerListener[]
  readonly onLinkLost: readonly PeerListener[]
  readonly onOffline: readonly ((peer: NodeId, isRest: boolean) => void)[]
  /** There is a new route to a peer. */
  readonly onFound: readonly PeerListener[]
  /** Messages to a peer were lost. */
  readonly onGivenUp: (peer: NodeId, lost: number) => void
  /** True when work with the peer is under way. */
  readonly isInUse: (peer: NodeId) => boolean
}

interface NamedControl<N extends ControlName> {
  readonly name: N
  readonly body: ControlBody<N>
}

/** The handler of each control message. */
export type ControlHandlers = { readonly [N in ControlName]: (peer: NodeId, message: NamedControl<N>) => void }

/** The receivers of peers' events and messages. */
interface PeerDispatchDeps {
  readonly listeners: PeerListeners
  readonly controls: ControlHandlers
  readonly inbound: Pick<Inbound, 'receive'>
  readonly lanes: Pick<Lanes, 'incoming' | 'onRefused'>
  readonly memberCalls: Pick<LinkCalls, 'onPart' | 'stop'>
  readonly relay: RelayReceiver
  readonly nextHop: Pick<NextHop, 'onFound' | 'onRefusedFrame'>
}

/** Relayed control messages: those of lanes and of requests, between the two nodes concerned. */
const RELAYED_CONTROLS: ReadonlySet<ControlName> = new Set([
  'greet',
  'ack',
  'heartbeat',
  'approval',
  'cancel',
  'answer'
])

/** Passes the events and messages of peers to their receivers. */
export class PeerDispatch implements PeerHandlers {
  readonly #deps: PeerDispatchDeps
  #isStopped = false

  constructor(deps: PeerDispatchDeps) {
    this.#deps = deps
    const { lanes, listeners, nextHop } = deps
    nextHop.onRefusedFrame((refused) => lanes.onRefused(refused))
    nextHop.onFound((peer) => this.#pass(listeners.onFound, peer))
  }

  /** Stops passing, and ends the calls. */
  stop(): void {
    this.#isStopped = true
    this.#deps.memberCalls.stop()
  }

  onOnline(peer: NodeId): void {
    this.#pass(this.#deps.listeners.onOnline, peer)
  }

  onRelinked(peer: NodeId): void {
    this.#pass(this.#deps.listeners.onRelinked, peer)
  }

  onLinkLost(peer: NodeId): void {
    this.#pass(this.#deps.listeners.onLinkLost, peer)
  }

  onOffline(peer: NodeId, isRest: boolean): void {
    if (this.#isStopped) return
    for (const listener of this.#deps.listeners.onOffline) listener(peer, isRest)
  }

  isInUse(peer: NodeId): boolean {
    return this.#deps.listeners.isInUse(peer)
  }

  onGivenUp(peer: NodeId, lost: number): void {
    if (!this.#isStopped && lost > 0) this.#deps.listeners.onGivenUp(peer, lost)
  }

  onMessage(peer: NodeId, message: ChannelMessage): string | null {
    if (this.#isStopped) return null
    const { inbound, lanes, memberCalls, relay } = this.#deps
    if (message.kind === 'envelope') inbound.receive(peer, message.bytes)
    if (message.kind === 'reliable') lanes.incoming.onMessage(peer, message.frame)
    if (message.kind === 'relayed') relay.onFrame(peer, message.frame, this.#onContent)
    if (message.kind === 'call') return memberCalls.onPart(peer, message.bytes)
    return message.kind === 'control' ? this.#onControl(peer, message) : null
  }

  readonly #onContent = (origin: NodeId, message: RelayableMessage, hops: readonly NodeId[]): string | null => {
    const { inbound, lanes } = this.#deps
    if (message.kind === 'envelope') inbound.receive(origin, message.bytes, hops)
    if (message.kind === 'reliable') lanes.incoming.onMessage(origin, message.frame, hops)
    if (message.kind !== 'control') return null
    if (!RELAYED_CONTROLS.has(message.name)) return 'a control message that is not relayed'
    return this.#onControl(origin, message)
  }

  #onControl(peer: NodeId, { name, body }: { readonly name: string; readonly body: unknown }): string | null {
    const control = decodeControl(name, body)
    if (!control.ok) return control.reason
    handle(this.#deps.controls, peer, control)
    return null
  }

  #pass(listeners: readonly PeerListener[], peer: NodeId): void {
    if (this.#isStopped) return
    for (const listener of listeners) listener(peer)
  }
}

function handle<N extends ControlName>(handlers: ControlHandlers, peer: NodeId, message: NamedControl<N>): void {
  handlers[message.name](peer, message)
}
