import { type LookupAddress, type LookupAllOptions, type LookupOptions, lookup } from 'node:dns'
import net from 'node:net'
import type { ClientOptions } from 'ws'
import type { Clock } from '../../../kit/clock.js'
import { MESSAGE_MAX_BYTES, WebSocketBytes } from './websocket-bytes.js'

/** Milliseconds until a WebSocket is open, at most. */
const OPEN_MS = 10_000

/** How an address is dialled. */
export interface WebSocketDial {
  /** Does another member name the address? Then it must not be one of this machine alone. */
  readonly isForeign: boolean
  readonly clock: Clock
  /** Ends the try. */
  readonly signal: AbortSignal
}

/**
 * Opens the WebSocket of a node; a proxy of the environment (`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`) is used. Follows
 * no redirect.
 * @throws Error when it does not open
 */
export async function dialWebSocket(url: string, { isForeign, clock, signal }: WebSocketDial): Promise<WebSocketBytes> {
  const { WebSocket } = await import('ws')
  const agent = await proxyAgent(url)
  const options: ClientOptions & { lookup?: typeof lookupElsewhere } = {
    handshakeTimeout: OPEN_MS,
    maxPayload: MESSAGE_MAX_BYTES,
    perMessageDeflate: false,
    followRedirects: false,
    ...(agent === null ? {} : { agent })
  }
  if (isForeign) {
    const { hostname } = new URL(url)
    if (isOwnHost(hostname)) throw new Error(`${url} is an address of this machine alone`)
    // A proxy, which may run here, resolves other names itself.
    if (agent === null) options.lookup = lookupElsewhere
  }
  signal.throwIfAborted()
  const socket = new WebSocket(url, options)
  return await new Promise((resolve, reject) => {
    const abort = (): void => socket.terminate()
    // The limit of the library begins again with each byte that comes.
    const timer = clock.after(OPEN_MS, abort)
    const ended = (): void => {
      clock.clear(timer)
      signal.removeEventListener('abort', abort)
    }
    signal.addEventListener('abort', abort, { once: true })
    // Bytes of the peer may come in the turn in which it opens.
    socket.once('open', () => {
      ended()
      socket.off('error', reject)
      resolve(new WebSocketBytes(socket, true))
    })
    socket.once('error', reject)
    socket.once('close', ended)
  })
}

/** The agent for the proxy that the environment names for a URL; null for none. */
async function proxyAgent(url: string): Promise<import('node:http').Agent | null> {
  if (!Object.keys(process.env).some((name) => /^(?:https?|all)_proxy$/i.test(name))) return null
  const { getProxyForUrl } = await import('proxy-from-env')
  const proxy = getProxyForUrl(url.replace(/^ws/, 'http'))
  if (proxy === '') return null
  const { HttpsProxyAgent } = await import('https-proxy-agent')
  return new HttpsProxyAgent(proxy)
}

const OWN = new net.BlockList()
OWN.addSubnet('0.0.0.0', 8)
OWN.addSubnet('127.0.0.0', 8)
OWN.addSubnet('169.254.0.0', 16)
OWN.addAddress('::', 'ipv6')
OWN.addAddress('::1', 'ipv6')
OWN.addSubnet('fe80::', 10, 'ipv6')

/** Is it an address of this machine alone, or a link-local one, as metadata services of clouds have? */
function isOwnAddress(address: string): boolean {
  const kind = net.isIP(address)
  if (kind === 0) return false
  return OWN.check(address, kind === 4 ? 'ipv4' : 'ipv6')
}

/** Is it such an address, or a name that is one everywhere? */
function isOwnHost(hostname: string): boolean {
  return isOwnAddress(hostname.replace(/^\[|\]$/g, '')) || /^(?:.*\.)?localhost\.?$/i.test(hostname)
}

type FoundAddresses = (error: Error | null, found: string | LookupAddress[], family?: number) => void

/** Resolves a name like `dns.lookup`, and refuses addresses of this machine alone. */
function lookupElsewhere(hostname: string, options: LookupOptions, done: FoundAddresses): void {
  const all: LookupAllOptions = { ...options, all: true }
  lookup(hostname, all, (error, addresses) => {
    const found = error === null ? addresses.filter(({ address }) => !isOwnAddress(address)) : []
    const [first] = found
    if (first === undefined) return done(error ?? new Error(`${hostname} is a name of this machine alone`), '')
    if (options.all === true) done(null, found)
    else done(null, first.address, first.family)
  })
}
