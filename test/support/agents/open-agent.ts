import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Assert } from 'brittle'
import { buildAgent } from '../../../src/adapters/agents/files/build-agent.js'
import type { Environment } from '../../../src/adapters/agents/files/environment.js'
import type { LocalAgent } from '../../../src/adapters/agents/files/hosted-agent.js'
import type { ModuleSpec } from '../../../src/adapters/agents/module/module-type.js'
import type { CommandSpec } from '../../../src/adapters/agents/process/command-type.js'
import { ProcessGroups } from '../../../src/adapters/agents/process/process-groups.js'
import type { Clock } from '../../../src/kit/clock.js'
import type { AgentLimits, AgentOutcome } from '../../../src/ports/agent-runtime.js'
import { tempDir } from '../tmp.js'
import { definitionOf } from './definition.js'
import { realClock } from './real-clock.js'

/** Directory of the compiled agents of the tests. */
export const AGENTS_DIR = path.dirname(fileURLToPath(import.meta.url))

/** The module of the contract suite. */
export const MODULE_AGENT: ModuleSpec = {
  type: 'module',
  path: fileURLToPath(new URL('./module-agent.js', import.meta.url)),
  env: {}
}

/** What a test may choose. */
export interface AgentOptions {
  readonly limits?: Partial<AgentLimits>
  /** The output schema of its capability. Default: anything. */
  readonly output?: unknown
  readonly env?: Environment
  readonly clock?: Clock
  readonly log?: (message: string) => void
}

/** An agent under test, closed when the test ends. */
export interface OpenAgent {
  readonly agent: LocalAgent
  /** An empty directory. */
  readonly dir: string
  readonly runDir: string
}

/** The program of the contract suite. */
export const COMMAND_AGENT: CommandSpec = commandSpec([
  process.execPath,
  fileURLToPath(new URL('./command-agent.js', import.meta.url))
])

/** Makes an agent with a run directory of its own. */
export async function openAgent(
  t: Assert,
  runtime: CommandSpec | ModuleSpec,
  options: AgentOptions = {}
): Promise<OpenAgent> {
  const dir = await tempDir(t)
  const runDir = path.join(dir, 'run')
  const groups = new ProcessGroups(runDir)
  const parts = {
    groups,
    clock: options.clock ?? realClock,
    env: options.env ?? process.env,
    log: (_level: unknown, message: string) => options.log?.(message)
  }
  const agent = buildAgent(
    { definition: definitionOf(runtime.type, options.limits, options.output), runtime, instructions: '' },
    parts
  )
  t.teardown(async () => {
    await agent.close()
    await groups.close()
  })
  return { agent, dir, runDir }
}

/** A command spec; the program runs in the directory of the test agents. */
export function commandSpec(command: readonly string[], change: Partial<CommandSpec> = {}): CommandSpec {
  return { type: 'command', command, env: {}, asks: false, cwd: AGENTS_DIR, ...change }
}

/** The message of a failure with this code. */
export function failureText(t: Assert, code: string, outcome: AgentOutcome): string {
  t.is(outcome.ok ? 'ok' : outcome.code, code)
  return outcome.ok ? '' : outcome.message
}

/** The result of a success. */
export function resultOf(outcome: AgentOutcome): unknown {
  if (!outcome.ok) throw new Error(`${outcome.code}: ${outcome.message}`)
  return outcome.result
}
