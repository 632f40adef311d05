import test from 'brittle'
import { DEVICE_GRANT } from '../../../../src/adapters/a2a/oauth/oauth-adapter.js'
import { authorizeUrl, basic, codeOf, oauthScene, pkce, REDIRECT, signedIn } from '../../../support/oauth.js'

const CREDENTIALS = { grant_type: 'client_credentials' }

test('RFC 9700 2.1: a redirect URI is compared as a whole, and nobody is redirected to another one', async (t) => {
  const scene = await oauthScene(t)
  const exact = 'https://app.example/cb'
  const client = await scene.client({ redirectUris: [exact] })
  const others = [
    'https://app.example/cb/',
    'https://app.example/cb?x=1',
    'https://app.example/CB',
    'https://app.example/cb/../evil'
  ]
  const foreign = [
    'https://evil.example/cb',
    'https://app.example.evil/cb',
    'https://app.example@evil/cb',
    'http://app.example/cb'
  ]
  for (const uri of [...others, ...foreign, '//evil', 'javascript:alert(1)']) {
    const answer = await scene.browser().get(authorizeUrl(client, { redirect_uri: uri }))
    t.alike([uri, answer.status, answer.headers.get('location')], [uri, 400, null])
    t.ok(answer.headers.get('content-type')?.startsWith('application/json'))
  }
  t.is((await scene.browser().get(authorizeUrl(client, { redirect_uri: undefined }))).headers.get('location'), null)
})

test('RFC 9700 4.1.3: of a program on this machine the port alone may be another one', async (t) => {
  const scene = await oauthScene(t)
  const client = await scene.client({ isPublic: true })
  t.is((await scene.browser().get(authorizeUrl(client, { redirect_uri: 'http://127.0.0.1:50123/cb' }))).status, 303)
  for (const uri of ['http://127.0.0.1:50123/other', 'http://localhost:9/cb', 'http://127.0.0.2:9/cb'])
    t.is((await scene.browser().get(authorizeUrl(client, { redirect_uri: uri }))).headers.get('location'), null, uri)
})

test('RFC 9700 4.11: a faulty request redirects only to a registered URI, and the server redirects to no other', async (t) => {
  const scene = await oauthScene(t)
  const client = await scene.client()
  for (const place of [
    authorizeUrl({ id: 'cli_none' }),
    authorizeUrl({ id: '' }),
    '/oauth/authorize',
    '/oauth/authorize?redirect_uri=https://evil.example'
  ])
    t.is((await scene.browser().get(place)).headers.get('location'), null, place)
  const refused = await scene.browser().get(authorizeUrl(client, { scope: 'a2a:tier:L0' }))
  t.ok(refused.headers.get('location')?.startsWith(`${REDIRECT}?error=invalid_scope`))
})

test('RFC 9700 2.1.1: every sign-in takes PKCE, also of confidential clients; plain is refused, and so is a code without its verifier', async (t) => {
  const scene = await oauthScene(t)
  for (const isPublic of [true, false]) {
    const client = await scene.client({ isPublic })
    const wrong = [
      { code_challenge: undefined, code_challenge_method: undefined },
      { code_challenge_method: 'plain' },
      { code_challenge_method: undefined },
      { code_challenge: '' }
    ]
    for (const one of wrong) {
      const location = (await scene.browser().get(authorizeUrl(client, one))).headers.get('location') ?? ''
      t.is(new URL(location).searchParams.get('error'), 'invalid_request', JSON.stringify(one))
    }
    const form = await codeOf(scene, client)
    const { code_verifier: _left, ...without } = form
    t.is((await scene.token(client, without)).body['error'], 'invalid_grant', 'no downgrade')
    t.is((await scene.token(client, { ...form, code_verifier: pkce().verifier })).body['error'], 'invalid_grant')
    t.is((await scene.token(client, form)).status, 200)
  }
})

test('RFC 9700 2.1.2: there is no implicit grant: no response type but code, and none in a fragment', async (t) => {
  const scene = await oauthScene(t)
  const client = await scene.client()
  for (const type of ['token', 'id_token', 'code token', 'code id_token', 'none']) {
    const location =
      (await scene.browser().get(authorizeUrl(client, { response_type: type }))).headers.get('location') ?? ''
    t.absent(location.includes('access_token') || location.includes('code='), type)
    t.ok(location === '' || location.includes('error='), type)
  }
  for (const mode of ['fragment', 'form_post']) {
    const answer = await scene.browser().get(authorizeUrl(client, { response_mode: mode }))
    t.absent((await answer.text()).includes('<form'), mode)
    t.absent((answer.headers.get('location') ?? '').includes('/oauth/consent/'), mode)
  }
})

