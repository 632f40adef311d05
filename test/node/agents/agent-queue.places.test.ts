import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { Abort } from '../../../src/kit/abort.js'
import { AgentQueue, MAX_SUSPENDED, MAX_SUSPENDED_OF_CALLER, RunPlace } from '../../../src/node/agents/agent-queue.js'
import { holds } from '../../support/holds.js'

const never = new Abort()

async function turns(): Promise<void> {
  for (let i = 0; i < 3; i++) await new Promise((resolve) => setImmediate(resolve))
}

interface Run {
  readonly place: RunPlace
  readonly abort: Abort
  readonly answers: (() => void)[]
  /** Questions without an answer for the run. */
  asking: number
  isOver: boolean
}

const step = fc.oneof(
  fc.record({ begin: fc.nat(2) }),
  fc.record({ ask: fc.nat(15) }),
  fc.record({ answer: fc.nat(15) }),
  fc.record({ end: fc.nat(15) }),
  fc.record({ abort: fc.nat(15) }),
  fc.constant({ close: true })
)

test('for any runs, questions, answers and ends, no more runs without a question work than there are places', async (t) => {
  const property = fc.asyncProperty(
    fc.integer({ min: 1, max: 3 }),
    fc.array(step, { maxLength: 60 }),
    async (places, steps) => {
      const queue = new AgentQueue(places)
      const runs: Run[] = []
      const open = (at: number): Run | undefined => ((runs[at]?.isOver ?? true) ? undefined : runs[at])
      const apply = (one: Partial<Record<'begin' | 'ask' | 'answer' | 'end' | 'abort', number>>): void => {
        if (one.begin !== undefined)
          void Promise.resolve(queue.take(never)).then((turn) => {
            const abort = new Abort()
            const place = new RunPlace(queue, `n${one.begin}`, abort)
            if (turn === 'held') runs.push({ place, abort, answers: [], asking: 0, isOver: false })
          })
        const asking = open(one.ask ?? -1)
        if (asking !== undefined) {
          asking.asking++
          const question = (): Promise<void> => new Promise((resolve) => asking.answers.push(resolve))
          void asking.place.during(question).then(() => asking.asking--)
        }
        open(one.answer ?? -1)?.answers.shift()?.()
        open(one.abort ?? -1)?.abort.abort()
        const ending = open(one.end ?? -1)
        if (ending === undefined) return
        ending.isOver = true
        ending.place.end()
        for (const answer of ending.answers) answer()
      }
      for (const one of steps) {
        if ('close' in one) queue.reopen(places)
        else apply(one)
        await turns()
        const working = runs.filter((run) => !run.isOver && run.asking === 0 && !run.abort.aborted)
        assert.ok(working.length <= places, `${working.length} work at ${places} places`)
        assert.ok(queue.running <= places)
        assert.ok(queue.waiting === 0 || queue.running === places, 'nobody waits beside a free place')
      }
      for (let at = 0; at < runs.length || queue.waiting > 0; at++) {
        apply({ end: at })
        await turns()
      }
      assert.ok(queue.isIdle, 'every place is given back')
    }
  )
  await holds(t, property, 300)
})

test('runs that ask for callers of one node, and in all, give back a bounded number of places', async (t) => {
  const queue = new AgentQueue(1)
  const questions: (() => void)[] = []
  const given = async (caller: string): Promise<boolean> => {
    await queue.take(never)
    const place = new RunPlace(queue, caller, never)
    void place.during(() => new Promise<void>((resolve) => questions.push(resolve)))
    const isGiven = queue.running === 0
    if (!isGiven) place.end()
    return isGiven
  }
  const count = async (caller: string): Promise<number> => {
    let many = 0
    while (await given(caller)) many++
    return many
  }
  t.is(await count('one'), MAX_SUSPENDED_OF_CALLER)
  let others = 0
  for (let i = 0; i < 10; i++) others += await count(`n${i}`)
  t.is(others, MAX_SUSPENDED - MAX_SUSPENDED_OF_CALLER, 'one caller leaves places to others')
})

test('a run that ends or is aborted while it waits for a place again takes none', async (t) => {
  const queue = new AgentQueue(1)
  const abort = new Abort()
  const questions: (() => void)[] = []
  const asking = async (): Promise<{ readonly place: RunPlace; readonly answered: Promise<string> }> => {
    await queue.take(never)
    const place = new RunPlace(queue, 'a', abort)
    const question = (): Promise<string> => new Promise((resolve) => questions.push(() => resolve('yes')))
    return { place, answered: place.during(question) }
  }
  const [first, second] = [await asking(), await asking()]
  await queue.take(never)
  for (const answer of questions) answer()
  await turns()
  t.is(queue.waiting, 2)
  first.place.end()
  t.is(queue.waiting, 1)
  abort.abort()
  t.alike(await Promise.all([first.answered, second.answered]), ['yes', 'yes'])
  t.absent(queue.isIdle)
  second.place.end()
  queue.release()
  t.ok(queue.isIdle)
})

test('a question after the end of its run neither frees a place nor counts as a run that asks', async (t) => {
  const queue = new AgentQueue(1)
  t.is(await queue.take(never), 'held')
  const place = new RunPlace(queue, 'n1', never)
  place.end()
  t.is(await place.during(() => Promise.resolve('refused')), 'refused', 'the caller of the question refuses it')
  t.is(queue.running, 0)
  t.ok(queue.isIdle)
  t.is(await queue.take(never), 'held')
  t.ok(queue.take(never) instanceof Promise, 'the next one waits')
})
