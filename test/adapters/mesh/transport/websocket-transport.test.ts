import net, { type AddressInfo } from 'node:net'
import NoiseSecretStream from '@hyperswarm/secret-stream'
import test from 'brittle'
import type { NoiseStream } from 'hyperswarm'
import { WebSocket } from 'ws'
import type { PeerBytes } from '../../../../src/adapters/mesh/transport/peer-bytes.js'
import { dialWebSocket } from '../../../../src/adapters/mesh/transport/websocket-client.js'
import { systemClock } from '../../../../src/adapters/system/system-clock.js'
import { keyToText, type NodeId } from '../../../../src/kit/ids.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { streamTransportContract } from '../../../contracts/stream-transport.js'
import { named, servedWebSockets, type Silent, silentStrangersContract, webSocketWorld } from './addressed-world.js'

const TOPIC = new Uint8Array(32)

streamTransportContract('WebSocket transport', async (t) => webSocketWorld(t), { findsPeers: false })

silentStrangersContract('WebSockets', webSocketWorld, silent)

test('second streams of a peer that sends nothing are bounded in number, time and bytes', async (t) => {
  const clock = new ManualClock()
  const server = await webSocketWorld(t)({ clock })
  const seen: NoiseStream[] = []
  const first = new Promise<void>((resolve) =>
    server.transport.onStream((stream) => {
      stream.on('error', () => {})
      seen.push(stream)
      resolve()
    })
  )
  await server.transport.listen(TOPIC)
  const keyPair = NoiseSecretStream.keyPair()
  const dial = { isForeign: false, clock: systemClock(), signal: new AbortController().signal }
  const open = async () => {
    const bytes = await dialWebSocket(server.url, dial)
    const stream = new NoiseSecretStream(true, bytes, { keyPair })
    stream.on('error', () => {})
    const closed = new Promise<void>((resolve) => stream.once('close', () => resolve()))
    await stream.opened
    return { bytes, stream, closed }
  }
  /** A part of a message is none, and gives no more time. */
  const dribble = async (length: number) => {
    const opened = await open()
    opened.bytes.write(Uint8Array.of(length & 255, (length >> 8) & 255, length >> 16))
    const timer = setInterval(() => opened.bytes.write(Uint8Array.of(1)), 500)
    void opened.closed.then(() => clearInterval(timer))
    t.teardown(() => opened.stream.destroy())
    return opened
  }
  const used = await open()
  await first
  await (await dribble(16_777_215)).closed
  const waiting: Awaited<ReturnType<typeof open>>[] = []
  for (let at = 0; at < 40; at++) waiting.push(await dribble(100_000))
  await Promise.all(waiting.slice(0, 8).map(({ closed }) => closed))
  t.is(waiting.filter(({ stream }) => !stream.destroyed).length, 32)
  clock.advance(10_000)
  await Promise.all(waiting.map(({ closed }) => closed))
  t.alike([seen.length, used.stream.destroyed], [1, false])
})

test('closing a listener ends its open sockets, also one that a client does not end after its refusal', async (t) => {
  const { acceptor, port, url, close } = await servedWebSockets()
  acceptor.onBytes((bytes) => void bytes.on('error', () => {}))
  const { socket, closed } = await silent(url)
  const refused = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  t.teardown(() => refused.destroy())
  refused.write('GET /x HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n')
  await new Promise((resolve) => refused.once('data', resolve))
  await Promise.all([close(), closed])
  t.is(socket.readyState, WebSocket.CLOSED)
})

test('undialling in a handshake ends its socket', async (t) => {
  const { acceptor, url, close } = await servedWebSockets()
  t.teardown(close)
  const accepted = new Promise<PeerBytes>((resolve) => acceptor.onBytes(resolve))
  const { transport } = await webSocketWorld(t)({ addressesOf: () => named(url) })
  transport.dial(NOBODY)
  const bytes = await accepted
  const gone = new Promise<void>((resolve) => bytes.on('error', () => {}).once('close', () => resolve()))
  await new Promise((resolve) => bytes.once('data', resolve))
  t.absent(bytes.destroyed, 'the handshake is open')
  transport.undial(NOBODY)
  await gone
  t.ok(bytes.destroyed)
})

test('the addresses of a peer are tried at once: one that never answers delays no other', async (t) => {
  let isGivenUp = false
  const deaf = net.createServer(
    (socket) =>
      void socket
        .resume()
        .on('error', () => {})
        .once('close', () => (isGivenUp = true))
  )
  await new Promise<void>((resolve) => deaf.listen(0, '127.0.0.1', resolve))
  const { port } = deaf.address() as AddressInfo
  t.teardown(() => deaf.close())
  const open = webSocketWorld(t)
  const server = await open()
  await server.transport.listen(TOPIC)
  server.transport.onStream((stream) => void stream.on('error', () => {}))
  const wrong = await open()
  await wrong.transport.listen(TOPIC)
  // The clock stands still: no limit ends a try.
  const own = await open({
    clock: new ManualClock(),
    addressesOf: () => named(`ws://127.0.0.1:${port}/mesh`, wrong.url, server.url, server.url)
  })
  const seen: [NodeId, boolean][] = []
  const opened = new Promise<void>((resolve) =>
    own.transport.onStream((stream) => {
      stream.on('error', () => {})
      seen.push([keyToText(stream.remotePublicKey), isGivenUp])
      resolve()
    })
  )
  own.transport.dial(server.id)
  await opened
  t.alike(seen, [[server.id, false]])
})

