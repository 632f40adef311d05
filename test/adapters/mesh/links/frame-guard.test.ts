import { duplexPair } from 'node:stream'
import NoiseSecretStream from '@hyperswarm/secret-stream'
import test from 'brittle'
import type { Assert } from 'brittle'
import c from 'compact-encoding'
import fc from 'fast-check'
import type { NoiseStream } from 'hyperswarm'
import Protomux from 'protomux'
import { systemClock } from '../../../../src/adapters/system/system-clock.js'
import { FrameGuard, STRANGER_BYTES, STRANGER_FRAMES } from '../../../../src/adapters/mesh/links/frame-guard.js'
import { MAX_BLOCKS } from '../../../../src/adapters/mesh/log/core-messages.js'
import {
  MAX_CHANNEL_NUMBER,
  MAX_CHANNELS,
  MAX_CORES,
  MAX_MAPPED_BLOCKS,
  OpenChannels
} from '../../../../src/adapters/mesh/links/open-channels.js'
import { holds } from '../../../support/holds.js'
import { streamPair, untilClosed } from '../stream-pair.js'

/** A guarded stream with a multiplexer on it, as a node has; the other end is anybody's. */
async function guarded(
  t: Assert
): Promise<{ peer: NoiseStream; stream: NoiseStream; mux: Protomux; guard: FrameGuard; faults: string[] }> {
  const [peer, stream] = await streamPair(t, 'eve', 'owner')
  const faults: string[] = []
  const guard = new FrameGuard(stream, systemClock(), (reason) => {
    faults.push(reason)
    stream.destroy()
  })
  return { peer, stream, mux: Protomux.from(stream), guard, faults }
}

/** A frame that opens a channel (protomux: control channel, open, number, protocol, key). */
function open(channel: number, protocol: string, keyBytes?: number): Uint8Array {
  return Uint8Array.of(0, ...openMessage(channel, protocol, keyBytes))
}

/** `keyBytes`: of the key that the channel is about; those that need one have one. */
function openMessage(
  channel: number,
  protocol: string,
  keyBytes = /^hypercore|^wakeup/.test(protocol) ? 32 : 0
): Uint8Array {
  const key = new Uint8Array(keyBytes).fill(7)
  return Uint8Array.of(
    1,
    ...c.encode(c.uint, channel),
    ...c.encode(c.string, protocol),
    ...c.encode(c.uint, keyBytes),
    ...key
  )
}

/** A frame of several control messages. */
function batch(messages: readonly Uint8Array[]): Uint8Array {
  return Uint8Array.from([
    0,
    0,
    0,
    ...messages.flatMap((message) => [...c.encode(c.uint, message.byteLength), ...message])
  ])
}

test('a stranger that states a message of 16 MiB is cut at its first bytes', async (t) => {
  const [one, other] = duplexPair()
  const ends = [new NoiseSecretStream(true, one), new NoiseSecretStream(false, other)] as const
  for (const end of ends) end.on('error', () => {})
  t.teardown(() => ends.forEach((end) => end.destroy()))
  await Promise.all(ends.map((end) => end.opened))
  const [, stream] = ends
  const faults: string[] = []
  const guard = new FrameGuard(stream, systemClock(), (reason) => {
    faults.push(reason)
    stream.destroy()
  })
  one.write(Uint8Array.of(0xff, 0xff, 0xff, ...new Uint8Array(100)))
  await untilClosed(stream)
  t.alike(faults, ['a stranger sent too much'])
  guard.trust()
  t.is(other.listenerCount('data'), 1, 'the guard no longer reads the bytes below a trusted stream')
})

test('batches inside batches, which overflow the stack of the multiplexer, end the stream and nothing else', async (t) => {
  const { peer, stream, faults } = await guarded(t)
  const level = [0, 0xfe, 0xff, 0xff, 0xff, 0x7f, 0]
  peer.write(Uint8Array.from([0, 0, ...Array.from({ length: 20_000 }, () => level).flat()]))
  await untilClosed(stream)
  t.alike(faults, ['a batch inside a batch'])
})

test('a number written the long way hides nothing', async (t) => {
  const { peer, stream, faults } = await guarded(t)
  peer.write(Uint8Array.of(0xfd, 0, 0, 0xfd, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff, 0x7f, 0, 0))
  await untilClosed(stream)
  t.alike(faults, ['a batch inside a batch'])
})

test('sixteen channels may be open, the next one ends the stream', async (t) => {
  const { peer, stream, faults } = await guarded(t)
  for (let channel = 1; channel <= MAX_CHANNELS + 1; channel++) peer.write(open(channel, `protocol ${channel}`))
  await untilClosed(stream)
  t.is(MAX_CHANNELS, 16)
  t.alike(faults, ['too many channels on one stream'])
})

