import fc from 'fast-check'
import test, { type Assert } from 'brittle'
import { formatDuration, parseDuration, parseSize } from '../../src/kit/units.js'
import { holds } from '../support/holds.js'

test('durations are a number and a unit', (t: Assert) => {
  t.is(parseDuration('10s'), 10_000)
  t.is(parseDuration('5m'), 300_000)
  t.is(parseDuration('2h'), 7_200_000)
  t.is(parseDuration('1d'), 86_400_000)
  t.is(parseDuration('250ms'), 250)
  t.is(parseDuration('1.5s'), 1500)
  for (const bad of ['', '10', 's', '-1s', '1y', '1 2s', '10KiB', 'Infinitys', '1e3s'])
    t.is(parseDuration(bad), null, bad)
})

test('sizes are a number and a binary unit', (t: Assert) => {
  t.is(parseSize('64KiB'), 65_536)
  t.is(parseSize('1MiB'), 1_048_576)
  t.is(parseSize('512b'), 512)
  for (const bad of ['', '64', '64kb', 'MiB', '5s', '-1KiB']) t.is(parseSize(bad), null, bad)
})

test('parsing never throws and gives null or a whole number', async (t: Assert) => {
  await holds(
    t,
    fc.property(fc.string({ maxLength: 30 }), (text) => {
      const values = [parseDuration(text), parseSize(text)]
      return values.every((one) => one === null || (Number.isSafeInteger(one) && one >= 0))
    }),
    500
  )
})

test('durations are shown with at most two units', (t: Assert) => {
  t.is(formatDuration(12), '12 ms')
  t.is(formatDuration(999.7), '1 s')
  t.is(formatDuration(4200), '4.2 s')
  t.is(formatDuration(59_960), '1 min')
  t.is(formatDuration(185_000), '3 min 5 s')
  t.is(formatDuration(7_800_000), '2 h 10 min')
  t.is(formatDuration(273_600_000), '3 d 4 h')
})
