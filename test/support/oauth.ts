import { createHash, randomBytes } from 'node:crypto'
import type { Assert } from 'brittle'
import { systemClock } from '../../src/adapters/system/system-clock.js'
import { randomIds, randomSecret } from '../../src/adapters/system/random-ids.js'
import { OAuthServer } from '../../src/adapters/a2a/oauth/oauth-server.js'
import { startHttpListener } from '../../src/adapters/http/listener.js'
import { SCOPES } from '../../src/domain/gateway/oauth-scope.js'
import { oauthRoutes } from '../../src/compose/open-oauth.js'
import type { OAuthClientRequest, OAuthCalls } from '../../src/ports/oauth-api.js'
import type { Principal } from '../../src/ports/node-api.js'

/** Where the answers of sign-ins go; nobody listens there. */
export const REDIRECT = 'http://127.0.0.1:9/cb'

/** A client and its secret, as the operator was told. */
export type MadeClient = OAuthCalls['oauth.client.create']['result']

/** What a token endpoint answered. */
export interface TokenAnswer {
  readonly status: number
  readonly headers: Headers
  readonly body: Readonly<Record<string, string>>
}

/** A browser: it keeps cookies by path, and follows nothing by itself. */
export interface Browser {
  get(url: string, headers?: Readonly<Record<string, string>>): Promise<Response>
}

/** An OAuth server on a listener, and what clients, browsers and the operator do with it. */
export interface OAuthScene {
  readonly url: string
  readonly server: OAuthServer
  /** What the home keeps, by name. */
  readonly home: Map<string, string>
  client(request?: OAuthClientRequest): Promise<MadeClient>
  token(client: Pick<MadeClient, 'id' | 'secret'>, form: Readonly<Record<string, string>>): Promise<TokenAnswer>
  post(
    path: string,
    form: Readonly<Record<string, string>>,
    headers?: Readonly<Record<string, string>>
  ): Promise<TokenAnswer>
  browser(): Browser
  /** Who is admitted by a token; null for nobody. */
  who(token: string | undefined): Promise<Principal | null>
  close(): Promise<void>
}

/** Starts one; `home`: that of one before, and `port` its port. */
export async function oauthScene(
  t: Assert,
  again?: { readonly home: Map<string, string>; readonly port: number }
): Promise<OAuthScene> {
  const home = again?.home ?? new Map<string, string>()
  const clock = systemClock()
  const listener = await startHttpListener({ host: '127.0.0.1', port: again?.port ?? 0, hosts: [], origins: [] })
  const store = {
    read: <T>(name: string) => Promise.resolve(JSON.parse(home.get(name) ?? 'null') as T | null),
    write: (name: string, value: unknown) => Promise.resolve(void home.set(name, JSON.stringify(value)))
  }
  const server = await OAuthServer.open({
    home: store,
    clock,
    ids: randomIds(),
    secret: randomSecret,
    audit: { append: () => {} },
    issuer: listener.url,
    scopes: SCOPES,
    accessTokenSeconds: 600,
    refreshTokenDays: 30,
    keyDays: 90,
    command: 'a2a-node --home <some home>',
    nodePower: () => ({ tier: 0, sandboxId: null }),
    onFault: (error) => t.fail(String(error))
  })
  listener.open({
    routes: oauthRoutes(server),
    admit: (token) => server.tokens.admit(token),
    onRefusal: () => {},
    onFault: (error) => t.fail(String(error))
  })
  let isClosed = false
  const close = async (): Promise<void> => {
    if (isClosed) return
    isClosed = true
    server.close()
    await listener.close()
  }
  t.teardown(close)
  return { server, home, url: listener.url, close, ...callers(listener.url, server) }
}

