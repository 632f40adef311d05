import net from 'node:net'
import type { Acceptor } from './addressed-transport.js'
import { TcpBytes } from './tcp-bytes.js'

/** Open connections to one server, at most; further ones are dropped. */
const MAX_CONNECTIONS = 512

/** A server for the TCP connections of other nodes. */
export interface OpenTcpServer {
  /** To be bound by its owner. */
  readonly server: net.Server
  readonly acceptor: Acceptor
  close(): Promise<void>
}

/** Opens a server of Noise streams. */
export function openTcpServer(): OpenTcpServer {
  let handler: Parameters<Acceptor['onBytes']>[0] = null
  const connections = new Set<net.Socket>()
  const server = net.createServer((socket) => {
    connections.add(socket)
    socket.once('close', () => connections.delete(socket))
    if (handler === null) socket.on('error', () => {}).destroy()
    else handler(new TcpBytes(socket, false))
  })
  server.maxConnections = MAX_CONNECTIONS
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve())
      for (const socket of connections) socket.destroy()
    })
  return { server, acceptor: { onBytes: (next) => void (handler = next) }, close }
}
