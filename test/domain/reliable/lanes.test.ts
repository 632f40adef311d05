import test from 'brittle'
import fc from 'fast-check'
import {
  ASK_BACKOFF,
  baseOf,
  firstNumber,
  MAX_SEQ,
  openSender,
  stepSender,
  WINDOW
} from '../../../src/domain/reliable/lane-sender.js'
import type { LaneSender, SenderInput, Unacked } from '../../../src/domain/reliable/lane-sender.js'
import { MAX_BUFFERED, openReceiver, stepReceiver } from '../../../src/domain/reliable/lane-receiver.js'
import type { Arrived, LaneReceiver, ReceiverInput } from '../../../src/domain/reliable/lane-receiver.js'
import { holds } from '../../support/holds.js'

/** What is under way on the link. */
type Wire =
  | { readonly to: 'receiver'; readonly type: 'greet'; readonly base: number }
  | { readonly to: 'receiver'; readonly type: 'message'; readonly message: Arrived<boolean> }
  | {
      readonly to: 'sender'
      readonly type: 'ack'
      readonly ack: number
      readonly messageId: string | null
      readonly ledger: string | undefined
      readonly isAnswer: boolean
    }

/** Both ends of a lane, their disks, and a link that loses, repeats and reorders. */
class World {
  readonly delivered: string[] = []
  /** Delivered since the receiver's disk was empty. */
  sinceLoss: string[] = []
  readonly expired = new Set<string>()
  /** What the sender says never got there. */
  readonly undelivered = new Set<string>()
  readonly written: string[] = []
  readonly faults: string[] = []
  #wire: Wire[] = []
  #now = 0
  #isUp = false
  #count = 0
  /** The sender's disk. */
  #rows: Unacked[] = []
  #next = 1
  #backup: { rows: Unacked[]; next: number } | null = null
  /** The receiver's disk. */
  #disk: { contig: number; lastId: string | null } = { contig: 0, lastId: null }
  #acked = 0
  #losses = 0
  #sender: LaneSender = openSender(1, [])
  #receiver: LaneReceiver<boolean> = openReceiver(this.#disk)
  /** What was taken and is not on the receiver's disk yet. */
  #committing: Arrived<boolean>[][] = []
  readonly #isRelayed: boolean

  /** `isRelayed`: frames are with relays, and arrive also when an end died meanwhile. */
  constructor({ isRelayed = false } = {}) {
    this.#isRelayed = isRelayed
  }

