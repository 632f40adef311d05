import test from 'brittle'
import fc from 'fast-check'
import { MAX_ACCESS_TOKEN_MS } from '../../../../src/adapters/a2a/oauth/oauth-denials.js'
import {
  MAX_OAUTH_RECORDS,
  MAX_OAUTH_WAITING,
  MAX_USED_REFRESH_TOKENS,
  type OAuthRecord,
  OAuthStore
} from '../../../../src/adapters/a2a/oauth/oauth-store.js'
import { failsWith } from '../../../support/fails.js'
import { holds } from '../../../support/holds.js'
import { ManualClock } from '../../../support/manual-clock.js'

const DAY_MS = 86_400_000

/** A store in a home that is kept in memory. */
function scene() {
  const home = new Map<string, string>()
  const files = {
    read: <T>(name: string) => Promise.resolve(JSON.parse(home.get(name) ?? 'null') as T | null),
    write: (name: string, value: unknown) => Promise.resolve(void home.set(name, JSON.stringify(value)))
  }
  const clock = new ManualClock()
  const store = new OAuthStore(files, clock)
  const kept = async (): Promise<OAuthRecord[]> => {
    await store.save()
    return (JSON.parse(home.get('oauth-state') ?? '') as { readonly records: OAuthRecord[] }).records
  }
  let count = 0
  const put = (model: string, payload: Record<string, unknown>, ttlMs = DAY_MS): string => {
    const id = `${model}-${++count}`
    store.put(model, id, { payload, ttlMs })
    return id
  }
  return { files, clock, store, kept, put }
}

const kind = fc.constantFrom('Interaction', 'DeviceCode')
const flood = fc.record({
  model: kind,
  client: fc.constantFrom('a', 'b', 'c'),
  count: fc.integer({ min: 1, max: 300 })
})

test('the number of waiting sign-ins is bounded, and no client with a fair share loses one', async (t) => {
  await holds(
    t,
    fc.asyncProperty(fc.array(flood, { maxLength: 6 }), async (floods) => {
      const { store, kept, put } = scene()
      const fair = ['Interaction', 'DeviceCode'].map((one) => [one, put(one, { clientId: 'quiet' })] as const)
      for (const one of floods)
        for (let i = 0; i < one.count; i++) put(one.model, { params: { client_id: one.client } })
      const records = await kept()
      const isBounded = ['Interaction', 'DeviceCode'].every(
        (one) => records.filter((record) => record.model === one).length <= MAX_OAUTH_WAITING
      )
      return isBounded && fair.every(([one, id]) => store.find(one, id) !== null)
    }),
    100
  )
})

test('used refresh tokens are dropped for new ones, first those of the grant with the most; without any, nothing more is issued', async (t) => {
  const { store, kept, put } = scene()
  const used = (grantId: string): string => {
    const id = put('RefreshToken', { grantId, clientId: 'a' })
    store.consume('RefreshToken', id)
    return id
  }
  const [few, first] = [used('few'), used('many')]
  for (let i = 1; i < MAX_USED_REFRESH_TOKENS; i++) used('many')
  for (let i = MAX_USED_REFRESH_TOKENS + 1; i < MAX_OAUTH_RECORDS; i++)
    put('RefreshToken', { grantId: `g${i}`, clientId: 'a' })
  t.ok(store.find('RefreshToken', first))
  put('RefreshToken', { grantId: 'next', clientId: 'b' })
  t.absent(store.find('RefreshToken', first))
  for (let i = 2; i < MAX_USED_REFRESH_TOKENS; i++) put('RefreshToken', { grantId: 'next', clientId: 'b' })
  t.ok(store.find('RefreshToken', few), 'the only one of its grant goes last')
  for (let i = 0; i < 2; i++) put('RefreshToken', { grantId: 'next', clientId: 'b' })
  await failsWith(t, 'OVERLOADED', async () => put('RefreshToken', { grantId: 'next', clientId: 'b' }))
  t.is((await kept()).length, MAX_OAUTH_RECORDS)
})

test('a grant keeps a bounded number of used refresh tokens, the newest', async (t) => {
  await holds(
    t,
    fc.property(fc.integer({ min: 1, max: 3 * MAX_USED_REFRESH_TOKENS }), (rotations) => {
      const { store, put } = scene()
      const other = put('RefreshToken', { grantId: 'other', clientId: 'a' })
      store.consume('RefreshToken', other)
      const ids = Array.from({ length: rotations }, () => {
        const id = put('RefreshToken', { grantId: 'g', clientId: 'a' })
        store.consume('RefreshToken', id)
        return id
      })
      const known = ids.filter((id) => store.find('RefreshToken', id) !== null)
      const isNewest = known.every((id, at) => id === ids[ids.length - known.length + at])
      return (
        isNewest &&
        known.length === Math.min(rotations, MAX_USED_REFRESH_TOKENS) &&
        store.find('RefreshToken', other) !== null
      )
    }),
    100
  )
})

test('a grant that expired still ends the access tokens that came of it last', async (t) => {
  const { clock, store, kept, put } = scene()
  const grantId = put('Grant', { clientId: 'a' }, 60_000)
  clock.advance(59_000)
  const token = { clientId: 'a', jti: 'j', grantId, iat: Math.floor(clock.now() / 1000) }
  clock.advance(2000)
  t.is((await kept()).length, 1)
  t.absent(store.find('Grant', grantId), 'nothing more comes of it')
  store.endGrant(grantId)
  t.ok(store.denials.has(token))
  const other = put('Grant', { clientId: 'a' }, 1000)
  clock.advance(1000 + MAX_ACCESS_TOKEN_MS)
  t.alike(await kept(), [], 'and is forgotten with them')
  store.endGrant(other)
  t.alike(store.denials.entries(), [])
})

test('the stored state returns without codes and without expired entries', async (t) => {
  await holds(
    t,
    fc.asyncProperty(
      fc.array(fc.record({ secret: fc.stringMatching(/^[\w-]{20,40}$/), ttlMs: fc.integer({ min: 1, max: 2000 }) }), {
        maxLength: 20
      }),
      async (all) => {
        const { files, clock, store, kept } = scene()
        for (const { secret, ttlMs } of all)
          store.put('AuthorizationCode', secret, { payload: { jti: secret, clientId: 'a', scope: '"\\' }, ttlMs })
        clock.advance(1000)
        const text = JSON.stringify(await kept())
        const again = new OAuthStore(files, clock)
        await again.open()
        const latest = new Map(all.map((one) => [one.secret, one.ttlMs]))
        return [...latest].every(([secret, ttlMs]) => {
          const found = again.find('AuthorizationCode', secret)
          return !text.includes(secret) && (ttlMs > 1000 ? found?.payload['jti'] === secret : found === null)
        })
      }
    ),
    100
  )
})
