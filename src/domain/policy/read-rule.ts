import { isRecord } from '../../kit/json.js'
import { nearest, shown } from '../../kit/text.js'
import { agentIdSchema, lineSchema, sandboxIdSchema } from '../card/schema.js'
import { SIDE_EFFECTS } from '../card/card.js'
import { MESSAGE_TYPES, OPENING_TYPES } from '../envelope/envelope.js'
import { tierFromText } from '../routing/tier.js'
import { ANYBODY, type PartyCriteria, type PolicyRule } from './rule.js'

/** Rules of one policy. */
export const MAX_RULES = 1000
const MAX_VALUES = 256
/** Displayed characters of a wrong value. */
const MAX_SHOWN = 64

/** A fault of a rule, in words for its author. */
export interface RuleFault {
  /** Keys and places in lists that lead to it; empty for the rule itself. */
  readonly path: readonly (string | number)[]
  readonly reason: string
}

/** A rule as it was read; null when it has a fault. */
export interface RuleReading {
  readonly rule: Omit<PolicyRule, 'line'> | null
  readonly faults: readonly RuleFault[]
}

/** One kind of value: its allowed values in words, and its reader (undefined: it does not fit). */
interface Kind<T> {
  readonly takes: string
  read(value: unknown): T | undefined
  /** The nearest valid value for a wrong one. */
  near?(value: unknown): string | undefined
}

const openingTypes = MESSAGE_TYPES.filter((type) => OPENING_TYPES.has(type))
const CAPABILITY = /^(?=.)[!-)+-?A-~]{0,128}\*?$/
const RULE_NAME = /^[a-z0-9._-]{1,64}$/

const KINDS = {
  node: fitting('the name or the id of a node', (value) => lineSchema(64).safeParse(value).success),
  agent: fitting('the id of an agent (a-z 0-9 . _ -)', (value) => agentIdSchema.safeParse(value).success),
  tier: {
    takes: 'L0, L1, L2 or L3',
    read: (value) => (typeof value === 'string' ? (tierFromText(value) ?? undefined) : undefined),
    near: (value) => (typeof value === 'number' && value >= 0 && value <= 3 ? `L${value}` : undefined)
  } satisfies Kind<NonNullable<PartyCriteria['tier']>[number]>,
  sandbox: {
    takes: 'the id of a sandbox, or null for none',
    read: (value) => (value === null || sandboxIdSchema.safeParse(value).success ? (value as string | null) : undefined)
  } satisfies Kind<string | null>,
  trust: words(['mine', 'guest'] as const),
  capability: fitting('the id of a capability, or its beginning with a * at the end', (value) =>
    CAPABILITY.test(value)
  ),
  type: { ...words(openingTypes, ', '), takes: `${openingTypes.join(', ')}: replies pass along their exchange` },
  sideEffect: words(SIDE_EFFECTS),
  decision: words(['allow', 'ask', 'deny'] as const),
  name: fitting('a name of your own for the rule (a-z 0-9 . _ -)', (value) => RULE_NAME.test(value))
}

const RULE_KEYS = ['name', 'from', 'to', 'capability', 'type', 'sideEffect', 'decision']
const PARTY_KEYS: readonly string[] = [
  'node',
  'agent',
  'tier',
  'sandbox',
  'trust'
] satisfies readonly (keyof PartyCriteria)[]

/**
 * Reads one rule of a policy file: criteria take one value or a list; a missing one fits anything. Reports every fault.
 * Never throws.
 */
export function readRule(value: unknown): RuleReading {
  const faults: RuleFault[] = []
  if (!isRecord(value))
    return { rule: null, faults: [{ path: [], reason: 'a rule is a mapping with the key decision' }] }
  faults.push(...unknownKeys(value, { known: RULE_KEYS, of: 'a rule', path: [] }))
  const party = (side: 'from' | 'to'): PartyCriteria => readParty(value, side, faults)
  const one = <T>(key: string, kind: Kind<T>): readonly T[] | null =>
    some({ record: value, key, path: [key] }, kind, faults)
  const name = value['name'] === undefined ? null : single(value['name'], { kind: KINDS.name, path: ['name'] }, faults)
  const criteria = { from: party('from'), to: party('to'), capability: one('capability', KINDS.capability) }
  const rest = { type: one('type', KINDS.type), sideEffect: one('sideEffect', KINDS.sideEffect) }
  const decision = single(value['decision'], { kind: KINDS.decision, path: ['decision'] }, faults)
  if (faults.length > 0 || decision === null) return { rule: null, faults }
  return { rule: { ...(name === null ? {} : { name }), ...criteria, ...rest, decision }, faults }
}

