import type { Provider } from 'oidc-provider'
import type { Clock } from '../../../kit/clock.js'
import { NodeError } from '../../../kit/errors.js'
import type { IdSource } from '../../../kit/ids.js'
import { NODE_NAME } from '../../../kit/names/rule.js'
import { safeName } from '../../../kit/names/safe-name.js'
import { type IdKind, resolveId } from '../../../kit/resolve-id.js'
import { shown } from '../../../kit/text.js'
import { ruleOf, type ScopeTable } from '../../../domain/gateway/oauth-scope.js'
import { type Tier, tierText } from '../../../domain/routing/tier.js'
import type { Audit } from '../../../ports/audit.js'
import type { OAuthCalls, OAuthClientInfo, OAuthAdmin, OAuthRequestInfo } from '../../../ports/oauth-api.js'
import type { AccessTokens } from './oauth-tokens.js'
import type { OAuthKeys } from './oauth-keys.js'
import { OPERATOR_SUBJECT } from './oauth-provider.js'
import { hashText, MAX_OAUTH_CLIENTS, type OAuthRecord, type OAuthStore, type StoredClient } from './oauth-store.js'

const CLIENT_IDS: IdKind<{ readonly name: string }> = {
  one: 'client',
  several: 'clients',
  prefix: 'cli_',
  code: 'CLIENT_NOT_FOUND',
  list: 'a2a-node a2a client ls',
  label: (id, { name }) => `${id} (${name})`
}
const WEAKEST: Tier = 3

/** Dependencies of {@link createOAuthAdmin}. */
export interface OAuthAdminDeps {
  readonly store: OAuthStore
  readonly keys: OAuthKeys
  readonly tokens: AccessTokens
  readonly clock: Pick<Clock, 'now'>
  readonly ids: IdSource
  /** Makes 32 random bytes. */
  readonly secret: () => Uint8Array
  readonly audit: Pick<Audit, 'append'>
  readonly issuer: string
  readonly scopes: ScopeTable
  /** From the current certificate of the node. */
  nodePower(): { readonly tier: Tier }
  /** The current provider. */
  provider(): Provider
  /** Makes a new signing key; resolves with its id. */
  rotate(): Promise<string>
}

type OAuthParams<N extends keyof OAuthCalls> = OAuthCalls[N]['params']

/** The operator calls: create and revoke clients, approve and deny sign-ins, rotate the key. */
export function createOAuthAdmin(deps: OAuthAdminDeps): OAuthAdmin {
  const { store } = deps
  return {
    'oauth.client.create': (params) => createClient(deps, params),
    'oauth.client.list': () => {
      const all = [...store.clients.values()].toSorted((a, b) => b.createdAt - a.createdAt || a.id.localeCompare(b.id))
      return Promise.resolve({ clients: all.map(infoOf) })
    },
    'oauth.client.revoke': ({ id }) => revokeClient(deps, id),
    'oauth.requests': () => Promise.resolve({ requests: store.waiting().flatMap((one) => requestOf(deps, one) ?? []) }),
    'oauth.show': ({ code }) => Promise.resolve(findRequest(deps, code).info),
    'oauth.approve': ({ code }) => approve(deps, code),
    'oauth.deny': ({ code }) => deny(deps, code),
    'oauth.rotate': async () => ({ kid: await deps.rotate(), keys: store.keys.length })
  }
}

async function createClient(
  deps: OAuthAdminDeps,
  params: OAuthParams<'oauth.client.create'>
): Promise<OAuthCalls['oauth.client.create']['result']> {
  const { store, ids, clock, audit, issuer } = deps
  if (store.clients.size >= MAX_OAUTH_CLIENTS) {
    const next = ['a2a-node a2a client ls', 'a2a-node a2a client revoke <id>']
    throw new NodeError('OVERLOADED', `this node has ${MAX_OAUTH_CLIENTS} clients already`, { next })
  }
  const isPublic = params.isPublic ?? false
  const tier = params.tier ?? weakestOr(deps)
  if (tier < deps.nodePower().tier)
    throw new NodeError('FORBIDDEN', `an ${tierText(deps.nodePower().tier)} node has no ${tierText(tier)} clients`)
  const secret = isPublic ? null : Buffer.from(deps.secret()).toString('base64url')
  const client: StoredClient = {
    id: ids.next('cli'),
    name: safeName(params.name ?? '', NODE_NAME) || 'client',
    isPublic,
    secret: secret === null ? null : hashText(secret),
    tier,
    scopes: scopesOf(deps.scopes, params, tier),
    redirectUris: [...new Set(params.redirectUris ?? [])].map(checkedRedirect),
    createdAt: clock.now()
  }
  store.clients.set(client.id, client)
  try {
    await store.saveClients()
  } catch (error) {
    store.clients.delete(client.id)
    throw error
  }
  audit.append({
    kind: 'control',
    code: 'client-created',
    rule: client.id,
    reason: `${client.name}: ${tierText(tier)}, ${client.scopes.join(' ')}`
  })
  return { ...infoOf(client), secret, issuer }
}

/** The default tier: the weaker of {@link WEAKEST} and that of the node. */
function weakestOr({ nodePower }: OAuthAdminDeps): Tier {
  return nodePower().tier > WEAKEST ? nodePower().tier : WEAKEST
}

