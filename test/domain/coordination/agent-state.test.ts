import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { AgentState } from '../../../src/domain/coordination/agent-state.js'
import { failsWith } from '../../support/fails.js'
import { holds } from '../../support/holds.js'

/** Bytes of a map, counted anew. */
function bytesOf(map: ReadonlyMap<string, unknown>): number {
  return [...map].reduce(
    (sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(JSON.stringify(value)),
    0
  )
}

test('a state is a map that never exceeds its bytes, after any operations', async (t) => {
  const arbStep = fc.oneof(
    fc.record({
      do: fc.constant('set' as const),
      key: fc.constantFrom('a', 'b', 'ü', 'd'),
      value: fc.jsonValue({ maxDepth: 2 })
    }),
    fc.record({ do: fc.constantFrom('delete' as const, 'clear' as const), key: fc.constantFrom('a', 'b', 'ü', 'd') })
  )
  await holds(
    t,
    fc.property(fc.array(arbStep, { maxLength: 30 }), fc.integer({ min: 1, max: 200 }), (steps, maxBytes) => {
      const state = new AgentState(maxBytes)
      const model = new Map<string, unknown>()
      for (const step of steps) {
        if (step.do === 'clear') model.clear()
        if (step.do === 'delete') assert.equal(state.delete(step.key), model.delete(step.key))
        if (step.do === 'clear') state.clear()
        if (step.do !== 'set') continue
        const next = new Map(model).set(step.key, JSON.parse(JSON.stringify(step.value)))
        const fits = bytesOf(next) <= maxBytes
        if (fits) model.set(step.key, next.get(step.key))
        try {
          state.set(step.key, step.value)
          assert.ok(fits)
        } catch {
          assert.ok(!fits)
        }
      }
      assert.deepEqual(new Map(state), model)
      assert.ok(state.bytes <= maxBytes)
      assert.equal(state.bytes, bytesOf(model))
    }),
    500
  )
})

test('a state holds as many bytes as it may, and says how many it would need', async (t) => {
  const state = new AgentState(262_144)
  state.set('k', 'x'.repeat(262_144 - 3))
  t.is(state.bytes, 262_144)
  const error = await failsWith(t, 'PAYLOAD_TOO_LARGE', () => state.set('more', 1))
  t.alike(error.data, { bytes: 262_149, maxStateBytes: 262_144 })
  t.absent(state.has('more'))
})

test('a state keeps frozen copies of JSON alone', async (t) => {
  const state = new AgentState(262_144)
  const mine = { list: [1] }
  state.set('k', mine)
  mine.list.push(2)
  t.alike(state.get('k'), { list: [1] })
  await t.exception.all(() => (state.get('k') as typeof mine).list.push(3))
  const ring: Record<string, unknown> = {}
  ring['self'] = ring
  for (const bad of [undefined, () => 1, 1n, ring]) await failsWith(t, 'INVALID_INPUT', () => state.set('bad', bad))
})
