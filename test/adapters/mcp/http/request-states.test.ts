import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { RequestStates, STATE_TTL_MS } from '../../../../src/adapters/mcp/http/request-states.js'
import { holds } from '../../../support/holds.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { arbJson } from '../../../support/mcp.js'

const KEY = new Uint8Array(32).fill(7)

function states({ key = KEY, clock = new ManualClock(), caller = 'me' } = {}): RequestStates {
  return new RequestStates({ key, clock, caller })
}

test('a state comes back as it was, to the same request of the same caller alone', async (t: Assert) => {
  const property = fc.property(arbJson(), arbJson(), arbJson(), (value, about, other) => {
    const text = states().seal(about, value)
    const isSame = JSON.stringify(states().open(about, text)?.value) === JSON.stringify(value)
    const isOther = JSON.stringify(other) !== JSON.stringify(about)
    const [foreign, moved] = [states({ caller: 'you' }).open(about, text), isOther ? states().open(other, text) : null]
    const forged = states({ key: new Uint8Array(32) }).open(about, text)
    // Objects whose keys stand in another order are equal.
    return isSame && foreign === null && forged === null && (moved === null || isReordered(about, other))
  })
  await holds(t, property, 300)
})

test('every change of a state is refused', async (t: Assert) => {
  const text = states().seal('a', { round: 1 })
  const arbChanged = fc.oneof(
    fc.string(),
    fc
      .tuple(fc.nat(text.length), fc.string({ maxLength: 4 }))
      .map(([at, put]) => text.slice(0, at) + put + text.slice(at)),
    fc.tuple(fc.nat(text.length), fc.nat(8)).map(([at, count]) => text.slice(0, at) + text.slice(at + count))
  )
  const property = fc.property(arbChanged, (changed) => changed === text || states().open('a', changed) === null)
  await holds(t, property, 500)
  t.is(states().open('a', `${text}-TAMPERED`), null)
  t.is(states().open('a', `${text}.`), null)
})

test('a state is good for its time and no longer', (t: Assert) => {
  const clock = new ManualClock()
  const ours = states({ clock })
  const text = ours.seal('a', 1)
  clock.advance(STATE_TTL_MS)
  t.alike(ours.open('a', text), { value: 1 })
  clock.advance(1)
  t.is(ours.open('a', text), null)
})

function isReordered(one: unknown, other: unknown): boolean {
  const sorted = (value: unknown): string => JSON.stringify(value).split('').sort().join('')
  return sorted(one) === sorted(other)
}