function scopesOf(
  table: ScopeTable,
  { scopes, tier: asked }: OAuthParams<'oauth.client.create'>,
  tier: Tier
): readonly string[] {
  const wanted = [...new Set(scopes ?? ['a2a:read', 'a2a:send'])]
  const unknown = wanted.find((one) => ruleOf(table, one) === null)
  if (unknown !== undefined) {
    const known = [...Object.keys(table), 'skill:<capability>'].join(', ')
    throw new NodeError('USAGE', `there is no scope "${shown(unknown, 64)}"; there are ${known}`, {
      next: ['a2a-node a2a client create --help']
    })
  }
  // A client with an explicit tier gets that tier in its tokens.
  const hasTier = wanted.some((one) => (ruleOf(table, one)?.tier ?? null) !== null)
  return hasTier || (scopes !== undefined && asked === undefined) ? wanted : [...wanted, `a2a:tier:${tierText(tier)}`]
}

/** @throws NodeError USAGE */
function checkedRedirect(uri: string): string {
  const url = URL.canParse(uri) ? new URL(uri) : null
  const isHere = url?.protocol === 'http:' && ['127.0.0.1', '[::1]', 'localhost'].includes(url.hostname)
  const isPlain = url !== null && url.username === '' && url.password === '' && !/[\s#*\\\p{C}]/u.test(uri)
  if (isPlain && (url.protocol === 'https:' || isHere)) return uri
  throw new NodeError(
    'USAGE',
    `"${shown(uri, 128)}" is no redirect URI: it is https://..., or http:// of this machine, without # and *`,
    {
      next: ['a2a-node a2a client create --help']
    }
  )
}

async function revokeClient({ store, tokens, audit }: OAuthAdminDeps, text: string): Promise<OAuthClientInfo> {
  const all = new Map([...store.clients.values(), ...store.unwritten.values()].map((one) => [one.id, one]))
  const client = resolveId(text, all, CLIENT_IDS)
  store.endClient(client.id)
  tokens.sweep()
  try {
    await store.saveClients()
  } catch (error) {
    // It stays refused while the node runs; a second revoke writes it.
    store.unwritten.set(client.id, client)
    throw error
  }
  store.denials.forget(client.id)
  await store.save()
  audit.append({ kind: 'control', code: 'client-revoked', rule: client.id, reason: client.name })
  return infoOf(client)
}

function infoOf({ id, name, isPublic, tier, scopes, redirectUris, createdAt }: StoredClient): OAuthClientInfo {
  const type = isPublic ? 'public' : 'confidential'
  return { id, name, type, tier: tierText(tier), scopes, redirectUris, createdAt: new Date(createdAt).toISOString() }
}

/** Null when its client no longer exists. */
function requestOf(
  { store }: OAuthAdminDeps,
  { model, clientId, body, expiresAt }: OAuthRecord
): OAuthRequestInfo | null {
  const client = store.clients.get(clientId ?? '')
  if (client === undefined) return null
  const { params = {} } = JSON.parse(body) as { readonly params?: Readonly<Record<string, unknown>> }
  const { scope, redirect_uri: redirectUri } = params
  return {
    flow: model === 'DeviceCode' ? 'device' : 'code',
    client: { id: client.id, name: client.name },
    scopes: typeof scope === 'string' && scope !== '' ? scope.split(' ') : client.scopes,
    redirectUri: typeof redirectUri === 'string' ? redirectUri : null,
    expiresAt: new Date(expiresAt).toISOString()
  }
}

function findRequest(
  deps: OAuthAdminDeps,
  code: string
): { readonly record: OAuthRecord; readonly info: OAuthRequestInfo } {
  const record = deps.store.byCode(code)
  const info = record === null ? null : requestOf(deps, record)
  if (record === null || info === null) {
    const next = ['a2a-node a2a oauth ls']
    throw new NodeError(
      'APPROVAL_NOT_FOUND',
      `nobody waits with the code "${shown(code, 32)}"; codes are good for ten minutes, once`,
      {
        next
      }
    )
  }
  return { record, info }
}

async function approve(deps: OAuthAdminDeps, code: string): Promise<OAuthRequestInfo> {
  const { store, issuer, audit } = deps
  const { record, info } = findRequest(deps, code)
  // A concurrent decision finds it decided from here on.
  const decided: OAuthRecord = { ...record, decision: 'allowed' }
  store.replace(decided)
  if (info.flow === 'device') {
    const grantId = await grantOf(deps.provider(), { issuer, info })
    const answer = { accountId: OPERATOR_SUBJECT, grantId, scope: info.scopes.join(' '), resource: issuer }
    store.replace({ ...decided, grantId, body: JSON.stringify({ ...(JSON.parse(record.body) as object), ...answer }) })
  }
  await store.save()
  audit.append({
    kind: 'control',
    code: 'client-approved',
    rule: info.client.id,
    reason: `${info.client.name}: ${info.scopes.join(' ')}`
  })
  return info
}

async function deny(deps: OAuthAdminDeps, code: string): Promise<OAuthRequestInfo> {
  const { store, audit } = deps
  const { record, info } = findRequest(deps, code)
  const answer = info.flow === 'device' ? { error: 'access_denied', errorDescription: 'the operator denied it' } : {}
  store.replace({
    ...record,
    decision: 'denied',
    body: JSON.stringify({ ...(JSON.parse(record.body) as object), ...answer })
  })
  await store.save()
  audit.append({ kind: 'control', code: 'client-denied', rule: info.client.id, reason: info.client.name })
  return info
}

/** Stores the grant of the approved scopes; resolves with its id. */
export async function grantOf(
  provider: Provider,
  { issuer, info }: { readonly issuer: string; readonly info: Pick<OAuthRequestInfo, 'client' | 'scopes'> }
): Promise<string> {
  const grant = new provider.Grant({ accountId: OPERATOR_SUBJECT, clientId: info.client.id })
  grant.addResourceScope(issuer, info.scopes.join(' '))
  return await grant.save()
}
