import test from 'brittle'
import fc from 'fast-check'
import {
  BUSY_CREDIT,
  creditFault,
  creditFor,
  type CreditWindow,
  FIRST_CREDIT,
  FIRST_WINDOW,
  MAX_BUSY_CREDIT,
  MAX_CREDIT,
  moreCredit,
  takeFrame,
  URGENT_CREDIT
} from '../../../src/domain/channel/credit.js'
import { holds } from '../../support/holds.js'

/** The largest cost of one frame: a control message of 128 KiB. */
const MAX_COST = 513

/**
 * What happens next on a link: the sender sends, a frame or credit arrives, others begin or stop to use the receiver.
 */
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constant('send' as const),
      cost: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: MAX_COST }))
    })
  },
  { weight: 6, arbitrary: fc.constant({ type: 'frame' as const }) },
  { weight: 2, arbitrary: fc.constant({ type: 'credit' as const }) },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant('use' as const),
      busySize: fc.option(fc.integer({ min: 0, max: 500 }).map(creditFor))
    })
  }
)

/** Both ends of a link, with what is under way between them. */
class Pair {
  spent = 0
  credit = FIRST_CREDIT
  window: CreditWindow = FIRST_WINDOW
  busySize: number | null = null
  readonly frames: number[] = []
  readonly grants: number[] = []
  readonly faults: string[] = []

  send(cost: number): boolean {
    if (this.spent >= this.credit) return false
    this.spent += cost
    this.frames.push(cost)
    return true
  }

  frame(): void {
    const cost = this.frames.shift()
    if (cost === undefined) return
    const taken = takeFrame(this.window, cost)
    if (taken === null) return void this.faults.push('a frame without credit')
    this.window = taken
    this.give()
  }

  give(): void {
    const more = moreCredit(this.window, this.busySize)
    if (more !== this.window) this.grants.push(more.limit)
    this.window = more
  }

  grant(): void {
    const limit = this.grants.shift()
    if (limit === undefined) return
    const fault = creditFault(limit, { given: this.credit, spent: this.spent })
    if (fault !== null) this.faults.push(fault)
    this.credit = limit
  }
}

test('two honest ends never fault each other, however late frames and credit come, and a sender never waits for credit that does not come', async (t) => {
  await holds(
    t,
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const pair = new Pair()
      for (const one of steps) {
        if (one.type === 'send') pair.send(one.cost)
        else if (one.type === 'frame') pair.frame()
        else if (one.type === 'credit') pair.grant()
        else pair.busySize = one.busySize
        const ahead = pair.window.limit - pair.window.spent
        if (ahead > MAX_CREDIT) throw new Error(`${ahead} tokens ahead`)
      }
      while (pair.frames.length > 0) pair.frame()
      while (pair.grants.length > 0) pair.grant()
      if (!pair.send(1)) throw new Error('it waits for ever')
      if (pair.faults.length > 0) throw new Error(pair.faults.join())
    }),
    2000
  )
})

test('a frame without credit is reported: more than 64 tokens beyond it, after one frame that costs more than the rest', (t) => {
  let window: CreditWindow = { ...FIRST_WINDOW, spent: FIRST_CREDIT - 1 }
  for (let count = 0; count <= URGENT_CREDIT; count++) {
    const next = takeFrame(window, 1)
    if (next === null) throw new Error(`refused at ${count}`)
    window = next
  }
  t.is(takeFrame(window, 1), null)
  t.is(takeFrame({ ...FIRST_WINDOW, spent: FIRST_CREDIT - 1 }, MAX_COST)?.spent, FIRST_CREDIT - 1 + MAX_COST)
})

test('credit reaches twice as far each time while nobody else uses the node, and 32 tokens while others do, more on a long way', (t) => {
  const used = (window: CreditWindow): CreditWindow => ({ ...window, spent: window.limit })
  let window = used(FIRST_WINDOW)
  const sizes: number[] = []
  for (let count = 0; count < 9; count++) {
    window = moreCredit(window, null)
    sizes.push(window.size)
    window = used(window)
  }
  t.alike(sizes, [64, 128, 256, 512, 1024, 2048, 4096, 4096, 4096])
  t.is(moreCredit(window, creditFor(1)).size, BUSY_CREDIT)
  t.is(creditFor(100), 500)
  t.is(creditFor(null), BUSY_CREDIT)
  t.is(creditFor(1e9), MAX_BUSY_CREDIT)
})

test('credit that goes back, in tiny pieces or without end is a fault', (t) => {
  const given = { given: 512, spent: 500 }
  t.is(creditFault(528, given), null)
  t.is(creditFault(527, given), 'credit in pieces that are too small')
  t.is(creditFault(0, given), 'credit in pieces that are too small')
  t.is(creditFault(Number.MAX_SAFE_INTEGER, given), 'credit for more than a node sends')
})