  write(ttl: number): void {
    const messageId = `m${this.#count++}`
    const message = { seq: this.#sender.next++, messageId, bytes: 1, expiresAt: this.#now + ttl, isVoid: false }
    this.written.push(messageId)
    this.#rows.push(message)
    this.#next = this.#sender.next
    this.#send({ type: 'recorded', messages: [message] })
  }

  /** The disk takes no message. */
  writeInVain(): void {
    this.#sender.next++
    this.#send({ type: 'unrecorded', pending: 0 })
  }

  up(): void {
    if (this.#isUp) return
    this.#isUp = true
    this.#send({ type: 'up' })
  }

  /** The link ends: all that is under way on it is lost, but for what relays have. */
  down(): void {
    this.#isUp = false
    if (!this.#isRelayed) this.#wire = []
    this.#send({ type: 'down' })
  }

  crashSender(): void {
    this.down()
    this.#sender = openSender(this.#next, this.#rows)
  }

  /** The sender's disk is what it was before. What it wrote since is gone. */
  backUp(): void {
    this.#backup = { rows: [...this.#rows], next: this.#next }
  }

  /** `first`: number of what it has, and of what it writes from then on. Default: as they were. */
  restore(first = 0): void {
    if (this.#backup === null) return
    const { rows, next } = this.#backup
    this.#rows = first === 0 ? rows : rows.map((row, at) => ({ ...row, seq: first + at }))
    this.#next = first === 0 ? next : first + rows.length
    this.#backup = null
    this.crashSender()
  }

  crashReceiver(): void {
    this.down()
    this.#committing = []
    this.#receiver = openReceiver(this.#disk)
  }

  loseReceiver(): void {
    this.#disk = { contig: 0, lastId: null }
    this.#acked = 0
    this.#losses++
    this.sinceLoss = []
    this.crashReceiver()
  }

  /** What was taken gets to the disk, or does not. */
  commit(isGood: boolean): void {
    const messages = this.#committing.shift()
    if (messages === undefined) return
    const last = messages.at(-1)
    if (!isGood || last === undefined) {
      this.#committing = []
      return this.#receive({ type: 'failed' })
    }
    this.#disk = { contig: last.seq, lastId: last.messageId }
    for (const { messageId, content } of messages) if (content) this.#deliver(messageId)
    this.#receive({ type: 'committed', seq: last.seq, messageId: last.messageId })
  }

  /** One of what is under way arrives: the first, or any other. `isKept`: it will arrive once more. */
  arrive(pick: number, isKept: boolean): void {
    const at = pick % Math.max(1, this.#wire.length)
    const one = this.#wire[at]
    if (one === undefined) return
    if (!isKept) this.#wire.splice(at, 1)
    if (one.to === 'sender') this.#send({ ...one, type: 'ack' })
    else if (one.type === 'greet') this.#receive({ type: 'greeted' })
    else this.#receive({ type: 'arrived', message: one.message })
  }

  lose(pick: number): void {
    this.#wire.splice(pick % Math.max(1, this.#wire.length), 1)
  }

  pass(ms: number): void {
    this.#now += ms
    this.#send({ type: 'tick', chance: 0.5, wall: this.#now })
    this.#receive({ type: 'tick' })
  }

  /** No more faults: everything comes to rest. */
  settle(): void {
    this.up()
    let steps = 0
    for (let round = 0; round < 2000; round++) {
      while (this.#wire.length > 0 || this.#committing.length > 0) {
        if (++steps > 100_000)
          throw new Error(`it never rests: ${JSON.stringify([this.#sender, this.#receiver, this.#wire.slice(0, 4)])}`)
        this.arrive(0, false)
        this.commit(true)
      }
      if (this.#sender.live.length === 0) return
      this.pass(5000)
    }
    this.faults.push(`${this.#sender.live.length} messages never came to rest`)
  }

  /** What is wrong now. */
  check(): void {
    const { live, sent, acked, next } = this.#sender
    if (this.#receiver.contig !== this.#disk.contig) this.faults.push('the receiving end is ahead of its disk')
    if (live.some(({ seq }, at) => seq <= (live[at - 1]?.seq ?? acked))) this.faults.push('numbers do not rise')
    if (next !== Math.max(acked, live.at(-1)?.seq ?? 0) + 1) this.faults.push('the next number is not the next')
    if (live.filter(({ seq }) => seq <= sent).length > WINDOW) this.faults.push('more than a window is under way')
    if (this.#receiver.waiting.size > MAX_BUFFERED) this.faults.push('more waits than may')
    if ([...this.#receiver.waiting.keys()].some((seq) => seq <= this.#receiver.taken))
      this.faults.push('what was taken waits')
  }

  #send(input: SenderInput): void {
    for (const effect of stepSender(this.#sender, input, this.#now)) {
      if (effect.type === 'greet') this.#wire.push({ to: 'receiver', type: 'greet', base: baseOf(this.#sender) })
      else if (effect.type === 'send') for (const message of effect.messages) this.#wire.push(this.#frame(message))
      else if (effect.type === 'expired') for (const { messageId } of effect.messages) this.expired.add(messageId)
      else if (effect.type === 'undelivered') for (const { messageId } of effect.messages) this.#undelivered(messageId)
      else if (effect.type === 'forget') this.#forget(effect.messages)
      else if (effect.type === 'blank') this.#blank(effect.messages)
      else this.#renumber(effect.first)
    }
  }

  #undelivered(messageId: string): void {
    this.undelivered.add(messageId)
    if (this.delivered.includes(messageId)) this.faults.push(`${messageId} is said never to have got there, and did`)
  }

  #frame({ seq, messageId, bytes, isVoid }: Unacked): Wire {
    return {
      to: 'receiver',
      type: 'message',
      message: { seq, base: baseOf(this.#sender), messageId, bytes, content: !isVoid }
    }
  }

  #forget(messages: readonly Unacked[]): void {
    const gone = new Set(messages.map(({ seq }) => seq))
    this.#rows = this.#rows.filter(({ seq }) => !gone.has(seq))
  }

  #blank(messages: readonly Unacked[]): void {
    const empty = new Set(messages.map(({ seq }) => seq))
    this.#rows = this.#rows.map((row) => (empty.has(row.seq) ? { ...row, isVoid: true, bytes: 0 } : row))
  }

  #renumber(first: number): void {
    this.#rows = this.#rows.map((row, at) => ({ ...row, seq: first + at }))
    this.#next = first + this.#rows.length
    this.#send({ type: 'renumbered', first })
  }

  #receive(input: ReceiverInput<boolean>): void {
    for (const effect of stepReceiver(this.#receiver, input, this.#now)) {
      if (effect.type === 'take') this.#committing.push([...effect.messages])
      else this.#acknowledge(effect.isAnswer)
    }
  }

  #acknowledge(isAnswer: boolean): void {
    const { contig, lastId, taken } = this.#receiver
    if (contig > this.#disk.contig) this.faults.push('an acknowledgement is ahead of the disk')
    if (contig < this.#acked) this.faults.push('an acknowledgement goes back')
    this.#acked = contig
    if (this.#isUp)
      this.#wire.push({
        to: 'sender',
        type: 'ack',
        ack: contig,
        messageId: lastId,
        ledger: taken === contig ? `ledger ${this.#losses}` : undefined,
        isAnswer
      })
  }

  #deliver(messageId: string): void {
    if (this.undelivered.has(messageId)) this.faults.push(`${messageId} is delivered, and was said never to be`)
    if (this.sinceLoss.includes(messageId)) this.faults.push(`${messageId} was delivered twice`)
    const order = Number(messageId.slice(1))
    if (order < Number(this.sinceLoss.at(-1)?.slice(1) ?? -1)) this.faults.push(`${messageId} came too late`)
    this.sinceLoss.push(messageId)
    this.delivered.push(messageId)
  }
}

function unacked(seq: number): Unacked {
  return { seq, messageId: `m${seq}`, bytes: 1, expiresAt: 1_000_000_000, isVoid: false }
}

type Deed = (world: World) => void

const small = fc.nat(12)
const mild: fc.Arbitrary<Deed>[] = [
  fc.constant((world: World) => world.write(1_000_000_000)),
  fc.constant((world: World) => world.write(1_000_000_000)),
  fc.constant((world: World) => world.up()),
  fc.constant((world: World) => world.commit(true)),
  small.map((pick) => (world: World) => world.arrive(pick, false)),
  small.map(() => (world: World) => world.arrive(0, false)),
  small.map(() => (world: World) => world.arrive(0, false)),
  fc.constantFrom(5, 30, 3000).map((ms) => (world: World) => world.pass(ms))
]
const faults: fc.Arbitrary<Deed>[] = [
  fc.constant((world: World) => world.down()),
  small.map((pick) => (world: World) => world.lose(pick)),
  small.map((pick) => (world: World) => world.arrive(pick, true)),
  fc.constant((world: World) => world.crashSender()),
  fc.constant((world: World) => world.crashReceiver()),
  fc.constant((world: World) => world.commit(false)),
  fc.constant((world: World) => world.writeInVain())
]

function run(deeds: readonly Deed[]): World {
  const world = new World()
  for (const deed of deeds) {
    deed(world)
    world.check()
  }
  world.settle()
  world.check()
  return world
}

function worlds(...kinds: fc.Arbitrary<Deed>[]): fc.Arbitrary<Deed[]> {
  return fc.array(fc.oneof(...kinds), { maxLength: 120, size: 'max' })
}

test('every message arrives once and in order, after any losses, repeats, reorders and crashes', async (t) => {
  const property = fc.property(worlds(...mild, ...faults), (deeds) => {
    const { delivered, written, faults: wrong } = run(deeds)
    if (wrong.length > 0) throw new Error(wrong.join('; '))
    if (delivered.join() !== written.join()) throw new Error(`wrote ${written.join()}, delivered ${delivered.join()}`)
  })
  await holds(t, property, 2000)
})

test('a receiver that claims what was never sent cannot make its sender forget it', (t) => {
  const lane = openSender(4, [1, 2, 3].map(unacked))
  stepSender(lane, { type: 'up' }, 0)
  stepSender(lane, { type: 'ack', ack: 0, messageId: null }, 0)
  stepSender(lane, { type: 'full', seq: 2 }, 0)
  t.alike(stepSender(lane, { type: 'ack', ack: 2, messageId: null }, 0), [])
  t.is(lane.live.length, 3)
  for (const ack of [-1, 0.5, Number.NaN, 2 ** 53, Number.POSITIVE_INFINITY])
    t.alike(stepSender(lane, { type: 'ack', ack, messageId: null }, 0), [])
})

test('a message that comes again after its commit is acknowledged again, since the acknowledgement may be lost', (t) => {
  const lane = openReceiver<boolean>({ contig: 3, lastId: 'm3' })
  stepReceiver(lane, { type: 'greeted' }, 0)
  for (const seq of [1, 2, 3]) {
    const effects = stepReceiver(
      lane,
      { type: 'arrived', message: { seq, base: 1, messageId: `m${seq}`, bytes: 1, content: true } },
      0
    )
    t.alike(
      effects.map(({ type }) => type),
      ['ack'],
      `message ${seq}`
    )
  }
})

test('an old copy of a message that was given up since is not kept', (t) => {
  const lane = openReceiver<boolean>({ contig: 0, lastId: null })
  const arrived = (seq: number, base: number): unknown[] =>
    stepReceiver(lane, { type: 'arrived', message: { seq, base, messageId: `m${seq}`, bytes: 1, content: true } }, 0)
  t.alike(arrived(6, 5), [])
  t.alike(arrived(3, 1), [])
  t.alike([...lane.waiting.keys()], [6])
})

test('a receiver that never agrees has the numbers changed no more often than it is asked', (t) => {
  const lane = openSender(2, [unacked(1)])
  stepSender(lane, { type: 'up' }, 0)
  const says = (ack: number, now: number): string[] =>
    stepSender(lane, { type: 'ack', ack, messageId: 'other' }, now).map((effect) => {
      if (effect.type === 'renumber') stepSender(lane, { type: 'renumbered', first: effect.first }, now)
      return effect.type
    })
  t.alike(says(7, 0), ['renumber'])
  t.is(lane.live[0]?.seq, 8)
  t.alike(says(100, 0), [], 'it has to wait')
  const { baseMs } = ASK_BACKOFF
  t.alike(stepSender(lane, { type: 'tick', chance: 0, wall: 0 }, baseMs - 1), [])
  t.alike(stepSender(lane, { type: 'tick', chance: 0, wall: 0 }, baseMs), [{ type: 'greet' }])
  t.alike(says(100, baseMs), ['renumber'])
  t.is(lane.live[0]?.seq, 101)
})

test('numbers that could not be changed are changed once the receiver is asked again', (t) => {
  const lane = openSender(2, [unacked(1)])
  stepSender(lane, { type: 'up' }, 0)
  t.alike(stepSender(lane, { type: 'ack', ack: 7, messageId: 'other' }, 0), [{ type: 'renumber', first: 8 }])
  t.alike(stepSender(lane, { type: 'tick', chance: 0, wall: 0 }, ASK_BACKOFF.baseMs), [{ type: 'greet' }])
  t.alike(stepSender(lane, { type: 'ack', ack: 7, messageId: 'other' }, 0), [{ type: 'renumber', first: 8 }])
})

test('a message that expires holds up none behind it, and is delivered or given up, in the end', async (t) => {
  const brief = fc.constantFrom(1, 40, 2500).map((ttl) => (world: World) => world.write(ttl))
  const property = fc.property(worlds(...mild, ...faults, brief, brief), (deeds) => {
    const { delivered, expired, written, faults: wrong } = run(deeds)
    if (wrong.length > 0) throw new Error(wrong.join('; '))
    const lost = written.filter((id) => !delivered.includes(id) && !expired.has(id))
    if (lost.length > 0) throw new Error(`lost ${lost.join()}`)
  })
  await holds(t, property, 2000)
})

test('a receiver that lost its disk gets all that it has not acknowledged; nothing is blocked', async (t) => {
  const lossy = fc.constant((world: World) => world.loseReceiver())
  const property = fc.property(worlds(...mild, ...faults, lossy), (deeds) => {
    const { delivered, written, faults: wrong } = run(deeds)
    if (wrong.length > 0) throw new Error(wrong.join('; '))
    const lost = written.filter((id) => !delivered.includes(id))
    if (lost.length > 0) throw new Error(`lost ${lost.join()}`)
  })
  await holds(t, property, 2000)
})

type Deeds = readonly Deed[]
const someDeeds = (maxLength: number): fc.Arbitrary<Deed[]> =>
  fc.array(fc.oneof(...mild, ...faults), { maxLength, size: 'max' })
/** What is done before a backup, until it is put back, and after; and how many messages are written first then. */
const restored = fc.tuple(someDeeds(60), someDeeds(60), someDeeds(20), fc.nat(8))

/** A sender that was put back to what it was before, and what of its later messages never arrives. */
function restoreOf(
  world: World,
  [before, between, after, offline]: readonly [Deeds, Deeds, Deeds, number],
  first: number
): string[] {
  for (const one of before) one(world)
  world.backUp()
  for (const one of between) one(world)
  world.restore(first)
  const from = world.written.length
  for (let at = 0; at < offline; at++) world.write(1_000_000_000)
  for (const one of after) one(world)
  world.settle()
  if (world.faults.some((one) => one.includes('came to rest'))) throw new Error(world.faults.join('; '))
  return world.written.slice(from).filter((id) => !world.delivered.includes(id))
}

test('a sender restored to an earlier state loses none of its later messages', async (t) => {
  const property = fc.property(restored, (deeds) => {
    const lost = restoreOf(new World(), deeds, 0)
    if (lost.length > 0) throw new Error(`lost ${lost.join()}`)
  })
  await holds(t, property, 2000)
})

test('a message of a lost past that waits for its turn is not taken for the new one of its number, when the greeting is lost', (t) => {
  const world = new World()
  const write = (): void => world.write(1_000_000_000)
  const arrive = (): void => world.arrive(0, false)
  world.up()
  write()
  for (let at = 0; at < 3; at++) arrive()
  world.backUp()
  write()
  write()
  world.lose(0)
  arrive()
  world.restore()
  write()
  write()
  world.up()
  world.lose(0)
  // What was taken before becomes durable, and its acknowledgement answers nothing.
  world.commit(true)
  arrive()
  world.settle()
  t.alike(world.delivered, ['m0', 'm3', 'm4'])
})

test('nor does one that begins behind all numbers it ever used, where relays still have what it sent before', async (t) => {
  const property = fc.property(restored, (deeds) => {
    const lost = restoreOf(new World({ isRelayed: true }), deeds, firstNumber(1))
    if (lost.length > 0) throw new Error(`lost ${lost.join()}`)
  })
  await holds(t, property, 2000)
})

test('also where its clock was put back meanwhile, all comes to rest: nothing waits for ever', async (t) => {
  await holds(
    t,
    fc.property(restored, (deeds) => void restoreOf(new World({ isRelayed: true }), deeds, 0)),
    2000
  )
})

test('numbers begin at what the clock says, below half of all that there are', (t) => {
  t.is(firstNumber(0), 1)
  t.is(firstNumber(-5), 1)
  t.is(firstNumber(1_764_000_000_000), 1_764_000_000_000 * 512 + 1)
  t.is(firstNumber(Number.MAX_SAFE_INTEGER), MAX_SEQ / 2 + 1)
})
