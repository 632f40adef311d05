import dgram from 'node:dgram'
import HyperDHT from 'hyperdht'
import { messageOf, NodeError } from '../../../kit/errors.js'
import type { NodeId } from '../../../kit/ids.js'
import type { Clock, Timer } from '../../../kit/clock.js'
import type { KnownAddresses } from './known-addresses.js'
import { type DialRecord, RecordedDht } from './dial-record.js'
import { type NetworkState, Reachability } from './reachability.js'
import { examinePeer } from './peer-sight.js'
import { timely } from './timely.js'
import {
  type NetworkTcp,
  type NetworkWebSockets,
  openTransports,
  type Transports,
  withTransports
} from './transports.js'

/** How nodes find each other. */
export interface NetworkOptions {
  /** `public`: the default DHT. `private`: the given bootstrap list. `local`: loopback with an embedded bootstrap. */
  readonly kind: 'public' | 'private' | 'local'
  /** `host:port`, for `private`. */
  readonly bootstrap: readonly string[]
  /** `host:port` to serve a bootstrap node on, or null. */
  readonly serveBootstrap: string | null
  /** `private` only: members sit behind NAT, so that holes must be punched (which needs several bootstrap nodes). */
  readonly behindNat: boolean
  /** Where members were linked last: they are dialled there while no other node of the DHT answers. Absent: none. */
  readonly known?: Pick<KnownAddresses, 'of' | 'port'>
  /** Port of the embedded bootstrap of `local`. Keep it below 32768: above, a random client socket may own it. */
  readonly localPort: number
  /** WebSockets of this node and of others. Absent: it serves none, and dials those that members name. */
  readonly websocket?: NetworkWebSockets
  /** TCP of this node and of others. Absent: it serves none, and dials where members name it. */
  readonly tcp?: NetworkTcp
}

/** A DHT node of one kind of network, and maybe a bootstrap node beside it. */
export interface Network extends Transports {
  readonly dht: HyperDHT
  /** Can other nodes be found? */
  readonly state: NetworkState
  readonly dials: Pick<DialRecord, 'of' | 'failed'>
  /** Does this node serve WebSockets, or dial them all the time? */
  readonly hasWebSockets: boolean
  /** Do nodes of one LAN find each other without the DHT? */
  readonly hasLan: boolean
  /** The ways to a peer, as {@link examinePeer}. */
  examine(peer: NodeId): ReturnType<typeof examinePeer>
  /** Does this process serve the bootstrap node now? */
  serving(): boolean
  /** Called when this process took the bootstrap over: records there are empty, so announce again. */
  onTakeover(listener: () => void): void
  close(): Promise<void>
}

/** How often a process that could not get the bootstrap port tries to take it over, in milliseconds. */
const TAKEOVER_MS = 2000
/**
 * How long another process may take to answer on the bootstrap port of loopback, in milliseconds, and how often it is
 * asked.
 */
const ANSWER_MS = 1500
const ASKS = 2
/** Keep-alive of idle streams, in milliseconds. Two are lost before {@link STREAM_TIMEOUT_MS} ends the stream. */
const KEEP_ALIVE_MS = 2000

/** A stream with no byte for this long is dead, in milliseconds. */
export const STREAM_TIMEOUT_MS = 6000

/**
 * Opens the DHT node.
 * @throws NodeError PORT_IN_USE when `serveBootstrap` names a taken port, or no node of this kind holds the taken port
 * of `local`; CONFIG_INVALID for an address that is broken or of another machine; NO_PERMISSION.
 */
export async function openNetwork(options: NetworkOptions, clock: Clock): Promise<Network> {
  const bootstrap = await openBootstrap(options, clock)
  const { known } = options
  const port = known?.port ?? null
  const dht = new RecordedDht(
    { ...addressing(options), ...(port === null ? {} : { port }), connectionKeepAlive: KEEP_ALIVE_MS },
    (peer) => (state.isAnswering() ? [] : (known?.of(peer) ?? []))
  )
  const { acceptor = null, via = [] } = options.websocket ?? {}
  const hasWebSockets = acceptor !== null || via.length > 0
  const isDeclared = options.kind === 'private' && !options.behindNat
  const hasLan = options.tcp?.discovery !== undefined
  const state: Reachability = new Reachability({ kind: options.kind, dht, clock, isDeclared, hasWebSockets, hasLan })
  const close = async (): Promise<void> => {
    state.close()
    await bootstrap?.close()
    await dht.destroy({ force: true })
  }
  try {
    await bootstrap?.reach(dht)
  } catch (error) {
    await close()
    throw error
  }
  const transports = openTransports(options, { dht, clock, keepAliveMs: KEEP_ALIVE_MS })
  const isLocal = options.kind === 'local'
  const urlsOf = (peer: NodeId): readonly string[] => transports.cardOf(peer).websocket
  return {
    dht,
    state: withTransports(state, transports, options.tcp?.discovery),
    dials: dht.dials,
    hasWebSockets,
    hasLan,
    examine: (peer) => examinePeer({ dht, state, dials: dht.dials, clock, isLocal, urlsOf }, peer),
    ...transports,
    serving: () => bootstrap?.serving() ?? false,
    onTakeover: (listener) => bootstrap?.onTakeover(listener),
    close
  }
}

