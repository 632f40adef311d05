import { tierFromText, type Tier } from '../adapters/control/terms.js'
import { NodeError } from '../kit/errors.js'
import { jsonFault, type JsonLimits, jsonSyntaxReason, SIZED_LIMITS } from '../kit/json.js'
import { formatDuration, parseDuration } from '../kit/units.js'
import type { TokenScope } from '../ports/token-api.js'

const LONGEST_MS = 30 * 86_400_000
const SCOPES: readonly TokenScope[] = ['read', 'send', 'admin']
const SANDBOX_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/

/** Options of one command line, as commander gives them. */
export type Options = Readonly<Record<string, unknown>>

/** The text of an option; undefined when it was not given. */
export function textOption(options: Options, name: string): string | undefined {
  const value = options[name]
  return typeof value === 'string' ? value : undefined
}

/** The texts of an option that may be repeated. */
export function textsOption(options: Options, name: string): readonly string[] {
  const value = options[name]
  return Array.isArray(value) ? value.map(String) : []
}

/** Was the switch given? */
export function isSet(options: Options, name: string): boolean {
  return options[name] === true
}

/** Was it given as `--no-<name>`? */
export function isForgotten(options: Options, name: string): boolean {
  return options[name] === false
}

/** Bounds of a duration in milliseconds, both inclusive. Default: 1 ms to 30 days. */
interface DurationBounds {
  readonly minMs?: number
  readonly maxMs?: number
}

/** A duration such as `30s` as milliseconds. @throws NodeError USAGE */
export function durationOption(options: Options, name: string, bounds: DurationBounds = {}): number | undefined {
  const { minMs = 1, maxMs = LONGEST_MS } = bounds
  const text = textOption(options, name)
  if (text === undefined) return undefined
  const ms = parseDuration(text)
  if (ms !== null && ms >= minMs && ms <= maxMs) return ms
  const [least, most] = [formatDuration(minMs), formatDuration(maxMs)]
  const range = `a duration such as 10s, 5m or 2h, from ${least} to ${most}`
  throw new NodeError('USAGE', `--${kebab(name)} takes ${range}, not ${JSON.stringify(text)}`)
}

/**
 * A time as unix milliseconds: a duration before now, of at most 30 days, or a time as `--json` prints it.
 * @throws NodeError USAGE
 */
export function sinceOption(options: Options, name: string): number | undefined {
  const text = textOption(options, name)
  if (text === undefined) return undefined
  const ms = parseDuration(text)
  const time = ms === null ? timeOf(text.trim()) : ms >= 1 && ms <= LONGEST_MS ? Math.max(0, Date.now() - ms) : null
  if (time !== null) return time
  const forms = `a duration such as 10m, at most ${formatDuration(LONGEST_MS)}, or a time such as 2026-11-29T10:00:00Z`
  throw new NodeError('USAGE', `--${kebab(name)} takes ${forms}, not ${JSON.stringify(text)}`)
}

/**
 * `2026-11-29T10:00:00.000Z`, also without milliseconds, and with an offset; null for any other text, and for no such
 * time.
 */
function timeOf(text: string): number | null {
  const isTime = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:\d{2})$/.test(text)
  const ms = isTime ? Date.parse(text) : Number.NaN
  return ms >= 0 ? ms : null
}

/** A whole number. @throws NodeError USAGE */
export function countOption(options: Options, name: string, [min, max]: readonly [number, number]): number | undefined {
  const text = textOption(options, name)
  if (text === undefined) return undefined
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  if (value >= min && value <= max) return value
  throw new NodeError(
    'USAGE',
    `--${kebab(name)} takes a whole number from ${min} to ${max}, not ${JSON.stringify(text)}`
  )
}

/** The id of a sandbox. @throws NodeError USAGE */
export function sandboxOption(options: Options, name: string): string | undefined {
  const text = textOption(options, name)
  return text === undefined ? undefined : sandboxArgument(text, `--${kebab(name)}`)
}

/** The id of a sandbox as it was typed. @throws NodeError USAGE */
export function sandboxArgument(text: string, label: string): string {
  if (SANDBOX_ID.test(text)) return text
  const allowed = '1 to 64 letters, digits, dots, underscores and hyphens, a letter or digit first'
  throw new NodeError('USAGE', `${label} takes ${allowed}, not ${JSON.stringify(text)}`)
}

/** Scopes of a token, comma-separated. @throws NodeError USAGE */
export function scopesOption(options: Options, name: string): readonly TokenScope[] | undefined {
  const text = textOption(options, name)
  if (text === undefined) return undefined
  const scopes = SCOPES.filter((one) => text.split(',').includes(one))
  const isKnown = text.split(',').every((one) => SCOPES.some((scope) => scope === one))
  if (isKnown) return scopes
  throw new NodeError(
    'USAGE',
    `--${kebab(name)} takes a list of ${SCOPES.join(', ')}, such as read,send, not ${JSON.stringify(text)}`
  )
}

/** A tier L0..L3. @throws NodeError USAGE */
export function tierOption(options: Options, name: string): Tier | undefined {
  const text = textOption(options, name)
  return text === undefined ? undefined : tierArgument(text, `--${kebab(name)}`)
}

/** A tier given as an argument. @throws NodeError USAGE */
export function tierArgument(text: string, label = 'the tier'): Tier {
  const tier = tierFromText(text)
  if (tier === null) throw new NodeError('USAGE', `${label} is one of L0, L1, L2, L3, not ${JSON.stringify(text)}`)
  return tier
}

/** JSON of an argument, within limits. @throws NodeError USAGE */
export function jsonArgument(text: string, label: string, limits: JsonLimits = SIZED_LIMITS): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new NodeError('USAGE', `${label} is not JSON: ${jsonSyntaxReason(error)}`, { cause: error })
  }
  return boundedJson(value, label, limits)
}

/** A JSON value of any source, within limits. @throws NodeError USAGE for a value beyond the limits */
export function boundedJson(value: unknown, label: string, limits: JsonLimits = SIZED_LIMITS): unknown {
  const fault = jsonFault(value, limits)
  if (fault === null) return value
  throw new NodeError('USAGE', `${label} goes beyond a limit: ${fault}`)
}

/** An object type whose members that may be undefined are optional instead. */
export type GivenOptions<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>
}

/** Leaves out what is undefined, so that optional parameters are really absent. */
export function given<T extends object>(values: T): GivenOptions<T> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as GivenOptions<T>
}

function kebab(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}
