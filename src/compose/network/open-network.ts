import { bracketed } from '../../adapters/http/authority.js'
import { listen } from '../../adapters/http/bind.js'
import { StoredAddresses } from '../../adapters/mesh/network/given-addresses.js'
import { KnownAddresses } from '../../adapters/mesh/network/known-addresses.js'
import type { MeshDeps } from '../../adapters/mesh/network/mesh-node.js'
import { type Network, openNetwork } from '../../adapters/mesh/network/network.js'
import type { NetworkProblem } from '../../adapters/mesh/network/reachability.js'
import type { Acceptor } from '../../adapters/mesh/transport/addressed-transport.js'
import { openWebSocketServer } from '../../adapters/mesh/transport/websocket-server.js'
import { listenAddress } from '../../config/public-url.js'
import type { CardAddresses } from '../../domain/card/endpoints.js'
import { messageOf } from '../../kit/errors.js'
import { tcpAddressText } from '../../kit/net/tcp-address.js'
import { WEBSOCKET_PATH } from '../../kit/net/websocket-url.js'
import type { GivenAddresses } from '../../ports/mesh.js'
import type { Problem, ServedAddresses } from '../../ports/node-api.js'
import type { NodeStore } from '../../ports/storage.js'
import type { NodeRecord } from '../node-record.js'
import type { StartDeps } from '../open-home.js'
import { lanOf, openTcp } from './open-tcp.js'
import { hostsAt } from './own-hosts.js'

/** Names of the stored documents of addresses. */
const ADDRESSES = { udp: 'addresses', tcp: 'tcp-addresses' }

const WORDS = { protocol: 'WebSockets', next: ['a2a-node start --websocket 0'] }

const UNSERVED: Problem = {
  code: 'CONFIG_INVALID',
  message: 'websocket.urls names URLs, but this node serves no WebSocket, so they are not given to members',
  next: 'a2a-node stop && a2a-node start --websocket <[host:]port>'
}

/** The parts of a home that its network needs. */
export interface NetworkHome extends StartDeps {
  readonly documents: NodeStore
  readonly record: NodeRecord
  /** Null before the home is in a mesh. */
  readonly state: object | null
}

/** The network of a home. */
export interface HomeNetwork {
  readonly network: Network
  /** Remembers the address of a linked member. */
  readonly learn: NonNullable<MeshDeps['onPassed']>
  readonly sockets: {
    readonly served: ServedAddresses
    readonly given: GivenAddresses
    /** Where other machines reach them. */
    readonly addresses: CardAddresses
    /** Why they cannot be reached, for `status`. */
    readonly problems: readonly Problem[]
    /** See {@link Network.locate}. */
    readonly locate: Network['locate']
  }
}

/**
 * Opens the network of a home.
 * @throws NodeError as {@link openNetwork} and {@link listen}
 */
export async function openHomeNetwork(home: NetworkHome): Promise<HomeNetwork> {
  const { options, clock, unwind, record } = home
  const { serveBootstrap, behindNat } = options.config.network
  const { via } = options.config.websocket
  const { network: kind, bootstrap, localPort } = record
  const [known, knownTcp] = [await openAddresses(home, ADDRESSES.udp), await openAddresses(home, ADDRESSES.tcp)]
  const given = await StoredAddresses.open(home.documents, (address) => network.faultOf(address))
  const [sockets, tcp] = [await openWebSockets(home), await openTcp(home, knownTcp)]
  const network: Network = await openNetwork(
    {
      ...{ kind, bootstrap, serveBootstrap, localPort, behindNat, known },
      websocket: { acceptor: sockets.acceptor, via },
      tcp: {
        acceptor: tcp.acceptor,
        ...lanOf(home, tcp),
        addressesOf: (peer) => [...given.of(peer), ...knownTcp.of(peer).map(tcpAddressText)]
      }
    },
    clock
  )
  unwind.add('network', () => network.close())
  network.state.onChange((problem) => reportNetwork(home, problem))
  const learn: NonNullable<MeshDeps['onPassed']> = (peer, { rawStream, isInitiator }) => {
    // All nodes of a local network find each other on one port.
    if (kind === 'local' || rawStream === null) return
    const { remoteHost, remotePort: port, path } = rawStream
    const at = { host: remoteHost ?? '', port }
    if (path === undefined) known.learn(peer, at, network.dht.localAddress()?.port ?? null)
    // The port of a peer that connected is one of this connection alone.
    else if (path === 'tcp' && isInitiator) knownTcp.learn(peer, at, null)
  }
  const addresses = { tcp: tcp.addresses, websocket: sockets.urls }
  const problems = [...sockets.problems, ...tcp.problems]
  const { bound: websocket, urls: websocketUrls } = sockets
  const served = { websocket, websocketUrls, tcp: tcp.bound, tcpAddresses: tcp.addresses }
  return { network, learn, sockets: { served, given, addresses, problems, locate: network.locate } }
}

interface OpenedWebSockets {
  readonly acceptor: Acceptor | null
  readonly bound: string | null
  readonly urls: readonly string[]
  readonly problems: readonly Problem[]
}

/** The server of WebSockets, if there is one. A taken port fails the start before an invite is used. */
async function openWebSockets({ options, unwind }: NetworkHome): Promise<OpenedWebSockets> {
  const { listen: asked, urls } = options.config.websocket
  const at = asked === null ? null : listenAddress(asked)
  if (at === null) return { acceptor: null, bound: null, urls: [], problems: urls.length > 0 ? [UNSERVED] : [] }
  const { server, acceptor, close } = await openWebSocketServer()
  const { address, port } = await listen(server, at, WORDS)
  unwind.add('WebSocket server', close)
  const urlAt = (host: string): string => `ws://${bracketed(host)}:${port}${WEBSOCKET_PATH}`
  const known = urls.length > 0 ? urls : hostsAt(address).map(urlAt)
  return { acceptor, bound: urlAt(address), urls: known, problems: [] }
}

/** Where members were linked last, as the home has it. */
async function openAddresses({ documents, telemetry, unwind }: NetworkHome, name: string): Promise<KnownAddresses> {
  // Nothing is lost without it.
  const stored = await documents.read(name).catch(() => null)
  let written = Promise.resolve()
  // A failed start removes the home, and a write that goes on would leave a file there.
  unwind.add(name, () => written)
  return new KnownAddresses(stored, (record) => {
    const write = documents
      .write(name, record)
      .catch((error: unknown) => telemetry.log('warn', 'an address could not be kept', { reason: messageOf(error) }))
    written = Promise.all([written, write]).then(() => {})
  })
}

/** Logs that other nodes cannot be found, or can again (`null`); a join prints the former. */
function reportNetwork({ options, telemetry, state }: NetworkHome, problem: NetworkProblem | null): void {
  if (problem === null) return telemetry.log('info', 'other nodes can be found again')
  if (state === null && options.join !== null) options.onProgress?.(`${problem.message}  [${problem.code}]`)
  else telemetry.log('warn', problem.message, { code: problem.code })
}
