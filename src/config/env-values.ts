import { expandReferences } from './references.js'
import { HEADER_VALUE } from './entry-values.js'
import { NodeError } from '../kit/errors.js'

/** Variables of an environment. */
export type EnvValues = Readonly<Record<string, string | undefined>>

/**
 * Resolves a config value: `env:NAME` as a whole, and each `${NAME}` in it, give a variable. `place`: config key, for
 * errors.
 * @throws NodeError CONFIG_INVALID for a variable that is not set, and for another `${...}`
 */
export function resolvedValue(value: string, env: EnvValues, place: string): string {
  const variable = /^env:([A-Za-z_][A-Za-z0-9_]*)$/.exec(value)?.[1]
  const expanded = expandReferences(variable === undefined ? value : `\${${variable}}`, env)
  if (expanded.ok) return expanded.text
  throw new NodeError('CONFIG_INVALID', `${place}: ${expanded.reason}`, { next: ['a2a-node config check'] })
}

/**
 * Resolves the value of a header or a key, without white space at its ends. A variable may hold characters that no
 * header has: the error of the HTTP client would show the secret.
 * @throws NodeError CONFIG_INVALID, as {@link resolvedValue}, and for a character that no header has
 */
export function resolvedHeader(value: string, env: EnvValues, place: string): string {
  const text = resolvedValue(value, env, place).trim()
  if (HEADER_VALUE.test(text)) return text
  const reason = 'a variable of it holds a line break or another character that no header has'
  throw new NodeError('CONFIG_INVALID', `${place}: ${reason}`, { next: ['a2a-node config check'] })
}