test('a bomb of channels in one frame is over before the multiplexer sees it', async (t) => {
  const { peer, stream, mux, faults } = await guarded(t)
  let paired = 0
  mux.pair({ protocol: 'x' }, () => paired++)
  peer.write(batch(Array.from({ length: 20_000 }, (_, place) => openMessage(place + 1, 'x'))))
  await untilClosed(stream)
  t.is(faults.length, 1)
  t.is(paired, 0)
})

test('cores of the log are counted by themselves', (t) => {
  const channels = new OpenChannels()
  for (let channel = 1; channel <= MAX_CORES; channel++) t.is(channels.read(open(channel, 'hypercore/alpha')), null)
  for (let channel = 1; channel <= MAX_CHANNELS; channel++) t.is(channels.read(open(MAX_CORES + channel, 'x')), null)
  t.ok(channels.read(open(MAX_CORES + 999, 'hypercore/alpha')))
  t.ok(channels.read(open(MAX_CORES + 998, 'x')))
})

/** A message of replication (hypercore: type, then its numbers). */
function coreMessage(type: number, ...numbers: readonly number[]): Uint8Array {
  return Uint8Array.from([type, ...numbers].flatMap((number) => [...c.encode(c.uint, number)]))
}

/** Channel 1 opens as a core and gets the message, alone or inside a batch. */
function onCore(message: Uint8Array, protocol = 'hypercore/alpha'): (string | null)[] {
  const frames = [Uint8Array.of(1, ...message), Uint8Array.of(0, 0, 1, 1, 0, message.byteLength, ...message)]
  return frames.map((frame) => {
    const channels = new OpenChannels()
    return channels.read(open(1, protocol)) ?? channels.read(frame)
  })
}

test('blocks that no log can have are refused in every message that names them, alone and in a batch', (t) => {
  const most = 2 ** 24
  const bad = [
    [coreMessage(5, 0, most + 1), coreMessage(5, most, 1), coreMessage(6, 1, most), coreMessage(7, most - 31, 1)],
    [coreMessage(8, 0, 1, 2 ** 34), coreMessage(8, 1, 0, most + 1), coreMessage(8, 2, most), coreMessage(8, 0, 5)]
  ].flat()
  for (const message of bad) for (const fault of onCore(message)) t.ok(fault)
  for (const fault of onCore(coreMessage(8, 0, 1, 2 ** 34), 'hypercore')) t.ok(fault, 'by its other name, too')
  const good = [
    coreMessage(5, most - 1, 1),
    coreMessage(6, 0, most),
    coreMessage(7, 0, 1024),
    coreMessage(8, 2, most - 1)
  ]
  for (const message of [...good, coreMessage(8, 0, 1, most - 1), coreMessage(0, 0, 2 ** 40)])
    t.alike(onCore(message), [null, null])
})

test('blocks that a peer says it has are counted over all its cores, each once', (t) => {
  const channels = new OpenChannels()
  const says = (channel: number, ...numbers: readonly number[]): string | null =>
    channels.read(Uint8Array.of(...c.encode(c.uint, channel), ...coreMessage(8, 0, ...numbers)))
  for (let channel = 1; channel <= MAX_CORES; channel++) t.is(channels.read(open(channel, 'hypercore/alpha')), null)
  for (let round = 0; round < 9; round++) t.is(says(1, 1, MAX_BLOCKS - 1), null)
  for (let channel = 2; channel <= MAX_MAPPED_BLOCKS / MAX_BLOCKS; channel++)
    t.is(says(channel, 1, MAX_BLOCKS - 1), null)
  t.is(says(9, 0, 1), 'more blocks than all logs have')
  t.is(channels.read(Uint8Array.of(0, 3, 1)), null)
  t.ok(says(10, 0, 1), 'the multiplexer may pass over a close')
  t.is(channels.read(open(1, 'hypercore/alpha')), null)
  t.is(says(9, 0, 2), null)
})

test('a core that the multiplexer may still hold is watched also after it was closed', (t) => {
  const channels = new OpenChannels()
  for (const frame of [open(1, 'hypercore/alpha'), Uint8Array.of(0, 3, 1)]) t.is(channels.read(frame), null)
  t.ok(channels.read(Uint8Array.of(1, ...coreMessage(8, 0, 1, 2 ** 34))))
  t.is(channels.read(open(1, 'x')), null)
  t.is(channels.read(Uint8Array.of(1, ...coreMessage(8, 0, 1, 2 ** 34))), null, 'until the number means something else')
})

test('a channel of a core or of hints without a key ends the stream, since the engine would end the process', (t) => {
  for (const protocol of ['hypercore/alpha', 'hypercore', 'wakeup']) {
    for (const keyBytes of [0, 31, 33])
      t.ok(new OpenChannels().read(open(1, protocol, keyBytes)), `${protocol} ${keyBytes}`)
    t.is(new OpenChannels().read(open(1, protocol, 32)), null)
  }
  t.is(new OpenChannels().read(open(1, 'x', 0)), null)
})

