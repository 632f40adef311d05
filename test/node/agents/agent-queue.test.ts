import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { Abort } from '../../../src/kit/abort.js'
import { AgentQueue, MAX_WAITING, type QueueTurn } from '../../../src/node/agents/agent-queue.js'
import { holds } from '../../support/holds.js'

const never = new Abort()

async function turns(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve))
}

test('places are given in the order of asking, never more than there are', async (t) => {
  const step = fc.oneof(
    fc.constant('take' as const),
    fc.constant('release' as const),
    fc.record({ abort: fc.nat(20) }),
    fc.record({ resize: fc.integer({ min: 1, max: 4 }) })
  )
  const property = fc.asyncProperty(
    fc.integer({ min: 1, max: 3 }),
    fc.array(step, { maxLength: 60 }),
    async (places, steps) => {
      const queue = new AgentQueue(places)
      const asked: { abort: Abort; turn: QueueTurn | null }[] = []
      const held: number[] = []
      let limit = places
      let held0 = 0
      for (const one of steps) {
        if (one === 'take') {
          const index = asked.length
          const entry: (typeof asked)[number] = { abort: new Abort(), turn: null }
          asked.push(entry)
          void Promise.resolve(queue.take(entry.abort)).then((turn) => {
            entry.turn = turn
            if (turn === 'held') held.push(index)
          })
        } else if (one === 'release') {
          if (queue.running === 0) continue
          queue.release()
          held0++
        } else if ('abort' in one) {
          asked[one.abort]?.abort.abort()
        } else {
          limit = one.resize
          queue.resize(limit)
        }
        await turns()
        assert.ok(queue.running <= Math.max(limit, held.length - held0), 'no more than there are places')
        assert.equal(queue.running, held.length - held0, 'every taken place is counted')
        assert.ok(queue.waiting === 0 || queue.running >= limit, 'nobody waits beside a free place')
        assert.equal(queue.waiting, asked.filter((entry) => entry.turn === null).length)
      }
      assert.deepEqual(
        held,
        [...held].sort((a, b) => a - b),
        'first come, first served'
      )
    }
  )
  await holds(t, property, 300)
})

test('a waiter that gives up leaves the place to the next', async (t) => {
  const queue = new AgentQueue(1)
  const impatient = new Abort()
  t.is(await queue.take(never), 'held')
  const [second, third] = [queue.take(impatient), queue.take(never)]
  impatient.abort()
  t.is(await second, 'aborted')
  t.is(queue.waiting, 1)
  queue.release()
  t.is(await third, 'held')
  t.is(queue.running, 1)
})

test('a signal that is aborted already takes no place', async (t) => {
  const queue = new AgentQueue(1)
  const aborted = new Abort()
  aborted.abort()
  t.is(await queue.take(aborted), 'aborted')
  t.is(queue.running, 0)
})

test('closing ends all waits, and later ones', async (t) => {
  const queue = new AgentQueue(1)
  await queue.take(never)
  const waiting = [queue.take(never), queue.take(never)].map((turn) => Promise.resolve(turn))
  queue.close()
  t.alike(await Promise.all(waiting), ['closed', 'closed'])
  t.is(await queue.take(never), 'closed')
  queue.release()
  t.is(queue.running, 0, 'the run under way gives its place back')
})

test('more places let the first who wait begin at once', async (t) => {
  const queue = new AgentQueue(1)
  await queue.take(never)
  const order: number[] = []
  for (const index of [1, 2, 3]) void Promise.resolve(queue.take(never)).then(() => order.push(index))
  queue.resize(3)
  await turns()
  t.alike(order, [1, 2])
  t.is(queue.waiting, 1)
})

test('a queue is bounded', async (t) => {
  const queue = new AgentQueue(1)
  await queue.take(never)
  const waiting = Array.from({ length: MAX_WAITING }, () => Promise.resolve(queue.take(never)))
  t.is(await queue.take(never), 'full')
  queue.close()
  t.is((await Promise.all(waiting)).length, MAX_WAITING)
})

test('a queue that is opened again gives places beside those still taken', async (t) => {
  const queue = new AgentQueue(1)
  await queue.take(never)
  queue.close()
  queue.reopen(2)
  t.is(await queue.take(never), 'held')
  const third = queue.take(never)
  t.is(queue.waiting, 1)
  queue.release()
  t.is(await third, 'held')
})
