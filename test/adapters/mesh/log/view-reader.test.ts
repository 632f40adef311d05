import test from 'brittle'
import Corestore from 'corestore'
import Hyperbee from 'hyperbee'
import { ViewReader } from '../../../../src/adapters/mesh/log/view-reader.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { tempDir } from '../../../support/tmp.js'

test('the view is rebuilt at once, and then at most once in 50 milliseconds', async (t) => {
  const store = new Corestore(await tempDir(t))
  t.teardown(() => store.close())
  const bee = new Hyperbee(store.get({ name: 'records' }), { keyEncoding: 'utf-8', valueEncoding: 'json' })
  const clock = new ManualClock()
  let rebuilt = 0
  const reader = new ViewReader(
    () => bee,
    () => void rebuilt++,
    clock
  )
  await bee.put('order', 1)
  await reader.refresh()
  t.is(rebuilt, 1)
  const changes: Promise<void>[] = []
  for (let order = 2; order <= 20; order++) {
    await bee.put('order', order)
    changes.push(reader.refresh())
  }
  t.is(rebuilt, 1)
  clock.advance(50)
  await Promise.all(changes)
  t.is(rebuilt, 2)
  await reader.close()
})

test('after a rebuild that took long the view rests four times as long, but never more than a second', async (t) => {
  const store = new Corestore(await tempDir(t))
  t.teardown(() => store.close())
  const bee = new Hyperbee(store.get({ name: 'records' }), { keyEncoding: 'utf-8', valueEncoding: 'json' })
  const clock = new ManualClock()
  let rebuilt = 0
  let takesMs = 100
  const reader = new ViewReader(
    () => bee,
    () => {
      rebuilt++
      clock.advance(takesMs)
    },
    clock
  )
  await bee.put('order', 1)
  await reader.refresh()
  takesMs = 700
  for (const restMs of [400, 1000]) {
    await bee.put('order', 1 + restMs)
    const before = rebuilt
    const change = reader.refresh()
    clock.advance(restMs - 1)
    t.is(rebuilt, before)
    clock.advance(1)
    await change
    t.is(rebuilt, before + 1)
  }
  await reader.close()
})
