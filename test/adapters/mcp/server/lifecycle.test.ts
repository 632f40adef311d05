import test from 'brittle'
import fc from 'fast-check'
import {
  stepLifecycle,
  type LifecycleInput,
  type LifecycleState
} from '../../../../src/adapters/mcp/server/lifecycle.js'
import { holds } from '../../../support/holds.js'

const INPUTS: readonly LifecycleInput[] = [
  'initialize',
  'initialized',
  'initialize-refused',
  'other',
  'claimed',
  'close'
]

test('a connection runs only after both steps of the handshake, and once closed nothing passes ever', async (t) => {
  const property = fc.property(fc.array(fc.constantFrom(...INPUTS), { maxLength: 30 }), (inputs) => {
    let state: LifecycleState = 'STARTING'
    const seen: LifecycleInput[] = []
    for (const input of inputs) {
      const { state: next, verdict } = stepLifecycle(state, input)
      const wasClosed = seen.includes('close')
      if (wasClosed && (next !== 'CLOSED' || verdict !== 'ignore')) return false
      if (!wasClosed && input === 'other' && (verdict === 'pass') !== (state === 'RUNNING')) return false
      if (!wasClosed && input === 'claimed' && (verdict !== 'pass' || next !== state)) return false
      if (next === 'RUNNING' && state !== 'RUNNING' && !(input === 'initialized' && seen.includes('initialize')))
        return false
      if (verdict === 'not-initialized' && input !== 'other') return false
      if ((verdict === 'initialized-already') !== (input === 'initialize' && state === 'RUNNING')) return false
      seen.push(input)
      state = next
    }
    return (state === 'CLOSED') === seen.includes('close')
  })
  await holds(t, property, 500)
})
