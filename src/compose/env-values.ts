import { NodeError } from '../kit/errors.js'

/** Variables of an environment. */
export type EnvValues = Readonly<Record<string, string | undefined>>

/** Resolves a config value: `env:NAME` gives a variable. `place`: config key, for errors. @throws NodeError CONFIG_INVALID when it is not set */
export function resolvedValue(value: string, env: EnvValues, place: string): string {
  const variable = /^env:([A-Za-z_][A-Za-z0-9_]*)$/.exec(value)?.[1]
  if (variable === undefined) return value
  const found = env[variable]
  if (found !== undefined) return found
  throw new NodeError('CONFIG_INVALID', `${place}: the variable ${variable} is not set in the environment of this node`)
}
