import type { Tier, TierText } from '../domain/routing/tier.js'

/** A client that may have tokens of this node's OAuth server. */
export interface OAuthClientInfo {
  readonly id: string
  readonly name: string
  /** A `confidential` one keeps a secret; a `public` one shows by PKCE that it is the one that asked. */
  readonly type: 'confidential' | 'public'
  /** The most powerful tier that a token of it may have, whatever its scopes. */
  readonly tier: TierText
  /** Scopes that it may request, and its scopes when it names none. */
  readonly scopes: readonly string[]
  readonly redirectUris: readonly string[]
  readonly createdAt: string
}

/** Parameters of `a2a client create`. */
export interface OAuthClientRequest {
  readonly name?: string
  /** Default false. */
  readonly isPublic?: boolean
  /** Default: L3. */
  readonly tier?: Tier
  /** Default: `a2a:read`, `a2a:send` and the scope of its tier. */
  readonly scopes?: readonly string[]
  readonly redirectUris?: readonly string[]
}

/** A client that waits for the operator's approval. */
export interface OAuthRequestInfo {
  readonly flow: 'code' | 'device'
  readonly client: { readonly id: string; readonly name: string }
  readonly scopes: readonly string[]
  /** Where the browser is sent with the answer; null in the device flow. */
  readonly redirectUri: string | null
  readonly expiresAt: string
}

/** Calls about the OAuth server of this node. */
export interface OAuthCalls {
  /** `secret` is returned only here; null for a public client. */
  'oauth.client.create': {
    params: OAuthClientRequest
    result: OAuthClientInfo & { readonly secret: string | null; readonly issuer: string }
  }
  'oauth.client.list': { params: Record<string, never>; result: { readonly clients: readonly OAuthClientInfo[] } }
  /** Ends it at once, with all its tokens and its open connections. */
  'oauth.client.revoke': { params: { readonly id: string }; result: OAuthClientInfo }
  'oauth.requests': { params: Record<string, never>; result: { readonly requests: readonly OAuthRequestInfo[] } }
  /** `code`: as shown in the browser or on the device. */
  'oauth.show': { params: { readonly code: string }; result: OAuthRequestInfo }
  'oauth.approve': { params: { readonly code: string }; result: OAuthRequestInfo }
  'oauth.deny': { params: { readonly code: string }; result: OAuthRequestInfo }
  /** Signs with a new key from now on; tokens signed before are good until they expire. */
  'oauth.rotate': { params: Record<string, never>; result: { readonly kid: string; readonly keys: number } }
}

/** Operations of the operator on the OAuth server. Errors are NodeError. */
export type OAuthAdmin = {
  readonly [N in keyof OAuthCalls]: (params: OAuthCalls[N]['params']) => Promise<OAuthCalls[N]['result']>
}
