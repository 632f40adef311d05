import type { Clock } from '../../../kit/clock.js'

/** Tokens and grants of one client that are refused before they expire; beyond it all tokens that it got so far are. */
export const MAX_OAUTH_DENIED = 128

/** Longest life that the config may give to an access token, in milliseconds, and what clocks may differ. */
export const MAX_ACCESS_TOKEN_MS = 3_660_000

/** Stands for all tokens that a client got up to {@link MAX_ACCESS_TOKEN_MS} before the end of the entry. */
const ALL = 'all'

/** What decides whether an access token was revoked. */
export interface DeniableToken {
  readonly clientId: string
  readonly jti: string
  /** By which all tokens of one approval are ended at once; null: it was the client's own. */
  readonly grantId: string | null
  /** Unix seconds. */
  readonly iat: number
}

/** Client, what of it is refused, and until when (unix milliseconds). */
export type Denial = readonly [string, string, number]

/** Access tokens that were revoked: they are kept nowhere, so what is not good any more is. There is always room for one more. */
export class OAuthDenials {
  readonly #clock: Pick<Clock, 'now'>
  /** Ends of what is refused, by client. */
  readonly #byClient = new Map<string, Map<string, number>>()

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
  }

  /** Takes what was kept. */
  load(kept: readonly Denial[]): void {
    for (const [clientId, what, until] of kept) this.#of(clientId).set(what, until)
  }

  /** What is to be kept. */
  entries(): readonly Denial[] {
    return [...this.#byClient].flatMap(([clientId, own]) => [...own].map(([what, until]) => [clientId, what, until] as const))
  }

  /** Refuses one token, until `until`. */
  token({ clientId, jti }: Pick<DeniableToken, 'clientId' | 'jti'>, until: number): void {
    this.#deny(clientId, `jti:${jti}`, until)
  }

  /** Refuses every token of a grant that may be out. */
  grant({ clientId, grantId }: { readonly clientId: string; readonly grantId: string }): void {
    this.#deny(clientId, `grant:${grantId}`, this.#clock.now() + MAX_ACCESS_TOKEN_MS)
  }

  /** Is it refused now? */
  has({ clientId, jti, grantId, iat }: DeniableToken): boolean {
    const own = this.#byClient.get(clientId)
    if (own === undefined) return false
    const now = this.#clock.now()
    const isOut = (what: string): boolean => (own.get(what) ?? 0) > now
    if (isOut(`jti:${jti}`) || (grantId !== null && isOut(`grant:${grantId}`))) return true
    return isOut(ALL) && iat * 1000 <= (own.get(ALL) ?? 0) - MAX_ACCESS_TOKEN_MS
  }

  /** A client is gone, and all its tokens with it. */
  forget(clientId: string): void {
    this.#byClient.delete(clientId)
  }

  /** Forgets what has expired anyhow. */
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
