import { generateKeyPair, importJWK, SignJWT, UnsecuredJWT } from 'jose'
import test from 'brittle'
import { MAX_OAUTH_DENIED } from '../../../../src/adapters/a2a/oauth/oauth-denials.js'
import { authorizeUrl, basic, codeOf, oauthScene, type OAuthScene } from '../../../support/oauth.js'

const CREDENTIALS = { grant_type: 'client_credentials' }

function nowSeconds(): number {
  return Math.floor(Date.now() / 1000)
}

/** A token as the server would sign it, with what a test changes. */
async function forged(
  scene: OAuthScene,
  client: string,
  change: Record<string, unknown> = {},
  header: Record<string, unknown> = {}
): Promise<string> {
  const { keys } = JSON.parse(scene.home.get('oauth-clients') ?? '{}') as { keys: { jwk: { kid: string } }[] }
  const jwk = keys[0]?.jwk ?? { kid: '' }
  const now = nowSeconds()
  const claims = {
    iss: scene.url,
    aud: scene.url,
    sub: client,
    client_id: client,
    scope: 'a2a:read',
    jti: 'j',
    iat: now,
    nbf: now,
    exp: now + 60,
    ...change
  }
  return await new SignJWT(claims)
    .setProtectedHeader({ alg: 'EdDSA', typ: 'at+jwt', kid: jwk.kid, ...header })
    .sign(await importJWK(jwk, 'EdDSA'))
}

test('a token counts only with its type, issuer, audience, times, key and all its claims', async (t) => {
  const scene = await oauthScene(t)
  const { id } = await scene.client()
  t.ok(await scene.who(await forged(scene, id)), 'as it should be')
  const now = nowSeconds()
  const changes: Record<string, unknown>[] = [
    { iss: 'https://elsewhere.example' },
    { aud: 'https://elsewhere.example' },
    { aud: [scene.url, 'https://elsewhere.example'] },
    { exp: now - 30 },
    { nbf: now + 60 },
    { client_id: 'cli_none' },
    { client_id: 7 },
    ...['iss', 'aud', 'exp', 'nbf', 'iat', 'jti', 'sub', 'client_id', 'scope'].map((name) => ({ [name]: undefined }))
  ]
  for (const change of changes) t.absent(await scene.who(await forged(scene, id, change)), JSON.stringify(change))
  t.absent(await scene.who(await forged(scene, id, {}, { typ: 'JWT' })), 'another type')
  t.absent(await scene.who(await forged(scene, id, {}, { kid: 'other' })), 'another key')
  const claims = {
    iss: scene.url,
    aud: scene.url,
    sub: id,
    client_id: id,
    scope: 'a2a:read',
    jti: 'j',
    iat: now,
    nbf: now,
    exp: now + 60
  }
  t.absent(await scene.who(new UnsecuredJWT(claims).encode()), 'unsigned')
  const { privateKey } = await generateKeyPair('EdDSA')
  t.absent(
    await scene.who(await new SignJWT(claims).setProtectedHeader({ alg: 'EdDSA', typ: 'at+jwt' }).sign(privateKey)),
    'of somebody else'
  )
  t.absent(
    await scene.who(
      await new SignJWT(claims)
        .setProtectedHeader({ alg: 'HS256', typ: 'at+jwt' })
        .sign(new TextEncoder().encode('x'.repeat(32)))
    )
  )
  for (const text of ['', '.', '..', 'a.b.c', 'eyJ'.repeat(300), '\u0000']) t.absent(await scene.who(text))
})