test('a channel that is closed before it is open does not give its number back, so numbers have a bound', async (t) => {
  const { peer, stream, mux, guard, faults } = await guarded(t)
  guard.trust()
  let asked = 0
  // As a store that looks whether it has a core.
  mux.pair({ protocol: 'x' }, () => {
    asked++
    return new Promise(() => {})
  })
  const messages = Array.from({ length: MAX_CHANNEL_NUMBER + 1 }, (_, at) => [
    openMessage(at + 1, 'x'),
    Uint8Array.of(3, ...c.encode(c.uint, at + 1))
  ])
  for (const both of messages) peer.write(batch(both))
  await untilClosed(stream)
  t.alike(faults, ['a number of a channel that no peer needs'])
  t.is(asked, MAX_CHANNEL_NUMBER)
})

test('channels that were closed, and numbers that are used again, do not count', (t) => {
  const channels = new OpenChannels()
  for (let round = 0; round < 100; round++) t.is(channels.read(open(1, 'x')), null)
  for (let round = 0; round < 100; round++) {
    t.is(channels.read(batch([openMessage(round + 2, 'x')])), null)
    t.is(channels.read(Uint8Array.of(0, 3, ...c.encode(c.uint, round + 2))), null)
  }
})

test('a number that is used again for something else counts as that alone', (t) => {
  const channels = new OpenChannels()
  for (let round = 0; round < 3; round++) {
    for (let channel = 1; channel <= MAX_CHANNELS; channel++) {
      t.is(channels.read(open(channel + round * MAX_CHANNELS, 'x')), null)
      t.is(channels.read(open(channel + round * MAX_CHANNELS, 'hypercore/alpha')), null)
    }
  }
})

test('channels open and carry messages through the guard as without it', async (t) => {
  const { peer, mux, faults } = await guarded(t)
  const heard: Uint8Array[] = []
  const all = new Promise<void>((resolve) => {
    const onmessage = (bytes: Uint8Array): void => {
      heard.push(bytes)
      if (heard.length === 100) resolve()
    }
    mux.createChannel({ protocol: 'x', messages: [{ encoding: c.raw, onmessage }] })?.open()
  })
  const theirs = Protomux.from(peer)
  const channel = theirs.createChannel({ protocol: 'x', messages: [{ encoding: c.raw }] })
  channel?.open()
  theirs.cork()
  for (let number = 0; number < 100; number++) channel?.messages[0]?.send(Uint8Array.of(0, 0, number))
  theirs.uncork()
  await all
  t.alike(
    heard.map((bytes) => bytes[2]),
    Array.from({ length: 100 }, (_, number) => number)
  )
  t.alike(faults, [])
})

test('a stranger may send 256 KiB, one that is trusted as much as it likes', async (t) => {
  const trusted = await guarded(t)
  trusted.guard.trust()
  const frame = (): Uint8Array => new Uint8Array(64 * 1024).fill(200)
  const all = new Promise<void>((resolve) => {
    let bytes = 0
    trusted.stream.on('data', (chunk) => {
      bytes += chunk.byteLength
      if (bytes === 2 * STRANGER_BYTES) resolve()
    })
  })
  for (let sent = 0; sent < 2 * STRANGER_BYTES; sent += 64 * 1024) trusted.peer.write(frame())
  await all
  t.alike(trusted.faults, [])
  const stranger = await guarded(t)
  for (let sent = 0; sent <= STRANGER_BYTES; sent += 64 * 1024) stranger.peer.write(frame())
  await untilClosed(stranger.stream)
  t.alike(stranger.faults, ['a stranger sent too much'])
})

test('a stranger may send 200 frames', async (t) => {
  const { peer, stream, faults } = await guarded(t)
  t.is(STRANGER_FRAMES, 200)
  for (let sent = 0; sent <= STRANGER_FRAMES; sent++) peer.write(Uint8Array.of(200, 0))
  await untilClosed(stream)
  t.alike(faults, ['a stranger sent too much'])
})

test('no frame makes the guard throw, or the multiplexer behind it throw what nobody catches', async (t) => {
  // Frames about channels more often than chance would make them.
  const byte = fc.oneof({ weight: 3, arbitrary: fc.integer({ min: 0, max: 4 }) }, fc.integer({ min: 0, max: 255 }))
  const frames = fc.array(
    fc.array(byte, { minLength: 1, maxLength: 60 }).map((bytes) => Uint8Array.from(bytes)),
    { minLength: 1, maxLength: 8 }
  )
  const property = fc.asyncProperty(frames, async (sent) => {
    const { peer, stream, mux } = await guarded(t)
    mux.createChannel({ protocol: 'x', messages: [{ encoding: c.raw, onmessage: () => {} }] })?.open()
    for (const frame of sent) peer.write(frame)
    peer.end()
    await untilClosed(stream)
    return true
  })
  await holds(t, property, 300)
})
