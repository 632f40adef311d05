import test from 'brittle'
import { randomIds } from '../../../src/adapters/system/random-ids.js'

test('an id is its prefix and 16 characters of z32', (t) => {
  t.ok(/^task_[ybndrfg8ejkmcpqxot1uwisza345h769]{16}$/.test(randomIds().next('task')))
})

test('ten thousand ids are all different', (t) => {
  const ids = randomIds()
  t.is(new Set(Array.from({ length: 10_000 }, () => ids.next('m'))).size, 10_000)
})

test('an id has at most 40 characters: longer prefixes are refused', async (t) => {
  t.is(randomIds().next('p'.repeat(23)).length, 40)
  await t.exception.all(() => randomIds().next('p'.repeat(24)), /at most 23/)
})
