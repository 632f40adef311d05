import os from 'node:os'
import type { AddressInfo } from 'node:net'
import { KnownAddresses } from '../../adapters/mesh/network/known-addresses.js'
import type { MeshDeps } from '../../adapters/mesh/network/mesh-node.js'
import { type Network, openNetwork } from '../../adapters/mesh/network/network.js'
import type { NetworkProblem } from '../../adapters/mesh/network/reachability.js'
import { serveWebSockets, type WebSocketListener } from '../../adapters/mesh/transport/websocket-server.js'
import { listenAddress } from '../../config/public-url.js'
import { messageOf } from '../../kit/errors.js'
import { WEBSOCKET_PATH } from '../../kit/net/websocket-url.js'
import type { NodeStore } from '../../ports/storage.js'
import type { NodeRecord } from '../node-record.js'
import type { StartDeps } from '../open-home.js'

/** Name of the stored document of addresses. */
const ADDRESSES = 'addresses'
/** Addresses of this machine under which its WebSocket is announced, at most. */
const MAX_OWN_URLS = 4

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
    /** See {@link Network.locate}. */
    readonly locate: Network['locate']
  }
}

/**
 * Opens the network of a home.
 * @throws NodeError as {@link openNetwork} and {@link serveWebSockets}
 */
export async function openHomeNetwork(home: NetworkHome): Promise<HomeNetwork> {
  const { options, clock, unwind, record } = home
  const { serveBootstrap, behindNat } = options.config.network
  const { via } = options.config.websocket
  const { network: kind, bootstrap, localPort } = record
  const [known, sockets] = [await openAddresses(home), await openWebSockets(home)]
  const websocket = { acceptor: sockets?.acceptor ?? null, via }
  const network = await openNetwork({ kind, bootstrap, serveBootstrap, localPort, behindNat, known, websocket }, clock)
  unwind.add('network', () => network.close())
  network.state.onChange((problem) => reportNetwork(home, problem))
  const learn: NonNullable<MeshDeps['onPassed']> = (peer, { rawStream }) => {
    // All nodes of a local network find each other on one port.
    if (kind === 'local' || rawStream === null) return
    const { remoteHost, remotePort: port } = rawStream
    known.learn(peer, { host: remoteHost ?? '', port }, network.dht.localAddress()?.port ?? null)
  }
  const bound = sockets === null ? null : boundUrl(sockets.address)
  return { network, learn, sockets: { bound, urls: urlsOf(home, sockets), locate: network.locate } }
}

/** The listener for WebSockets; null without the setting. A taken port fails the start before an invite is used. */
async function openWebSockets({ options, unwind }: NetworkHome): Promise<WebSocketListener | null> {
  const { listen } = options.config.websocket
  const at = listen === null ? null : listenAddress(listen)
  if (at === null) return null
  const listener = await serveWebSockets(at)
  unwind.add('WebSocket listener', () => listener.close())
  return listener
}

function urlsOf({ options }: NetworkHome, listener: WebSocketListener | null): readonly string[] {
  const { urls } = options.config.websocket
  if (urls.length > 0 || listener === null) return urls
  return boundHosts(listener.address).map((host) => `ws://${host}:${listener.address.port}${WEBSOCKET_PATH}`)
}

function boundUrl({ address, family, port }: AddressInfo): string {
  return `ws://${family === 'IPv6' ? `[${address}]` : address}:${port}${WEBSOCKET_PATH}`
}

/** Hosts under which other machines reach a bound address; none for one of this machine alone. */
function boundHosts({ address, family }: AddressInfo): readonly string[] {
  if (address === '::1' || address.startsWith('127.')) return []
  if (address !== '0.0.0.0' && address !== '::') return [family === 'IPv6' ? `[${address}]` : address]
  return Object.values(os.networkInterfaces())
    .flat()
    .flatMap((one) => (one !== undefined && !one.internal && one.family === 'IPv4' ? [one.address] : []))
    .slice(0, MAX_OWN_URLS)
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
