import type { Clock } from '../../../kit/clock.js'
import type { ClientAllowance, ScopeTable } from '../../../domain/gateway/oauth-scope.js'
import { mayAsk } from '../../../domain/gateway/oauth-scope.js'
import type { Client, Configuration, errors as Errors, KoaContextWithOIDC, Provider } from 'oidc-provider'
import { OAuthAdapter, type TokenHandle } from './oauth-adapter.js'
import type { OAuthKeys } from './oauth-keys.js'
import { hashText, type OAuthStore } from './oauth-store.js'

/** Where the OAuth server answers, below the URL of the listener. */
export const OAUTH_PATHS = {
  authorization: '/oauth/authorize',
  token: '/oauth/token',
  revocation: '/oauth/revoke',
  device_authorization: '/oauth/device_authorization',
  code_verification: '/oauth/device',
  jwks: '/oauth/jwks'
} as const
/** Where a browser waits until the operator has decided. */
export const CONSENT_PATH = '/oauth/consent/'
/** Whom all sign-ins are of: a node has one operator. */
export const OPERATOR_SUBJECT = 'operator'
/** How long a browser or a device waits for the operator, in seconds. */
export const SIGN_IN_SECONDS = 600
const CODE_SECONDS = 60

/** What the OAuth server is made of. */
export interface OAuthServerDeps {
  readonly store: OAuthStore
  readonly keys: OAuthKeys
  readonly clock: Clock
  readonly issuer: string
  readonly scopes: ScopeTable
  readonly accessTokenSeconds: number
  readonly refreshTokenDays: number
  /** Access tokens that are being revoked, by a name that stands for each. */
  readonly handles: ReadonlyMap<string, TokenHandle>
  /** Told of what failed for a reason of the node's own. */
  onFault(error: unknown): void
}

type OidcLibrary = typeof import('oidc-provider')

/**
 * Loads oidc-provider. It warns on every runtime but those it was tried with, and has no option for that: with Node 20, on
 * which all that is used of it is tested here, the one line is held back while it loads; all others pass.
 */
export async function loadOidc(): Promise<OidcLibrary> {
  const { warn } = console
  console.warn = (...words: unknown[]): void => {
    if (!String(words[0]).includes('Unsupported runtime')) warn.apply(console, words)
  }
  try {
    return await import('oidc-provider')
  } finally {
    console.warn = warn
  }
}

/** An oidc-provider that gives tokens for the gateway, and nothing of OpenID. Made anew when the keys change. */
export function makeProvider({ Provider: Made, errors, interactionPolicy }: OidcLibrary, deps: OAuthServerDeps): Provider {
  const policy = interactionPolicy.base()
  // A browser that signed in before is asked again: nothing is approved twice by one word of the operator.
  policy
    .get('login')
    ?.checks.add(
      new interactionPolicy.Check('every_time', 'the operator decides each time', ({ oidc }) => oidc.result?.login === undefined)
    )
  const provider = new Made(deps.issuer, {
    ...configuration(deps, errors),
    interactions: { policy, url: (_ctx, { uid }) => CONSENT_PATH + uid }
  })
  // URLs are those of the issuer, whatever a request says: the server puts these headers in itself.
  provider.proxy = true
  Object.assign(provider, { silent: true, onerror: (error: unknown) => deps.onFault(error) })
  // The home has the hash alone.
  provider.Client.prototype.compareClientSecret = function (this: Client, actual: string): boolean {
    return equalText(this.clientSecret ?? '', hashText(actual))
  }
  provider.use(keepOrigins)
  provider.on('server_error', (_ctx, error) => deps.onFault(error))
  return provider
}

/** Which pages may read an answer is said by the listener alone; the library would let all of them. */
function keepOrigins({ res }: KoaContextWithOIDC, next: () => Promise<void>): Promise<void> {
  const names = ['access-control-allow-origin', 'access-control-expose-headers', 'vary']
  const before = names.map((name) => [name, res.getHeader(name)] as const)
  return next().then(() => {
    for (const [name, value] of before) {
      if (value === undefined) res.removeHeader(name)
      else res.setHeader(name, value)
    }
  })
}

function configuration(deps: OAuthServerDeps, errors: typeof Errors): Configuration {
  const { store, keys, handles } = deps
  return {
    adapter: (model: string) => new OAuthAdapter(model, { store, handles }),
    jwks: { keys: [...keys.privateKeys] as never },
    routes: OAUTH_PATHS,
    scopes: [],
    claims: {},
    responseTypes: ['code'],
    clientAuthMethods: ['client_secret_basic', 'none'],
    clientDefaults: { id_token_signed_response_alg: 'EdDSA' },
    pkce: { required: () => true },
    allowOmittingSingleRegisteredRedirectUri: false,
    acceptQueryParamAccessTokens: false,
    clientBasedCORS: () => false,
    cookies: cookies(deps),
    features: features(deps, errors),
    formats: { customizers: { jwt: (_ctx, token, { payload }) => addClaims(payload, token as { grantId?: string }) } },
    findAccount: (_ctx, sub) => ({ accountId: sub, claims: () => ({ sub }) }),
    issueRefreshToken: (_ctx, client) => client.grantTypeAllowed('refresh_token'),
    expiresWithSession: () => false,
    rotateRefreshToken: true,
    loadExistingGrant: async ({ oidc }) => {
      const id = oidc.result?.consent?.grantId
      return id === undefined ? undefined : await oidc.provider.Grant.find(id)
    },
    renderError: (ctx, out) => {
      ctx.type = 'json'
      ctx.body = out
    },
    ttl: lifetimes(deps)
  }
}

