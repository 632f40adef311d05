import type { IncomingHttpHeaders } from 'node:http'
import type { Clock } from '../../../kit/clock.js'
import { type RateLimit, RateTable } from '../../../kit/rate.js'
import { OAUTH_PATHS } from './oauth-provider.js'
import { hashText, type OAuthStore } from './oauth-store.js'

/** Rate of a client that proves itself by its secret, a code or a refresh token. */
export const OAUTH_CLIENT_RATE: RateLimit = { perSecond: 20, burst: 200 }
/** Rate of requests that name a client without proof, such as the start of a sign-in in a browser. */
export const OAUTH_SIGN_IN_RATE: RateLimit = { perSecond: 2, burst: 60 }
/** Total rate of all requests that name no client of this node. */
export const OAUTH_STRANGER_RATE: RateLimit = { perSecond: 2, burst: 60 }
/** Rate of polls for one device code; the advised interval is five seconds (RFC 8628). */
export const OAUTH_POLL_RATE: RateLimit = { perSecond: 0.25, burst: 5 }

/** Parameters that carry a proof of the client, with their models in the store. */
const SHOWN = [
  ['code', 'AuthorizationCode'],
  ['refresh_token', 'RefreshToken'],
  ['device_code', 'DeviceCode'],
  ['token', 'RefreshToken']
] as const

/** An incoming request. */
export interface OAuthAsk {
  readonly path: string
  readonly headers: Pick<IncomingHttpHeaders, 'authorization'>
  /** Parameters of the form of a POST, else of the query. */
  readonly params: URLSearchParams
}

/** The answer to a request beyond its rate. */
export interface OAuthRefusal {
  readonly status: 400 | 429
  readonly error: 'slow_down' | 'temporarily_unavailable'
  readonly retryAfterSeconds: number
}

/** Limits the rate of each client. Requests without proof, and those of unknown clients, use separate budgets. */
export class OAuthLimit {
  readonly #store: OAuthStore
  readonly #clients: RateTable
  readonly #signIns: RateTable
  readonly #strangers: RateTable
  readonly #polls: RateTable

  constructor(store: OAuthStore, clock: Clock) {
    this.#store = store
    this.#clients = new RateTable(OAUTH_CLIENT_RATE, clock)
    this.#signIns = new RateTable(OAUTH_SIGN_IN_RATE, clock)
    this.#strangers = new RateTable(OAUTH_STRANGER_RATE, clock)
    this.#polls = new RateTable(OAUTH_POLL_RATE, clock)
  }

  /** Counts a request; null when it may go on. */
  refusal(ask: OAuthAsk): OAuthRefusal | null {
    if (!LIMITED.has(ask.path)) return null
    const { id, secret } = namedBy(ask)
    const client = this.#store.clients.get(id)
    if (client === undefined) return tooMany(this.#strangers, 'strangers')
    const shown = SHOWN.flatMap(([name, model]) => this.#store.find(model, ask.params.get(name) ?? '')?.record ?? [])
    const own = shown.find(({ clientId }) => clientId === id)
    if (own === undefined && (client.secret === null || secret === null || hashText(secret) !== client.secret))
      return tooMany(this.#signIns, id)
    if (own?.model === 'DeviceCode' && !this.#polls.take(own.key))
      return { status: 400, error: 'slow_down', retryAfterSeconds: 5 }
    return tooMany(this.#clients, id)
  }
}

/** Paths that cost work or storage; the other paths need results of these. */
const LIMITED: ReadonlySet<string> = new Set([
  OAUTH_PATHS.authorization,
  OAUTH_PATHS.token,
  OAUTH_PATHS.revocation,
  OAUTH_PATHS.device_authorization
])

function tooMany(table: RateTable, key: string): OAuthRefusal | null {
  if (table.take(key)) return null
  return {
    status: 429,
    error: 'temporarily_unavailable',
    retryAfterSeconds: Math.max(1, Math.ceil(table.waitMs(key) / 1000))
  }
}

/** The client that a request names, with its secret. */
function namedBy({ headers, params }: OAuthAsk): { readonly id: string; readonly secret: string | null } {
  const [, encoded] = /^Basic ([\w+/=-]+)$/i.exec(headers.authorization ?? '') ?? []
  if (encoded === undefined) return { id: params.get('client_id') ?? '', secret: null }
  const text = Buffer.from(encoded, 'base64').toString()
  const at = text.indexOf(':')
  return { id: decoded(text.slice(0, Math.max(0, at))), secret: decoded(text.slice(at + 1)) }
}

/** Both are encoded as in a form (RFC 6749, section 2.3.1). */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return ''
  }
}
