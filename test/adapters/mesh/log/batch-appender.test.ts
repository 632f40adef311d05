import test from 'brittle'
import { BatchAppender } from '../../../../src/adapters/mesh/log/batch-appender.js'

const value = (number: number): Uint8Array => Uint8Array.of(number)

test('appends never overlap; entries that arrive meanwhile are appended together, in order', async (t) => {
  const batches: number[][] = []
  let running = 0
  const appender = new BatchAppender(async (values) => {
    t.is(++running, 1, 'one at a time')
    batches.push(values.map((one) => one[0]))
    await new Promise((resolve) => setImmediate(resolve))
    running--
  })
  await Promise.all([1, 2, 3, 4].map((number) => appender.append(value(number))))
  await appender.append(value(5))
  t.alike(batches, [[1], [2, 3, 4], [5]])
})

test('a batch has at most 64 values, however many wait', async (t) => {
  const sizes: number[] = []
  const appender = new BatchAppender((values) => Promise.resolve(sizes.push(values.length)))
  await Promise.all(Array.from({ length: 200 }, (_, at) => appender.append(value(at))))
  t.alike(sizes, [1, 64, 64, 64, 7])
})

test('a batch that fails fails for those in it, and the next goes on', async (t) => {
  let calls = 0
  const appender = new BatchAppender(() => (++calls === 2 ? Promise.reject(new Error('disk full')) : Promise.resolve()))
  const [first, ...second] = [1, 2, 3].map((number) => appender.append(value(number)))
  await t.execution(first)
  for (const one of second) await t.exception(one, /disk full/)
  await t.execution(appender.append(value(4)))
})
