import { bracketed } from '../../adapters/http/authority.js'
import { isLoopback, listen } from '../../adapters/http/bind.js'
import { KnownAddresses } from '../../adapters/mesh/network/known-addresses.js'
import type { MeshDeps } from '../../adapters/mesh/network/mesh-node.js'
import { type Network, openNetwork } from '../../adapters/mesh/network/network.js'
import { machineAddresses, type NetworkProblem } from '../../adapters/mesh/network/reachability.js'
import { openWebSocketServer, type WebSocketAcceptor } from '../../adapters/mesh/transport/websocket-server.js'
import { listenAddress } from '../../config/public-url.js'
import { messageOf } from '../../kit/errors.js'
import { WEBSOCKET_PATH } from '../../kit/net/websocket-url.js'
import type { Problem } from '../../ports/node-api.js'
import type { NodeStore } from '../../ports/storage.js'
import type { NodeRecord } from '../node-record.js'
import type { StartDeps } from '../open-home.js'

/** Name of the stored document of addresses. */
const ADDRESSES = 'addresses'
/** Addresses of this machine under which its WebSocket is announced, at most. */
const MAX_OWN_URLS = 4

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
    /** The URL of the bound WebSocket; null: it serves none. */
    readonly bound: string | null
    /** URLs at which other machines reach it. */
    readonly urls: readonly string[]
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
  const [known, sockets] = [await openAddresses(home), await openWebSockets(home)]
  const websocket = { acceptor: sockets.acceptor, via }
  const network = await openNetwork({ kind, bootstrap, serveBootstrap, localPort, behindNat, known, websocket }, clock)
  unwind.add('network', () => network.close())
  network.state.onChange((problem) => reportNetwork(home, problem))
  const learn: NonNullable<MeshDeps['onPassed']> = (peer, { rawStream }) => {
    // All nodes of a local network find each other on one port.
    if (kind === 'local' || rawStream === null) return
    const { remoteHost, remotePort: port } = rawStream
    known.learn(peer, { host: remoteHost ?? '', port }, network.dht.localAddress()?.port ?? null)
  }
  return { network, learn, sockets: { ...sockets.served, locate: network.locate } }
}

interface OpenedWebSockets {
  readonly acceptor: WebSocketAcceptor | null
  readonly served: Omit<HomeNetwork['sockets'], 'locate'>
}

/** The server of WebSockets, if there is one. A taken port fails the start before an invite is used. */
async function openWebSockets({ options, unwind }: NetworkHome): Promise<OpenedWebSockets> {
  const { listen: asked, urls } = options.config.websocket
  const at = asked === null ? null : listenAddress(asked)
  if (at === null)
    return { acceptor: null, served: { bound: null, urls: [], problems: urls.length > 0 ? [UNSERVED] : [] } }
  const { server, acceptor, close } = await openWebSocketServer()
  const { address, port } = await listen(server, at, WORDS)
  unwind.add('WebSocket server', close)
  const urlAt = (host: string): string => `ws://${bracketed(host)}:${port}${WEBSOCKET_PATH}`
  const known = urls.length > 0 ? urls : hostsAt(address).map(urlAt)
  return { acceptor, served: { bound: urlAt(address), urls: known, problems: [] } }
}

/** Hosts under which other machines reach a bound address; none for one of this machine alone. */
function hostsAt(address: string): readonly string[] {
  if (isLoopback(address)) return []
  return address === '0.0.0.0' || address === '::' ? machineAddresses().slice(0, MAX_OWN_URLS) : [address]
}

/** Where members were linked last, as the home has it. */
async function openAddresses({ documents, telemetry }: NetworkHome): Promise<KnownAddresses> {
  // Nothing is lost without it.
  const stored = await documents.read(ADDRESSES).catch(() => null)
  return new KnownAddresses(stored, (record) => {
    documents
      .write(ADDRESSES, record)
      .catch((error: unknown) => telemetry.log('warn', 'an address could not be kept', { reason: messageOf(error) }))
  })
}

/** Logs that other nodes cannot be found, or can again (`null`); a join prints the former. */
function reportNetwork({ options, telemetry, state }: NetworkHome, problem: NetworkProblem | null): void {
  if (problem === null) return telemetry.log('info', 'other nodes can be found again')
  if (state === null && options.join !== null) options.onProgress?.(`${problem.message}  [${problem.code}]`)
  else telemetry.log('warn', problem.message, { code: problem.code })
}
