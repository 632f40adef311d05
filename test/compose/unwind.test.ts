import { execFileSync } from 'node:child_process'
import test from 'brittle'
import { Unwind } from '../../src/compose/unwind.js'
import { systemClock } from '../../src/adapters/system/system-clock.js'

test('steps are undone last first, and one that fails does not stop the others', async (t) => {
  const told: string[] = []
  const unwind = new Unwind((name, error) => told.push(`${name}: ${String(error)}`))
  for (const name of ['first', 'second', 'third']) unwind.add(name, async () => await Promise.resolve(told.push(name)))
  unwind.add('broken', async () => await Promise.reject(new Error('no')))
  t.is(await unwind.runWithin(60_000, systemClock()), null)
  t.alike(told, ['broken: Error: no', 'third', 'second', 'first'])
})

test('a step that never ends is named when the time is over, and the process waits until then', (t) => {
  const place = (file: string): string => JSON.stringify(new URL(file, import.meta.url).href)
  const program = `
    import { Unwind } from ${place('../../src/compose/unwind.js')}
    import { systemClock } from ${place('../../src/adapters/system/system-clock.js')}
    const unwind = new Unwind(() => {})
    unwind.add('store', () => new Promise(() => {}))
    unwind.runWithin(50, systemClock()).then((late) => console.log('not closed:', late))`
  t.is(
    execFileSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8', timeout: 20_000 }),
    'not closed: store\n'
  )
})
