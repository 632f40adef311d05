import { NodeError } from '../kit/errors.js'

/** Variables of an environment. */
export type EnvValues = Readonly<Record<string, string | undefined>>

/** A value of the config as it is used: `env:NAME` stands for a variable. @throws NodeError CONFIG_INVALID when it is not set; `place` says where it stands. */
export function resolvedValue(value: string, env: EnvValues, place: string): string {
  const variable = /^env:([A-Za-z_][A-Za-z0-9_]*)$/.exec(value)?.[1]
  if (variable === undefined) return value
  const found = env[variable]
  if (found !== undefined) return found
  throw new NodeError('CONFIG_INVALID', `${place}: the variable ${variable} is not set in the environment of this node`)
}
