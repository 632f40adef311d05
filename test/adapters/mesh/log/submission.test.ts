import test from 'brittle'
import { Submission, Submissions, type SubmissionDeps } from '../../../../src/adapters/mesh/log/submission.js'
import { NodeError } from '../../../../src/kit/errors.js'
import { seal } from '../../../../src/domain/membership/signing.js'
import type { EntryBody } from '../../../../src/domain/membership/types.js'
import { failsWith } from '../../../support/fails.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { actor, cardBody, founded, MESH, signedCard } from '../../../support/membership.js'

const owner = actor('owner')
const body: EntryBody = { kind: 'card', mesh: MESH, card: signedCard(owner, cardBody('tester')) }

type Tried = Awaited<ReturnType<SubmissionDeps['tryOut']>>

/** A submission of a card to a log that is a model. */
function submit(taken: () => boolean, tried = (): Tried => ({ skipped: null, isFull: false })) {
  const log = founded()
  const clock = new ManualClock()
  const listeners = new Set<() => void>()
  const state = { offers: 0, again: 0, isClosed: false, fault: null as NodeError | null, refreshed: () => {} }
  const submission = new Submission({
    entry: seal('entry', body, owner),
    clock,
    timeoutMs: 5000,
    view: () => log.view(),
    isClosed: () => state.isClosed,
    fault: () => state.fault,
    onChange: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    offer: (_, isAgain) => {
      state.offers++
      if (isAgain) state.again++
      return Promise.resolve(taken())
    },
    tryOut: () => Promise.resolve(tried()),
    refresh: () => Promise.resolve(state.refreshed())
  })
  const show = (): void => void log.card(owner, cardBody('tester'))
  const apply = (): void => {
    show()
    for (const listener of [...listeners]) listener()
  }
  return { submission, clock, listeners, state, show, apply }
}

