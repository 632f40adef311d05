import type { TokenGrant } from '../../ports/token-api.js'

const BEARER = /^bearer ([A-Za-z0-9._~+/-]{1,4096}=*)$/i

/** The reason for a request without a token. */
export const NO_TOKEN = 'a token is needed: Authorization: Bearer <token>'

/** Outcome of checking the token of a request: a wrong token differs from none. */
export interface Authorized {
  readonly grant: TokenGrant | null
  /** Why there is no grant; null: there is one. */
  readonly reason: string | null
}

/** Checks tokens. */
export interface TokenCheck {
  /** The grant of a token; null for an unknown one. */
  admit(token: string): TokenGrant | null | Promise<TokenGrant | null>
}

const WITHOUT_TOKEN: Authorized = { grant: null, reason: NO_TOKEN }

/**
 * The rights by the `Authorization` headers of a request. Synchronous unless the token check is not, so that no request
 * behind a refused one runs.
 */
export function authorize({ admit }: TokenCheck, headers: readonly string[]): Authorized | Promise<Authorized> {
  const [header] = headers
  if (header === undefined) return WITHOUT_TOKEN
  const token = BEARER.exec(header)?.[1]
  const found = token === undefined || headers.length > 1 ? null : admit(token)
  return found instanceof Promise ? found.then(authorized) : authorized(found)
}

function authorized(grant: TokenGrant | null): Authorized {
  return grant === null
    ? { grant, reason: 'the token is not one of this node, or not any more' }
    : { grant, reason: null }
}