/** Faults of the keys of a mapping that are none of those known, each with the one that may be meant. */
export function unknownKeys(
  record: Readonly<Record<string, unknown>>,
  { known, of, path }: { readonly known: readonly string[]; readonly of: string; readonly path: RuleFault['path'] }
): RuleFault[] {
  const strange = Object.keys(record).filter((key) => !known.includes(key))
  return strange.map((key) => {
    const reason = `${of} has no key ${JSON.stringify(shown(key, MAX_SHOWN))}${meant(nearest(key, known)[0])} (${known.join(', ')})`
    return { path: [...path, key], reason }
  })
}

function readParty(rule: Readonly<Record<string, unknown>>, side: 'from' | 'to', faults: RuleFault[]): PartyCriteria {
  const value = rule[side]
  if (value === undefined) return ANYBODY
  if (!isRecord(value)) {
    const near =
      typeof value === 'string'
        ? `{ ${tierFromText(value) === null ? 'node' : 'tier'}: ${shown(value, MAX_SHOWN)} }`
        : undefined
    faults.push({ path: [side], reason: misfit(side, { takes: `criteria (${PARTY_KEYS.join(', ')})`, value, near }) })
    return ANYBODY
  }
  faults.push(...unknownKeys(value, { known: PARTY_KEYS, of: side, path: [side] }))
  const one = <T>(key: string, kind: Kind<T>): readonly T[] | null =>
    some({ record: value, key, path: [side, key] }, kind, faults)
  const trust = one('trust', KINDS.trust)
  return {
    ...(trust === null ? {} : { trust }),
    node: one('node', KINDS.node),
    agent: one('agent', KINDS.agent),
    tier: one('tier', KINDS.tier),
    sandbox: one('sandbox', KINDS.sandbox)
  }
}

/** One value or a list of them; null: the key is left out, so any will do. */
function some<T>(
  {
    record,
    key,
    path
  }: { readonly record: Readonly<Record<string, unknown>>; readonly key: string; readonly path: RuleFault['path'] },
  kind: Kind<T>,
  faults: RuleFault[]
): readonly T[] | null {
  const value = record[key]
  if (value === undefined) return null
  const list: readonly unknown[] | null = Array.isArray(value) ? value : null
  if (list?.length === 0)
    faults.push({ path, reason: `${path.join('.')}: the list is empty; leave the key out for any` })
  if (list !== null && list.length > MAX_VALUES)
    faults.push({ path, reason: `${path.join('.')}: takes at most ${MAX_VALUES} values` })
  const read = (list ?? [value]).slice(0, MAX_VALUES).map((one, at) => {
    return single(one, { kind, path, at: list === null ? [] : [at] }, faults)
  })
  return read as readonly T[]
}

function single<T>(
  value: unknown,
  {
    kind,
    path,
    at = []
  }: { readonly kind: Kind<T>; readonly path: RuleFault['path']; readonly at?: readonly number[] },
  faults: RuleFault[]
): T | null {
  const read = kind.read(value)
  if (read !== undefined) return read
  faults.push({
    path: [...path, ...at],
    reason: misfit(path.join('.'), { takes: kind.takes, value, near: kind.near?.(value) })
  })
  return null
}

function misfit(
  field: string,
  { takes, value, near }: { readonly takes: string; readonly value: unknown; readonly near: string | undefined }
): string {
  return `${field}: takes ${takes}; ${valueText(value)}${meant(near)}`
}

function meant(near: string | undefined): string {
  return near === undefined ? '' : `; did you mean ${near}?`
}

function valueText(value: unknown): string {
  if (value === undefined) return 'it is missing'
  if (value === null) return 'it has no value'
  if (typeof value === 'string') return `${JSON.stringify(shown(value, MAX_SHOWN))} does not fit`
  if (typeof value === 'object') return `${Array.isArray(value) ? 'a list' : 'a mapping'} does not fit`
  return `${JSON.stringify(value) ?? 'it'} is no text (put it in quotes)`
}

function fitting(takes: string, isFit: (value: string) => boolean): Kind<string> {
  const fits = (value: unknown): value is string => typeof value === 'string' && isFit(value)
  const small = (value: unknown): unknown => (typeof value === 'string' ? value.toLowerCase() : value)
  return {
    takes,
    read: (value) => (fits(value) ? value : undefined),
    near: (value) => {
      const other = small(value)
      return fits(other) ? other : undefined
    }
  }
}

function words<T extends string>(list: readonly T[], last = ' or '): Kind<T> {
  return {
    takes: `${list.slice(0, -1).join(', ')}${last}${list.at(-1) ?? ''}`,
    read: (value) => list.find((one) => one === value),
    near: (value) => (typeof value === 'string' ? nearest(value, list)[0] : undefined)
  }
}
