import { isSpecType } from '@modelcontextprotocol/server'
import test, { type Assert } from 'brittle'
import { completionIn, MAX_VALUES } from '../../../../src/adapters/mcp/resources/completing.js'

test('a completion of a lying server is one that clients take', (t: Assert) => {
  const many = Array.from({ length: 500 }, (_, at) => `v${at}`)
  for (const lie of [
    { total: 1.5 },
    { total: 'all' },
    { total: 1e300 },
    { hasMore: 1 },
    { values: [7, null, ...many] }
  ]) {
    const completion = completionIn({ values: ['v'], ...lie })
    t.ok(isSpecType.CompleteResult({ completion }), JSON.stringify(lie).slice(0, 40))
    t.ok(completion.values.length <= MAX_VALUES && completion.values.every((one) => one.startsWith('v')))
  }
  t.alike(completionIn({ values: ['v'], total: 7, hasMore: true }), { values: ['v'], total: 7, hasMore: true })
})
