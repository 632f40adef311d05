import { NodeError } from '../kit/errors.js'
import { shellWord } from '../kit/text.js'
import { SCOPES, type ScopeTable } from '../domain/gateway/oauth-scope.js'
import { tierFromText } from '../domain/routing/tier.js'
import type { HttpRoute, PublicRoute } from '../adapters/http/route.js'
import { devicePage, answerPage } from '../adapters/a2a/oauth/oauth-page.js'
import { answerJson } from '../adapters/a2a/server/gateway-route.js'
import { oauthListenerFault } from '../adapters/a2a/server/listener-fault.js'
import { CONSENT_PATH, OAUTH_PATHS } from '../adapters/a2a/oauth/oauth-provider.js'
import { MAX_OAUTH_BODY, OAuthServer } from '../adapters/a2a/oauth/oauth-server.js'
import { isIssuer, type OAuthScopeSetting } from '../config/oauth.js'
import type { HomePaths } from '../config/paths.js'
import type { Config } from '../config/settings.js'
import type { HttpListener } from '../adapters/http/listener.js'
import type { NodeDeps } from '../node/dependencies.js'
import type { KnownClients } from '../ports/gateway.js'
import type { OAuthAdmin } from '../ports/oauth-api.js'
import type { TokenGrant } from '../ports/token-api.js'
import type { StartDeps } from './open-home.js'

/** The OAuth server of a node that serves HTTP. */
export interface OpenedOAuth {
  readonly routes: readonly HttpRoute[]
  readonly admin: OAuthAdmin
  readonly issuer: string
  readonly scopes: ScopeTable
  /** URL of the resource metadata for clients without a token (RFC 9728). */
  readonly resourceMetadata: string
  readonly clients: KnownClients
  admit(token: string): Promise<TokenGrant | null>
}

/** Opens the OAuth server by the config. @throws NodeError CONFIG_INVALID, STORE_DAMAGED, DISK_FULL, NO_PERMISSION */
export async function openOAuth(
  { options, clock, telemetry, unwind }: StartDeps,
  { ids, secret, audit, membership, store }: NodeDeps,
  { url: base, isExposed }: Pick<HttpListener, 'url' | 'isExposed'>
): Promise<OpenedOAuth> {
  const { issuer: _, scopes: added, ...terms } = options.config.a2a.oauth
  const given = issuerOf(options.config, isExposed)
  const issuer = given ?? base
  const scopes = { ...SCOPES, ...tableOf(added) }
  const nodePower = () => {
    const { maxTier, sandboxId } = membership.certificate().body
    return { tier: maxTier, sandboxId: sandboxId ?? null }
  }
  const onFault = (error: unknown): void =>
    telemetry.log('error', 'the OAuth server failed', { reason: error instanceof Error ? error.message : 'unknown' })
  const command = commandOf(options.home, given !== null)
  const server = await OAuthServer.open({
    ...terms,
    home: store,
    clock,
    ids,
    secret,
    audit,
    issuer,
    scopes,
    nodePower,
    onFault,
    command
  })
  unwind.add('OAuth server', () => Promise.resolve(server.close()))
  return {
    routes: oauthRoutes(server),
    admin: server.admin,
    clients: server.clients,
    issuer,
    scopes,
    resourceMetadata: `${issuer}${RESOURCE_PATH}`,
    admit: (token) => server.tokens.admit(token)
  }
}

/** The issuer of the config; null: none, so the URL of the listener is used. @throws NodeError CONFIG_INVALID */
function issuerOf({ a2a, http }: Config, isExposed: boolean): string | null {
  const given = a2a.oauth.issuer ?? http.publicUrl
  const next = ['a2a-node config path', 'a2a-node config check']
  if (given === null && isExposed) {
    const needed =
      'OAuth beyond this machine needs a2a.oauth.issuer or http.publicUrl: the https:// URL by which clients reach it'
    throw new NodeError('CONFIG_INVALID', needed, { next })
  }
  if (given !== null && !isIssuer(given)) {
    const unfit =
      'OAuth needs a2a.oauth.issuer, since http.publicUrl cannot stand for it: it has a path, or is http:// beyond this machine'
    throw new NodeError('CONFIG_INVALID', unfit, { next })
  }
  return given
}

/** First words of a command line for this node. Paths of this machine are hidden from browsers elsewhere. */
function commandOf({ home, isChosen }: HomePaths, isElsewhere: boolean): string {
  if (!isChosen) return 'a2a-node'
  return `a2a-node --home ${isElsewhere ? '<home of the node>' : shellWord(home)}`
}

const RESOURCE_PATH = '/.well-known/oauth-protected-resource'

function tableOf(added: Readonly<Record<string, OAuthScopeSetting>>): ScopeTable {
  return Object.fromEntries(
    Object.entries(added).map(([name, { may, tier, capabilities }]) => [
      name,
      { may, tier: tier === null ? null : tierFromText(tier), capabilities }
    ])
  )
}

/** Routes of the OAuth server; all are public, since clients have no token yet. */
export function oauthRoutes(server: OAuthServer): readonly HttpRoute[] {
  const handle: PublicRoute['handle'] = (request, response, call) => server.handle(request, response, call)
  const consent: PublicRoute['handle'] = (request, response, call) => server.consent(request, response, call)
  const device: PublicRoute['handle'] = (_request, response) => answerPage(response, devicePage(server.command))
  const shape = { isPublic: true, maxBodyBytes: MAX_OAUTH_BODY, errorBody: oauthListenerFault, handle } as const
  const get = ['GET'] as const
  const post = ['POST'] as const
  const documents = [
    { path: '/.well-known/oauth-authorization-server', value: () => server.metadata },
    { path: RESOURCE_PATH, value: () => server.resource }
  ]
  return [
    { path: OAUTH_PATHS.authorization, methods: get, ...shape },
    { prefix: `${OAUTH_PATHS.authorization}/`, methods: get, ...shape },
    { path: OAUTH_PATHS.token, methods: post, ...shape },
    { path: OAUTH_PATHS.revocation, methods: post, ...shape },
    { path: OAUTH_PATHS.device_authorization, methods: post, ...shape },
    { path: OAUTH_PATHS.jwks, methods: get, ...shape },
    { prefix: CONSENT_PATH, methods: get, ...shape, handle: consent },
    { path: OAUTH_PATHS.code_verification, methods: get, ...shape, handle: device },
    ...documents.map(({ path, value }) => ({
      path,
      methods: get,
      ...shape,
      handle: ((_request, response) => answerJson(response, 200, value())) as PublicRoute['handle']
    }))
  ]
}
