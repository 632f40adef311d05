import { existsSync } from 'node:fs'
import path from 'node:path'
import { z } from 'zod'
import { bytesMediaType } from '../../../domain/gateway/content.js'
import type { AgentDefinition } from '../../../ports/agent-runtime.js'
import { agentEnvironment, type Environment } from '../files/environment.js'
import { EnvironmentBlock, Text } from '../files/file-values.js'
import type { RuntimeFault, RuntimeType, WrittenRuntime } from '../files/runtime-type.js'
import { hasPlaceholder } from './command-arguments.js'
import { findProgram } from './command-launch.js'
import { CommandRuntime } from './command-runtime.js'

/** One process a task. */
export interface CommandSpec {
  readonly type: 'command'
  /** Program and arguments; arguments may hold `{input.path}`. */
  readonly command: readonly string[]
  /** Variables beside PATH, HOME, LANG, TMPDIR and A2A_NODE_HOME. */
  readonly env: Readonly<Record<string, string>>
  /** It asks the person of its caller: its stdin stays open for the answers. */
  readonly asks: boolean
  /** Absolute working directory. Default: the directory of the agent file. */
  readonly cwd: string
}

const COMMAND = 'must be a list of the program and its arguments: [program, argument]'

const schema = z.strictObject({
  type: z.literal('command'),
  command: z
    .array(
      z.union([z.string().max(32_768), z.number(), z.boolean()], { error: 'must be text' }).transform(String),
      COMMAND
    )
    .min(1, COMMAND)
    .max(256),
  env: EnvironmentBlock,
  cwd: Text(4096).optional(),
  asks: z.boolean({ error: 'must be true or false' }).default(false)
})

/** The runtime `command`. */
export const commandType: RuntimeType<CommandSpec, z.output<typeof schema>> = {
  type: 'command',
  schema,
  spec: ({ type, command, env, asks, cwd = '.' }, base) => ({
    type,
    command,
    env,
    asks,
    cwd: path.resolve(base, cwd)
  }),
  faults,
  check,
  create: ({ definition, runtime }, { groups, env }) =>
    new CommandRuntime({
      spec: runtime,
      binary: binaryOf(definition),
      maxOutputBytes: definition.limits.maxOutputBytes,
      groups,
      env
    })
}

function binaryOf({ capabilities }: AgentDefinition): ReadonlySet<string> {
  return new Set(capabilities.filter(({ outputSchema }) => bytesMediaType(outputSchema) !== null).map(({ id }) => id))
}

function faults({ command }: WrittenRuntime): readonly RuntimeFault[] {
  if (!Array.isArray(command)) return []
  const found: RuntimeFault[] = []
  const [program] = command as readonly unknown[]
  if (program === '') found.push({ at: ['command', 0], reason: 'a2a.runtime.command[0]: the program is empty' })
  // Input of a peer must never choose the program.
  if (typeof program === 'string' && hasPlaceholder(program))
    found.push({ at: ['command', 0], reason: 'a2a.runtime.command[0]: the program may not be taken from the input' })
  command.forEach((word: unknown, i) => {
    if (typeof word === 'string' && word.includes('\0'))
      found.push({ at: ['command', i], reason: `a2a.runtime.command[${i}] holds a NUL character` })
  })
  return found
}

/** The program is looked for as it is for a task, under the PATH of this process. */
function check({ cwd, env, command: [program = ''] }: CommandSpec, own: Environment): readonly string[] {
  if (!existsSync(cwd)) return [`a2a.runtime.cwd: there is no directory ${cwd}`]
  if (findProgram(program, agentEnvironment(own, env), cwd) !== null) return []
  if (!program.includes('/')) return [`a2a.runtime.command: no program ${program} is found in PATH`]
  const place = path.resolve(cwd, program)
  return [`a2a.runtime.command: ${existsSync(place) ? `${place} may not be executed` : `there is no program ${place}`}`]
}
