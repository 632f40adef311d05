import http from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { WebSocketServer } from 'ws'
import { WEBSOCKET_PATH } from '../../../kit/net/websocket-url.js'
import type { Acceptor } from './addressed-transport.js'
import { MESSAGE_MAX_BYTES, WebSocketBytes } from './websocket-bytes.js'

/** Open connections to one server, at most; further ones are dropped. */
const MAX_CONNECTIONS = 512
/** Milliseconds until the headers of a request are there. */
const HEADERS_MS = 10_000

/** Accepts WebSockets of other nodes. */
export class WebSocketAcceptor implements Acceptor {
  readonly #sockets: WebSocketServer
  #handler: ((bytes: WebSocketBytes) => void) | null = null

  private constructor(sockets: WebSocketServer) {
    this.#sockets = sockets
  }

  /** Loads the library: a node without WebSockets needs none. */
  static async open(): Promise<WebSocketAcceptor> {
    const { WebSocketServer } = await import('ws')
    return new WebSocketAcceptor(
      new WebSocketServer({
        noServer: true,
        maxPayload: MESSAGE_MAX_BYTES,
        perMessageDeflate: false,
        allowSynchronousEvents: true
      })
    )
  }

  onBytes(handler: ((bytes: WebSocketBytes) => void) | null): void {
    this.#handler = handler
  }

  /** Takes an upgrade request of an HTTP server, and answers every one that is none of a node. */
  upgrade(request: http.IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', () => socket.destroy())
    const handler = this.#handler
    if (request.url?.split('?')[0] !== WEBSOCKET_PATH) return refuse(socket, '404 Not Found')
    if (handler === null) return refuse(socket, '503 Service Unavailable')
    this.#sockets.handleUpgrade(request, socket, head, (open) => handler(new WebSocketBytes(open, false)))
  }
}

/** A server for the WebSockets of other nodes. */
export interface OpenWebSocketServer {
  /** To be bound by its owner. */
  readonly server: http.Server
  readonly acceptor: WebSocketAcceptor
  close(): Promise<void>
}

/** Opens a server of WebSockets at `/mesh`, and of nothing else. */
export async function openWebSocketServer(): Promise<OpenWebSocketServer> {
  const acceptor = await WebSocketAcceptor.open()
  const server = http.createServer({
    headersTimeout: HEADERS_MS,
    requestTimeout: HEADERS_MS,
    connectionsCheckingInterval: HEADERS_MS / 4,
    maxHeaderSize: 16_384
  })
  server.maxConnections = MAX_CONNECTIONS
  // The server forgets a connection that became a WebSocket, and waits for its end all the same.
  const connections = new Set<Socket>()
  server.on('connection', (socket) => {
    connections.add(socket)
    socket.once('close', () => connections.delete(socket))
  })
  server.on('request', (_request, response: http.ServerResponse) => {
    response.writeHead(426, { connection: 'close', upgrade: 'websocket' }).end()
  })
  server.on('upgrade', (request, socket, head) => acceptor.upgrade(request, socket, head))
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve())
      for (const socket of connections) socket.destroy()
    })
  return { server, acceptor, close }
}

function refuse(socket: Duplex, status: string): void {
  // Else a client that never ends its side would keep the connection for ever.
  socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`, () => socket.destroy())
}
