import { z } from 'zod'

/** Rights of one OAuth scope of the config. */
export interface OAuthScopeSetting {
  readonly may: readonly ('read' | 'send')[]
  readonly tier: 'L0' | 'L1' | 'L2' | 'L3' | null
  readonly capabilities: readonly string[] | null
}

/** `a2a.oauth`. */
export interface OAuthSetting {
  readonly enabled: boolean
  /** Where clients reach this node, when that is neither `http.publicUrl` nor the listener itself; null: there. */
  readonly issuer: string | null
  readonly accessTokenSeconds: number
  readonly refreshTokenDays: number
  readonly keyDays: number
  readonly scopes: Readonly<Record<string, OAuthScopeSetting>>
}

/** Scopes that the config may add. */
export const MAX_OAUTH_SCOPES = 64

/** As shipped: off. */
export const OAUTH: OAuthSetting = {
  enabled: false,
  issuer: null,
  accessTokenSeconds: 600,
  refreshTokenDays: 30,
  keyDays: 90,
  scopes: {}
}

const whole = (fallback: number, [min, max]: readonly [number, number]): z.ZodType<number> =>
  z
    .int('must be a whole number')
    .min(min, `must be at least ${min}`)
    .max(max, `must be at most ${max}`)
    .default(fallback)

const capability = z
  .string('must be text')
  .regex(/^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$/, 'must be the id of a capability')

const scope: z.ZodType<OAuthScopeSetting> = z.strictObject(
  {
    may: z
      .array(z.enum(['read', 'send'], 'must be read or send'), 'must be a list')
      .max(2)
      .default([]),
    tier: z.enum(['L0', 'L1', 'L2', 'L3'], 'must be L0, L1, L2 or L3').nullable().default(null),
    capabilities: z.array(capability, 'must be a list').max(256, 'has more than 256').nullable().default(null)
  },
  { error: (issue) => (issue.code === 'invalid_type' ? 'must be a mapping of may, tier and capabilities' : undefined) }
)

/** Names of scopes that are this node's own. */
const TAKEN = /^(?:a2a:|skill:)/

/** `a2a.oauth`. */
export const oauthSchema: z.ZodType<OAuthSetting> = z.strictObject(
  {
    enabled: z.boolean('must be true or false').default(OAUTH.enabled),
    issuer: z
      .string('must be text')
      .max(256)
      .refine(isIssuer, 'must be https://host[:port], or http:// of this machine, without a path')
      .nullable()
      .default(OAUTH.issuer),
    accessTokenSeconds: whole(OAUTH.accessTokenSeconds, [60, 3600]),
    refreshTokenDays: whole(OAUTH.refreshTokenDays, [1, 365]),
    keyDays: whole(OAUTH.keyDays, [1, 365]),
    scopes: z
      .record(
        z
          .string()
          .regex(/^[a-z][A-Za-z0-9:._-]{0,63}$/, 'must be a name of letters, digits and : . _ -')
          .refine((name) => !TAKEN.test(name), "must not begin with a2a: or skill:, which are this node's own"),
        scope
      )
      .refine((all) => Object.keys(all).length <= MAX_OAUTH_SCOPES, `has more than ${MAX_OAUTH_SCOPES} scopes`)
      .default({})
  },
  {
    error: (issue) =>
      issue.code === 'invalid_type'
        ? 'must be a mapping of enabled, issuer, accessTokenSeconds, refreshTokenDays, keyDays and scopes'
        : undefined
  }
)

/** May it be an issuer? An origin: tokens must not travel unencrypted beyond the machine. */
export function isIssuer(text: string): boolean {
  return (
    /^https:\/\/[a-z0-9.-]{1,253}(?::\d{1,5})?$/.test(text) ||
    /^http:\/\/(?:127\.0\.0\.1|\[::1\]|localhost)(?::\d{1,5})?$/.test(text)
  )
}
