import type { Clock } from '../../../kit/clock.js'

/** Most denied tokens and grants of one client; beyond it all its tokens issued so far are denied. */
export const MAX_OAUTH_DENIED = 128

/** Longest configurable life of an access token, in milliseconds, with the clock tolerance. */
export const MAX_ACCESS_TOKEN_MS = 3_660_000

/** Denies all tokens issued up to {@link MAX_ACCESS_TOKEN_MS} before the end of the entry. */
const ALL = 'all'

/** The claims of an access token that decide whether it is revoked. */
export interface DeniableToken {
  readonly clientId: string
  readonly jti: string
  /** The approval, which ends all its tokens at once; null: client credentials, without approval. */
  readonly grantId: string | null
  /** Unix seconds. */
  readonly iat: number
}

/** Client, denied token or grant, end of the denial (unix milliseconds). */
export type Denial = readonly [string, string, number]

/** Denials of revoked access tokens, since the tokens are not stored. Never full, see {@link MAX_OAUTH_DENIED}. */
export class OAuthDenials {
  readonly #clock: Pick<Clock, 'now'>
  /** Ends of denials by client and by token or grant. */
  readonly #byClient = new Map<string, Map<string, number>>()

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
  }

  /** Loads stored denials. */
  load(kept: readonly Denial[]): void {
    for (const [clientId, what, until] of kept) this.#of(clientId).set(what, until)
  }

  /** The denials to store. */
  entries(): readonly Denial[] {
    return [...this.#byClient].flatMap(([clientId, own]) =>
      [...own].map(([what, until]) => [clientId, what, until] as const)
    )
  }

  /** Denies one token. `until`: unix milliseconds. */
  token({ clientId, jti }: Pick<DeniableToken, 'clientId' | 'jti'>, until: number): void {
    this.#deny(clientId, `jti:${jti}`, until)
  }

  /** Denies every token of a grant that may still be in use. */
  grant({ clientId, grantId }: { readonly clientId: string; readonly grantId: string }): void {
    this.#deny(clientId, `grant:${grantId}`, this.#clock.now() + MAX_ACCESS_TOKEN_MS)
  }

  /** Is the token denied now? */
  has({ clientId, jti, grantId, iat }: DeniableToken): boolean {
    const own = this.#byClient.get(clientId)
    if (own === undefined) return false
    const now = this.#clock.now()
    const isOut = (what: string): boolean => (own.get(what) ?? 0) > now
    if (isOut(`jti:${jti}`) || (grantId !== null && isOut(`grant:${grantId}`))) return true
    return isOut(ALL) && iat * 1000 <= (own.get(ALL) ?? 0) - MAX_ACCESS_TOKEN_MS
  }

  /** Drops the denials of a removed client, whose tokens are refused without them. */
  forget(clientId: string): void {
    this.#byClient.delete(clientId)
  }

  /** Drops expired denials. */
  tidy(): void {
    for (const [clientId, own] of this.#byClient) {
      this.#tidyOne(own)
      if (own.size === 0) this.#byClient.delete(clientId)
    }
  }

  #deny(clientId: string, what: string, until: number): void {
    const own = this.#of(clientId)
    if (own.size >= MAX_OAUTH_DENIED && !own.has(what)) this.#tidyOne(own)
    if (own.size >= MAX_OAUTH_DENIED && !own.has(what)) {
      const before = own.get(ALL) ?? 0
      own.clear()
      own.set(ALL, Math.max(before, this.#clock.now() + MAX_ACCESS_TOKEN_MS))
    }
    own.set(what, Math.max(until, own.get(what) ?? 0))
  }

  #of(clientId: string): Map<string, number> {
    const own = this.#byClient.get(clientId) ?? new Map<string, number>()
    this.#byClient.set(clientId, own)
    return own
  }

  #tidyOne(own: Map<string, number>): void {
    const now = this.#clock.now()
    for (const [what, until] of own) if (until <= now) own.delete(what)
  }
}
