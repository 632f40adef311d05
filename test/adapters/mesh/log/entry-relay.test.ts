import test from 'brittle'
import type { Assert } from 'brittle'
import c from 'compact-encoding'
import type { NoiseStream } from 'hyperswarm'
import Protomux from 'protomux'
import { EntryRelay, handToAny } from '../../../../src/adapters/mesh/log/entry-relay.js'
import type { Clock } from '../../../../src/kit/clock.js'
import { systemClock } from '../../../../src/adapters/system/system-clock.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { actor } from '../../../support/membership.js'
import { streamPair } from '../stream-pair.js'

type Append = (entry: Uint8Array, peer: string) => Promise<boolean>

/** A courier at one end of a stream. */
function courier(
  stream: NoiseStream,
  peer: string,
  { append = () => Promise.resolve(true), clock = systemClock() }: { append?: Append; clock?: Clock }
) {
  const faults: string[] = []
  const one = new EntryRelay({
    peer: actor(peer).id,
    mux: Protomux.from(stream),
    clock,
    onMalformed: (reason) => void faults.push(reason),
    appendFor: append
  })
  return { one, faults }
}

async function both(
  t: Assert,
  options: { append?: Append; clock?: Clock }
): Promise<{ a: EntryRelay; streams: NoiseStream[] }> {
  const streams = await streamPair(t, 'owner', 'ann')
  courier(streams[1], 'owner', options)
  return { a: courier(streams[0], 'ann', options.clock === undefined ? {} : { clock: options.clock }).one, streams }
}

const entry = (length = 10): Uint8Array => new Uint8Array(length).fill(7)

test('entries reach the other end whole and in order, and each is answered by its own fate', async (t) => {
  const seen: { length: number; peer: string }[] = []
  const append: Append = (bytes, peer) => {
    seen.push({ length: bytes.byteLength, peer })
    return bytes.byteLength % 2 === 0 ? Promise.resolve(true) : Promise.reject(new Error('no writer'))
  }
  const { a } = await both(t, { append })
  t.alike(await Promise.all([2, 3, 4, 96 * 1024].map((length) => a.hand(entry(length)))), [true, false, true, true])
  t.alike(
    seen,
    [2, 3, 4, 96 * 1024].map((length) => ({ length, peer: actor('owner').id }))
  )
})

test('answers may come in any order', async (t) => {
  const waiting: ((isAppended: boolean) => void)[] = []
  const both64 = new Promise<void>((resolve) => {
    const look = (): void => (waiting.length === 2 ? resolve() : void setImmediate(look))
    look()
  })
  const { a } = await both(t, { append: () => new Promise((resolve) => waiting.push(resolve)) })
  const [first, second] = [a.hand(entry()), a.hand(entry())]
  await both64
  waiting[1](true)
  t.is(await second, true)
  waiting[0](false)
  t.is(await first, false)
})

test('an entry without an answer in five seconds counts as refused', async (t) => {
  const clock = new ManualClock()
  const { a } = await both(t, { append: () => new Promise(() => {}), clock })
  const handed = a.hand(entry())
  clock.advance(5000)
  t.is(await handed, false)
})

test('a stream that ends answers everything with no, also what is handed in later', async (t) => {
  const { a, streams } = await both(t, { append: () => new Promise(() => {}) })
  const handed = a.hand(entry())
  streams[1].destroy()
  t.is(await handed, false)
  t.is(await a.hand(entry()), false)
})

test('at most 64 entries of a peer wait for their append; more are turned away at once', async (t) => {
  let waiting = 0
  const { a } = await both(t, {
    append: () => {
      waiting++
      return new Promise(() => {})
    }
  })
  const handed = Array.from({ length: 70 }, () => a.hand(entry()))
  t.alike(
    await Promise.all(handed.slice(64)),
    Array.from({ length: 6 }, () => false)
  )
  t.is(waiting, 64)
})

