import test from 'brittle'
import fc from 'fast-check'
import { DEVICE_GRANT } from '../../../../src/adapters/a2a/oauth/oauth-adapter.js'
import {
  OAUTH_CLIENT_RATE,
  OAUTH_POLL_RATE,
  OAUTH_SIGN_IN_RATE,
  OAUTH_STRANGER_RATE,
  type OAuthAsk,
  OAuthLimit,
  type OAuthRefusal
} from '../../../../src/adapters/a2a/oauth/oauth-limit.js'
import { hashText, OAuthStore, type StoredClient } from '../../../../src/adapters/a2a/oauth/oauth-store.js'
import { authorizeUrl, basic, codeOf, oauthScene } from '../../../support/oauth.js'
import { holds } from '../../../support/holds.js'
import { ManualClock } from '../../../support/manual-clock.js'

const PATHS = ['/oauth/authorize', '/oauth/token', '/oauth/revoke', '/oauth/device_authorization'] as const

/** Two clients, one of them with a refresh token, and the limit that holds them. */
function rated() {
  const clock = new ManualClock()
  const store = new OAuthStore({ read: () => Promise.resolve(null), write: () => Promise.resolve() }, clock)
  const made = { name: 'c', tier: 3, scopes: [], redirectUris: [], createdAt: 0 } as const
  const clients: StoredClient[] = [
    { ...made, id: 'cli_secret', isPublic: false, secret: hashText('right') },
    { ...made, id: 'cli_public', isPublic: true, secret: null }
  ]
  for (const one of clients) store.clients.set(one.id, one)
  store.put('RefreshToken', 'its-own', { payload: { clientId: 'cli_public', grantId: 'g' }, ttlMs: 86_400_000 })
  const limit = new OAuthLimit(store, clock)
  const ask = (path: string, params: Record<string, string>, authorization?: string): OAuthRefusal | null => {
    const headers: OAuthAsk['headers'] = authorization === undefined ? {} : { authorization }
    return limit.refusal({ path, headers, params: new URLSearchParams(params) })
  }
  return { clock, ask }
}

const named = fc.constantFrom('cli_secret', 'cli_public', 'cli_none', '', '__proto__')
const header = fc.oneof(
  fc.tuple(named, fc.constantFrom('', 'wrong', hashText('right'))).map(([id, secret]) => basic(id, secret)),
  fc.constantFrom(
    'Basic ',
    'Basic ????',
    'Bearer x',
    basic('', ''),
    `Basic ${Buffer.from('nothing').toString('base64')}`
  )
)
const foreign = fc.record({
  path: fc.constantFrom(...PATHS),
  params: fc.record(
    {
      client_id: named,
      code: fc.string(),
      refresh_token: fc.constantFrom('', 'of another'),
      token: fc.string(),
      device_code: fc.string()
    },
    { requiredKeys: [] }
  ),
  authorization: fc.option(header, { nil: undefined }),
  count: fc.integer({ min: 1, max: 400 })
})

test('requests without proof of a client do not change its tokens or its rate', async (t) => {
  await holds(
    t,
    fc.property(fc.array(foreign, { maxLength: 10 }), fc.integer({ min: 1, max: 3000 }), (others, waitMs) => {
      const { clock, ask } = rated()
      const bySecret = (): OAuthRefusal | null =>
        ask('/oauth/token', { grant_type: 'client_credentials' }, basic('cli_secret', 'right'))
      const byToken = (): OAuthRefusal | null =>
        ask('/oauth/token', { client_id: 'cli_public', refresh_token: 'its-own' })
      for (const { path, params, authorization, count } of others)
        for (let i = 0; i < count; i++) ask(path, params, authorization)
      return [bySecret, byToken].every((own) => {
        for (let i = 0; i < OAUTH_CLIENT_RATE.burst; i++) if (own() !== null) return false
        const late = own()
        if (late === null || late.status !== 429) return false
        clock.advance(waitMs)
        const passing = Math.floor((waitMs / 1000) * OAUTH_CLIENT_RATE.perSecond)
        for (let i = 0; i < Math.min(passing, OAUTH_CLIENT_RATE.burst); i++) if (own() !== null) return false
        const again = own()
        clock.advance((again?.retryAfterSeconds ?? 0) * 1000)
        return again !== null && own() === null
      })
    })
  )
})

