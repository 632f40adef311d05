import test from 'brittle'
import crypto from 'hypercore-crypto'
import type { NoiseStream } from 'hyperswarm'
import { JoinedTransport, type JoinedPart } from '../../../../src/adapters/mesh/transport/joined-transport.js'
import type { StreamTransport } from '../../../../src/adapters/mesh/transport/stream-transport.js'
import { systemClock } from '../../../../src/adapters/system/system-clock.js'
import { keyToText, type NodeId } from '../../../../src/kit/ids.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { streamTransportContract } from '../../../contracts/stream-transport.js'
import { MemoryNet } from './memory-transport.js'

const TOPIC = new Uint8Array(32).fill(1)

/** The first dials at once, each other one a second after the one before. */
function parts(...transports: StreamTransport[]): JoinedPart[] {
  return transports.map((transport, at) => ({ transport, delayMs: 1000 * at }))
}

/** The streams that a transport opened so far; `next` resolves at its next one. */
function streamsOf(transport: StreamTransport) {
  const seen: NoiseStream[] = []
  let onSeen = (): void => {}
  transport.onStream((stream) => {
    stream.on('error', () => {})
    seen.push(stream)
    onSeen()
  })
  const next = (): Promise<void> => new Promise((resolve) => (onSeen = resolve))
  return { seen, next }
}

streamTransportContract('Joined transport', async (t) => {
  const [best, worse] = [new MemoryNet(), new MemoryNet()]
  return async () => {
    const keyPair = crypto.keyPair()
    const transport = new JoinedTransport(parts(best.open(keyPair), worse.open(keyPair)), systemClock())
    t.teardown(() => transport.close())
    return { id: keyToText(keyPair.publicKey), transport }
  }
})

test('a better transport opens beside a worse one and keeps it out, and the worse one returns when the better one ends', async (t) => {
  const [best, worse] = [new MemoryNet(), new MemoryNet()]
  const [own, other] = [crypto.keyPair(), crypto.keyPair()]
  const peer: NodeId = keyToText(other.publicKey)
  const [far, near] = [best.open(own), worse.open(own)]
  const transport = new JoinedTransport(parts(far, near), systemClock())
  const { seen, next } = streamsOf(transport)
  transport.firewall(() => true)
  const [answering, cut] = [worse.open(other), best.open(other)]
  for (const one of [answering, cut]) one.onStream((stream) => void stream.on('error', () => {}))
  t.teardown(() => Promise.all([transport.close(), answering.close(), cut.close()]))
  await transport.listen(TOPIC)
  const first = next()
  await answering.listen(TOPIC)
  await first
  t.absent(transport.isLinked(peer, 1))
  const second = next()
  await cut.listen(TOPIC)
  await second
  t.is(seen.length, 2)
  t.ok(transport.isLinked(peer, 1))
  t.absent(seen[0]?.destroyed, 'its owner ends it')
  const gone = new Promise<void>((resolve) => seen[0]?.once('close', () => resolve()))
  seen[0]?.destroy()
  await gone
  const third = next()
  await cut.close()
  await third
  t.is(seen.length, 3)
  t.ok(seen[1]?.destroyed)
})

test('a transport that stopped for a better one dials again once no stream is left, whichever ended last', async (t) => {
  for (const last of ['better', 'worse'] as const) {
    const nets = [new MemoryNet(), new MemoryNet()] as const
    const [own, other] = [crypto.keyPair(), crypto.keyPair()]
    const clock = new ManualClock()
    const transport = new JoinedTransport(parts(nets[0].open(own), nets[1].open(own)), clock)
    const { seen, next } = streamsOf(transport)
    const answering = nets.map((net) => net.open(other))
    for (const one of answering) one.onStream((stream) => void stream.on('error', () => {}))
    t.teardown(() => Promise.all([transport, ...answering].map((one) => one.close())))
    await answering[1]?.listen(TOPIC)
    transport.dial(keyToText(other.publicKey))
    const worse = next()
    clock.advance(1000)
    await worse
    const better = next()
    await answering[0]?.listen(TOPIC)
    transport.dial(keyToText(other.publicKey))
    await better
    t.is(seen.length, 2)
    const ended = seen.map((stream) => new Promise<void>((resolve) => stream.once('close', () => resolve())))
    const endWorse = async (): Promise<void> => {
      seen[0]?.destroy()
      await ended[0]
    }
    if (last === 'better') await endWorse()
    await answering[0]?.close()
    await ended[1]
    if (last === 'worse') await endWorse()
    const again = next()
    clock.advance(1000)
    await again
    t.is(seen.length, 3, last)
  }
})

test('a peer that is dialled while a stream of its own is open is dialled by the same transport when that stream ends', async (t) => {
  const net = new MemoryNet()
  const [own, other] = [crypto.keyPair(), crypto.keyPair()]
  const transport = new JoinedTransport(parts(net.open(own), new MemoryNet().open(own)), systemClock())
  const answering = net.open(other)
  t.teardown(() => Promise.all([transport, answering].map((one) => one.close())))
  answering.onStream((stream) => void stream.on('error', () => {}))
  const { seen, next } = streamsOf(transport)
  await Promise.all([transport.listen(new Uint8Array(32).fill(2)), answering.listen(TOPIC)])
  const first = next()
  answering.dial(keyToText(own.publicKey))
  await first
  answering.undial(keyToText(own.publicKey))
  transport.dial(keyToText(other.publicKey))
  const second = next()
  seen[0]?.destroy()
  await second
  t.alike(
    seen.map(({ isInitiator }) => isInitiator),
    [false, true]
  )
})

test('a closed transport dials no peer whose stream it ended, and no timer is left', async (t) => {
  const clock = new ManualClock()
  const net = new MemoryNet()
  const [own, other] = [crypto.keyPair(), crypto.keyPair()]
  const transport = new JoinedTransport(parts(net.open(own), new MemoryNet().open(own)), clock)
  const answering = net.open(other)
  t.teardown(() => answering.close())
  answering.onStream((stream) => void stream.on('error', () => {}))
  await answering.listen(TOPIC)
  const gone = new Promise<void>((resolve) =>
    transport.onStream((stream) => {
      stream.on('error', () => {})
      stream.on('close', resolve)
      void transport.close()
    })
  )
  transport.dial(keyToText(other.publicKey))
  await gone
  t.is(clock.pending, 0)
})
