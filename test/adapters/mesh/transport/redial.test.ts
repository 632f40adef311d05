import test from 'brittle'
import { Redial } from '../../../../src/adapters/mesh/transport/redial.js'
import { ManualClock } from '../../../support/manual-clock.js'

async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await Promise.resolve()
}

test('results that end at once make the waits longer, and one that lasts makes them short again', async (t) => {
  const clock = new ManualClock()
  const tries: number[] = []
  let end: (hasWorked: boolean) => void = () => {}
  const redial = new Redial(clock, () => {
    tries.push(clock.monotonic())
    return new Promise((resolve) => (end = resolve))
  })
  for (const waitMs of [250, 500, 1000, 2000]) {
    end(true)
    await settle()
    clock.advance(waitMs)
  }
  t.alike(tries, [0, 250, 750, 1750, 3750])
  clock.advance(10_000)
  end(true)
  await settle()
  clock.advance(250)
  t.is(tries.at(-1), 14_000)
  redial.stop()
})
