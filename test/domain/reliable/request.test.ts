import test from 'brittle'
import fc from 'fast-check'
import {
  arrive,
  ask,
  begin,
  end,
  found,
  isDue,
  MAX_CUTS,
  recover,
  REQUEST_POLICY,
  SETTLED,
  stepCaller
} from '../../../src/domain/reliable/request.js'
import type { CalleeRequest, CallerInput, CallerRequest } from '../../../src/domain/reliable/request.js'
import { holds } from '../../support/holds.js'

type ToCallee = 'request' | 'query'
type ToCaller = 'completed' | 'failed' | 'unknown'

interface Options {
  readonly isRepeatable: boolean
  /** Is it asked for again when no outcome comes? */
  readonly hasRetries: boolean
}

/**
 * One request between two nodes. What a node commits is there after a crash, all of it or none; messages ride on lanes.
 */
class World {
  readonly faults: string[] = []
  readonly told: string[] = []
  /** How often the handler began to work: what the outside sees. */
  effects = 0
  #now = 0
  readonly #options: Options
  /** Disk of the caller: the record, and what its lane has not delivered. */
  #caller: { readonly request: CallerRequest; readonly outbox: readonly ToCallee[] }
  /** Disk of the callee. */
  #callee: { readonly request: CalleeRequest | null; readonly outbox: readonly ToCaller[] } = {
    request: null,
    outbox: []
  }
  #isRunning = false
  #ended: 'completed' | 'failed' | null = null
  hasLost = false
  /** Ends of the callee's node that cut a run short. */
  #cuts = 0
  /** The effects that there may be at most: what was delivered before the disk was lost must not run again. */
  #most = Number.POSITIVE_INFINITY

  constructor(options: Options) {
    this.#options = options
    const { isRepeatable } = options
    this.#caller = {
      request: ask({ isRepeatable, deadline: 30_000, expiresAt: 10_000_000, updatedAt: 0 }),
      outbox: ['request']
    }
  }

  /** The next message of the caller's lane arrives. `isAcked`: its acknowledgement does as well. */
  toCallee(isCommitted: boolean): void {
    const [message, ...outbox] = this.#caller.outbox
    if (message === undefined) return
    const known = this.#callee.request
    const verdict = arrive(known, message)
    if (!isCommitted) return this.crashCallee()
    if (verdict === 'run') {
      this.#callee = {
        ...this.#callee,
        request: { status: 'pending', runs: 0, cuts: 0, isRepeatable: this.#options.isRepeatable }
      }
      this.#run()
    } else if (verdict === 'absent') this.#callee = { ...this.#callee, outbox: [...this.#callee.outbox, 'unknown'] }
    else if (verdict === 'tell' && known !== null)
      this.#callee = { ...this.#callee, outbox: [...this.#callee.outbox, outcomeOf(known)] }
    this.#caller = { ...this.#caller, outbox }
  }

  /** The handler has ended, and its outcome is committed together with the message that tells it. */
  finish(outcome: 'completed' | 'failed', isCommitted: boolean): void {
    const { request } = this.#callee
    if (!this.#isRunning || request === null) return
    if (!isCommitted) return this.crashCallee()
    this.#isRunning = false
    this.#ended = outcome
    this.#callee = { request: end(request, outcome), outbox: [...this.#callee.outbox, outcome] }
  }

  toCaller(isCommitted: boolean): void {
    const [outcome, ...outbox] = this.#callee.outbox
    if (outcome === undefined || !isCommitted) return
    this.#callee = { ...this.#callee, outbox }
    this.#step({ type: 'outcome', outcome })
  }

  pass(ms: number): void {
    this.#now += ms
    if (this.#options.hasRetries) this.#step({ type: 'tick', chance: 0.5 })
  }

  /** All that was not committed is gone; the next start goes on. */
  crashCallee(): void {
    if (this.#isRunning) this.#cuts++
    this.#isRunning = false
    if (this.#callee.request === null) return
    const request = found(this.#callee.request)
    this.#callee = { ...this.#callee, request }
    const next = recover(request)
    if (next === 'run') this.#run()
    if (next === 'unknown' || next === 'suspect') {
      this.#callee = { request: { ...request, status: 'unknown' }, outbox: [...this.#callee.outbox, 'unknown'] }
    }
  }

  /** The callee's disk is empty. */
  loseCallee(): void {
    this.hasLost = true
    const isDelivered = this.#callee.request !== null && !this.#caller.outbox.includes('request')
    if (isDelivered && !this.#options.isRepeatable) this.#most = Math.min(this.#most, this.effects)
    this.#isRunning = false
    this.#ended = null
    this.#callee = { request: null, outbox: [] }
  }

  settle(): void {
    for (let round = 0; round < 40; round++) {
      this.toCallee(true)
      this.finish('completed', true)
      this.toCaller(true)
      this.pass(60_000)
    }
  }

  check(): void {
    const { request } = this.#caller
    if (this.told.filter((one) => one !== 'unknown').length > 1) this.faults.push('two outcomes were told')
    if (!this.#options.isRepeatable && this.effects > 1) this.faults.push('what may not be repeated ran twice')
    if (this.#cuts > MAX_CUTS) this.faults.push('it ran again after its node ended as often as it may')
    if (request.tries > REQUEST_POLICY.maxAttempts) this.faults.push('it was tried too often')
  }

  /** After everything has come to rest. */
  checkEnd(): void {
    const { status } = this.#caller.request
    const callee = this.#callee.request?.status ?? null
    if (this.effects > this.#most) this.faults.push('what was delivered before the disk was lost ran again')
    if (SETTLED.has(status) && !this.hasLost && callee !== status)
      this.faults.push(`the ends disagree: ${status}, ${callee}`)
    const isCutShort = this.#cuts === MAX_CUTS && callee === 'unknown' && status === 'unknown'
    if (this.#options.isRepeatable && !this.hasLost && !SETTLED.has(status) && !isCutShort)
      this.faults.push(`it ended as ${status}`)
    if (!this.#options.hasRetries || this.hasLost) return
    if (!SETTLED.has(status) && status !== 'unknown') this.faults.push(`it ended as ${status}`)
  }

  #run(): void {
    const { request } = this.#callee
    if (request === null) return
    if (this.#isRunning) this.faults.push('it runs twice at once')
    if (SETTLED.has(request.status) || this.#ended !== null) this.faults.push('it runs after its end')
    this.#callee = { ...this.#callee, request: begin(request) }
    this.#isRunning = true
    this.effects++
  }

  #step(input: CallerInput): void {
    const { request, effects } = stepCaller(this.#caller.request, input, { now: this.#now })
    const sent = effects.flatMap((effect) => (effect.type === 'send' ? [effect.kind] : []))
    for (const effect of effects) if (effect.type === 'tell') this.told.push(effect.status)
    this.#caller = { request, outbox: [...this.#caller.outbox, ...sent] }
  }
}

function outcomeOf({ status }: CalleeRequest): ToCaller {
  return status === 'completed' || status === 'failed' ? status : 'unknown'
}

const deeds = fc.oneof(
  fc.boolean().map((isGood) => (world: World) => world.toCallee(isGood)),
  fc.boolean().map((isGood) => (world: World) => world.toCaller(isGood)),
  fc.tuple(fc.constantFrom('completed' as const, 'failed' as const), fc.boolean()).map(
    ([outcome, isGood]) =>
      (world: World) =>
        world.finish(outcome, isGood)
  ),
  fc.constantFrom(1000, 31_000, 90_000).map((ms) => (world: World) => world.pass(ms)),
  fc.constant((world: World) => world.crashCallee())
)
const loss = fc.constant((world: World) => world.loseCallee())

function runs(options: Options, all: readonly ((world: World) => void)[]): void {
  const world = new World(options)
  for (const deed of all) {
    deed(world)
    if (!world.hasLost) world.check()
  }
  world.settle()
  if (!world.hasLost) world.check()
  world.checkEnd()
  if (world.faults.length > 0) throw new Error(world.faults.join('; '))
}

for (const isRepeatable of [true, false]) {
  for (const hasRetries of [true, false]) {
    const what = `${isRepeatable ? 'a repeatable' : 'an unrepeatable'} request ${hasRetries ? 'with' : 'without'} retries`
    test(`${what}: through any crashes it has one outcome on which both ends agree, and never runs twice at once or after its end`, async (t) => {
      await holds(
        t,
        fc.property(fc.array(deeds, { maxLength: 60, size: 'max' }), (all) => runs({ isRepeatable, hasRetries }, all)),
        1000
      )
    })

    test(`${what}: a callee that loses its disk leaves none that waits for ever`, async (t) => {
      const property = fc.property(fc.array(fc.oneof(deeds, deeds, loss), { maxLength: 60, size: 'max' }), (all) =>
        runs({ isRepeatable, hasRetries }, all)
      )
      await holds(t, property, 1000)
    })
  }
}

const CUT = { status: 'started', runs: 1, cuts: 0, isRepeatable: true } as const

test('a request that may be repeated runs again after one end of its node, and not after the second; one that had not begun runs', (t) => {
  const once = found(CUT)
  t.is(recover(once), 'run')
  t.is(recover(found(begin(once))), 'suspect')
  t.is(recover(found({ ...CUT, status: 'pending', runs: 0 })), 'run')
  t.is(recover(found({ ...CUT, isRepeatable: false })), 'unknown')
  t.is(found(end(CUT, 'completed')).cuts, 0)
})

test('an error of the node itself is as good as the second end', (t) => {
  t.is(recover(found(CUT, true)), 'suspect')
  t.is(recover(found({ ...CUT, status: 'pending' }, true)), 'run', 'one that had not begun is none the worse')
})

test('the waits between tries at most double up to a minute; the fifth try is the last', (t) => {
  let request = ask({ isRepeatable: true, deadline: 100, expiresAt: 10_000_000, updatedAt: 0 })
  const waits: number[] = []
  let now = 100
  for (let round = 0; round < 8; round++) {
    const step = stepCaller(request, { type: 'tick', chance: 0.999_999 }, { now })
    request = step.request
    if (request.retryAt === null) break
    waits.push(request.retryAt - now)
    now = request.retryAt
  }
  t.alike(waits, [4999, 9999, 19_999, 39_999])
  t.is(request.tries, 5)
  t.is(request.status, 'unknown')
})

test('a query at its limit without an answer is sent once more each time that its node is back', (t) => {
  let request = ask({ isRepeatable: false, deadline: 100, expiresAt: 10_000_000, updatedAt: 0 })
  let now = 100
  for (const tick of [1, 2, 3, 4, 5]) {
    t.is(stepCaller(request, { type: 'back' }, { now }).request, request, `not before try ${tick}`)
    request = stepCaller(request, { type: 'tick', chance: 0.5 }, { now }).request
    now = request.retryAt ?? now
  }
  for (const tries of [6, 7]) {
    t.absent(isDue(request, now + 1_000_000))
    request = stepCaller(request, { type: 'back' }, { now }).request
    t.ok(isDue(request, now))
    const step = stepCaller(request, { type: 'tick', chance: 0.5 }, { now })
    t.alike(step.effects, [{ type: 'send', kind: 'query' }])
    t.is(step.request.tries, tries)
    request = step.request
  }
  t.is(stepCaller(request, { type: 'back' }, { now: 10_000_000 }).request, request, 'not once it has expired')
  const settled = stepCaller(request, { type: 'outcome', outcome: 'completed' }, { now }).request
  t.is(stepCaller(settled, { type: 'back' }, { now }).request, settled)
})

test('an outcome that is not known is asked for as soon as its node is back, also long before the next try', (t) => {
  const asked = ask({ isRepeatable: true, deadline: 86_400_000, expiresAt: 172_800_000, updatedAt: 0 })
  // Its node went away: a late answer would have counted until the deadline.
  const request = { ...asked, status: 'unknown', retryAt: 86_402_500 } as const
  t.absent(isDue(request, 60_000))
  const back = stepCaller(request, { type: 'back' }, { now: 60_000 }).request
  t.ok(isDue(back, 60_000))
  t.alike(stepCaller(back, { type: 'tick', chance: 0 }, { now: 60_000 }).effects, [{ type: 'send', kind: 'request' }])
  const cannotTell = { ...request, retryAt: null }
  t.is(
    stepCaller(cannotTell, { type: 'back' }, { now: 60_000 }).request,
    cannotTell,
    'its node answered that it will never know'
  )
})

test('nothing is asked for any more once it has expired', (t) => {
  const request = ask({ isRepeatable: true, deadline: 100, expiresAt: 2000, updatedAt: 0 })
  const { request: next } = stepCaller(request, { type: 'tick', chance: 0.9 }, { now: 100 })
  t.is(next.status, 'unknown')
  t.is(next.retryAt, null)
})

test('a clock that is put back holds up nothing: how long was waited is not known, so it is asked at once', (t) => {
  const asked = ask({ isRepeatable: false, deadline: 100, expiresAt: 10_000_000, updatedAt: 0 })
  const { request } = stepCaller(asked, { type: 'tick', chance: 0.9 }, { now: 5_000_000 })
  t.absent(isDue(request, 5_000_000))
  t.ok(isDue(request, 4_999_999))
  const { request: next, effects } = stepCaller(request, { type: 'tick', chance: 0.9 }, { now: 1_000_000 })
  t.alike(effects, [{ type: 'send', kind: 'query' }])
  t.absent(isDue(next, 1_000_000), 'the next wait is one by the clock as it is now')
  t.ok(isDue(next, 1_009_000))
})
