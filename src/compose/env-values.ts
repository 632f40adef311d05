import { expandReferences } from '../config/references.js'
import { NodeError } from '../kit/errors.js'

/** Variables of an environment. */
export type EnvValues = Readonly<Record<string, string | undefined>>

/**
 * Resolves a config value: `env:NAME` as a whole, and each `${NAME}` in it, give a variable. `place`: config key, for errors.
 * @throws NodeError CONFIG_INVALID for a variable that is not set, and for another `${...}`
 */
export function resolvedValue(value: string, env: EnvValues, place: string): string {
  const variable = /^env:([A-Za-z_][A-Za-z0-9_]*)$/.exec(value)?.[1]
  const expanded = expandReferences(variable === undefined ? value : `\${${variable}}`, env)
  if (expanded.ok) return expanded.text
  throw new NodeError('CONFIG_INVALID', `${place}: ${expanded.reason}`, { next: ['a2a-node config check'] })
}
