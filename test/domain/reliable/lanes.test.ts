import test from 'brittle'
import fc from 'fast-check'
import { baseOf, openSender, stepSender, WINDOW } from '../../../src/domain/reliable/lane-sender.js'
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

  /** The link ends: all that is under way on it is lost. */
  down(): void {
    this.#isUp = false
    this.#wire = []
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

  restore(): void {
    if (this.#backup === null) return
    this.#rows = this.#backup.rows
    this.#next = this.#backup.next
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
    if (one.to === 'sender') this.#send({ type: 'ack', ack: one.ack, messageId: one.messageId, ledger: one.ledger })
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
    for (let round = 0; round < 2000; round++) {
      while (this.#wire.length > 0 || this.#committing.length > 0) {
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
    if ([...this.#receiver.waiting.keys()].some((seq) => seq <= this.#receiver.taken)) this.faults.push('what was taken waits')
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
    return { to: 'receiver', type: 'message', message: { seq, base: baseOf(this.#sender), messageId, bytes, content: !isVoid } }
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
      else this.#acknowledge()
    }
  }

  #acknowledge(): void {
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
        ledger: taken === contig ? `ledger ${this.#losses}` : undefined
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

test('whatever is lost, repeated, reordered or crashes, every message arrives once and in order', async (t) => {
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

test('an old copy of a message that was given up since is not kept', (t) => {
  const lane = openReceiver<boolean>({ contig: 0, lastId: null })
  const arrived = (seq: number, base: number): unknown[] =>
    stepReceiver(lane, { type: 'arrived', message: { seq, base, messageId: `m${seq}`, bytes: 1, content: true } }, 0)
  t.alike(arrived(6, 5), [])
  t.alike(arrived(3, 1), [])
  t.alike([...lane.waiting.keys()], [6])
})

test('numbers are changed once a link: a receiver that never agrees gets nothing more over it', (t) => {
  const lane = openSender(2, [unacked(1)])
  stepSender(lane, { type: 'up' }, 0)
  t.alike(stepSender(lane, { type: 'ack', ack: 7, messageId: 'other' }, 0), [{ type: 'renumber', first: 8 }])
  t.alike(stepSender(lane, { type: 'renumbered', first: 8 }, 0), [{ type: 'greet' }])
  t.alike(stepSender(lane, { type: 'ack', ack: 100, messageId: 'other' }, 0), [])
  t.alike(stepSender(lane, { type: 'tick', chance: 0, wall: 0 }, 100_000), [])
  t.is(lane.live[0]?.seq, 8)
  t.alike(stepSender(lane, { type: 'up' }, 200_000), [{ type: 'greet' }])
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

test('a sender that was put back to what it was before loses none of what it writes from then on', async (t) => {
  const deed = fc.oneof(...mild, ...faults)
  const parts = fc.tuple(fc.array(deed, { maxLength: 60, size: 'max' }), fc.array(deed, { maxLength: 60, size: 'max' }), fc.nat(8))
  const property = fc.property(parts, ([before, between, offline]) => {
    const world = new World()
    for (const one of before) one(world)
    world.backUp()
    for (const one of between) one(world)
    world.restore()
    const from = world.written.length
    for (let at = 0; at < offline; at++) world.write(1_000_000_000)
    world.settle()
    const lost = world.written.slice(from).filter((id) => !world.delivered.includes(id))
    if (lost.length > 0) throw new Error(`lost ${lost.join()}`)
  })
  await holds(t, property, 2000)
})
