import path from 'node:path'
import { z } from 'zod'
import { EnvironmentBlock, Text } from '../files/file-values.js'
import type { RuntimeType } from '../files/runtime-type.js'
import { ModuleRuntime } from './module-runtime.js'

/** An ES module in a child that stays up. */
export interface ModuleSpec {
  readonly type: 'module'
  /** Absolute path of the module. */
  readonly path: string
  /** Variables beside PATH, HOME, LANG, TMPDIR and A2A_NODE_HOME. */
  readonly env: Readonly<Record<string, string>>
}

const schema = z.strictObject({ type: z.literal('module'), path: Text(4096), env: EnvironmentBlock })

/** The runtime `module`. */
export const moduleType: RuntimeType<ModuleSpec, z.output<typeof schema>> = {
  type: 'module',
  schema,
  isLoadedByCheck: true,
  spec: (fields, base) => ({ ...fields, path: path.resolve(base, fields.path) }),
  files: ({ path: given }, base) =>
    typeof given === 'string' && given !== '' ? [{ key: 'path', path: path.resolve(base, given) }] : [],
  create: ({ definition, runtime }, { log, groups, env, clock }) =>
    new ModuleRuntime({
      spec: runtime,
      maxOutputBytes: definition.limits.maxOutputBytes,
      groups,
      env,
      clock,
      log: (message) => log('info', message, { agent: definition.id })
    })
}