test('a server that sends its answer byte by byte is given 10 s in all', async (t) => {
  const clock = new ManualClock()
  const server = net.createServer(
    (socket) => void socket.on('error', () => {}).once('data', () => socket.write('HTTP'))
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const asked = new Promise<net.Socket>((resolve) => server.once('connection', resolve))
  const { port } = server.address() as AddressInfo
  const dialled = dialWebSocket(`ws://127.0.0.1:${port}/mesh`, {
    isForeign: false,
    clock,
    signal: new AbortController().signal
  })
  const failed = t.exception(dialled)
  await new Promise((resolve) => void asked.then((socket) => socket.once('data', resolve)))
  clock.advance(10_000)
  await failed
})

test('addresses of this machine that a member names are not dialled, nor given to a proxy', async (t) => {
  const proxy = net.createServer((socket) => {
    t.fail('the proxy was asked')
    socket.destroy()
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  const { port } = proxy.address() as AddressInfo
  const { HTTP_PROXY } = process.env
  t.teardown(() => {
    proxy.close()
    if (HTTP_PROXY === undefined) delete process.env['HTTP_PROXY']
    else process.env['HTTP_PROXY'] = HTTP_PROXY
  })
  const own = ['127.0.0.1', '127.1', '2130706433', '0', '[::1]', '[::ffff:127.0.0.1]', 'localhost', 'a.localhost.']
  for (const given of [undefined, `http://127.0.0.1:${port}`]) {
    if (given !== undefined) process.env['HTTP_PROXY'] = given
    for (const host of [...own, '169.254.169.254', '[fe80::1]']) {
      const dial = { isForeign: true, clock: new ManualClock(), signal: new AbortController().signal }
      await t.exception(dialWebSocket(`ws://${host}:${port}/mesh`, dial), /of this machine alone/, host)
    }
  }
})

test('a member that names the URL of another one does not end the stream to that one', async (t) => {
  const open = webSocketWorld(t)
  const b = await open()
  const a = await open({ addressesOf: () => named(b.url) })
  const closed: string[] = []
  const streams: NoiseStream[] = []
  let onBoth = (): void => {}
  const opened = new Promise<void>((resolve) => (onBoth = resolve))
  for (const [name, { transport }] of Object.entries({ a, b }))
    transport.onStream((stream) => {
      stream.on('error', () => {}).on('close', () => void closed.push(name))
      if (streams.push(stream) === 2) onBoth()
    })
  await b.transport.listen(TOPIC)
  a.transport.dial(b.id)
  await opened
  const asked = new Promise<void>((resolve) =>
    b.transport.firewall(() => {
      setImmediate(resolve)
      return true
    })
  )
  a.transport.dial(NOBODY)
  await asked
  const received = new Promise((resolve) => streams[1]?.once('data', resolve))
  streams[0]?.write(Buffer.from('still here'))
  await received
  t.alike([streams.length, closed], [2, []])
})

test('a large message that is sent as soon as the stream opens arrives', async (t) => {
  const open = webSocketWorld(t)
  const [a, b] = [await open(), await open()]
  const received = new Promise<number>((resolve) =>
    b.transport.onStream((stream) => {
      stream.on('error', () => {}).on('data', ({ byteLength }) => resolve(byteLength))
    })
  )
  a.transport.onStream((stream) => void stream.on('error', () => {}).write(Buffer.alloc(50_000)))
  await b.transport.listen(TOPIC)
  a.transport.dial(b.id)
  t.is(await received, 50_000)
})

test('no other path and no plain request gets anything from the server', async (t) => {
  const server = await webSocketWorld(t)()
  const url = new URL(server.url)
  url.protocol = 'http:'
  t.is((await fetch(url)).status, 426)
  for (const path of ['/', '/mesh2', '/other']) t.is(await refusal(new URL(path, server.url).href), 404)
  t.is(await refusal(server.url), 503, 'before it listens')
})

const NOBODY = keyToText(new Uint8Array(32).fill(7))

async function silent(url: string): Promise<Silent & { readonly socket: WebSocket }> {
  const socket = new WebSocket(url)
  socket.on('error', () => {})
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  await new Promise((resolve) => socket.once('open', resolve))
  return { socket, closed, isOpen: () => socket.readyState === WebSocket.OPEN }
}

function refusal(url: string): Promise<number | undefined> {
  return new Promise((resolve) => {
    const socket = new WebSocket(url)
    socket.on('error', () => {})
    socket.once('unexpected-response', (_request, response) => {
      resolve(response.statusCode)
      socket.terminate()
    })
  })
}