test('a revoked token is refused at once, open streams under it end, and a restart changes nothing', async (t) => {
  const scene = await oauthScene(t)
  const [client, other] = [await scene.client(), await scene.client()]
  const [one, two] = [
    (await scene.token(client, CREDENTIALS)).body['access_token'] ?? '',
    (await scene.token(client, CREDENTIALS)).body['access_token'] ?? ''
  ]
  const grant = await scene.server.tokens.admit(one)
  const ended = new Promise<void>((resolve) => grant?.onEnd(resolve))
  const asOther = await scene.post(
    '/oauth/revoke',
    { token: one },
    { authorization: basic(other.id, other.secret ?? '') }
  )
  t.is(asOther.body['error'], 'invalid_request', 'not by another client')
  t.is((await scene.post('/oauth/revoke', { token: one })).body['error'], 'invalid_request', 'nor by nobody')
  t.ok(await scene.who(one))
  const own = { authorization: basic(client.id, client.secret ?? '') }
  t.is((await scene.post('/oauth/revoke', { token: one }, own)).status, 200)
  await ended
  t.absent(await scene.who(one))
  t.ok(await scene.who(two), 'the others stay')
  for (const token of [one, 'nothing', 'a.b.c'])
    t.is((await scene.post('/oauth/revoke', { token }, own)).status, 200, 'asked again it is the same')
  const refresh = (await scene.token(client, await codeOf(scene, client))).body
  t.is((await scene.post('/oauth/revoke', { token: refresh['refresh_token'] ?? '' }, own)).status, 200)
  t.absent(await scene.who(refresh['access_token']), 'with the refresh token go the tokens of its grant')
  await scene.close()
  const again = await oauthScene(t, { home: scene.home, port: Number(new URL(scene.url).port) })
  t.alike([await again.who(one), await again.who(refresh['access_token'])], [null, null])
  t.ok(await again.who(two), 'clients and keys are there')
  t.is((await again.token(client, CREDENTIALS)).status, 200)
})

test('a token that was revoked in its last seconds, which differing clocks grant it, is not good again', async (t) => {
  const scene = await oauthScene(t)
  const client = await scene.client()
  const token = await forged(scene, client.id, { exp: nowSeconds() - 1 })
  t.ok(await scene.who(token))
  const own = { authorization: basic(client.id, client.secret ?? '') }
  t.is((await scene.post('/oauth/revoke', { token }, own)).status, 200)
  t.absent(await scene.who(token))
})

test('a client with more revocations than the limit loses all its own tokens, gets new ones, and harms no other', async (t) => {
  const scene = await oauthScene(t)
  const [client, other] = [await scene.client(), await scene.client()]
  const get = async (of: typeof client): Promise<string> =>
    (await scene.token(of, CREDENTIALS)).body['access_token'] ?? ''
  const [first, theirs] = [await get(client), await get(other)]
  const own = { authorization: basic(client.id, client.secret ?? '') }
  for (let i = 0; i <= MAX_OAUTH_DENIED; i++)
    await scene.post(
      '/oauth/revoke',
      { token: await forged(scene, client.id, { jti: `j${i}`, iat: nowSeconds() - 1 }) },
      own
    )
  t.absent(await scene.who(first))
  t.ok(await scene.who(theirs))
  t.ok(await scene.who(await get(other)))
  t.is((await scene.token(client, CREDENTIALS)).status, 200)
  t.ok(await scene.who(await forged(scene, client.id, { jti: 'next', iat: nowSeconds() + 1 })))
})

test('a revoked client has no token any more, also after a restart', async (t) => {
  const scene = await oauthScene(t)
  const client = await scene.client({ isPublic: true })
  const { body } = await scene.token(client, await codeOf(scene, client))
  const grant = await scene.server.tokens.admit(body['access_token'] ?? '')
  const ended = new Promise<void>((resolve) => grant?.onEnd(resolve))
  t.is((await scene.server.admin['oauth.client.revoke']({ id: client.id.slice(0, 12) })).id, client.id)
  await ended
  t.absent(await scene.who(body['access_token']))
  t.is(
    (await scene.token(client, { grant_type: 'refresh_token', refresh_token: body['refresh_token'] ?? '' })).body[
      'error'
    ],
    'invalid_client'
  )
  await scene.close()
  const again = await oauthScene(t, { home: scene.home, port: Number(new URL(scene.url).port) })
  t.absent(await again.who(body['access_token']))
})

