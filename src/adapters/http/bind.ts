import type { AddressInfo, Server } from 'node:net'
import { messageOf, NodeError } from '../../kit/errors.js'

interface ListenAddress {
  /** A name or address; a wildcard binds every address. */
  readonly host: string
  /** 0: a free one. */
  readonly port: number
}

/** Is it an address of this machine that no other one reaches? */
export function isLoopback(address: string): boolean {
  return address === '::1' || /^(?:::ffff:)?127\./.test(address)
}

/** The protocol of a server, and commands for an address that cannot be served. */
export interface ListenWords {
  readonly protocol: string
  /** For a port in use; the first one for other faults, too. */
  readonly next: readonly string[]
}

const HTTP_WORDS: ListenWords = { protocol: 'HTTP', next: ['a2a-node start --http 0'] }

/**
 * Binds a server to an address.
 * @throws NodeError PORT_IN_USE, NO_PERMISSION, CONFIG_INVALID for a host that this machine does not have
 */
export async function listen(server: Server, { host, port }: ListenAddress, words = HTTP_WORDS): Promise<AddressInfo> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(listenError(error, { host, port }, words)))
    server.listen({ host, port }, resolve)
  })
  server.removeAllListeners('error').on('error', () => {})
  return server.address() as AddressInfo
}

/** Why an address cannot be served, by the code of the system. */
const REASONS: Readonly<Record<string, string>> = {
  EADDRNOTAVAIL: 'the address is not one of this machine',
  ENOTFOUND: 'the host name has no address',
  EAI_AGAIN: 'the host name has no address, or no name server answers',
  EACCES: 'this user may not serve this port'
}

function listenError(error: Error, { host, port }: ListenAddress, { protocol, next }: ListenWords): NodeError {
  const code = (error as NodeJS.ErrnoException).code
  if (code === 'EADDRINUSE') {
    return new NodeError('PORT_IN_USE', `port ${port} of ${host} is in use by another program`, {
      cause: error,
      next
    })
  }
  const text = `cannot serve ${protocol} on ${host}:${port}: ${REASONS[code ?? ''] ?? messageOf(error)}`
  return new NodeError(code === 'EACCES' ? 'NO_PERMISSION' : 'CONFIG_INVALID', text, {
    cause: error,
    next: [...next, 'a2a-node config show']
  })
}
