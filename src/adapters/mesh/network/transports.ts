import type HyperDHT from 'hyperdht'
import type { KeyPair } from 'hyperswarm'
import type { CardAddresses } from '../../../domain/card/endpoints.js'
import type { Clock } from '../../../kit/clock.js'
import type { NodeId } from '../../../kit/ids.js'
import type { Discovery } from '../discovery/lan-discovery.js'
import type { Rendezvous } from '../pairing/pairing-swarm.js'
import { type Acceptor, AddressedTransport, type ViaState } from '../transport/addressed-transport.js'
import { HyperswarmTransport } from '../transport/hyperswarm-transport.js'
import { JoinedTransport } from '../transport/joined-transport.js'
import { rankOf, type StreamTransport } from '../transport/stream-transport.js'
import { dialTcp } from '../transport/tcp-client.js'
import { dialWebSocket } from '../transport/websocket-client.js'
import type { NetworkProblem, NetworkState, Reachability } from './reachability.js'

/** WebSockets beside the DHT. */
export interface NetworkWebSockets {
  /** Accepts the WebSockets of other nodes; null: none are served. */
  readonly acceptor: Acceptor | null
  /** URLs that are dialled all the time; any node may answer. */
  readonly via: readonly string[]
}

/** TCP beside the DHT. */
export interface NetworkTcp {
  /** Accepts the connections of other nodes; null: this node only dials. */
  readonly acceptor: Acceptor | null
  /** Addresses of a peer that the user gave, or that worked before. */
  addressesOf(peer: NodeId): readonly string[]
  /** Finds nodes of the LAN. Absent: nothing does. */
  readonly discovery?: Discovery
}

/** A node's access to others: streams to peers with a known key, and a rendezvous with unknown ones. */
export interface NodeTransport extends StreamTransport {
  readonly rendezvous: Rendezvous
}

/** The transports of a network. */
export interface Transports {
  /** Opens the transport of a node with this key pair. Its owner closes it. */
  openTransport(keyPair: KeyPair): NodeTransport
  /** Asks this for the addresses on the card of a peer before it dials them. */
  locate(cardOf: (peer: NodeId) => CardAddresses): void
  /** The addresses on the card of a peer. */
  cardOf(peer: NodeId): CardAddresses
  /** The URLs that are dialled all the time. */
  via(): readonly ViaState[]
  /** Why the last dial of an address of {@link NetworkTcp.addressesOf} failed; null: it did not. */
  faultOf(address: string): string | null
}

/** Milliseconds that TCP and UDP, which are direct, are ahead of WebSockets, which may lead through a proxy. */
const WEBSOCKET_DELAY_MS = 1000
/**
 * Longest wait between tries of TCP, in milliseconds: a member with a link over UDP may name addresses of a network
 * that is not here. One without a link is dialled anew more often.
 */
const TCP_WAIT_MS = 300_000

interface TransportOptions {
  readonly kind: 'public' | 'private' | 'local'
  readonly websocket?: NetworkWebSockets
  readonly tcp?: NetworkTcp
}

interface TransportDeps {
  readonly dht: HyperDHT
  readonly clock: Clock
  readonly keepAliveMs: number
}

/** The transports over TCP, a DHT and WebSockets. */
export function openTransports(options: TransportOptions, deps: TransportDeps): Transports {
  let locate: Transports['cardOf'] = () => ({ tcp: [], websocket: [] })
  const cardOf: Transports['cardOf'] = (peer) => locate(peer)
  let states: () => readonly ViaState[] = () => []
  let faultOf: Transports['faultOf'] = () => null
  return {
    openTransport: (keyPair) => {
      const { tcp, sockets } = addressed(options, { ...deps, keyPair, cardOf })
      const swarm = new HyperswarmTransport({ dht: deps.dht, keyPair })
      const all = [
        { path: 'tcp', transport: tcp, delayMs: 0 } as const,
        { path: 'direct', transport: swarm, delayMs: 0 } as const,
        { path: 'websocket', transport: sockets, delayMs: WEBSOCKET_DELAY_MS } as const
      ].sort((one, other) => rankOf(one.path) - rankOf(other.path))
      const joined = new JoinedTransport(all, deps.clock)
      for (const [rank, { transport }] of all.entries())
        if (transport instanceof AddressedTransport) transport.linkedBy((peer) => joined.isLinked(peer, rank))
      states = () => sockets.via()
      faultOf = (address) => tcp.faultOf(address)
      return Object.assign(joined, { rendezvous: withDiscovery(swarm.rendezvous, options.tcp?.discovery) })
    },
    locate: (next) => void (locate = next),
    cardOf,
    via: () => states(),
    faultOf: (address) => faultOf(address)
  }
}

/** The transports of a node that dial addresses. */
function addressed(
  { kind, tcp, websocket }: TransportOptions,
  { cardOf, ...deps }: TransportDeps & { readonly keyPair: KeyPair } & Pick<Transports, 'cardOf'>
): { readonly tcp: AddressedTransport; readonly sockets: AddressedTransport } {
  const shared = { ...deps, isLocal: kind === 'local' }
  return {
    tcp: new AddressedTransport({
      ...shared,
      acceptor: tcp?.acceptor ?? null,
      via: [],
      open: dialTcp,
      maxWaitMs: TCP_WAIT_MS,
      discovery: tcp?.discovery,
      addressesOf: (peer) => ({ own: tcp?.addressesOf(peer) ?? [], foreign: cardOf(peer).tcp })
    }),
    sockets: new AddressedTransport({
      ...shared,
      acceptor: websocket?.acceptor ?? null,
      via: websocket?.via ?? [],
      open: dialWebSocket,
      addressesOf: (peer) => ({ own: [], foreign: cardOf(peer).websocket })
    })
  }
}

/** Joins each topic also on the LAN. */
function withDiscovery(rendezvous: Rendezvous, discovery: Discovery | undefined): Rendezvous {
  const join: Rendezvous['join'] = (topic, mode) => {
    discovery?.join(topic, mode)
    return rendezvous.join(topic, mode)
  }
  return { ...rendezvous, join }
}

/** The state of the network with the URLs of `via` that are not reached, and a LAN that is not looked at. */
export function withTransports(
  state: Reachability,
  { via }: Pick<Transports, 'via'>,
  discovery: Discovery | undefined
): NetworkState {
  return {
    problems: () => [...via().flatMap(viaProblem), ...state.problems(), ...lanProblem(discovery?.fault ?? null)],
    info: () => state.info(),
    isAnswering: () => state.isAnswering(),
    look: () => state.look(),
    onChange: (listener) => state.onChange(listener)
  }
}

function lanProblem(fault: string | null): NetworkProblem[] {
  if (fault === null) return []
  return [{ code: 'LAN_OFFLINE', message: `members of this LAN are not looked for: ${fault}`, next: 'ip address' }]
}

function viaProblem({ url, fault }: ViaState): NetworkProblem[] {
  if (fault === null) return []
  const message = `no member is reached by WebSocket at ${url}: ${fault}`
  return [{ code: 'WEBSOCKET_OFFLINE', message, next: 'a2a-node status   # on the machine of that member' }]
}
