import test from 'brittle'
import fc from 'fast-check'
import { AsyncQueue } from '../../src/kit/queue.js'
import { holds } from '../support/holds.js'

function queueOf(max: number, signal?: AbortSignal): AsyncQueue<string> {
  return new AsyncQueue<string>(max, (lost) => `lost ${lost}`, signal)
}

async function all(queue: AsyncQueue<string>): Promise<string[]> {
  const values: string[] = []
  for await (const value of queue) values.push(value)
  return values
}

test('values come out in order, also those pushed while the reader waits', async (t) => {
  const queue = queueOf(10)
  const reading = all(queue)
  queue.push('a')
  await Promise.resolve()
  queue.push('b')
  queue.push('c')
  queue.end()
  t.alike(await reading, ['a', 'b', 'c'])
})

test('items beyond the limit are dropped and reported once, behind the stored ones', async (t) => {
  const queue = queueOf(2)
  for (const value of ['a', 'b', 'c', 'd']) queue.push(value)
  t.alike(await queue.next(), { done: false, value: 'a' })
  t.alike(await queue.next(), { done: false, value: 'b' })
  t.alike(await queue.next(), { done: false, value: 'lost 2' })
  queue.push('e')
  t.alike(await queue.next(), { done: false, value: 'e' })
})

test('where every value is the whole, the oldest unread ones are dropped, without a report', async (t) => {
  const queue = new AsyncQueue<string>(1, null)
  for (const value of ['a', 'b', 'c']) queue.push(value)
  t.alike(await queue.next(), { done: false, value: 'c' })
  queue.push('d')
  queue.push('e')
  queue.end()
  t.alike(await all(queue), ['e'])
})

test('no value is lost without a report, for any order of pushes and reads', async (t) => {
  const property = fc.asyncProperty(
    fc.integer({ min: 1, max: 5 }),
    fc.array(fc.boolean(), { maxLength: 60 }),
    async (max, steps) => {
      const queue = queueOf(max)
      const seen: string[] = []
      let pushed = 0
      for (const isPush of steps) {
        if (isPush) queue.push(`v${pushed++}`)
        else if (pushed > 0) {
          const next = await Promise.race([queue.next(), Promise.resolve(null)])
          if (next === null) return true // nothing to read: a pending read would take what comes next
          if (!next.done) seen.push(next.value)
        }
      }
      queue.end()
      seen.push(...(await all(queue)))
      const lost = seen
        .filter((value) => value.startsWith('lost'))
        .reduce((sum, value) => sum + Number(value.slice(5)), 0)
      return seen.filter((value) => value.startsWith('v')).length + lost === pushed
    }
  )
  await holds(t, property)
})

test('after the end waiting values are still read, later ones are dropped', async (t) => {
  const queue = queueOf(10)
  queue.push('a')
  queue.end()
  queue.push('b')
  t.alike(await all(queue), ['a'])
})

test('a signal ends it: before the start, or while the reader waits', async (t) => {
  const aborted = new AbortController()
  aborted.abort()
  t.alike(await all(queueOf(1, aborted.signal)), [])
  const later = new AbortController()
  const reading = all(queueOf(1, later.signal))
  later.abort()
  t.alike(await reading, [])
})

test('a reader that stops early ends the queue', async (t) => {
  const queue = queueOf(10)
  queue.push('a')
  queue.push('b')
  for await (const value of queue) {
    t.is(value, 'a')
    break
  }
  queue.push('c')
  t.alike(await all(queue), ['b'])
})

test('a fault is read once, behind the values that wait; the first end counts', async (t) => {
  const queue = new AsyncQueue<number>(4, () => -1)
  queue.push(1)
  queue.end(new Error('over'))
  queue.end()
  queue.end(new Error('another'))
  t.alike(await queue.next(), { done: false, value: 1 })
  await t.exception(queue.next(), /over/)
  t.alike(await queue.next(), { done: true, value: undefined })
})

test('an ended queue leaves its signal, which may live on', async (t) => {
  const listeners = new Set<() => void>()
  const signal = {
    aborted: false,
    addEventListener: (_type: 'abort', listener: () => void) => void listeners.add(listener),
    removeEventListener: (_type: 'abort', listener: () => void) => void listeners.delete(listener)
  }
  const open = (): AsyncQueue<string> => new AsyncQueue<string>(1, null, signal)
  const [ended, left, aborted] = [open(), open(), open()]
  ended.end()
  await left.return()
  t.is(listeners.size, 1)
  for (const listener of [...listeners]) listener()
  t.alike([listeners.size, await all(aborted)], [0, []])
})
