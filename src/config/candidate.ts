import type { ConfigSource, NamedSetting } from './settings.js'
import { parseDuration } from '../kit/units.js'

/** A value that somebody gave for a setting, not yet checked. */
export interface Candidate {
  /** `section.key`. */
  readonly path: string
  readonly value: unknown
  readonly source: Exclude<ConfigSource, 'default'>
  /** For people: `--network`, `A2A_NODE_NETWORK_KIND` or `/home/me/.config/a2a-node/config.yaml:3`. */
  readonly where: string
  /** 1-based line of the file; null outside of it. */
  readonly line: number | null
  /** The line of the value at a path below the setting, or of its nearest parent. */
  readonly lineAt?: (path: readonly PropertyKey[]) => number
}

/** A fault of one given value or key. */
export interface ConfigFault {
  readonly where: string
  readonly line: number | null
  /** `section.key`, as it was written; empty for a fault of the file itself. */
  readonly key: string
  readonly reason: string
  /** The allowed values; null when there is no such name. */
  readonly allowed: string | null
  /** Known names close to an unknown one. */
  readonly nearest: readonly string[]
}

/** One line of text for a fault. */
export function faultText(fault: ConfigFault): string {
  const hint = fault.nearest.length > 0 ? `; did you mean ${fault.nearest.join(' or ')}?` : ''
  const allowed = fault.allowed === null ? '' : ` (allowed: ${fault.allowed})`
  const key = fault.key === '' ? '' : `${fault.key}: `
  return `${fault.where}: ${key}${fault.reason}${allowed}${hint}`
}

/**
 * Text of the environment in the form that the file would have; what does not parse stays as it is and fails the check.
 */
export function fromText(text: string, { setting }: NamedSetting): unknown {
  switch (setting.form) {
    case 'list':
    case 'directories':
      return text === '' ? [] : text.split(',').map((part) => part.trim())
    case 'boolean':
      return /^(true|1)$/i.test(text) ? true : /^(false|0)$/i.test(text) ? false : text
    case 'number':
    case 'duration':
      return /^\d{1,15}$/.test(text) ? Number(text) : text
    default:
      return text
  }
}

/** Checks one given value. Durations may be text. */
export function checkValue(
  value: unknown,
  { setting }: NamedSetting
): { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly reason: string } {
  const plain = setting.form === 'duration' && typeof value === 'string' ? (parseDuration(value) ?? value) : value
  const result = setting.schema.safeParse(plain)
  if (result.success) return { ok: true, value: result.data }
  const fault = setting.fault?.(value) ?? null
  return { ok: false, reason: `${describe(value)} is not allowed${fault === null ? '' : `, ${fault}`}` }
}

function describe(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value)
  return text.length > 60 ? `${text.slice(0, 57)}...` : text
}
