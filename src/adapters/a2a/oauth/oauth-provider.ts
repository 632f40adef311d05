import type { Clock } from '../../../kit/clock.js'
import type { ClientAllowance, ScopeTable } from '../../../domain/gateway/oauth-scope.js'
import { mayAsk } from '../../../domain/gateway/oauth-scope.js'
import type { Client, Configuration, errors as Errors, KoaContextWithOIDC, Provider } from 'oidc-provider'
import { OAuthAdapter, type TokenHandle } from './oauth-adapter.js'
import type { OAuthKeys } from './oauth-keys.js'
import { hashText, type OAuthStore } from './oauth-store.js'

/** Paths of the OAuth server at the listener. */
export const OAUTH_PATHS = {
  authorization: '/oauth/authorize',
  token: '/oauth/token',
  revocation: '/oauth/revoke',
  device_authorization: '/oauth/device_authorization',
  code_verification: '/oauth/device',
  jwks: '/oauth/jwks'
} as const
/** Path prefix of the page where a browser waits for the operator. */
export const CONSENT_PATH = '/oauth/consent/'
/** Subject of all sign-ins: a node has one operator. */
export const OPERATOR_SUBJECT = 'operator'
/** How long a browser or a device waits for the operator, in seconds. */
export const SIGN_IN_SECONDS = 600
const CODE_SECONDS = 60

/** Dependencies of {@link makeProvider}. */
export interface OAuthServerDeps {
  readonly store: OAuthStore
  readonly keys: OAuthKeys
  readonly clock: Clock
  readonly issuer: string
  readonly scopes: ScopeTable
  readonly accessTokenSeconds: number
  readonly refreshTokenDays: number
  /** Handles of access tokens in revocation, by random name. */
  readonly handles: ReadonlyMap<string, TokenHandle>
  /** Called with internal errors. */
  onFault(error: unknown): void
}

type OidcLibrary = typeof import('oidc-provider')

/**
 * Loads oidc-provider. It warns about runtimes that it was not tested with, e.g. Node 20, and has no option against
 * that. This one line is suppressed while it loads, since the used features are tested here on Node 20; other warnings
 * pass.
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

/** An oidc-provider that issues tokens for the gateway, without OpenID. Made anew when the keys change. */
export function makeProvider(
  { Provider: Made, errors, interactionPolicy }: OidcLibrary,
  deps: OAuthServerDeps
): Provider {
  const policy = interactionPolicy.base()
  // A browser with an earlier sign-in needs a new approval: one decision of the operator approves once.
  policy
    .get('login')
    ?.checks.add(
      new interactionPolicy.Check(
        'every_time',
        'the operator decides each time',
        ({ oidc }) => oidc.result?.login === undefined
      )
    )
  const provider = new Made(deps.issuer, {
    ...configuration(deps, errors),
    interactions: { policy, url: (_ctx, { uid }) => CONSENT_PATH + uid }
  })
  // URLs are those of the issuer: the server sets the forwarded headers itself.
  provider.proxy = true
  Object.assign(provider, { silent: true, onerror: (error: unknown) => deps.onFault(error) })
  // The home stores only the hash.
  provider.Client.prototype.compareClientSecret = function (this: Client, actual: string): boolean {
    return equalText(this.clientSecret ?? '', hashText(actual))
  }
  provider.use(keepOrigins)
  provider.on('server_error', (_ctx, error) => deps.onFault(error))
  return provider
}

/** Restores the CORS headers of the listener; the library would allow all origins. */
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
    // A refreshed token does not outlive the approval of the operator.
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

/** A client may revoke its own tokens only; an unauthenticated one does not learn that a token is of another client. */
function isOwn(
  client: Client,
  { clientId }: { readonly clientId?: string | undefined },
  { InvalidRequest }: typeof Errors
): boolean {
  if (clientId === client.clientId || client.clientAuthMethod === 'none') return clientId === client.clientId
  throw new InvalidRequest('the token is of another client')
}

interface AskedResource {
  readonly resource: string
  readonly client: Client
  readonly deps: OAuthServerDeps
  readonly errors: typeof Errors
}

/**
 * The only resource is this gateway. A request without scopes gets all scopes of the client; other scopes are refused.
 */
function resourceServer(ctx: KoaContextWithOIDC, { resource, client, deps, errors }: AskedResource) {
  if (resource !== deps.issuer) throw new errors.InvalidTarget()
  const allowance = deps.store.clients.get(client.clientId) ?? { tier: 3, scopes: [] }
  const { params } = ctx.oidc
  const asked = typeof params?.['scope'] === 'string' ? params['scope'] : undefined
  if (params !== undefined && asked === undefined && params['grant_type'] !== 'refresh_token')
    params['scope'] = allowance.scopes.join(' ')
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

/** Scopes of the code or refresh token, as the client requested them. */
function grantable(
  ctx: KoaContextWithOIDC,
  { scopes }: OAuthServerDeps,
  allowance: ClientAllowance
): readonly string[] {
  const { AuthorizationCode, RefreshToken, DeviceCode } = ctx.oidc.entities
  const source = AuthorizationCode ?? RefreshToken ?? DeviceCode
  return source?.scope?.split(' ').filter((scope) => mayAsk(scopes, allowance, scope)) ?? []
}

/** Adds `nbf`, and `gid`: the grant, whose end revokes all its tokens. */
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
