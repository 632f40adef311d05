import { IncomingMessage, type ServerResponse } from 'node:http'
import type { Provider } from 'oidc-provider'
import type { KnownClients } from '../../../ports/gateway.js'
import type { OAuthAdmin, OAuthRequestInfo } from '../../../ports/oauth-api.js'
import { answerJson } from '../server/gateway-route.js'
import { consentCode, DEVICE_GRANT, type TokenHandle } from './oauth-adapter.js'
import { createOAuthAdmin, type OAuthAdminDeps, grantOf } from './oauth-admin.js'
import { OAuthKeys } from './oauth-keys.js'
import { OAuthLimit } from './oauth-limit.js'
import { answerPage, SAFE_HEADERS, waitingPage } from './oauth-page.js'
import {
  CONSENT_PATH,
  loadOidc,
  makeProvider,
  OAUTH_PATHS,
  OPERATOR_SUBJECT,
  type OAuthServerDeps
} from './oauth-provider.js'
import { OAuthStore } from './oauth-store.js'
import { AccessTokens, type AccessTokenDeps } from './oauth-tokens.js'

/** Largest body of a request to the OAuth server, in bytes. */
export const MAX_OAUTH_BODY = 16_384
/** Interval of the check whether the signing key is due, in milliseconds. */
const KEY_CHECK_MS = 3_600_000

/** One request without authentication by the listener. */
export interface OAuthCall {
  readonly path: string
  readonly query: string
  readBody(): Promise<Buffer>
}

/** Dependencies and settings of {@link OAuthServer}. */
export type OAuthOpening = Omit<OAuthServerDeps, 'keys' | 'handles' | 'store'> &
  Omit<AccessTokenDeps, 'keys' | 'store'> &
  Omit<OAuthAdminDeps, 'keys' | 'store' | 'tokens' | 'provider' | 'rotate'> & {
    readonly home: ConstructorParameters<typeof OAuthStore>[0]
    readonly keyDays: number
    /** First words of a command line for this node. */
    readonly command: string
  }

/** Issues and checks the tokens of clients, with approval by the operator. */
export class OAuthServer {
  readonly tokens: AccessTokens
  readonly admin: OAuthAdmin
  readonly clients: KnownClients
  readonly #opening: OAuthOpening
  readonly #store: OAuthStore
  readonly #keys: OAuthKeys
  readonly #handles = new Map<string, TokenHandle>()
  readonly #limit: OAuthLimit
  readonly #library: Awaited<ReturnType<typeof loadOidc>>
  #provider: Provider
  #stopTimer: () => void = () => {}

  private constructor(
    opening: OAuthOpening,
    made: Pick<OAuthAdminDeps, 'store' | 'keys'> & { readonly library: Awaited<ReturnType<typeof loadOidc>> }
  ) {
    this.#opening = opening
    this.#store = made.store
    this.#keys = made.keys
    this.#library = made.library
    this.#limit = new OAuthLimit(made.store, opening.clock)
    this.clients = made.store.known
    this.tokens = new AccessTokens({ ...opening, ...made })
    this.#provider = this.#makeProvider()
    this.admin = createOAuthAdmin({
      ...opening,
      ...made,
      tokens: this.tokens,
      provider: () => this.#provider,
      rotate: () => this.#rotate()
    })
  }

  /** @throws NodeError STORE_DAMAGED, DISK_FULL, NO_PERMISSION */
  static async open(opening: OAuthOpening): Promise<OAuthServer> {
    const store = new OAuthStore(opening.home, opening.clock)
    await store.open()
    const keys = new OAuthKeys(store, opening)
    if (store.cookieKey === '') store.cookieKey = Buffer.from(opening.secret()).toString('base64url')
    if (keys.isDue) await keys.rotate()
    const server = new OAuthServer(opening, { store, keys, library: await loadOidc() })
    const timer = opening.clock.every(KEY_CHECK_MS, () => {
      if (keys.isDue) server.#rotate().catch((error: unknown) => opening.onFault(error))
    })
    server.#stopTimer = () => opening.clock.clear(timer)
    return server
  }

  /** Ends connections that use its tokens. */
  close(): void {
    this.#stopTimer()
    this.tokens.close()
  }

  /** First words of a command line for this node. */
  get command(): string {
    return this.#opening.command
  }

  /** Metadata of the authorization server (RFC 8414). */
  get metadata(): object {
    const { issuer, scopes } = this.#opening
    return {
      issuer,
      authorization_endpoint: issuer + OAUTH_PATHS.authorization,
      token_endpoint: issuer + OAUTH_PATHS.token,
      revocation_endpoint: issuer + OAUTH_PATHS.revocation,
      device_authorization_endpoint: issuer + OAUTH_PATHS.device_authorization,
      jwks_uri: issuer + OAUTH_PATHS.jwks,
      scopes_supported: Object.keys(scopes),
      response_types_supported: ['code'],
      response_modes_supported: ['query'],
      grant_types_supported: ['authorization_code', 'client_credentials', 'refresh_token', DEVICE_GRANT],
      token_endpoint_auth_methods_supported: ['client_secret_basic', 'none'],
      revocation_endpoint_auth_methods_supported: ['client_secret_basic', 'none'],
      code_challenge_methods_supported: ['S256'],
      authorization_response_iss_parameter_supported: true
    }
  }

  /** Metadata of the gateway as a protected resource (RFC 9728). */
  get resource(): object {
    const { issuer, scopes } = this.#opening
    return {
      resource: issuer,
      authorization_servers: [issuer],
      scopes_supported: Object.keys(scopes),
      bearer_methods_supported: ['header'],
      resource_name: 'a2a-node: A2A gateway'
    }
  }

