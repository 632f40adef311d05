import test from 'brittle'
import { firstFault } from './worlds.js'

test('in a hundred worlds nothing acknowledged is lost and nothing happens twice, for any faults of the nodes', {
  timeout: 600_000
}, async (t) => {
  t.is(await firstFault({ from: 1, count: 100 }), null)
})