function addressing(options: NetworkOptions): { bootstrap?: string[]; host?: string; firewalled?: boolean } {
  if (options.kind === 'public') return {}
  // On one host the default bind often connects and dies after 13 s; bound to loopback it never did.
  if (options.kind === 'local')
    return { bootstrap: [`127.0.0.1:${options.localPort}`], host: '127.0.0.1', firewalled: false }
  const bootstrap = [...options.bootstrap]
  if (options.serveBootstrap !== null) bootstrap.push(options.serveBootstrap)
  if (bootstrap.every((one) => one.startsWith('127.0.0.1:'))) return { bootstrap, host: '127.0.0.1', firewalled: false }
  // With a single bootstrap node the effect of a NAT cannot be detected; declared reachable, members connect directly.
  return { bootstrap, firewalled: options.behindNat }
}

interface Bootstrap {
  serving(): boolean
  onTakeover(listener: () => void): void
  /** Makes sure that a bootstrap node exists. @throws NodeError PORT_IN_USE when something else holds its port */
  reach(dht: HyperDHT): Promise<void>
  close(): Promise<void>
}

async function openBootstrap(options: NetworkOptions, clock: Clock): Promise<Bootstrap | null> {
  if (options.kind === 'local') return embeddedBootstrap(options.localPort, clock)
  if (options.serveBootstrap === null) return null
  const { host, port } = parseAddress(options.serveBootstrap)
  const node = await serve(host, port)
  if (node === null) {
    throw new NodeError('PORT_IN_USE', `port ${port} is in use, so no bootstrap node can be served on it`, {
      next: [`a2a-node start --serve-bootstrap ${host}:<another port>`]
    })
  }
  return { serving: () => true, onTakeover: () => {}, reach: () => Promise.resolve(), close: () => node.destroy() }
}

/** The first process serves; any survivor takes the port over when it becomes free. */
async function embeddedBootstrap(port: number, clock: Clock): Promise<Bootstrap> {
  const listeners: (() => void)[] = []
  let timer: Timer | null = null
  let closed = false
  let node = await serve('127.0.0.1', port)
  let trying: Promise<void> = Promise.resolve()
  if (node === null) {
    timer = clock.every(TAKEOVER_MS, () => {
      trying = trying.then(tryTakeover)
    })
  }
  async function tryTakeover(): Promise<void> {
    if (closed || node !== null) return
    node = await serve('127.0.0.1', port)
    if (node === null) return
    clock.clear(timer)
    if (!closed) for (const listener of listeners) listener()
  }
  return {
    serving: () => node !== null,
    onTakeover: (listener) => void listeners.push(listener),
    reach: async (dht) => {
      for (let ask = 0; ask < ASKS && node === null; ask++) {
        if (await answers(dht, port, clock)) return
        // The one that held it may just have ended.
        trying = trying.then(tryTakeover)
        await trying
      }
      if (node === null) throw foreignPort(port)
    },
    close: async () => {
      closed = true
      clock.clear(timer)
      await trying
      await node?.destroy({ force: true })
    }
  }
}

/** Does a DHT node hold the port of loopback? */
async function answers(dht: HyperDHT, port: number, clock: Clock): Promise<boolean> {
  let isThere = false
  const asked = dht.ping({ host: '127.0.0.1', port }).then(() => {
    isThere = true
  })
  await timely(asked, clock, ANSWER_MS)
  return isThere
}

function foreignPort(port: number): NodeError {
  return new NodeError(
    'PORT_IN_USE',
    `port ${port} is held by another program, so nodes of this host cannot find each other on it`,
    {
      next: ['A2A_NODE_LOCAL_PORT=<another port> a2a-node start']
    }
  )
}

/** A bootstrap node, or null when the port is taken. */
async function serve(host: string, port: number): Promise<HyperDHT | null> {
  // A DHT node that cannot bind leaves a socket open for ever, so the port is tried with one of our own first.
  if (!(await isFree(host, port))) return null
  const node = HyperDHT.bootstrapper(port, host, { host })
  try {
    await node.ready()
    return node
  } catch (error) {
    await node.destroy().catch(() => {})
    if ((error as { code?: unknown }).code === 'EADDRINUSE') return null
    throw cannotServe(error, { host, port })
  }
}

/** The error of a free port that cannot be bound. */
function cannotServe(error: unknown, { host, port }: { readonly host: string; readonly port: number }): NodeError {
  const { code } = error as { readonly code?: unknown }
  if (code === 'EADDRNOTAVAIL')
    return new NodeError(
      'CONFIG_INVALID',
      `${host} is no address of this machine, so no bootstrap node can be served on it`,
      {
        cause: error,
        next: [`a2a-node start --serve-bootstrap <address of this machine>:${port}`]
      }
    )
  const text = `no bootstrap node can be served on ${host}:${port}: ${messageOf(error)}`
  return new NodeError(code === 'EACCES' ? 'NO_PERMISSION' : 'CONFIG_INVALID', text, { cause: error })
}

function isFree(host: string, port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = dgram.createSocket('udp4')
    socket.once('error', (error: NodeJS.ErrnoException) => {
      socket.close()
      if (error.code === 'EADDRINUSE') resolve(false)
      else reject(cannotServe(error, { host, port }))
    })
    socket.bind(port, host, () => socket.close(() => resolve(true)))
  })
}

function parseAddress(text: string): { host: string; port: number } {
  const match = /^([0-9.]+):(\d{1,5})$/.exec(text)
  const port = Number(match?.[2])
  if (match?.[1] === undefined || port < 1 || port > 65535) {
    throw new NodeError('CONFIG_INVALID', `"${text}" is no IPv4 address with a port, such as 10.0.0.5:29737`, {
      next: ['a2a-node start --serve-bootstrap <IPv4 address of this machine>:29737']
    })
  }
  return { host: match[1], port }
}