/** Lets promises that are settled go on. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('an entry is offered again each second until a writer takes it, then waited for', async (t) => {
  let isTaken = false
  const { submission, clock, state, apply, listeners } = submit(() => isTaken)
  for (let second = 0; second < 3; second++) {
    await settle()
    clock.advance(1000)
  }
  await settle()
  t.is(state.offers, 4)
  isTaken = true
  await settle()
  clock.advance(1000)
  await settle()
  clock.advance(500)
  t.is(state.offers, 5, 'once taken it is not offered again')
  apply()
  await submission.done
  t.is(listeners.size, 0)
  t.is(clock.pending, 0, 'no timer is left')
})

test('an entry that was taken and does not show in three seconds is offered anew, as one that was taken before', async (t) => {
  const { submission, clock, state, apply } = submit(() => true)
  await settle()
  clock.advance(2000)
  await settle()
  t.alike([state.offers, state.again], [1, 0])
  clock.advance(1000)
  await settle()
  t.alike([state.offers, state.again], [2, 1])
  apply()
  await submission.done
})

test('an attempt while an offer is under way offers nothing', async (t) => {
  const { submission, state, apply } = submit(() => true)
  submission.attempt()
  submission.attempt()
  await settle()
  submission.attempt()
  t.is(state.offers, 1)
  apply()
  await t.execution(submission.done)
})

test('an entry that no writer takes, and one that the log does not accept, time out with the reason', async (t) => {
  for (const [isTaken, reason] of [
    [false, 'took the entry'],
    [true, 'does not show it']
  ] as const) {
    const { submission, clock } = submit(() => isTaken)
    await settle()
    clock.advance(5000)
    const error = await failsWith(t, 'TIMEOUT', () => submission.done)
    t.ok(error.message.includes(reason))
    t.ok(error.message.endsWith('(within 5 s); the change may still be made'), error.message)
    t.alike(error.data, { timeoutMs: 5000, outcome: 'unknown' }, 'the command line then shows what became of it')
  }
})

test('an entry beyond a limit of the log fails at once, with the limit, and is offered to nobody', async (t) => {
  for (const skipped of ['the node has created 1024 documents', 'the limit of streams is reached']) {
    const { submission, state, clock } = submit(
      () => true,
      () => ({ skipped, isFull: true })
    )
    const error = await failsWith(t, 'OVERLOADED', () => submission.done)
    t.alike([error.message.includes(skipped), error.retryable, state.offers, clock.pending], [true, false, 0, 0])
  }
})

test('a limit that is reached while an entry waits ends it, too', async (t) => {
  let tried: Tried = { skipped: null, isFull: false }
  const { submission, clock, state } = submit(
    () => false,
    () => tried
  )
  await settle()
  tried = { skipped: 'the mesh has 4096 documents', isFull: true }
  clock.advance(1000)
  const error = await failsWith(t, 'OVERLOADED', () => submission.done)
  t.ok(error.message.includes('4096'))
  t.is(state.offers, 1)
})

test('a taken entry behind others that reached a limit fails with it at the next change, however they reached it', async (t) => {
  for (const skipped of ['the node has 1024 documents', 'the limit of streams is reached', 'the node has 1024 cards']) {
    let tried: Tried = { skipped: null, isFull: false }
    const { submission, clock, listeners, state } = submit(
      () => true,
      () => tried
    )
    await settle()
    const change = (): void => {
      for (const listener of [...listeners]) listener()
    }
    change()
    await settle()
    t.alike([state.offers, listeners.size], [1, 1], 'below the limit it is waited for')
    tried = { skipped, isFull: true }
    change()
    const error = await failsWith(t, 'OVERLOADED', () => submission.done)
    t.alike([error.message.includes(skipped), state.offers, clock.pending], [true, 1, 0], 'without any time')
  }
})

test('the entry that reaches a limit itself is applied, though the log then takes no more like it', async (t) => {
  let tried: Tried = { skipped: null, isFull: false }
  const { submission, state, show } = submit(
    () => true,
    () => tried
  )
  await settle()
  tried = { skipped: 'the node has 1024 documents', isFull: true }
  // The log has it before the view shows it.
  state.refreshed = show
  submission.attempt()
  await settle()
  submission.attempt()
  await t.execution(submission.done)
})

test('an entry that the log refuses for now is offered, and its timeout names the reason', async (t) => {
  const { submission, clock, state } = submit(
    () => false,
    () => ({ skipped: 'its author is no member', isFull: false })
  )
  await settle()
  t.is(state.offers, 1)
  clock.advance(5000)
  const error = await failsWith(t, 'TIMEOUT', () => submission.done)
  t.ok(error.message.includes('its author is no member'))
})

test('a disk that becomes full while an entry waits ends it with that reason, unless a writer took it before', async (t) => {
  for (const code of ['DISK_FULL', 'STORE_DAMAGED'] as const) {
    const waiting = submit(() => false)
    await settle()
    waiting.state.fault = new NodeError(code, 'the store takes nothing')
    waiting.clock.advance(1000)
    await failsWith(t, code, () => waiting.submission.done)
    t.alike([waiting.state.offers, waiting.clock.pending], [1, 0])
  }
  const taken = submit(() => true)
  await settle()
  taken.state.fault = new NodeError('DISK_FULL', 'the disk is full')
  taken.clock.advance(4000)
  await settle()
  taken.apply()
  await t.execution(taken.submission.done, 'it is in the log all the same')
})

test('closing the log ends it', async (t) => {
  const { submission, state } = submit(() => false)
  await settle()
  state.isClosed = true
  submission.attempt()
  await failsWith(t, 'INTERNAL', () => submission.done)
})

test('the claim of a core that could not be made is made again, and once made not again', async (t) => {
  const log = founded()
  const clock = new ManualClock()
  const state = { claims: 0, mayClaim: false }
  const submissions = new Submissions({
    clock,
    view: () => log.view(),
    isClosed: () => false,
    fault: () => null,
    onChange: () => () => {},
    refresh: () => Promise.resolve(),
    tryOut: () => Promise.resolve({ skipped: null, isFull: false }),
    append: () => null,
    isHalted: () => false,
    relay: () => Promise.resolve(false),
    claim: () => {
      state.claims++
      return Promise.resolve(state.mayClaim)
    }
  })
  const core: EntryBody = { kind: 'core', mesh: MESH, coreKey: actor('core').id, serial: 7 }
  const done = submissions.submit(seal('entry', core, owner), 20_000).catch((error: unknown) => error)
  const seconds = async (count: number): Promise<void> => {
    for (let second = 0; second < count; second++) {
      await settle()
      clock.advance(1000)
    }
    await settle()
  }
  await seconds(2)
  t.is(state.claims, 3)
  state.mayClaim = true
  await seconds(1)
  t.is(state.claims, 4)
  await seconds(17)
  t.is(state.claims, 4, 'its taker relays it on; it is offered, but not claimed again')
  t.ok((await done) instanceof NodeError)
  const other = submissions.submit(seal('entry', body, owner), 1000).catch((error: unknown) => error)
  await seconds(1)
  await other
  t.is(state.claims, 4, 'other entries claim nothing')
})
