import net from 'node:net'
import { parseTcpAddress } from '../../../kit/net/tcp-address.js'
import type { AddressDial } from './addressed-transport.js'
import { isOwnHost, lookupElsewhere } from './foreign-host.js'
import { TcpBytes } from './tcp-bytes.js'

/** Milliseconds until a connection is open, at most. */
const CONNECT_MS = 10_000

/**
 * Connects to a node at `host:port`.
 * @throws Error when it does not open
 */
export async function dialTcp(address: string, { isForeign, clock, signal }: AddressDial): Promise<TcpBytes> {
  const at = parseTcpAddress(address)
  if (at === null) throw new Error(`${address} is no address of a node`)
  if (isForeign && isOwnHost(at.host)) throw new Error(`${address} is an address of this machine alone`)
  signal.throwIfAborted()
  const socket = net.connect({ ...at, ...(isForeign ? { lookup: lookupElsewhere } : {}) })
  return await new Promise((resolve, reject) => {
    const abort = (): void => void socket.destroy(new Error('nothing answers there'))
    const timer = clock.after(CONNECT_MS, abort)
    const ended = (): void => {
      clock.clear(timer)
      signal.removeEventListener('abort', abort)
    }
    signal.addEventListener('abort', abort, { once: true })
    socket.once('connect', () => {
      ended()
      socket.off('error', reject)
      resolve(new TcpBytes(socket, true))
    })
    socket.once('error', reject)
    socket.once('close', ended)
  })
}
