import test from 'brittle'
import fc from 'fast-check'
import { mayAsk, powerOfScopes, SCOPES, type ScopeTable } from '../../../src/domain/gateway/oauth-scope.js'
import type { Tier } from '../../../src/domain/routing/tier.js'
import { holds } from '../../support/holds.js'

const tier = fc.constantFrom<Tier>(0, 1, 2, 3)
const capability = fc.constantFrom('text.stats', 'host.report', 'test.run')
const rule = fc.record({
  may: fc.uniqueArray(fc.constantFrom('read' as const, 'send' as const)),
  tier: fc.option(tier),
  capabilities: fc.option(fc.uniqueArray(capability))
})
const table: fc.Arbitrary<ScopeTable> = fc
  .dictionary(fc.constantFrom('ops', 'ci', 'all'), rule)
  .map((added) => ({ ...SCOPES, ...added }))
const scope = fc.oneof(
  fc.constantFrom(...Object.keys(SCOPES), 'ops', 'ci', 'all', 'nothing', '__proto__', 'constructor', 'skill:', ''),
  capability.map((id) => `skill:${id}`)
)
const allowance = fc.record({ tier, scopes: fc.array(scope) })

test('a token has no more rights than its client, for any scopes and any table', async (t) => {
  await holds(
    t,
    fc.property(table, allowance, fc.array(scope), (scopes, client, named) => {
      const token = powerOfScopes(scopes, client, named)
      const own = powerOfScopes(scopes, client, client.scopes)
      return (
        token.tier >= client.tier &&
        token.tier >= own.tier &&
        token.may.every((one) => own.may.includes(one)) &&
        (own.capabilities === null || token.capabilities?.every((one) => own.capabilities?.includes(one)) === true)
      )
    }),
    1000
  )
})

test('no earlier token gains rights from scopes that are added to its client', async (t) => {
  await holds(
    t,
    fc.property(table, allowance, fc.array(scope), (scopes, client, named) => {
      const asked = named.filter((one) => mayAsk(scopes, client, one))
      const before = powerOfScopes(scopes, client, asked)
      const widest = powerOfScopes(
        scopes,
        { tier: 0, scopes: [...asked, 'a2a:read', 'a2a:send', 'a2a:tier:L0'] },
        asked
      )
      return before.tier >= widest.tier && before.may.every((one) => widest.may.includes(one))
    })
  )
})

test('a scope gives the rights of the table, and an unknown scope the least', (t) => {
  const client = { tier: 1 as const, scopes: ['a2a:read', 'a2a:send', 'a2a:tier:L1', 'a2a:tier:L2'] }
  t.alike(powerOfScopes(SCOPES, client, ['a2a:read']), { tier: 3, may: ['read'], capabilities: null })
  t.alike(powerOfScopes(SCOPES, client, ['a2a:send', 'a2a:tier:L2']), {
    tier: 2,
    may: ['read', 'send'],
    capabilities: null
  })
  t.alike(powerOfScopes(SCOPES, client, ['a2a:tier:L0']), { tier: 3, may: [], capabilities: null })
  t.alike(powerOfScopes(SCOPES, client, ['a2a:send', 'skill:text.stats']), {
    tier: 3,
    may: ['read', 'send'],
    capabilities: ['text.stats']
  })
  const narrow = { tier: 1 as const, scopes: ['a2a:send', 'skill:text.stats'] }
  t.absent(mayAsk(SCOPES, narrow, 'skill:host.report'), 'a limited caller cannot ask for something else')
  t.alike(powerOfScopes(SCOPES, narrow, ['a2a:send']).capabilities, ['text.stats'], 'nor for no limit')
  t.alike(powerOfScopes(SCOPES, narrow, ['a2a:send', 'skill:host.report']).capabilities, ['text.stats'])
})
