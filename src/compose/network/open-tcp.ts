import { isLoopback, listen } from '../../adapters/http/bind.js'
import { LanDiscovery } from '../../adapters/mesh/discovery/lan-discovery.js'
import { openLanSockets } from '../../adapters/mesh/discovery/lan-sockets.js'
import type { KnownAddresses } from '../../adapters/mesh/network/known-addresses.js'
import type { NetworkTcp } from '../../adapters/mesh/network/transports.js'
import type { Acceptor } from '../../adapters/mesh/transport/addressed-transport.js'
import { openTcpServer } from '../../adapters/mesh/transport/tcp-server.js'
import { listenAddress } from '../../config/public-url.js'
import { asNodeError, NodeError } from '../../kit/errors.js'
import { parseTcpAddress, type TcpAddress, tcpAddressText } from '../../kit/net/tcp-address.js'
import type { Problem } from '../../ports/node-api.js'
import { hostsAt } from './own-hosts.js'
import type { NetworkHome } from './open-network.js'

const WORDS = { protocol: 'TCP', next: ['a2a-node config show'] }
const LOOPBACK = '127.0.0.1'

/** TCP of this node for members. */
export interface OpenedTcp {
  readonly acceptor: Acceptor | null
  /** `host:port` as bound; null: it serves none. */
  readonly bound: string | null
  /** `host:port` at which other nodes reach it. */
  readonly addresses: readonly string[]
  /** Why they cannot, for `status`. */
  readonly problems: readonly Problem[]
}

/**
 * Serves TCP as `tcp.listen` says; `auto` takes the port of the last run (`known`) if it is free.
 * @throws NodeError PORT_IN_USE, NO_PERMISSION, CONFIG_INVALID for a given address
 */
export async function openTcp(home: NetworkHome, known: KnownAddresses): Promise<OpenedTcp> {
  const { listen: asked, addresses } = home.options.config.tcp
  const isAuto = asked === 'auto'
  if (asked === 'off' || (isAuto && home.record.network === 'local')) return unserved([])
  const at = isAuto ? { host: ownHost(home), port: known.port ?? 0 } : givenAddress(asked, home)
  const ports = isAuto && at.port !== 0 ? [at.port, 0] : [at.port]
  try {
    return await served(home, known, { host: at.host, ports, addresses })
  } catch (error) {
    if (!isAuto) throw error
    // Nobody asked for it: the node works without.
    const { code, message, next } = asNodeError(error)
    return unserved([{ code, message, next: next[0] ?? 'a2a-node config show' }])
  }
}

/** Looks for members of the LAN, unless all members are on this machine or the config says no. */
export function lanOf(home: NetworkHome, { bound }: Pick<OpenedTcp, 'bound'>): Pick<NetworkTcp, 'discovery'> {
  const { options, clock } = home
  const at = bound === null ? null : parseTcpAddress(bound)
  if (!options.config.discovery.lan || ownHost(home) === LOOPBACK || (at !== null && isLoopback(at.host))) return {}
  return { discovery: new LanDiscovery({ clock, port: at?.port ?? null, open: openLanSockets }) }
}

function unserved(problems: readonly Problem[]): OpenedTcp {
  return { acceptor: null, bound: null, addresses: [], problems }
}

interface Serving {
  readonly host: string
  /** Tried in this order while one is in use. */
  readonly ports: readonly number[]
  readonly addresses: readonly string[]
}

async function served(home: NetworkHome, known: KnownAddresses, how: Serving): Promise<OpenedTcp> {
  const { host, addresses } = how
  const [port = 0, ...others] = how.ports
  const { server, acceptor, close } = openTcpServer()
  try {
    const bound = await listen(server, { host, port }, WORDS)
    home.unwind.add('TCP server', close)
    known.bound(bound.port)
    const textAt = (one: string): string => tcpAddressText({ host: one, port: bound.port })
    const hosts = home.record.network === 'local' ? [bound.address] : hostsAt(bound.address)
    const named = addresses.length > 0 ? addresses : hosts.map(textAt)
    return { acceptor, bound: textAt(bound.address), addresses: named, problems: [] }
  } catch (error) {
    await close()
    if (others.length === 0 || asNodeError(error).code !== 'PORT_IN_USE') throw error
    return await served(home, known, { ...how, ports: others })
  }
}

/** Where members may reach it: those of a local network, or with a bootstrap node of loopback, are on this machine. */
function ownHost({ record, options }: NetworkHome): string {
  const { serveBootstrap } = options.config.network
  const bootstrap = serveBootstrap === null ? record.bootstrap : [...record.bootstrap, serveBootstrap]
  const isHere = bootstrap.length > 0 && bootstrap.every((one) => one.startsWith(`${LOOPBACK}:`))
  return record.network === 'local' || (record.network === 'private' && isHere) ? LOOPBACK : '0.0.0.0'
}

function givenAddress(asked: string, home: NetworkHome): TcpAddress {
  const given = listenAddress(asked)
  const at = { host: ownHost(home), port: given?.port ?? 0 }
  if (given === null || /^\d+$/.test(asked)) return at
  if (home.record.network === 'local' && !isLoopback(given.host))
    throw new NodeError('CONFIG_INVALID', `tcp.listen is ${asked}, but a local network is of this machine alone`, {
      next: ['a2a-node config show']
    })
  return given
}
