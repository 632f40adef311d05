import test from 'brittle'
import type { Assert } from 'brittle'
import type { NoiseStream } from 'hyperswarm'
import type { StreamDirection, StreamTransport } from '../../src/adapters/mesh/transport/stream-transport.js'
import { keyFromText, keyToText, type NodeId } from '../../src/kit/ids.js'

/** A transport that does not listen yet, and its key. */
export interface TransportSubject {
  readonly id: NodeId
  readonly transport: StreamTransport
}

/** Makes transports that can reach each other; they are closed after the test. */
export type TransportWorld = (t: Assert) => Promise<() => Promise<TransportSubject>>

const TOPIC = new Uint8Array(32).fill(1)
const OTHER_TOPIC = new Uint8Array(32).fill(2)

/** What every {@link StreamTransport} keeps. `findsPeers`: below a topic, without an address. */
export function streamTransportContract(
  name: string,
  world: TransportWorld,
  { findsPeers = true }: { readonly findsPeers?: boolean } = {}
): void {
  test(`${name}: a dialled peer and this node get one stream each, with the keys of both and one handshake hash`, async (t) => {
    const { a, b } = await two(t, world)
    await listen(a, b)
    a.transport.dial(b.id)
    const [out, into] = await Promise.all([a.seen.next(), b.seen.next()])
    t.is(keyToText(out.remotePublicKey), b.id)
    t.is(keyToText(into.remotePublicKey), a.id)
    t.is(keyToText(out.publicKey), a.id)
    t.alike(Buffer.from(out.handshakeHash), Buffer.from(into.handshakeHash))
    t.not(out.isInitiator, into.isInitiator)
    t.is(a.seen.count + b.seen.count, 2)
  })

  test(`${name}: bytes written to a stream arrive in order, each chunk as it was written, also in the moment in which it opens`, async (t) => {
    const { a, b } = await two(t, world)
    await listen(a, b)
    b.seen.atOnce = (stream) => void stream.write(Buffer.from('first'))
    a.transport.dial(b.id)
    const [out, into] = await Promise.all([a.seen.next(), b.seen.next()])
    const received = chunks(out, 51)
    for (let number = 0; number < 50; number++) into.write(Buffer.alloc(1 + number * 100, number))
    const all = await received
    t.is(Buffer.from(all[0]).toString(), 'first')
    t.alike(
      all.slice(1).map((chunk) => [chunk[0], chunk.byteLength]),
      Array.from({ length: 50 }, (_, number) => [number, 1 + number * 100])
    )
  })

  test(`${name}: two that dial each other keep one stream`, async (t) => {
    const { a, b } = await two(t, world)
    await listen(a, b)
    a.transport.dial(b.id)
    b.transport.dial(a.id)
    await Promise.all([a.seen.next(), b.seen.next()])
    await until(() => isOneStream(a.seen.open, b.seen.open))
    a.seen.open[0].write(Buffer.from('kept'))
    t.is(Buffer.from((await chunks(b.seen.open[0], 1))[0]).toString(), 'kept')
    t.is(a.seen.open.length, 1)
    t.is(b.seen.open.length, 1)
  })

  if (findsPeers) topicContract(name, world)

  test(`${name}: a peer that the rule does not admit gets no stream, for any dialling end; the rule gets the opening end`, async (t) => {
    const open = await world(t)
    const [a, b, c] = [subject(await open()), subject(await open()), subject(await open())]
    const asked: [NodeId, StreamDirection][] = []
    a.transport.firewall((peer, direction) => {
      asked.push([peer, direction])
      return peer !== b.id
    })
    await listen(a, b, c)
    b.transport.dial(a.id)
    a.transport.dial(b.id)
    c.transport.dial(a.id)
    t.is(keyToText((await a.seen.next()).remotePublicKey), c.id)
    await until(() => asked.some(([peer, direction]) => peer === b.id && direction === 'out'))
    await until(() => asked.some(([peer, direction]) => peer === b.id && direction === 'in'))
    t.ok(a.seen.open.every((stream) => keyToText(stream.remotePublicKey) === c.id))
  })

  test(`${name}: a dialled peer is dialled again when its stream ends, until nobody dials it`, async (t) => {
    const open = await world(t)
    const [a, b, c] = [subject(await open()), subject(await open()), subject(await open())]
    await listen(a, b, c)
    a.transport.dial(b.id)
    const first = await a.seen.next()
    first.destroy()
    const second = await a.seen.next()
    t.not(second, first)
    a.transport.undial(b.id)
    const gone = closed(second)
    second.destroy()
    await gone
    a.transport.dial(c.id)
    t.is(keyToText((await a.seen.next()).remotePublicKey), c.id)
    t.is(a.seen.count, 3)
  })

  test(`${name}: a peer that begins to listen after it was dialled is reached`, async (t) => {
    const { a, b } = await two(t, world)
    await listen(a)
    a.transport.dial(b.id)
    await listen(b)
    a.transport.dial(b.id)
    t.is(keyToText((await a.seen.next()).remotePublicKey), b.id)
  })

  test(`${name}: closing ends every stream at both ends, and nothing opens afterwards`, async (t) => {
    const open = await world(t)
    const [a, b, c] = [subject(await open()), subject(await open()), subject(await open())]
    await listen(a, b, c)
    a.transport.dial(b.id)
    const [, into] = await Promise.all([a.seen.next(), b.seen.next()])
    const gone = closed(into)
    await a.transport.close()
    await gone
    t.is(a.seen.open.length, 0)
    const { count } = a.seen
    b.transport.dial(a.id)
    b.transport.dial(c.id)
    t.is(keyToText((await b.seen.next()).remotePublicKey), c.id)
    t.alike([a.seen.count, b.seen.open.length], [count, 1])
  })
}

