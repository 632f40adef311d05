import type { ClientOptions } from 'ws'
import type { AddressDial } from './addressed-transport.js'
import { isOwnHost, lookupElsewhere } from './foreign-host.js'
import { MESSAGE_MAX_BYTES, WebSocketBytes } from './websocket-bytes.js'

/** Milliseconds until a WebSocket is open, at most. */
const OPEN_MS = 10_000

/**
 * Opens the WebSocket of a node; a proxy of the environment (`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`) is used. Follows
 * no redirect.
 * @throws Error when it does not open
 */
export async function dialWebSocket(url: string, { isForeign, clock, signal }: AddressDial): Promise<WebSocketBytes> {
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
