import type http from 'node:http'
import type { AddressInfo } from 'node:net'
import { messageOf, NodeError } from '../../kit/errors.js'

/** Where to listen. */
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

/** Binds a server to an address. @throws NodeError PORT_IN_USE, NO_PERMISSION, CONFIG_INVALID for a host that this machine does not have */
export async function listen(server: http.Server, { host, port }: ListenAddress): Promise<AddressInfo> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(listenError(error, { host, port })))
    server.listen({ host, port }, resolve)
  })
  server.removeAllListeners('error').on('error', () => {})
  return server.address() as AddressInfo
}

function listenError(error: Error, { host, port }: { readonly host: string; readonly port: number }): NodeError {
  const code = (error as NodeJS.ErrnoException).code
  const text = `cannot serve HTTP on ${host}:${port}: ${messageOf(error)}`
  if (code === 'EADDRINUSE') {
    return new NodeError('PORT_IN_USE', `port ${port} of ${host} is taken by another program`, {
      cause: error,
      next: ['a2a-node start --http 0']
    })
  }
  return new NodeError(code === 'EACCES' ? 'NO_PERMISSION' : 'CONFIG_INVALID', text, { cause: error })
}