test('messages of no sensible size are faults of the peer, never an exception', async (t) => {
  const [stream, peer] = await streamPair(t, 'owner', 'ann')
  let appended = 0
  const { faults } = courier(stream, 'ann', {
    append: () => {
      appended++
      return Promise.resolve(true)
    }
  })
  const mux = Protomux.from(peer)
  const answered = new Promise<void>((resolve) => {
    const channel = mux.createChannel({
      protocol: 'a2a-node/log',
      messages: [{ encoding: c.raw }, { encoding: c.raw, onmessage: () => resolve() }]
    })
    channel?.open()
    for (const length of [0, 1, 4, 96 * 1024 + 5]) channel?.messages[0]?.send(entry(length))
    for (const length of [0, 4, 6]) channel?.messages[1]?.send(entry(length))
    // An answer to a question that was never asked, then an entry as it should be.
    channel?.messages[1]?.send(entry(5))
    channel?.messages[0]?.send(entry(50))
  })
  await answered
  t.is(faults.length, 7)
  t.is(appended, 1)
})

test('a peer that hands in and does not read the answers is a fault before they pile up', async (t) => {
  const state = { drained: false, sent: 0 }
  let hear: (raw: Uint8Array) => void = () => {}
  const mux = {
    get drained() {
      return state.drained
    },
    createChannel: ({ messages }: { messages: { onmessage: typeof hear }[] }) => {
      hear = messages[0].onmessage
      return { open: () => {}, messages: [{}, { send: () => state.sent++ }] }
    }
  } as unknown as Protomux
  const faults: string[] = []
  const onMalformed = (reason: string): void => void faults.push(reason)
  const one = new EntryRelay({
    peer: actor('ann').id,
    mux,
    clock: systemClock(),
    onMalformed,
    appendFor: () => Promise.resolve(true)
  })
  t.ok(one)
  const handIn = async (count: number): Promise<void> => {
    for (let number = 0; number < count; number++) hear(entry())
    await new Promise((resolve) => setImmediate(resolve))
  }
  await handIn(64)
  t.is(state.sent, 64)
  t.alike(faults, [])
  state.drained = true
  await handIn(1)
  state.drained = false
  await handIn(64)
  t.alike(faults, [], 'an occasional reader continues')
  await handIn(1)
  t.is(faults.length, 1)
})

/** Couriers that answer as they are told; `asked` says who was. */
function couriers(...answers: readonly (boolean | 'silent')[]) {
  const asked: number[] = []
  const all = answers.map((answer, place) => ({
    hand: (): Promise<boolean> => {
      asked.push(place)
      return answer === 'silent' ? new Promise(() => {}) : Promise.resolve(answer)
    }
  }))
  return { asked, all }
}

/** Lets promises that are settled go on. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('an entry goes to one after the other until one has it', async (t) => {
  const clock = new ManualClock()
  const { asked, all } = couriers(false, true, true)
  t.is(await handToAny(all, entry(), { clock, atOnce: false }), true)
  t.alike(asked, [0, 1])
  for (const atOnce of [false, true]) {
    t.is(await handToAny(couriers(false, false).all, entry(), { clock, atOnce }), false)
    t.is(await handToAny([], entry(), { clock, atOnce }), false)
  }
})

test('a writer that does not answer delays an entry by half a second, not until the answer is overdue', async (t) => {
  const clock = new ManualClock()
  const { asked, all } = couriers('silent', 'silent', true)
  const handed = handToAny(all, entry(), { clock, atOnce: false })
  for (const expected of [[0], [0, 1]]) {
    await settle()
    t.alike(asked, expected)
    clock.advance(499)
    await settle()
    t.alike(asked, expected)
    clock.advance(1)
  }
  t.is(await handed, true)
})

test('an answer counts also when it comes after another was asked', async (t) => {
  const clock = new ManualClock()
  let answer: (isAppended: boolean) => void = () => {}
  const late = { hand: (): Promise<boolean> => new Promise((resolve) => (answer = resolve)) }
  const { asked, all } = couriers('silent', true)
  const handed = handToAny([late, ...all], entry(), { clock, atOnce: false })
  await settle()
  clock.advance(500)
  await settle()
  answer(true)
  t.is(await handed, true)
  t.alike(asked, [0], 'and nobody else is asked')
})

test('all are asked together once the word of one was not true', async (t) => {
  const { asked, all } = couriers(true, 'silent', false)
  t.is(await handToAny(all, entry(), { clock: new ManualClock(), atOnce: true }), true)
  t.alike(asked, [0, 1, 2])
})
