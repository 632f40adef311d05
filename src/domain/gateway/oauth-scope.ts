import { type Tier, weakest } from '../routing/tier.js'

/** Rights of one scope. Omitted rights are not granted; it then does not limit capabilities. */
export interface ScopeRule {
  /** `read`: see cards and its own tasks. `send`: begin, continue and cancel them. */
  readonly may: readonly ('read' | 'send')[]
  /** At most this powerful; null: the weakest, L3. */
  readonly tier: Tier | null
  /** It may ask for these alone; null: it is no limit. */
  readonly capabilities: readonly string[] | null
}

/** Scopes by name. */
export type ScopeTable = Readonly<Record<string, ScopeRule>>

/** Rights of the holder of a token. */
export interface ScopedPower {
  readonly tier: Tier
  readonly may: readonly ('read' | 'send')[]
  /** null: any. */
  readonly capabilities: readonly string[] | null
}

/** Maximum rights of a client. */
export interface ClientAllowance {
  readonly tier: Tier
  readonly scopes: readonly string[]
}

const SKILL = /^skill:([A-Za-z0-9][A-Za-z0-9._/-]{0,127})$/
const WEAKEST: Tier = 3

/** The scopes that are there without a word of the config. A tier is given only by its own scope. */
export const SCOPES: ScopeTable = {
  'a2a:read': { may: ['read'], tier: null, capabilities: null },
  'a2a:send': { may: ['read', 'send'], tier: null, capabilities: null },
  'a2a:tier:L0': { may: [], tier: 0, capabilities: null },
  'a2a:tier:L1': { may: [], tier: 1, capabilities: null },
  'a2a:tier:L2': { may: [], tier: 2, capabilities: null },
  'a2a:tier:L3': { may: [], tier: 3, capabilities: null }
}

/**
 * Rights of a scope; null for an unknown one. `skill:<capability>` exists for every capability, and only adds that
 * limit.
 */
export function ruleOf(table: ScopeTable, scope: string): ScopeRule | null {
  const skill = SKILL.exec(scope)?.[1]
  if (skill !== undefined) return { may: [], tier: null, capabilities: [skill] }
  return Object.hasOwn(table, scope) ? (table[scope] ?? null) : null
}

/** May a client ask for this scope? One that is not limited to capabilities may limit itself. */
export function mayAsk(table: ScopeTable, { scopes }: ClientAllowance, scope: string): boolean {
  if (ruleOf(table, scope) === null) return false
  return scopes.includes(scope) || (SKILL.test(scope) && limits(table, scopes) === null)
}

/** Rights of a client's token: the rights of its scopes, within the client's own. */
export function powerOfScopes(table: ScopeTable, client: ClientAllowance, scopes: readonly string[]): ScopedPower {
  const own = givenBy(table, client.scopes)
  const asked = givenBy(
    table,
    scopes.filter((one) => mayAsk(table, client, one))
  )
  const inOwn = asked.capabilities?.filter((one) => own.capabilities?.includes(one) ?? true)
  return {
    tier: weakest(weakest(asked.tier, own.tier), client.tier),
    may: asked.may.filter((one) => own.may.includes(one)),
    capabilities: inOwn ?? own.capabilities
  }
}

function givenBy(table: ScopeTable, scopes: readonly string[]): ScopedPower {
  const rules = scopes.flatMap((scope) => ruleOf(table, scope) ?? [])
  const tiers = rules.flatMap(({ tier }) => tier ?? [])
  return {
    tier: tiers.length === 0 ? WEAKEST : (Math.min(...tiers) as Tier),
    may: (['read', 'send'] as const).filter((one) => rules.some(({ may }) => may.includes(one))),
    capabilities: limits(table, scopes)
  }
}

/** The capabilities to which scopes limit; null: they do not. */
function limits(table: ScopeTable, scopes: readonly string[]): readonly string[] | null {
  const all = scopes.flatMap((scope) => ruleOf(table, scope)?.capabilities ?? [])
  const isLimit = scopes.some((scope) => (ruleOf(table, scope)?.capabilities ?? null) !== null)
  return isLimit ? [...new Set(all)] : null
}
