import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import test from 'brittle'
import { systemClock } from '../../../src/adapters/system/system-clock.js'
import { clockContract } from '../../contracts/clock.js'

clockContract('system clock', () => ({
  clock: systemClock(),
  until: async (happened) => {
    // The clock's own timers do not hold the process; the test has to.
    const hold = setInterval(() => {}, 60_000)
    await happened
    clearInterval(hold)
  }
}))

test('its timers do not keep a process alive', (t) => {
  const module = pathToFileURL(path.resolve(import.meta.dirname, '../../../src/adapters/system/system-clock.js')).href
  const script = `import { systemClock } from '${module}'; const c = systemClock(); c.after(3600000, () => {}); c.every(3600000, () => {})`
  const { status, signal } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { timeout: 20_000 })
  t.is(signal, null)
  t.is(status, 0)
})

test('a delay past what the system can hold does not fire at once', async (t) => {
  const clock = systemClock()
  let fired = false
  const timer = clock.after(2 ** 40, () => {
    fired = true
  })
  await new Promise<void>((resolve) => setImmediate(() => setTimeout(resolve, 2)))
  clock.clear(timer)
  t.is(fired, false)
})

test('a delay longer than one timer of the system takes several, and can be cleared', async (t) => {
  const clock = systemClock(10)
  const order: string[] = []
  const cleared = clock.after(25, () => order.push('cleared'))
  await new Promise<void>((resolve) => {
    const hold = setInterval(() => {}, 60_000)
    clock.after(45, () => {
      order.push('long')
      clearInterval(hold)
      resolve()
    })
    setTimeout(() => {
      order.push('short')
      clock.clear(cleared)
    }, 12)
  })
  t.alike(order, ['short', 'long'])
})