test('RFC 9700 2.4: there is no password grant, and no undocumented grant', async (t) => {
  const scene = await oauthScene(t)
  const client = await scene.client()
  for (const grant of ['password', 'implicit', 'urn:ietf:params:oauth:grant-type:jwt-bearer', ''])
    t.ok(
      ['unsupported_grant_type', 'invalid_request'].includes(
        (await scene.token(client, { grant_type: grant, username: 'a', password: 'b' })).body['error'] ?? ''
      ),
      grant
    )
})

test('RFC 9700 4.4 and RFC 9207: every answer to a client names its issuer, an error too, and returns the state as it was', async (t) => {
  const scene = await oauthScene(t)
  const client = await scene.client()
  for (const decide of ['approve', 'deny'] as const) {
    const { answer } = await signedIn(scene, authorizeUrl(client, { state: 'a b&c=%' }), decide)
    t.alike([answer.searchParams.get('iss'), answer.searchParams.get('state')], [scene.url, 'a b&c=%'])
    t.is(answer.searchParams.get('error'), decide === 'deny' ? 'access_denied' : null)
  }
  const metadata = (await (await fetch(`${scene.url}/.well-known/oauth-authorization-server`)).json()) as Record<
    string,
    unknown
  >
  t.alike([metadata['issuer'], metadata['authorization_response_iss_parameter_supported']], [scene.url, true])
  t.alike(metadata['code_challenge_methods_supported'], ['S256'])
})

test('RFC 9700 4.2: a code is good once, for its client and redirect URI; a second use ends all tokens that came of it', async (t) => {
  const scene = await oauthScene(t)
  const [client, other] = [await scene.client({ isPublic: true }), await scene.client({ isPublic: true })]
  const form = await codeOf(scene, client)
  t.is((await scene.token(other, form)).body['error'], 'invalid_grant')
  t.is((await scene.token(client, { ...form, redirect_uri: `${REDIRECT}2` })).body['error'], 'invalid_grant')
  const { body } = await scene.token(client, form)
  t.ok(await scene.who(body['access_token']))
  t.is((await scene.token(client, form)).body['error'], 'invalid_grant')
  t.absent(await scene.who(body['access_token']))
  t.is(
    (await scene.token(client, { grant_type: 'refresh_token', refresh_token: body['refresh_token'] ?? '' })).body[
      'error'
    ],
    'invalid_grant'
  )
})

test('RFC 9700 4.14: a refresh token is replaced at each use, bound to its client and scopes; the return of a used one ends all of its grant', async (t) => {
  const scene = await oauthScene(t)
  const [client, other] = [await scene.client({ isPublic: true }), await scene.client({ isPublic: true })]
  const first = (await scene.token(client, await codeOf(scene, client, 'a2a:read'))).body
  const form = { grant_type: 'refresh_token', refresh_token: first['refresh_token'] ?? '' }
  t.is((await scene.token(other, form)).body['error'], 'invalid_grant')
  t.is((await scene.token(client, { ...form, scope: 'a2a:send' })).body['error'], 'invalid_scope')
  const second = (await scene.token(client, form)).body
  t.not(second['refresh_token'], first['refresh_token'])
  t.is(second['scope'], 'a2a:read')
  t.is((await scene.token(client, form)).body['error'], 'invalid_grant')
  t.is(
    (await scene.token(client, { ...form, refresh_token: second['refresh_token'] ?? '' })).body['error'],
    'invalid_grant'
  )
  t.alike([await scene.who(first['access_token']), await scene.who(second['access_token'])], [null, null])
})

test('RFC 9700 2.3: a token is for this gateway alone, and for no more than its scopes; another resource is refused', async (t) => {
  const scene = await oauthScene(t)
  const client = await scene.client({ tier: 1 })
  const { body } = await scene.token(client, { ...CREDENTIALS, scope: 'a2a:read' })
  const claims = JSON.parse(
    Buffer.from((body['access_token'] ?? '').split('.')[1] ?? '', 'base64url').toString()
  ) as Record<string, unknown>
  t.alike([claims['aud'], claims['iss'], claims['client_id']], [scene.url, scene.url, client.id])
  const principal = await scene.who(body['access_token'])
  t.alike([principal?.tier, principal?.scopes], [3, ['read']])
  for (const resource of ['https://elsewhere.example', `${scene.url}/`, 'nothing'])
    t.is((await scene.token(client, { ...CREDENTIALS, resource })).body['error'], 'invalid_target', resource)
  t.is((await scene.token(client, { ...CREDENTIALS, scope: 'a2a:tier:L0' })).body['error'], 'invalid_scope')
})

