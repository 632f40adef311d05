import type { Clock } from '../../../kit/clock.js'
import type { LogLevel } from '../../../ports/telemetry.js'
import type { AgentFile } from './agent-file.js'
import { CommandRuntime } from '../process/command-runtime.js'
import type { Environment } from './environment.js'
import { hostAgent, type LocalAgent, type Runtime } from './hosted-agent.js'
import type { LlmDeps } from '../llm/llm-parts.js'
import { LlmRuntime } from '../llm/llm-runtime.js'
import { ModuleRuntime } from '../module/module-runtime.js'
import type { ProcessGroups } from '../process/process-groups.js'

/** What agents made from files share. */
export interface AgentDeps {
  readonly groups: ProcessGroups
  readonly clock: Clock
  /** The node's own environment, from which PATH, HOME, LANG, TMPDIR and A2A_NODE_HOME are taken. */
  readonly env: Environment
  readonly log: AgentLog
  /** What agents of language models share; without it they have no provider. */
  readonly llm?: LlmDeps
}

/** Where lines about agents go. Never throws. */
export type AgentLog = (level: LogLevel, message: string, fields?: Readonly<Record<string, unknown>>) => void

/** Makes an agent of a checked file. Nothing is started before its first task. */
export function buildAgent(file: Pick<AgentFile, 'definition' | 'runtime' | 'instructions'>, deps: AgentDeps): LocalAgent {
  return hostAgent({ definition: file.definition, runtime: runtimeOf(file, deps), clock: deps.clock })
}

function runtimeOf(
  { definition, runtime: spec, instructions }: Pick<AgentFile, 'definition' | 'runtime' | 'instructions'>,
  deps: AgentDeps
): Runtime {
  const { maxOutputBytes } = definition.limits
  if (spec.type === 'command') return new CommandRuntime({ ...deps, spec, maxOutputBytes })
  if (spec.type === 'llm') return new LlmRuntime({ ...deps, spec, definition, instructions })
  const log = (message: string): void => deps.log('info', message, { agent: definition.id })
  return new ModuleRuntime({ ...deps, spec, maxOutputBytes, log })
}
