import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import {
  emptyOutbox,
  isFuture,
  MAX_SENDING,
  MAX_SENDING_OF_ONE,
  type PushEffect,
  type PushInput,
  stepPush
} from '../../../src/domain/gateway/push-outbox.js'
import { judgePush, type WebhookAnswer } from '../../../src/domain/gateway/push-verdict.js'
import { holds } from '../../support/holds.js'

interface Waiting {
  readonly generation: number
  readonly tries: number
  readonly dueAt: number
}

/** What a ledger and receivers do around the outbox; it throws where a promise is broken. */
class PushWorld {
  now = 1_700_000_000_000
  readonly waiting = new Map<string, Waiting[]>()
  /** Generations that left a hook's list, delivered or dead, and all that were ever put on it. */
  readonly settled = new Map<string, number[]>()
  readonly queued = new Map<string, number[]>()
  readonly removed = new Set<string>()
  readonly inFlight = new Map<string, Waiting>()
  readonly #owners: number
  #outbox = emptyOutbox()
  #wakeAt = Number.POSITIVE_INFINITY
  #generation = 0

  constructor(owners: number) {
    this.#owners = owners
  }

  queue(hook: string): void {
    if (this.removed.has(hook)) return
    const one = { generation: ++this.#generation, tries: 0, dueAt: this.now }
    push(this.waiting, hook, one)
    push(this.queued, hook, one.generation)
    this.step({ type: 'queued', hook, owner: this.ownerOf(hook) })
  }

  answer(hook: string, answer: WebhookAnswer, chance: number): void {
    const one = this.inFlight.get(hook)
    if (one === undefined) return
    this.inFlight.delete(hook)
    if (this.removed.has(hook)) return this.step({ type: 'served', hook, dueAt: null })
    const verdict = judgePush(answer, { tries: one.tries, now: this.now, chance })
    const list = this.waiting.get(hook) ?? []
    if (list[0]?.generation !== one.generation) throw new Error('what was sent is not the oldest')
    if (verdict.type === 'again') list[0] = { ...one, tries: verdict.tries, dueAt: verdict.dueAt }
    else {
      list.shift()
      push(this.settled, hook, one.generation)
    }
    this.step({ type: 'served', hook, dueAt: verdict.type === 'again' ? verdict.dueAt : this.now })
  }

  remove(hook: string): void {
    this.removed.add(hook)
    this.waiting.delete(hook)
    this.step({ type: 'removed', hook })
  }

  /** The process ends, and another one begins with what is on disk. */
  crash(): void {
    this.#outbox = emptyOutbox()
    this.#wakeAt = Number.POSITIVE_INFINITY
    this.inFlight.clear()
    for (const [hook, list] of this.waiting)
      if (list.length > 0) this.step({ type: 'queued', hook, owner: this.ownerOf(hook) })
  }

  pass(ms: number): void {
    this.now += ms
    if (this.now < this.#wakeAt) return
    this.#wakeAt = Number.POSITIVE_INFINITY
    this.step({ type: 'time' })
  }

  step(input: PushInput): void {
    for (const effect of stepPush(this.#outbox, input, this.now)) this.#perform(effect)
    const busy = [...this.inFlight.keys()]
    if (busy.length > MAX_SENDING) throw new Error('too many at once')
    for (let owner = 0; owner < this.#owners; owner++)
      if (busy.filter((hook) => this.ownerOf(hook) === `owner ${owner}`).length > MAX_SENDING_OF_ONE)
        throw new Error('too many of one owner')
  }

  ownerOf(hook: string): string {
    return `owner ${Number(hook) % this.#owners}`
  }

  #perform(effect: PushEffect): void {
    if (effect.type === 'wake') this.#wakeAt = effect.at
    if (effect.type !== 'serve') return
    const { hook, isHurried } = effect
    if (this.inFlight.has(hook)) throw new Error('two at once to one hook')
    const [head] = this.waiting.get(hook) ?? []
    if (head === undefined) return this.step({ type: 'served', hook, dueAt: null })
    if (isFuture(head.dueAt, this.now) && !isHurried) return this.step({ type: 'served', hook, dueAt: head.dueAt })
    if (this.removed.has(hook)) throw new Error('sent after its config was deleted')
    this.inFlight.set(hook, head)
  }
}

function push<T>(map: Map<string, T[]>, key: string, value: T): void {
  map.set(key, [...(map.get(key) ?? []), value])
}

const TAKEN: WebhookAnswer = { type: 'taken' }
const answers = fc.oneof(
  fc.constant(TAKEN),
  fc.constant<WebhookAnswer>({ type: 'refused', reason: 'HTTP 410' }),
  fc
    .option(fc.nat(10_000_000), { nil: null })
    .map((retryAfterMs): WebhookAnswer => ({ type: 'failed', reason: 'HTTP 503', retryAfterMs }))
)
const hook = fc.nat(99).map(String)
const action = fc.oneof(
  { weight: 6, arbitrary: hook.map((one) => (world: PushWorld) => world.queue(one)) },
  {
    weight: 6,
    arbitrary: fc
      .record({ hook, answer: answers, chance: fc.double({ min: 0, max: 0.999, noNaN: true }) })
      .map(
        (one) => (world: PushWorld) =>
          world.answer(
            [...world.inFlight.keys()][Number(one.hook) % Math.max(1, world.inFlight.size)] ?? '',
            one.answer,
            one.chance
          )
      )
  },
  { weight: 2, arbitrary: fc.nat(700_000).map((ms) => (world: PushWorld) => world.pass(ms)) },
  { weight: 1, arbitrary: hook.map((one) => (world: PushWorld) => world.remove(one)) },
  { weight: 1, arbitrary: hook.map((one) => (world: PushWorld) => world.step({ type: 'hurry', hook: one })) },
  { weight: 1, arbitrary: fc.constant((world: PushWorld) => world.crash()) }
)

test('through crashes, failures and deletions each hook gets all events in order, one by one, within the shares, and none once it is deleted', async (t: Assert) => {
  await holds(
    t,
    fc.property(
      fc.array(action, { maxLength: 300 }),
      fc.integer({ min: 1, max: 4 }),
      fc.boolean(),
      (actions, owners, isCrowded) => {
        const world = new PushWorld(owners)
        if (isCrowded) for (let one = 0; one < 100; one++) world.queue(String(one))
        for (const act of actions) act(world)
        for (let round = 0; round < 2000 && [...world.waiting.values()].some((list) => list.length > 0); round++) {
          for (const one of [...world.inFlight.keys()]) world.answer(one, TAKEN, 0)
          world.pass(60_000)
        }
        for (const [one, generations] of world.queued) {
          const settled = world.settled.get(one) ?? []
          const expected = world.removed.has(one) ? generations.slice(0, settled.length) : generations
          if (JSON.stringify(settled) !== JSON.stringify(expected))
            throw new Error(`hook ${one}: ${String(settled)} of ${String(generations)}`)
        }
      }
    ),
    300
  )
})

function again(world: PushWorld, one: string): void {
  world.answer(one, TAKEN, 0)
  world.queue(one)
}

test('a hook that never answers holds no other one up', (t: Assert) => {
  const world = new PushWorld(1)
  for (const one of ['slow', 'a', 'b']) world.queue(one)
  for (let round = 0; round < 5; round++) for (const one of ['a', 'b']) again(world, one)
  t.alike(
    [world.settled.get('a')?.length, world.settled.get('b')?.length, world.settled.get('slow')],
    [5, 5, undefined]
  )
})

test('a clock that is put back makes nobody wait for longer than the longest wait', (t: Assert) => {
  const world = new PushWorld(1)
  world.queue('1')
  world.answer('1', { type: 'failed', reason: 'x', retryAfterMs: null }, 0.9)
  t.alike([...world.inFlight], [], 'it rests')
  world.now -= 86_400_000
  world.step({ type: 'time' })
  t.ok(world.inFlight.has('1'))
})
