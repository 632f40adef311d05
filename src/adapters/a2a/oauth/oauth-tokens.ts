import { createLocalJWKSet, type JWTPayload, jwtVerify } from 'jose'
import type { Clock } from '../../../kit/clock.js'
import { type ScopeTable, powerOfScopes } from '../../../domain/gateway/oauth-scope.js'
import { weakest, type Tier } from '../../../domain/routing/tier.js'
import type { TokenGrant } from '../../../ports/token-api.js'
import type { TokenHandle } from './oauth-adapter.js'
import type { OAuthKeys } from './oauth-keys.js'
import type { OAuthStore, StoredClient } from './oauth-store.js'

/** Clock tolerance in seconds; small, since this node issues the tokens that it checks. */
const CLOCK_TOLERANCE_SECONDS = 5
/** Required claims of an access token (RFC 9068, section 2.2, and `nbf`). */
const CLAIMS = ['exp', 'nbf', 'iat', 'jti', 'sub', 'client_id', 'scope']

/** Dependencies of {@link AccessTokens}. */
export interface AccessTokenDeps {
  readonly store: OAuthStore
  readonly keys: OAuthKeys
  readonly clock: Clock
  readonly issuer: string
  readonly scopes: ScopeTable
  /** From the current certificate of the node. */
  nodePower(): { readonly tier: Tier; readonly sandboxId: string | null }
}

interface CheckedToken extends TokenHandle {
  readonly sub: string
  readonly scopes: readonly string[]
}

/** Authenticates access tokens, and ends the connections of revoked or expired ones. */
export class AccessTokens {
  readonly #deps: AccessTokenDeps
  readonly #watched = new Set<{ readonly token: CheckedToken; readonly tell: () => void }>()

  constructor(deps: AccessTokenDeps) {
    this.#deps = deps
  }

  /** The grant of a token; null when it is not of this server, not for this gateway, expired or revoked. */
  async admit(text: string): Promise<TokenGrant | null> {
    const token = await this.check(text)
    const client = token === null ? undefined : this.#clientOf(token)
    if (token === null || client === undefined) return null
    const { scopes, nodePower } = this.#deps
    const { tier, may, capabilities } = powerOfScopes(scopes, client, token.scopes)
    const node = nodePower()
    return {
      principal: {
        kind: 'client',
        name: `client ${client.name}`,
        id: `${client.id}/${token.sub}`,
        tier: weakest(tier, node.tier),
        sandboxId: node.sandboxId,
        scopes: may,
        ...(capabilities === null ? {} : { capabilities })
      },
      onEnd: (listener) => this.#hold(token, listener)
    }
  }

  /** Verifies a token of this server; null when invalid or expired. It may still be revoked. */
  async check(text: string): Promise<CheckedToken | null> {
    const { keys, issuer, clock } = this.#deps
    try {
      const { payload } = await jwtVerify(text, createLocalJWKSet(keys.publicKeys), {
        algorithms: ['EdDSA'],
        typ: 'at+jwt',
        issuer,
        audience: issuer,
        requiredClaims: CLAIMS,
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
        currentDate: new Date(clock.now())
      })
      return checked(payload)
    } catch {
      return null
    }
  }

  /** Ends the connections of tokens that are no longer valid. */
  sweep(): void {
    for (const one of this.#watched) {
      if (this.#clientOf(one.token) !== undefined) continue
      this.#watched.delete(one)
      one.tell()
    }
  }

  /** Ends all connections that use tokens. */
  close(): void {
    for (const { tell } of this.#watched) tell()
    this.#watched.clear()
  }

  /** Undefined when the token is no longer valid. */
  #clientOf(token: CheckedToken): StoredClient | undefined {
    const { store, clock } = this.#deps
    return token.endsAt <= clock.now() || store.denials.has(token) ? undefined : store.clients.get(token.clientId)
  }

  #hold(token: CheckedToken, listener: () => void): () => void {
    if (this.#clientOf(token) === undefined) {
      listener()
      return () => {}
    }
    const { clock } = this.#deps
    const timer = clock.after(token.endsAt - clock.now(), () => {
      this.#watched.delete(one)
      listener()
    })
    const one = { token, tell: () => (clock.clear(timer), listener()) }
    this.#watched.add(one)
    return () => {
      clock.clear(timer)
      this.#watched.delete(one)
    }
  }
}

function checked({ jti, sub, exp, iat, client_id: clientId, gid, scope, aud }: JWTPayload): CheckedToken | null {
  // One audience only: another audience of the token could replay it here.
  if (typeof aud !== 'string' || typeof jti !== 'string' || typeof sub !== 'string' || typeof exp !== 'number')
    return null
  if (typeof clientId !== 'string' || typeof scope !== 'string' || typeof iat !== 'number') return null
  const endsAt = (exp + CLOCK_TOLERANCE_SECONDS) * 1000
  return { jti, sub, iat, endsAt, clientId, grantId: typeof gid === 'string' ? gid : null, scopes: scope.split(' ') }
}