test('RFC 9700 2.5: a confidential client shows its secret each time; a wrong, absent or foreign one gets nothing', async (t) => {
  const scene = await oauthScene(t)
  const [client, other] = [await scene.client(), await scene.client()]
  const secret = client.secret ?? ''
  for (const authorization of [
    basic(client.id, ''),
    basic(client.id, `${secret}x`),
    basic(client.id, other.secret ?? ''),
    basic('cli_none', secret),
    'Basic ?',
    'Bearer x'
  ]) {
    const { status, body } = await scene.post('/oauth/token', CREDENTIALS, { authorization })
    t.ok(status === 400 || status === 401, authorization)
    t.ok(body['error'] === 'invalid_client' || body['error'] === 'invalid_request', authorization)
  }
  t.is((await scene.post('/oauth/token', { ...CREDENTIALS, client_id: client.id })).body['error'], 'invalid_client')
  t.is(
    (await scene.post('/oauth/token', { ...CREDENTIALS, client_id: client.id, client_secret: secret })).body['error'],
    'invalid_client',
    'by one method alone'
  )
  const metadata = (await (await fetch(`${scene.url}/.well-known/oauth-authorization-server`)).json()) as Record<
    string,
    unknown
  >
  for (const name of ['token', 'revocation'])
    t.alike(
      metadata[`${name}_endpoint_auth_methods_supported`],
      ['client_secret_basic', 'none'],
      'in the documented order'
    )
  const hash =
    (JSON.parse(scene.home.get('oauth-clients') ?? '{}') as { clients: { secret: string }[] }).clients[0]?.secret ?? ''
  t.is(
    (await scene.post('/oauth/token', CREDENTIALS, { authorization: basic(client.id, hash) })).body['error'],
    'invalid_client',
    'the home keeps no secret'
  )
  t.absent([...scene.home.values()].some((text) => text.includes(secret)))
  t.is((await scene.token(client, CREDENTIALS)).status, 200)
})

test("RFC 9700 4.3.2: tokens and secrets in a query string are nobody's, and no answer puts a token into a URL", async (t) => {
  const scene = await oauthScene(t)
  const client = await scene.client()
  const query = new URLSearchParams({
    ...CREDENTIALS,
    client_id: client.id,
    client_secret: client.secret ?? ''
  }).toString()
  t.not((await scene.post(`/oauth/token?${query}`, {})).status, 200)
  t.is((await fetch(`${scene.url}/oauth/token?${query}`)).status, 405)
  const { answer } = await signedIn(scene, authorizeUrl(client))
  t.alike([...answer.searchParams.keys()].sort(), ['code', 'iss', 'state'])
})

test('RFC 9700 4.12: no redirect is a 307 or 308, which would send a form on', async (t) => {
  const scene = await oauthScene(t)
  const { statuses } = await signedIn(scene, authorizeUrl(await scene.client()))
  t.alike(statuses, [303, 303, 303])
})

test('RFC 9700 4.2.4 and 4.16: no page is framed or leaks where it was by a Referer, and none has a script, a form or anything of others', async (t) => {
  const scene = await oauthScene(t)
  const client = await scene.client({ name: '<script>alert(1)</script>"' })
  const { waited } = await signedIn(scene, authorizeUrl(client))
  const device = await fetch(`${scene.url}/oauth/device?user_code=<b>`)
  const refused = await fetch(`${scene.url}/oauth/consent/none`)
  for (const answer of [
    waited,
    device,
    refused,
    await scene.browser().get('/oauth/authorize'),
    await scene.browser().get(authorizeUrl(client))
  ]) {
    const header = (name: string): string => answer.headers.get(name) ?? ''
    t.ok(
      header('content-security-policy').includes("frame-ancestors 'none'") &&
        header('content-security-policy').includes("default-src 'none'"),
      answer.url
    )
    t.alike(
      [header('x-frame-options'), header('referrer-policy'), header('cache-control')],
      ['DENY', 'no-referrer', 'no-store']
    )
    const text = await answer.text()
    t.absent(/<script|<form|<b>|src=|href=/.test(text), answer.url)
  }
})