test('a name alone has its own small share for each client, strangers one for all of them', (t) => {
  const { ask } = rated()
  const until = (path: string, params: Record<string, string>, authorization?: string): number => {
    for (let count = 0; ; count++) if (ask(path, params, authorization) !== null) return count
  }
  t.is(until('/oauth/authorize', { client_id: 'cli_public' }), OAUTH_SIGN_IN_RATE.burst)
  t.is(until('/oauth/token', { client_id: 'cli_public', refresh_token: 'guessed' }), 0, 'to guess is no way around it')
  t.is(until('/oauth/authorize', { client_id: 'cli_secret' }), OAUTH_SIGN_IN_RATE.burst)
  t.is(until('/oauth/token', {}, basic('cli_secret', 'guessed')), 0)
  t.is(until('/oauth/token', { client_id: 'cli_secret', refresh_token: 'its-own' }), 0, 'nor is what another one has')
  t.is(until('/oauth/revoke', { client_id: 'cli_x' }), OAUTH_STRANGER_RATE.burst)
  for (const path of PATHS) t.is(until(path, { client_id: `cli_${path}` }), 0, path)
  t.is(ask('/oauth/jwks', {}), null, 'content shared by all costs nothing')
})

test('too many requests of a stranger or in the name of a client are 429 with Retry-After, and its own still pass', async (t) => {
  const scene = await oauthScene(t)
  const [client, app] = [await scene.client(), await scene.client({ isPublic: true })]
  const form = await codeOf(scene, app)
  const credentials = { grant_type: 'client_credentials' }
  const wrong = { authorization: basic(client.id, 'wrong') }
  const until = async <T extends { readonly status: number }>(ask: () => Promise<T>): Promise<T> => {
    let answer = await ask()
    for (let i = 0; i < 200 && answer.status !== 429; i++) answer = await ask()
    return answer
  }
  for (const [path, params, headers] of [
    ['/oauth/token', { ...credentials, client_id: 'cli_none' }, {}],
    ['/oauth/device_authorization', { client_id: 'cli_none' }, {}],
    ['/oauth/token', credentials, wrong],
    ['/oauth/token', { ...form, client_id: app.id, code: 'guessed' }, {}],
    ['/oauth/device_authorization', { client_id: app.id }, {}]
  ] as const) {
    const answer = await until(() => scene.post(path, params, headers))
    t.alike(
      [answer.status, answer.body['error'], answer.headers.get('retry-after')],
      [429, 'temporarily_unavailable', '1']
    )
    t.alike([answer.headers.get('cache-control'), answer.headers.get('content-type')], ['no-store', 'application/json'])
  }
  for (const one of [{ id: 'cli_none' }, app])
    t.is((await until(() => scene.browser().get(authorizeUrl(one)))).status, 429)
  const got = await scene.token(client, credentials)
  t.is(got.status, 200)
  const refreshed = await scene.token(app, form)
  t.is(refreshed.status, 200)
  t.is(
    (await scene.token(app, { grant_type: 'refresh_token', refresh_token: refreshed.body['refresh_token'] ?? '' }))
      .status,
    200
  )
  const own = { authorization: basic(client.id, client.secret ?? '') }
  t.is((await scene.post('/oauth/revoke', { token: got.body['access_token'] ?? '' }, own)).status, 200)
})

test('a device that polls too often gets slow_down, and no interval below the allowed one', async (t) => {
  const scene = await oauthScene(t)
  const client = await scene.client({ isPublic: true, redirectUris: [] })
  const begin = async (): Promise<Record<string, string>> => {
    const { body } = await scene.post('/oauth/device_authorization', { client_id: client.id })
    return { grant_type: DEVICE_GRANT, device_code: body['device_code'] ?? '' }
  }
  const [hasty, other] = [await begin(), await begin()]
  const errors: unknown[] = []
  for (let i = 0; i <= OAUTH_POLL_RATE.burst; i++) errors.push((await scene.token(client, hasty)).body['error'])
  t.alike(errors, [...Array<string>(OAUTH_POLL_RATE.burst).fill('authorization_pending'), 'slow_down'])
  t.is((await scene.token(client, hasty)).status, 400)
  t.is((await scene.token(client, other)).body['error'], 'authorization_pending', 'another code is not touched by it')
  t.ok(OAUTH_POLL_RATE.perSecond >= 1 / 5, 'the interval of RFC 8628 where none is given')
})