function callers(url: string, server: OAuthServer): Pick<OAuthScene, 'client' | 'token' | 'post' | 'browser' | 'who'> {
  const post: OAuthScene['post'] = async (path, form, headers = {}) => {
    const response = await fetch(url + path, {
      method: 'POST',
      body: new URLSearchParams(form),
      headers: { ...headers, connection: 'close' },
      redirect: 'manual'
    })
    const text = await response.text()
    return {
      status: response.status,
      headers: response.headers,
      body: text === '' ? {} : (JSON.parse(text) as Record<string, string>)
    }
  }
  return {
    post,
    client: (request = {}) => server.admin['oauth.client.create']({ redirectUris: [REDIRECT], ...request }),
    token: (client, form) =>
      client.secret === null
        ? post('/oauth/token', { client_id: client.id, ...form })
        : post('/oauth/token', form, { authorization: basic(client.id, client.secret) }),
    browser: () => browser(url),
    who: async (token) => (await server.tokens.admit(token ?? ''))?.principal ?? null
  }
}

/** The header of HTTP Basic. */
export function basic(id: string, secret: string): string {
  return `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`
}

function browser(base: string): Browser {
  const jar = new Map<string, { readonly value: string; readonly path: string }>()
  return {
    get: async (place, headers = {}) => {
      const url = new URL(place, base)
      const cookies = [...jar]
        .filter(([, { path }]) => url.pathname.startsWith(path))
        .map(([name, { value }]) => `${name}=${value}`)
      const response = await fetch(url, {
        redirect: 'manual',
        headers: { ...headers, connection: 'close', cookie: cookies.join('; ') }
      })
      for (const line of response.headers.getSetCookie()) {
        const [pair = '', ...more] = line.split('; ')
        const at = pair.indexOf('=')
        const path = more.find((one) => one.startsWith('path='))?.slice('path='.length) ?? '/'
        jar.set(pair.slice(0, at), { value: pair.slice(at + 1), path })
      }
      return response
    }
  }
}

/** What PKCE takes. */
export function pkce(): { readonly verifier: string; readonly challenge: string } {
  const verifier = randomBytes(32).toString('base64url')
  return { verifier, challenge: createHash('sha256').update(verifier).digest('base64url') }
}

/** A sign-in as a client begins it. */
export function authorizeUrl(
  client: Pick<MadeClient, 'id'>,
  more: Readonly<Record<string, string | undefined>> = {}
): string {
  const all = {
    client_id: client.id,
    response_type: 'code',
    redirect_uri: REDIRECT,
    code_challenge: pkce().challenge,
    code_challenge_method: 'S256',
    state: 'state',
    ...more
  }
  const given = Object.entries(all).filter((one): one is [string, string] => one[1] !== undefined)
  return `/oauth/authorize?${new URLSearchParams(given).toString()}`
}

/** Where a browser is sent with the answer once the operator has decided. */
export async function signedIn(
  scene: OAuthScene,
  place: string,
  decide: 'approve' | 'deny' = 'approve'
): Promise<{ readonly answer: URL; readonly waited: Response; readonly statuses: readonly number[] }> {
  const browsing = scene.browser()
  const begun = await browsing.get(place)
  const page = begun.headers.get('location') ?? ''
  const waited = await browsing.get(page)
  const code = /approve ([A-Z-]+)/.exec(await waited.clone().text())?.[1] ?? ''
  await scene.server.admin[`oauth.${decide}`]({ code })
  const resumed = await browsing.get(page)
  const last = await browsing.get(resumed.headers.get('location') ?? '')
  const answer = new URL(last.headers.get('location') ?? 'about:blank')
  return { answer, waited, statuses: [begun.status, resumed.status, last.status] }
}

/** A sign-in to its end: the form by which its code becomes tokens. */
export async function codeOf(scene: OAuthScene, client: MadeClient, scope?: string): Promise<Record<string, string>> {
  const { verifier, challenge } = pkce()
  const { answer } = await signedIn(scene, authorizeUrl(client, { code_challenge: challenge, scope }))
  return {
    grant_type: 'authorization_code',
    code: answer.searchParams.get('code') ?? '',
    redirect_uri: REDIRECT,
    code_verifier: verifier
  }
}
