import net from 'node:net'
import { once } from 'node:events'
import NoiseSecretStream from '@hyperswarm/secret-stream'
import test from 'brittle'
import crypto from 'hypercore-crypto'
import type { NoiseStream } from 'hyperswarm'
import { dialTcp } from '../../../../src/adapters/mesh/transport/tcp-client.js'
import { systemClock } from '../../../../src/adapters/system/system-clock.js'
import { keyToText } from '../../../../src/kit/ids.js'
import { streamTransportContract } from '../../../contracts/stream-transport.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { servedTcp, type Silent, silentStrangersContract, tcpWorld } from './addressed-world.js'

const TOPIC = new Uint8Array(32)

streamTransportContract('TCP transport', async (t) => tcpWorld(t), { findsPeers: false })

silentStrangersContract('TCP', tcpWorld, connected)

test('a stranger over TCP that states a message of more than 1,024 bytes is cut before it sends one', async (t) => {
  const server = await tcpWorld(t)()
  await server.transport.listen(TOPIC)
  for (const header of [
    [1, 4, 0],
    [255, 255, 255]
  ]) {
    const { socket, closed } = await connected(server.url)
    socket.write(Buffer.from(header))
    await closed
    t.ok(socket.destroyed)
  }
})

test('a server of TCP takes nothing before it listens, and ends its connections as it closes', async (t) => {
  const { acceptor, url, close } = await servedTcp()
  const early = await connected(url)
  await early.closed
  acceptor.onBytes((bytes) => void bytes.on('error', () => {}))
  const late = await connected(url)
  await Promise.all([close(), late.closed])
  t.ok(late.socket.destroyed)
})

test('a connection that does not open is given 10 s, and an address of this machine that a member names is not dialled', async (t) => {
  const clock = new ManualClock()
  const { signal } = new AbortController()
  for (const host of [
    '127.0.0.1',
    '127.1',
    '0',
    '[::1]',
    '[::ffff:127.0.0.1]',
    'localhost',
    '169.254.169.254',
    '[fe80::1]'
  ])
    await t.exception(
      dialTcp(`${host}:7000`, { isForeign: true, clock, signal }),
      /of this machine alone|is no address of a node/,
      host
    )
  await t.exception(dialTcp('nothing', { isForeign: false, clock, signal }), /no address/)
  const { url, close } = await servedTcp()
  t.teardown(close)
  const dialled = dialTcp(url, { isForeign: false, clock, signal })
  const failed = t.exception(dialled, /nothing answers there/)
  clock.advance(10_000)
  await failed
})

test('a second stream of a peer that ends with its first bytes is none, and ends no other', async (t) => {
  const server = await tcpWorld(t)()
  const seen: NoiseStream[] = []
  const first = new Promise<void>((resolve) =>
    server.transport.onStream((stream) => {
      stream.on('error', () => {})
      seen.push(stream)
      resolve()
    })
  )
  await server.transport.listen(TOPIC)
  const keyPair = crypto.keyPair()
  const dial = { isForeign: false, clock: systemClock(), signal: new AbortController().signal }
  const open = async () => {
    const bytes = await dialTcp(server.url, dial)
    const stream = new NoiseSecretStream(true, bytes, { keyPair })
    stream.on('error', () => {})
    t.teardown(() => stream.destroy())
    await stream.opened
    return { bytes, stream }
  }
  const used = await open()
  await first
  const waiting = new Promise<void>((resolve) =>
    server.transport.firewall(() => {
      setImmediate(resolve)
      return true
    })
  )
  const { bytes, stream } = await open()
  await waiting
  const closed = new Promise<void>((resolve) => stream.once('close', () => resolve()))
  bytes.write(Uint8Array.of(40, 0, 0, ...new Uint8Array(40)))
  await closed
  const received = new Promise((resolve) => seen[0]?.once('data', resolve))
  used.stream.write(Buffer.from('still here'))
  await received
  t.alike([seen.length, seen[0]?.destroyed], [1, false])
})

test('the address of a peer that is here already ends no stream to it when it is found', async (t) => {
  const open = tcpWorld(t)
  const [low, high] = [crypto.keyPair(), crypto.keyPair()].sort((one, other) =>
    keyToText(one.publicKey) < keyToText(other.publicKey) ? -1 : 1
  )
  const closed: string[] = []
  const streams: NoiseStream[] = []
  let onEnd = (): void => {}
  const settled = new Promise<void>((resolve) => (onEnd = resolve))
  let found: (address: string) => void = () => {}
  const discovery = {
    fault: null,
    onFound: (handler: typeof found) => void (found = handler),
    join() {},
    look() {},
    close() {}
  }
  // Of two streams the one that the greater key opened would be kept.
  const a = await open({
    ...(high === undefined ? {} : { keyPair: high }),
    discovery,
    open: async (address, dial) => {
      const bytes = await dialTcp(address, dial)
      bytes.once('close', onEnd)
      return bytes
    }
  })
  const b = await open(low === undefined ? {} : { keyPair: low })
  let onBoth = (): void => {}
  const opened = new Promise<void>((resolve) => (onBoth = resolve))
  for (const [name, { transport }] of Object.entries({ a, b }))
    transport.onStream((stream) => {
      stream
        .on('error', () => {})
        .on('close', () => {
          closed.push(name)
          onEnd()
        })
      if (streams.push(stream) === 2) onBoth()
    })
  await Promise.all([a, b].map(({ transport }) => transport.listen(TOPIC)))
  b.transport.dial(a.id)
  await opened
  found(b.url)
  await settled
  const received = new Promise((resolve) => streams[1]?.once('data', resolve))
  streams[0]?.write(Buffer.from('still here'))
  await received
  t.alike([streams.length, closed], [2, []])
})

async function connected(address: string): Promise<Silent & { readonly socket: net.Socket }> {
  const socket = net.connect(Number(address.split(':')[1]), '127.0.0.1')
  socket.on('error', () => {}).resume()
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  await once(socket, 'connect')
  return { socket, closed, isOpen: () => !socket.destroyed }
}
