import type { Unsubscribe } from '../kit/events.js'
import type { Tier, TierText } from '../domain/routing/tier.js'
import type { PushCalls } from './push-api.js'
import type { OAuthCalls } from './oauth-api.js'
import type { Principal } from './node-api.js'

/** Rights of a token: `read` (look), `send` (send, call, swarm), `admin` (membership, stop, approvals). */
export type TokenScope = Principal['scopes'][number]

/** One row of `a2a token ls`. Never the token itself: the node keeps only its hash. */
export interface TokenInfo {
  readonly id: string
  readonly name: string
  /** Tier of its callers now: the weaker of its own tier and the tier of this node's certificate. */
  readonly tier: TierText
  readonly sandboxId: string | null
  readonly scopes: readonly TokenScope[]
  readonly createdAt: string
  /** null: until it is revoked. */
  readonly expiresAt: string | null
  /** To ten minutes; null: never. */
  readonly lastUsedAt: string | null
  readonly state: 'active' | 'expired'
}

/** Parameters of `a2a token create`; a token never has more rights than its maker. */
export interface TokenRequest {
  readonly name?: string
  /** Default: L1, or the maker's tier where that is weaker. */
  readonly tier?: Tier
  /** Default: the maker's. */
  readonly sandboxId?: string
  /** Default: `read` and `send`. */
  readonly scopes?: readonly TokenScope[]
  /** From 1 s to 366 days; null: until it is revoked. Default: 90 days. */
  readonly ttlMs?: number | null
}

/** Calls about the tokens of this node's HTTP listener and of its OAuth server, and the webhooks of their clients. */
export interface TokenCalls extends OAuthCalls, PushCalls {
  /** `token` is returned only here. */
  'token.create': { params: TokenRequest; result: TokenInfo & { readonly token: string } }
  'token.list': { params: Record<string, never>; result: { readonly tokens: readonly TokenInfo[] } }
  /** Ends it at once, with its open connections. `id` may be a prefix of at least 4 characters after `tok_`. */
  'token.revoke': { params: { readonly id: string }; result: TokenInfo }
}

/** The rights of a valid token. */
export interface TokenGrant {
  readonly principal: Principal
  /** Calls back once, when it is revoked or expires or the node stops; at once when that has happened. */
  onEnd(listener: () => void): Unsubscribe
}