function topicContract(name: string, world: TransportWorld): void {
  test(`${name}: nodes that listen on one topic find each other, those of another topic do not`, async (t) => {
    const open = await world(t)
    const [a, b, c] = [subject(await open()), subject(await open()), subject(await open())]
    await c.transport.listen(OTHER_TOPIC)
    await b.transport.listen(TOPIC)
    await a.transport.listen(TOPIC)
    a.transport.refresh()
    t.is(keyToText((await a.seen.next()).remotePublicKey), b.id)
    t.is(c.seen.count, 0)
  })
}

/** The streams of one transport, and a wait for the next. */
class SeenStreams {
  readonly open: NoiseStream[] = []
  count = 0
  atOnce: (stream: NoiseStream) => void = () => {}
  readonly #unread: NoiseStream[] = []
  #wake: () => void = () => {}

  add(stream: NoiseStream): void {
    stream.on('error', () => {})
    stream.on('close', () => void this.open.splice(this.open.indexOf(stream), 1))
    this.open.push(stream)
    this.#unread.push(stream)
    this.count++
    this.atOnce(stream)
    this.#wake()
  }

  async next(): Promise<NoiseStream> {
    while (this.#unread.length === 0) await new Promise<void>((resolve) => (this.#wake = resolve))
    return this.#unread.shift() as NoiseStream
  }
}

/** Has each end the same stream open, and no other? */
function isOneStream(own: readonly NoiseStream[], theirs: readonly NoiseStream[]): boolean {
  return own.length === 1 && theirs.length === 1 && Buffer.compare(own[0].handshakeHash, theirs[0].handshakeHash) === 0
}

type Seen = TransportSubject & { readonly seen: SeenStreams }

function subject(one: TransportSubject): Seen {
  const seen = new SeenStreams()
  one.transport.onStream((stream) => seen.add(stream))
  return { ...one, seen }
}

async function two(t: Assert, world: TransportWorld): Promise<{ a: Seen; b: Seen }> {
  const open = await world(t)
  return { a: subject(await open()), b: subject(await open()) }
}

/** Each listens on a topic of its own, so that only those that dial find each other. */
async function listen(...subjects: readonly Seen[]): Promise<void> {
  for (const { id, transport } of subjects) await transport.listen(keyFromText(id))
}

/** Resolves when the condition holds; looked at in each turn of the loop. */
function until(condition: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    const look = (): unknown => (condition() ? resolve() : setImmediate(look))
    look()
  })
}

function chunks(stream: NoiseStream, count: number): Promise<readonly Uint8Array[]> {
  return new Promise((resolve) => {
    const all: Uint8Array[] = []
    stream.on('data', (chunk) => {
      all.push(Uint8Array.from(chunk))
      if (all.length === count) resolve(all)
    })
  })
}

function closed(stream: NoiseStream): Promise<void> {
  return stream.destroyed ? Promise.resolve() : new Promise((resolve) => stream.once('close', resolve))
}