function lifetimes({ accessTokenSeconds, refreshTokenDays }: OAuthServerDeps): Configuration['ttl'] {
  const refresh = refreshTokenDays * 86_400
  return {
    AccessToken: accessTokenSeconds,
    ClientCredentials: accessTokenSeconds,
    AuthorizationCode: CODE_SECONDS,
    DeviceCode: SIGN_IN_SECONDS,
    Interaction: SIGN_IN_SECONDS,
    Session: SIGN_IN_SECONDS + CODE_SECONDS,
    // A refreshed token does not outlive the word of the operator.
    Grant: refresh,
    RefreshToken: refresh
  }
}

function cookies({ store, issuer }: OAuthServerDeps): Configuration['cookies'] {
  const how = { httpOnly: true, sameSite: 'lax', signed: true, secure: issuer.startsWith('https:') } as const
  return { keys: [store.cookieKey], long: { ...how, path: '/oauth/' }, short: how }
}

function features(deps: OAuthServerDeps, errors: typeof Errors): Configuration['features'] {
  return {
    devInteractions: { enabled: false },
    userinfo: { enabled: false },
    rpInitiatedLogout: { enabled: false },
    dPoP: { enabled: false },
    pushedAuthorizationRequests: { enabled: false },
    clientCredentials: { enabled: true },
    deviceFlow: { enabled: true },
    revocation: { enabled: true, allowedPolicy: (_ctx, client, token) => isOwn(client, token, errors) },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => deps.issuer,
      useGrantedResource: () => true,
      getResourceServerInfo: (ctx, resource, client) => resourceServer(ctx, { resource, client, deps, errors })
    }
  }
}

/** A client ends its own tokens alone; who has not shown who it is does not learn that one is of somebody else. */
function isOwn(client: Client, { clientId }: { readonly clientId?: string | undefined }, { InvalidRequest }: typeof Errors): boolean {
  if (clientId === client.clientId || client.clientAuthMethod === 'none') return clientId === client.clientId
  throw new InvalidRequest('the token is of another client')
}

interface AskedResource {
  readonly resource: string
  readonly client: Client
  readonly deps: OAuthServerDeps
  readonly errors: typeof Errors
}

/** The one resource there is: this gateway. What a client does not name it gets as a whole; what is not its own is refused. */
function resourceServer(ctx: KoaContextWithOIDC, { resource, client, deps, errors }: AskedResource) {
  if (resource !== deps.issuer) throw new errors.InvalidTarget()
  const allowance = deps.store.clients.get(client.clientId) ?? { tier: 3, scopes: [] }
  const { params } = ctx.oidc
  const asked = typeof params?.['scope'] === 'string' ? params['scope'] : undefined
  if (params !== undefined && asked === undefined && params['grant_type'] !== 'refresh_token') params['scope'] = allowance.scopes.join(' ')
  const wanted = asked === undefined || asked === '' ? [] : asked.split(' ')
  const lacking = wanted.find((scope) => !mayAsk(deps.scopes, allowance, scope))
  if (lacking !== undefined) throw new errors.InvalidScope('the client may not ask for this scope', lacking)
  return {
    scope: [...new Set([...allowance.scopes, ...grantable(ctx, deps, allowance), ...wanted])].join(' '),
    audience: deps.issuer,
    accessTokenFormat: 'jwt' as const,
    accessTokenTTL: deps.accessTokenSeconds,
    jwt: { sign: { alg: 'EdDSA' as const } }
  }
}

/** Scopes by which a client limited itself when it asked, of which it now has a code or a refresh token. */
function grantable(ctx: KoaContextWithOIDC, { scopes }: OAuthServerDeps, allowance: ClientAllowance): readonly string[] {
  const { AuthorizationCode, RefreshToken, DeviceCode } = ctx.oidc.entities
  const source = AuthorizationCode ?? RefreshToken ?? DeviceCode
  return source?.scope?.split(' ').filter((scope) => mayAsk(scopes, allowance, scope)) ?? []
}

/** `gid`: by which all tokens of one approval are ended at once. */
function addClaims(payload: Record<string, unknown> | undefined, { grantId }: { readonly grantId?: string }): void {
  if (payload === undefined) return
  payload['nbf'] = payload['iat']
  if (grantId !== undefined) payload['gid'] = grantId
}

function equalText(one: string, other: string): boolean {
  let differing = one.length ^ other.length
  for (let at = 0; at < other.length; at++) differing |= other.charCodeAt(at) ^ (one.charCodeAt(at) || 0)
  return differing === 0
}