test('a new key signs from then on; tokens of the one before are good, and no private part is shown', async (t) => {
  const scene = await oauthScene(t)
  const client = await scene.client()
  const before = (await scene.token(client, CREDENTIALS)).body['access_token'] ?? ''
  const { kid } = await scene.server.admin['oauth.rotate']({})
  const after = (await scene.token(client, CREDENTIALS)).body['access_token'] ?? ''
  t.is((JSON.parse(Buffer.from(after.split('.')[0] ?? '', 'base64url').toString()) as { kid: string }).kid, kid)
  t.ok(await scene.who(before))
  t.ok(await scene.who(after))
  const { keys } = (await (await fetch(`${scene.url}/oauth/jwks`)).json()) as { keys: Record<string, unknown>[] }
  t.is(keys.length, 2)
  t.absent(keys.some((key) => 'd' in key))
})

test('a sign-in under way goes on after a restart, and the home holds neither codes nor tokens', async (t) => {
  const scene = await oauthScene(t)
  const client = await scene.client({ isPublic: true })
  const form = await codeOf(scene, client)
  const { body } = await scene.token(client, await codeOf(scene, client))
  const kept = [...scene.home.values()].join()
  for (const secret of [form['code'], body['refresh_token'], body['access_token'], form['code_verifier']])
    t.absent(kept.includes(secret ?? '-'))
  await scene.close()
  const again = await oauthScene(t, { home: scene.home, port: Number(new URL(scene.url).port) })
  t.is((await again.token(client, form)).status, 200)
  t.is(
    (await again.token(client, { grant_type: 'refresh_token', refresh_token: body['refresh_token'] ?? '' })).status,
    200
  )
})

test('on another port the node is another issuer: tokens of before are refused, clients stay', async (t) => {
  const scene = await oauthScene(t)
  const client = await scene.client()
  const { body } = await scene.token(client, await codeOf(scene, client))
  await scene.close()
  const again = await oauthScene(t, { home: scene.home, port: 0 })
  t.absent(await again.who(body['access_token']))
  const refreshed = await again.token(client, {
    grant_type: 'refresh_token',
    refresh_token: body['refresh_token'] ?? ''
  })
  t.is(refreshed.body['error'], 'invalid_target')
  t.ok(await again.who((await again.token(client, CREDENTIALS)).body['access_token']))
})

test('an invalid request gets an OAuth error, never HTML, and changes nothing', async (t) => {
  const scene = await oauthScene(t)
  const client = await scene.client()
  const types = [
    'application/json',
    'text/plain',
    'multipart/form-data; boundary=x',
    'application/x-www-form-urlencoded'
  ]
  for (const path of ['/oauth/token', '/oauth/revoke', '/oauth/device_authorization']) {
    for (const type of types) {
      for (const body of [
        '',
        '{}',
        '&&&=%',
        'grant_type=a&grant_type=b',
        '__proto__=1&constructor=2',
        `x=${'y'.repeat(15_000)}`,
        '\u0000\uffff'
      ]) {
        const headers = {
          'content-type': type,
          accept: 'text/html',
          authorization: basic(client.id, client.secret ?? '')
        }
        const answer = await fetch(scene.url + path, { method: 'POST', headers, body })
        const text = await answer.text()
        if (answer.status === 200) continue
        t.ok(
          answer.status < 500 && typeof (JSON.parse(text) as { error: unknown }).error === 'string',
          `${path} ${type} ${answer.status} ${text}`
        )
      }
    }
  }
  for (const path of ['token', 'revoke', 'device_authorization']) {
    const large = await fetch(`${scene.url}/oauth/${path}`, { method: 'POST', body: 'x'.repeat(20_000) })
    const { error, error_description: why } = (await large.json()) as Record<string, unknown>
    t.alike([large.status, error, typeof why], [413, 'invalid_request', 'string'], path)
  }
  const wrong = await fetch(`${scene.url}/oauth/token`)
  t.alike([wrong.status, ((await wrong.json()) as Record<string, unknown>)['error']], [405, 'invalid_request'])
  for (const query of [
    'client_id[]=1',
    'client_id=%00',
    'a=%E0%A4%A',
    'client_id=a&client_id=b',
    `x=${'y'.repeat(8000)}`
  ]) {
    const answer = await scene.browser().get(`/oauth/authorize?${query}`, { accept: 'text/html' })
    t.alike([answer.status, answer.headers.get('content-type')], [400, 'application/json; charset=utf-8'], query)
  }
  t.is((await scene.browser().get(authorizeUrl(client))).status, 303)
})
