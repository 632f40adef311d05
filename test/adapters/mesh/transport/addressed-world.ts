import test, { type Assert } from 'brittle'
import crypto from 'hypercore-crypto'
import {
  type Acceptor,
  AddressedTransport,
  type AddressedTransportDeps
} from '../../../../src/adapters/mesh/transport/addressed-transport.js'
import { dialTcp } from '../../../../src/adapters/mesh/transport/tcp-client.js'
import { openTcpServer } from '../../../../src/adapters/mesh/transport/tcp-server.js'
import { dialWebSocket } from '../../../../src/adapters/mesh/transport/websocket-client.js'
import { openWebSocketServer } from '../../../../src/adapters/mesh/transport/websocket-server.js'
import { systemClock } from '../../../../src/adapters/system/system-clock.js'
import { WEBSOCKET_PATH } from '../../../../src/kit/net/websocket-url.js'
import { listen } from '../../../../src/adapters/http/bind.js'
import { keyToText, type NodeId } from '../../../../src/kit/ids.js'
import { ManualClock } from '../../../support/manual-clock.js'

/** A transport over connections of loopback. */
export interface AddressedSubject {
  readonly id: NodeId
  readonly transport: AddressedTransport
  /** Where it serves. */
  readonly url: string
}

/** Opens one more transport; those of one world know each other's addresses. */
export type AddressedWorld = (given?: Partial<AddressedTransportDeps>) => Promise<AddressedSubject>

/** A server on loopback. The caller closes it. */
interface Served {
  readonly acceptor: Acceptor
  readonly url: string
  close(): Promise<void>
}

/** Transports over WebSockets. */
export function webSocketWorld(t: Assert): AddressedWorld {
  return world(t, servedWebSockets, dialWebSocket)
}

/** Transports over TCP. */
export function tcpWorld(t: Assert): AddressedWorld {
  return world(t, servedTcp, dialTcp)
}

function world(t: Assert, serve: () => Promise<Served>, open: AddressedTransportDeps['open']): AddressedWorld {
  const urls = new Map<NodeId, string>()
  return async (given = {}) => {
    const { acceptor, url, close } = await serve()
    const keyPair = given.keyPair ?? crypto.keyPair()
    const id = keyToText(keyPair.publicKey)
    urls.set(id, url)
    const transport = new AddressedTransport({
      keyPair,
      clock: systemClock(),
      keepAliveMs: 2000,
      acceptor,
      via: [],
      addressesOf: (peer) => named(...[urls.get(peer)].filter((one) => one !== undefined)),
      open,
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

/** Addresses on a card. */
export function named(...foreign: readonly string[]) {
  return { own: [], foreign }
}

/** A server of WebSockets on loopback. The caller closes it. */
export async function servedWebSockets() {
  const opened = await openWebSocketServer()
  const { port } = await listen(opened.server, { host: '127.0.0.1', port: 0 })
  return { ...opened, port, url: `ws://127.0.0.1:${port}${WEBSOCKET_PATH}` }
}

/** A server of Noise over TCP on loopback. The caller closes it. */
export async function servedTcp() {
  const opened = openTcpServer()
  const { port } = await listen(opened.server, { host: '127.0.0.1', port: 0 })
  return { ...opened, port, url: `127.0.0.1:${port}` }
}

/** A connection that sends nothing. */
export interface Silent {
  isOpen(): boolean
  /** Resolves once it ended. */
  readonly closed: Promise<void>
}

/** What connections that send nothing may take of a server of a kind of transport. */
export function silentStrangersContract(
  kind: string,
  openWorld: (t: Assert) => AddressedWorld,
  connect: (url: string) => Promise<Silent>
): void {
  test(`of silent strangers over ${kind} 32 wait, for 10 s and not beyond the end of the server, and a member gets in before`, async (t) => {
    const clock = new ManualClock()
    const open = openWorld(t)
    const server = await open({ clock })
    await server.transport.listen(new Uint8Array(32))
    const strangers = await Promise.all(Array.from({ length: 40 }, () => connect(server.url)))
    await Promise.all(strangers.slice(0, 8).map(({ closed }) => closed))
    t.is(strangers.filter((one) => one.isOpen()).length, 32)
    const seen = new Promise<NodeId>((resolve) =>
      server.transport.onStream((stream) => {
        stream.on('error', () => {})
        resolve(keyToText(stream.remotePublicKey))
      })
    )
    const member = await open()
    member.transport.onStream((stream) => void stream.on('error', () => {}))
    member.transport.dial(server.id)
    t.is(await seen, member.id)
    clock.advance(10_000)
    await Promise.all(strangers.map(({ closed }) => closed))
    const { closed } = await connect(server.url)
    await server.transport.close()
    await closed
  })
}
