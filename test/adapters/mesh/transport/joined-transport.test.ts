import test from 'brittle'
import crypto from 'hypercore-crypto'
import type { NoiseStream } from 'hyperswarm'
import { JoinedTransport } from '../../../../src/adapters/mesh/transport/joined-transport.js'
import { systemClock } from '../../../../src/adapters/system/system-clock.js'
import { keyToText, type NodeId } from '../../../../src/kit/ids.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { streamTransportContract } from '../../../contracts/stream-transport.js'
import { MemoryNet } from './memory-transport.js'

const TOPIC = new Uint8Array(32).fill(1)

streamTransportContract('Joined transport', async (t) => {
  const [best, worse] = [new MemoryNet(), new MemoryNet()]
  return async () => {
    const keyPair = crypto.keyPair()
    const transport = new JoinedTransport([best.open(keyPair), worse.open(keyPair)], systemClock())
    t.teardown(() => transport.close())
    return { id: keyToText(keyPair.publicKey), transport }
  }
})

test('a better transport opens beside a worse one and keeps it out, and the worse one returns when the better one ends', async (t) => {
  const [best, worse] = [new MemoryNet(), new MemoryNet()]
  const [own, other] = [crypto.keyPair(), crypto.keyPair()]
  const peer: NodeId = keyToText(other.publicKey)
  const [far, near] = [best.open(own), worse.open(own)]
  const transport = new JoinedTransport([far, near], systemClock())
  const seen: NoiseStream[] = []
  let onSeen = (): void => {}
  transport.onStream((stream) => {
    stream.on('error', () => {})
    seen.push(stream)
    onSeen()
  })
  const next = (): Promise<void> => new Promise((resolve) => (onSeen = resolve))
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

test('a closed transport dials no peer whose stream it ended, and no timer is left', async (t) => {
  const clock = new ManualClock()
  const net = new MemoryNet()
  const [own, other] = [crypto.keyPair(), crypto.keyPair()]
  const transport = new JoinedTransport([net.open(own), new MemoryNet().open(own)], clock)
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
