import test from 'brittle'
import { countingIds } from '../../support/counting-ids.js'
import fc from 'fast-check'
import { createMemoryLedger } from '../../support/memory-ledger.js'
import { MemoryTelemetry } from '../../../src/adapters/telemetry/memory-telemetry.js'
import { decodeControl } from '../../../src/domain/channel/control.js'
import { encodeMessage, FRESH_READER, readFrame } from '../../../src/domain/channel/frames.js'
import type { ChannelMessage } from '../../../src/domain/channel/frames.js'
import { NodeError } from '../../../src/kit/errors.js'
import { fromUtf8, utf8 } from '../../../src/kit/ids.js'
import { Lanes } from '../../../src/node/reliable/lanes.js'
import type { GivenUp } from '../../../src/node/reliable/lane-sender.js'
import type { Ledger, LedgerChange, LedgerChanges } from '../../../src/ports/ledger.js'
import { madeChanges } from '../../support/ledger-changes.js'
import { holds } from '../../support/holds.js'
import { ManualClock } from '../../support/manual-clock.js'

const A = 'y'.repeat(52)
const B = 'b'.repeat(52)
const LANES = [laneOf('one', 'two'), laneOf('one', 'three')]

/** A ledger whose commits take effect when they are told to; a crash loses those that have not. */
class SlowLedger implements Ledger {
  readonly #disk: Ledger
  #waiting: {
    readonly changes: readonly LedgerChange[]
    readonly done: () => void
    readonly failed: (error: Error) => void
  }[] = []

  constructor(disk: Ledger) {
    this.#disk = disk
  }

  get waiting(): number {
    return this.#waiting.length
  }

  get: Ledger['get'] = (key) => this.#disk.get(key)
  list: Ledger['list'] = (range) => this.#disk.list(range)
  compact: Ledger['compact'] = () => this.#disk.compact()
  size: Ledger['size'] = () => this.#disk.size()
  close: Ledger['close'] = () => Promise.resolve()

  commit(given: LedgerChanges): Promise<void> {
    const changes = madeChanges(given)
    return new Promise((done, failed) => this.#waiting.push({ changes, done, failed }))
  }

  /** The first waiting commit is made. */
  async write(): Promise<void> {
    const first = this.#waiting.shift()
    if (first === undefined) return
    await this.#disk.commit(first.changes)
    first.done()
  }

  /** The disk is full: all that wait fail. */
  fail(): void {
    for (const { failed } of this.#waiting.splice(0)) failed(new NodeError('DISK_FULL', 'no space left'))
  }

  /** The process is gone: nobody is told anything. */
  crash(): void {
    this.#waiting = []
  }
}

/** One of the two nodes: what it keeps through crashes, and what it is between two of them. */
class Side {
  readonly disk = createMemoryLedger()
  readonly delivered: string[] = []
  readonly givenUp: GivenUp[] = []
  ledger = new SlowLedger(this.disk)
  lanes: Lanes | null = null
  reader = FRESH_READER

  constructor(
    readonly id: string,
    readonly clock: ManualClock,
    readonly isOnline: () => boolean,
    readonly send: (message: ChannelMessage) => void
  ) {}

  async start(): Promise<void> {
    const { clock, disk, givenUp, id, isOnline, send } = this
    const ledger = new SlowLedger(disk)
    this.ledger = ledger
    const lanes = new Lanes({
      clock,
      ledger,
      telemetry: new MemoryTelemetry({ clock, level: 'error', format: 'text', write: () => {} }),
      self: id,
      chance: () => 0.5,
      isOnline,
      nextHop: {
        isReachable: isOnline,
        sendFrame: (_peer, frame) => {
          if (this.lanes === lanes) send({ kind: 'reliable', frame })
        },
        sendControl: (_peer, name, body) => {
          if (this.lanes === lanes) send({ kind: 'control', name, body })
        },
        seek: () => {},
        doubt: () => {}
      },
      onAcknowledged: () => {},
      ids: countingIds(),
      onGivenUp: (messages) => givenUp.push(...messages),
      onUndelivered: () => {},
      // What is delivered is on the disk with the number of its message: that is what makes it once.
      admit: ({ messageId, envelope }) =>
        Promise.resolve({
          changes: [{ key: `got/${messageId}`, value: envelope }],
          done: () => this.delivered.push(fromUtf8(envelope)),
          failed: () => {}
        })
    })
    await lanes.open()
    this.lanes = lanes
    lanes.start()
  }

  async crash(): Promise<void> {
    this.ledger.crash()
    const before = this.lanes
    this.lanes = null
    // Its timers end; what it commits then is lost with it.
    void before?.stop()
    this.ledger.crash()
    this.reader = FRESH_READER
    await this.start()
  }

  /** A frame arrives. */
  receive(frame: Uint8Array, peer: string): void {
    const { state, message } = readFrame(this.reader, frame)
    this.reader = state
    if (message?.kind === 'reliable') this.lanes?.incoming.onMessage(peer, message.frame)
    if (message?.kind !== 'control') return
    const control = decodeControl(message.name, message.body)
    if (!control.ok) throw new Error(control.reason)
    if (control.name === 'greet') this.lanes?.incoming.onGreet(peer, control.body)
    if (control.name === 'ack') this.lanes?.onAck(peer, control.body)
  }

  async texts(): Promise<string[]> {
    const got = await this.disk.list({ from: 'got/', to: 'got0', limit: 10_000 })
    return got.map(({ value }) => fromUtf8(value)).sort()
  }
}

/** Two nodes and the link between them. */
class World {
  readonly a: Side
  readonly b: Side
  readonly written: string[] = []
  readonly refused: string[] = []
  #toA: Uint8Array[] = []
  #toB: Uint8Array[] = []
  #isUp = false
  #count = 0
  #streams = 0

  constructor(readonly clock = new ManualClock()) {
    const isOnline = (): boolean => this.#isUp
    this.a = new Side(A, clock, isOnline, (message) => this.#carry(message, this.#toB))
    this.b = new Side(B, clock, isOnline, (message) => this.#carry(message, this.#toA))
  }

  async start(): Promise<this> {
    await this.a.start()
    await this.b.start()
    return this
  }

  /** Resolves to nothing: whether it was recorded is known later, if at all. */
  write(which: number, size: number): void {
    const lane = LANES[which % LANES.length]
    const { lanes } = this.a
    if (lane === undefined || lanes === null) return
    const messageId = `m${this.#count++}`
    const text = `${messageId} ${'x'.repeat(size)}`
    const message = { messageId, requestId: null, envelope: utf8(text), expiresAt: this.clock.now() + 1_000_000_000 }
    lanes.record(lane, message).then(
      () => this.written.push(text),
      () => this.refused.push(text)
    )
  }

  up(): void {
    if (this.#isUp) return
    this.#isUp = true
    this.a.lanes?.onPath(B)
    this.b.lanes?.onPath(A)
  }

  down(): void {
    this.#isUp = false
    this.#toA = []
    this.#toB = []
    this.a.reader = FRESH_READER
    this.b.reader = FRESH_READER
    this.a.lanes?.onOffline(B)
    this.b.lanes?.onOffline(A)
  }

  async crash(side: Side): Promise<void> {
    this.down()
    await side.crash()
  }

  arrive(): void {
    const toB = this.#toB.shift()
    if (toB !== undefined) this.b.receive(toB, A)
    const toA = this.#toA.shift()
    if (toA !== undefined) this.a.receive(toA, B)
  }

  async settle(): Promise<void> {
    for (let idle = 0, rounds = 0; idle < 3 && rounds < 5000; rounds++) {
      this.up()
      this.arrive()
      await this.a.ledger.write()
      await this.b.ledger.write()
      await turn()
      const isStill = this.#toA.length + this.#toB.length + this.a.ledger.waiting + this.b.ledger.waiting === 0
      if (isStill) this.clock.advance(5000)
      const load = this.a.lanes?.load(B).count ?? 0
      idle = isStill && load === 0 ? idle + 1 : 0
    }
  }

  async stop(): Promise<void> {
    for (const side of [this.a, this.b]) {
      const { lanes } = side
      side.lanes = null
      const stopped = lanes?.stop()
      await side.ledger.write()
      await stopped
    }
  }

  #carry(message: ChannelMessage, to: Uint8Array[]): void {
    if (!this.#isUp) throw new NodeError('PEER_OFFLINE', 'the peer is not connected')
    if (to.length > 40 && message.kind === 'reliable') throw new NodeError('OVERLOADED', 'too much waits for this peer')
    to.push(...encodeMessage(message, () => this.#streams++))
  }
}

type Deed = (world: World) => void | Promise<void>

const deeds: fc.Arbitrary<Deed> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.tuple(fc.nat(1), fc.constantFrom(1, 1, 1, 100, 70_000)).map(
      ([which, size]): Deed =>
        (world) =>
          world.write(which, size)
    )
  },
  { weight: 6, arbitrary: fc.constant<Deed>((world) => world.arrive()) },
  { weight: 4, arbitrary: fc.constant<Deed>((world) => world.a.ledger.write()) },
  { weight: 4, arbitrary: fc.constant<Deed>((world) => world.b.ledger.write()) },
  { weight: 2, arbitrary: fc.constant<Deed>((world) => world.up()) },
  { weight: 1, arbitrary: fc.constant<Deed>((world) => world.down()) },
  { weight: 1, arbitrary: fc.constant<Deed>((world) => world.crash(world.a)) },
  { weight: 1, arbitrary: fc.constant<Deed>((world) => world.crash(world.b)) },
  { weight: 1, arbitrary: fc.constant<Deed>((world) => world.a.ledger.fail()) },
  { weight: 1, arbitrary: fc.constant<Deed>((world) => world.b.ledger.fail()) },
  {
    weight: 2,
    arbitrary: fc.constantFrom(25, 600, 4000).map(
      (ms): Deed =>
        (world) =>
          world.clock.advance(ms)
    )
  }
)

test('through crashes around every commit, full disks and cut links, every recorded message is delivered, once', async (t) => {
  const property = fc.asyncProperty(fc.array(deeds, { maxLength: 150, size: 'max' }), async (all) => {
    const world = await new World().start()
    for (const deed of all) {
      await deed(world)
      await turn()
    }
    await world.settle()
    const got = await world.b.texts()
    await world.stop()
    const left = await world.a.disk.list({ from: 'out', to: 'out~', limit: 10 })
    if (left.length > 0) throw new Error(`kept for ever: ${left.map(({ key }) => key).join()}`)
    const missing = world.written.filter((text) => !got.includes(text))
    if (missing.length > 0) throw new Error(`recorded and not delivered: ${missing.map(nameOf).join()}`)
    const ghosts = world.refused.filter((text) => got.includes(text))
    if (ghosts.length > 0) throw new Error(`refused and delivered: ${ghosts.map(nameOf).join()}`)
    const twice = world.b.delivered.filter((text, at) => world.b.delivered.indexOf(text) !== at)
    if (twice.length > 0) throw new Error(`delivered twice: ${twice.map(nameOf).join()}`)
  })
  await holds(t, property, 150)
})

test('a sender that keeps to no window makes a node with a slow disk hold no more than its bound', async (t) => {
  const world = await new World().start()
  const { lanes, ledger, delivered } = world.b
  const send = (seq: number): void =>
    lanes?.incoming.onMessage(A, {
      source: 'one',
      target: 'two',
      seq,
      base: 1,
      messageId: `m${seq}`,
      requestId: null,
      envelope: utf8(`m${seq}`)
    })
  for (let seq = 1; seq <= 600; seq++) send(seq)
  await turn()
  for (let seq = 601; seq <= 2000; seq++) send(seq)
  while (ledger.waiting > 0) {
    await ledger.write()
    await turn()
  }
  t.is(delivered.length, 256)
  for (let seq = 257; seq <= 300; seq++) send(seq)
  await turn()
  while (ledger.waiting > 0) {
    await ledger.write()
    await turn()
  }
  t.alike([delivered.length, delivered.at(-1)], [300, 'm300'], 'dropped messages may come again')
  await world.stop()
})

test('the buffers of the lanes of one node together are bounded, delay no next message, and end with its link', async (t) => {
  const world = await new World().start()
  const { lanes, ledger, delivered } = world.b
  const [large, small] = [utf8('.'.repeat(1024 * 1024)), utf8('.')]
  const send = (lane: number, seq: number): void => {
    const envelope = seq === 1 ? small : large
    lanes?.incoming.onMessage(A, {
      source: 'one',
      target: `t${lane}`,
      seq,
      base: 1,
      messageId: `m${lane}-${seq}`,
      requestId: null,
      envelope
    })
  }
  /** So many messages are delivered once the first of every lane has come. */
  const afterFirsts = async (): Promise<number> => {
    for (let lane = 0; lane < 100; lane++) send(lane, 1)
    await turn()
    for (; ledger.waiting > 0; await turn()) await ledger.write()
    return delivered.length
  }
  for (let lane = 0; lane < 100; lane++)
    lanes?.incoming.onGreet(A, { lanes: [{ source: 'one', target: `t${lane}`, base: 1 }] })
  await turn()
  for (let lane = 0; lane < 100; lane++) for (const seq of [2, 3]) send(lane, seq)
  t.is(await afterFirsts(), 100 + 31, 'messages waiting for others take 32 MiB of all lanes together')
  for (let lane = 50; lane < 70; lane++) send(lane, 3)
  lanes?.onOffline(A)
  for (let lane = 0; lane < 100; lane++) for (const seq of [2, 3]) send(lane, seq)
  await turn()
  for (; ledger.waiting > 0; await turn()) await ledger.write()
  t.is(delivered.length, 131 + 63, 'there is space again: of next messages 64 MiB wait for the disk')
  for (let lane = 0; lane < 100; lane++) {
    for (const seq of [2, 3]) send(lane, seq)
    await turn()
    for (; ledger.waiting > 0; await turn()) await ledger.write()
  }
  t.is(delivered.length, 300, 'dropped messages may come again')
  await world.stop()
})

/** Everything that is ready goes on. */
async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve))
}

function laneOf(
  source: string,
  target: string
): { source: { agentId: string; nodeId: string }; target: { agentId: string; nodeId: string } } {
  return { source: { agentId: source, nodeId: A }, target: { agentId: target, nodeId: B } }
}

function nameOf(text: string): string {
  return text.split(' ')[0] ?? text
}