test('RFC 9700 4.7: a sign-in is bound to its browser; nothing that a browser sends approves it, and one word of the operator is good for one', async (t) => {
  const scene = await oauthScene(t)
  const client = await scene.client()
  const browsing = scene.browser()
  const page = (await browsing.get(authorizeUrl(client))).headers.get('location') ?? ''
  t.is((await browsing.get(page)).status, 200)
  t.is((await scene.browser().get(page)).status, 400, 'another browser learns nothing of it')
  t.is((await fetch(scene.url + page, { method: 'POST', body: 'approve=yes' })).status, 405)
  t.is((await browsing.get(`${page}?approve=yes&login=operator`)).status, 200, 'it waits on')
  const text = await (await browsing.get(page)).text()
  const code = /approve ([A-Z-]+)/.exec(text)?.[1] ?? ''
  for (const word of ['approve', 'deny'])
    t.ok(text.includes(`>a2a-node --home &#60;some home&#62; a2a oauth ${word} ${code}<`), 'it names the home')
  await scene.server.admin['oauth.approve']({ code })
  await t.exception(scene.server.admin['oauth.approve']({ code }), /nobody waits/)
  t.is((await scene.browser().get(page)).status, 400)
  const resumed = await browsing.get(page)
  t.ok((await browsing.get(resumed.headers.get('location') ?? '')).headers.get('location')?.includes('code='))
  const again = await browsing.get(authorizeUrl(client))
  t.ok(again.headers.get('location')?.startsWith('/oauth/consent/'), 'the same browser is asked again')
})

test("RFC 9700 4.15: the subject of a client's own token is never that of the operator", async (t) => {
  const scene = await oauthScene(t)
  const client = await scene.client()
  const own = await scene.who((await scene.token(client, CREDENTIALS)).body['access_token'])
  const forOperator = await scene.who((await scene.token(client, await codeOf(scene, client))).body['access_token'])
  t.alike([own?.id, forOperator?.id], [`${client.id}/${client.id}`, `${client.id}/operator`])
})

test('RFC 9700 4.10 and RFC 8628: a device code waits for the operator, is good once and for its client, and ends with its tokens when it comes again', async (t) => {
  const scene = await oauthScene(t)
  const [client, other] = [
    await scene.client({ isPublic: true, redirectUris: [] }),
    await scene.client({ isPublic: true })
  ]
  const begin = async (): Promise<Readonly<Record<string, string>>> =>
    (await scene.post('/oauth/device_authorization', { client_id: client.id, scope: 'a2a:read' })).body
  const begun = await begin()
  const form = { grant_type: DEVICE_GRANT, device_code: begun['device_code'] ?? '' }
  t.is((await scene.token(client, form)).body['error'], 'authorization_pending')
  t.is((await scene.token(other, form)).body['error'], 'invalid_grant')
  await scene.server.admin['oauth.approve']({ code: (begun['user_code'] ?? '').toLowerCase() })
  const { body } = await scene.token(client, form)
  t.is(body['scope'], 'a2a:read')
  t.is((await scene.who(body['access_token']))?.id, `${client.id}/operator`)
  t.is((await scene.token(client, form)).body['error'], 'invalid_grant')
  t.absent(await scene.who(body['access_token']))
  const denied = await begin()
  await scene.server.admin['oauth.deny']({ code: denied['user_code'] ?? '' })
  t.is(
    (await scene.token(client, { ...form, device_code: denied['device_code'] ?? '' })).body['error'],
    'access_denied'
  )
})

test('a browser that asks again after the word of the operator makes no more grants, nor another code', async (t) => {
  const scene = await oauthScene(t)
  const browsing = scene.browser()
  const page = (await browsing.get(authorizeUrl(await scene.client()))).headers.get('location') ?? ''
  const code = /approve ([A-Z-]+)/.exec(await (await browsing.get(page)).text())?.[1] ?? ''
  await scene.server.admin['oauth.approve']({ code })
  let resumed = ''
  for (let i = 0; i < 5; i++) resumed = (await browsing.get(page)).headers.get('location') ?? ''
  const { records } = JSON.parse(scene.home.get('oauth-state') ?? '') as {
    readonly records: readonly { readonly model: string }[]
  }
  t.is(records.filter(({ model }) => model === 'Grant').length, 1)
  t.ok((await browsing.get(resumed)).headers.get('location')?.includes('code='))
  t.is((await browsing.get(page)).status, 400)
})
