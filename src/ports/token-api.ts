import type { Unsubscribe } from '../kit/events.js'
import type { Tier, TierText } from '../domain/routing/tier.js'
import type { PushCalls } from './push-api.js'
import type { OAuthCalls } from './oauth-api.js'
import type { Principal } from './node-api.js'

/** What a token may do: `read` (look), `send` (send, call, swarm), `admin` (membership, stop, approvals). */
export type TokenScope = Principal['scopes'][number]

/** One row of `a2a token ls`. Never the token itself: the node keeps only its hash. */
export interface TokenInfo {
  readonly id: string
  readonly name: string
  /** Of who calls with it now: the weaker of what it was made for and of this node's certificate. */
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

/** What is asked of `a2a token create`. What is left out is the operator's own, without an end. */
export interface TokenRequest {
  readonly name?: string
  readonly tier?: Tier
  readonly sandboxId?: string
  /** Default: all; `read` and `send` alone where a weaker tier or a sandbox is asked for. */
  readonly scopes?: readonly TokenScope[]
  readonly ttlMs?: number
}

/** Calls about the tokens of this node's HTTP listener, its own and those of its OAuth server, and the webhooks of who comes with them. */
export interface TokenCalls extends OAuthCalls, PushCalls {
  /** `token` is told this once. */
  'token.create': { params: TokenRequest; result: TokenInfo & { readonly token: string } }
  'token.list': { params: Record<string, never>; result: { readonly tokens: readonly TokenInfo[] } }
  /** Ends it at once, with what is open under it. `id` may be a beginning of at least 4 characters after `tok_`. */
  'token.revoke': { params: { readonly id: string }; result: TokenInfo }
}

/** A token that was good when it was shown. */
export interface TokenGrant {
  readonly principal: Principal
  /** Calls back once, when it is revoked or expires or the node stops; at once when that has happened. */
  onEnd(listener: () => void): Unsubscribe
}
