import type { EnvValues } from './env-values.js'
import { neededVariables } from './references.js'
import type { Config } from './settings.js'

/** A value of a config that does not mean what it may look like in this environment. */
export interface VariableNote {
  /** Its key, such as `mcp.servers.notes.env.TOKEN`. */
  readonly key: string
  readonly variable: string
  /** `unset`: the variable has no value here, so the entry cannot be used. `literal`: `$NAME` is passed as it is. */
  readonly kind: 'unset' | 'literal'
}

/** The values that a config takes from the environment, by their keys. `isReference`: `env:NAME` is one. */
interface NamedValue {
  readonly key: string
  readonly value: string
  readonly isReference: boolean
}

/** The variables of a config that are not set in an environment, and values of the form `$NAME`, which are texts. */
export function variableNotes(config: Pick<Config, 'a2a' | 'llm' | 'mcp'>, env: EnvValues): readonly VariableNote[] {
  return valuesOf(config).flatMap(({ key, value, isReference }): VariableNote[] => {
    const literal = /^\$([A-Za-z_][A-Za-z0-9_]*)$/.exec(value)?.[1]
    if (literal !== undefined) return [{ key, variable: literal, kind: 'literal' }]
    const named = isReference ? /^env:([A-Za-z_][A-Za-z0-9_]*)$/.exec(value)?.[1] : undefined
    return (named === undefined ? neededVariables(value) : [named])
      .filter((variable) => env[variable] === undefined)
      .map((variable) => ({ key, variable, kind: 'unset' }))
  })
}

function valuesOf({ a2a, llm, mcp }: Pick<Config, 'a2a' | 'llm' | 'mcp'>): readonly NamedValue[] {
  const each = <T>(section: string, all: Readonly<Record<string, T>>, of: (one: T) => readonly NamedValue[]) =>
    Object.entries(all).flatMap(([name, one]) =>
      of(one).map((found) => ({ ...found, key: `${section}.${name}.${found.key}` }))
    )
  return [
    ...each('mcp.servers', mcp.servers, ({ command, cwd, url, env, headers }) => [
      ...texts('command', command ?? []),
      ...texts('cwd', [cwd]),
      ...texts('url', [url]),
      ...references('env', env),
      ...references('headers', headers)
    ]),
    ...each('llm.providers', llm.providers, ({ apiKey, headers }) => [
      ...(apiKey === null ? [] : [{ key: 'apiKey', value: apiKey, isReference: true }]),
      ...references('headers', headers)
    ]),
    ...each('a2a.agents', a2a.agents, ({ auth }) =>
      auth === null ? [] : [{ key: 'auth', value: auth.value, isReference: true }]
    )
  ]
}

function texts(key: string, values: readonly (string | null)[]): readonly NamedValue[] {
  return values.flatMap((value) => (value === null ? [] : [{ key, value, isReference: false }]))
}

function references(key: string, values: Readonly<Record<string, string>>): readonly NamedValue[] {
  return Object.entries(values).map(([name, value]) => ({ key: `${key}.${name}`, value, isReference: true }))
}
