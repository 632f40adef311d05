import type { Assert } from 'brittle'
import crypto from 'hypercore-crypto'
import { openWebSocketServer } from '../../../../src/adapters/mesh/transport/websocket-server.js'
import {
  WebSocketTransport,
  type WebSocketTransportDeps
} from '../../../../src/adapters/mesh/transport/websocket-transport.js'
import { systemClock } from '../../../../src/adapters/system/system-clock.js'
import { WEBSOCKET_PATH } from '../../../../src/kit/net/websocket-url.js'
import { listen } from '../../../../src/adapters/http/bind.js'
import { keyToText, type NodeId } from '../../../../src/kit/ids.js'

/** A transport over WebSockets of loopback. */
export interface WebSocketSubject {
  readonly id: NodeId
  readonly transport: WebSocketTransport
  /** Where it serves. */
  readonly url: string
}

/** Opens transports that know each other's URLs. */
export function webSocketWorld(t: Assert): (given?: Partial<WebSocketTransportDeps>) => Promise<WebSocketSubject> {
  const urls = new Map<NodeId, string>()
  return async (given = {}) => {
    const { acceptor, url, close } = await servedWebSockets()
    const keyPair = given.keyPair ?? crypto.keyPair()
    const id = keyToText(keyPair.publicKey)
    urls.set(id, url)
    const transport = new WebSocketTransport({
      keyPair,
      clock: systemClock(),
      keepAliveMs: 2000,
      acceptor,
      via: [],
      addressesOf: (peer) => [urls.get(peer)].filter((one) => one !== undefined),
      isLocal: true,
      ...given
    })
    t.teardown(async () => {
      await transport.close()
      await close()
    })
    return { id, transport, url }
  }
}

/** A server of WebSockets on loopback. The caller closes it. */
export async function servedWebSockets() {
  const opened = await openWebSocketServer()
  const { port } = await listen(opened.server, { host: '127.0.0.1', port: 0 })
  return { ...opened, port, url: `ws://127.0.0.1:${port}${WEBSOCKET_PATH}` }
}