  /** Answers a request to a path of {@link OAUTH_PATHS}, or below the authorization path. */
  async handle(request: IncomingMessage, response: ServerResponse, call: OAuthCall): Promise<void> {
    const body = request.method === 'POST' ? await call.readBody() : Buffer.alloc(0)
    const params = new URLSearchParams(request.method === 'POST' ? body.toString() : call.query)
    const refusal = this.#limit.refusal({ path: call.path, headers: request.headers, params })
    if (refusal !== null) {
      const { status, error, retryAfterSeconds } = refusal
      response.setHeader('retry-after', String(retryAfterSeconds))
      return refuse(response, `too many requests: try again in ${retryAfterSeconds} s`, { status, error })
    }
    // The library would answer an unsupported mode by that mode, a form or a fragment.
    if (new URLSearchParams(call.query).getAll('response_mode').some((mode) => mode !== 'query')) {
      return refuse(response, 'the one response_mode is query')
    }
    if (call.path === OAUTH_PATHS.revocation) return await this.#revoke(request, response, { call, body })
    await this.#provide(this.#asked(request, call, body), response)
  }

  /** Answers the browser that waits for the operator. */
  async consent(request: IncomingMessage, response: ServerResponse, call: OAuthCall): Promise<void> {
    const uid = call.path.slice(CONSENT_PATH.length)
    const asked = this.#asked(request, call, Buffer.alloc(0))
    // A cookie binds the sign-in to the browser: the URL alone reveals nothing.
    const interaction = await this.#provider.interactionDetails(asked, response).catch(() => null)
    const record = interaction?.uid === uid ? (this.#store.find('Interaction', uid)?.record ?? null) : null
    const client = this.#store.clients.get(record?.clientId ?? '')
    if (interaction === null || record === null || client === undefined) {
      return refuse(response, 'this sign-in is over, or was begun in another browser: begin it again')
    }
    const { scope, redirect_uri: redirectUri } = interaction.params
    const info: OAuthRequestInfo = {
      flow: 'code',
      client,
      scopes: typeof scope === 'string' ? scope.split(' ') : [],
      redirectUri: String(redirectUri),
      expiresAt: new Date(record.expiresAt).toISOString()
    }
    if (record.decision === null)
      return answerPage(response, waitingPage(this.#opening.command, consentCode(uid), info))
    // Else each reload of the page would make a grant, and their number is limited.
    const grantId = async (): Promise<string> =>
      interaction.result?.consent?.grantId ?? (await grantOf(this.#provider, { issuer: this.#opening.issuer, info }))
    const result =
      record.decision === 'denied'
        ? { error: 'access_denied', error_description: 'the operator denied it' }
        : { login: { accountId: OPERATOR_SUBJECT, remember: false }, consent: { grantId: await grantId() } }
    setSafe(response)
    await this.#provider.interactionFinished(asked, response, result, { mergeWithLastSubmission: false })
  }

  /**
   * Access tokens are not stored: a handle replaces the token, so the library checks its client as for other tokens.
   */
  async #revoke(
    request: IncomingMessage,
    response: ServerResponse,
    { call, body }: { readonly call: OAuthCall; readonly body: Buffer }
  ): Promise<void> {
    const form = new URLSearchParams(body.toString())
    const [token = '', ...more] = form.getAll('token')
    if (more.length > 0 || !/^[\w-]+\.[\w-]+\.[\w-]+$/.test(token))
      return await this.#provide(this.#asked(request, call, body), response)
    const name = `handle-${Buffer.from(this.#opening.secret()).toString('base64url')}`
    const known = await this.tokens.check(token)
    // An authenticated client gets the same answer for an expired token.
    if (known !== null) this.#handles.set(name, known)
    form.set('token', name)
    await this.#provide(this.#asked(request, call, Buffer.from(form.toString())), response).finally(() =>
      this.#handles.delete(name)
    )
  }

  async #provide(asked: IncomingMessage, response: ServerResponse): Promise<void> {
    setSafe(response)
    await this.#provider.callback()(asked, response)
    // Ends connections of tokens revoked by this request.
    this.tokens.sweep()
  }

  /** The request for the provider: a bounded body, the host of the issuer, no headers of proxies. */
  #asked({ socket, method, headers }: IncomingMessage, { path, query }: OAuthCall, body: Buffer): IncomingMessage {
    const { protocol, host } = new URL(this.#opening.issuer)
    const asked = new IncomingMessage(socket)
    asked.method = method ?? 'GET'
    asked.url = query === '' ? path : `${path}?${query}`
    asked.headers = {
      host,
      'x-forwarded-host': host,
      'x-forwarded-proto': protocol.slice(0, -1),
      // Errors are JSON for all clients.
      accept: 'application/json',
      ...(body.length === 0 ? {} : { 'content-length': String(body.length) })
    }
    for (const name of ['content-type', 'authorization', 'cookie'] as const) {
      const value = headers[name]
      if (value !== undefined) asked.headers[name] = value
    }
    // Else its destruction would close the connection.
    asked.complete = true
    asked.push(body.length === 0 ? null : body)
    if (body.length > 0) asked.push(null)
    return asked
  }

  async #rotate(): Promise<string> {
    const kid = await this.#keys.rotate()
    this.#provider = this.#makeProvider()
    return kid
  }

  #makeProvider(): Provider {
    return makeProvider(this.#library, {
      ...this.#opening,
      store: this.#store,
      keys: this.#keys,
      handles: this.#handles
    })
  }
}

/** Answers with an OAuth error. */
function refuse(
  response: ServerResponse,
  why: string,
  { status, error } = { status: 400, error: 'invalid_request' }
): void {
  setSafe(response)
  answerJson(response, status, { error, error_description: why })
}

function setSafe(response: ServerResponse): void {
  for (const [name, value] of Object.entries(SAFE_HEADERS)) response.setHeader(name, value)
}
