import type { Clock } from '../../kit/clock.js'
import type { LogLevel } from '../../ports/telemetry.js'
import type { AgentFile } from './agent-file.js'
import { CommandRuntime } from './command-runtime.js'
import type { Environment } from './environment.js'
import { hostAgent, type LocalAgent, type Runtime } from './hosted-agent.js'
import { ModuleRuntime } from './module-runtime.js'
import type { ProcessGroups } from './process-groups.js'

/** What agents made from files share. */
export interface AgentParts {
  readonly groups: ProcessGroups
  readonly clock: Clock
  /** The node's own environment, from which PATH, HOME, LANG, TMPDIR and A2A_NODE_HOME are taken. */
  readonly env: Environment
  readonly log: AgentLog
}

/** Where lines about agents go. Never throws. */
export type AgentLog = (level: LogLevel, message: string, fields?: Readonly<Record<string, unknown>>) => void

/** Makes an agent of a checked file. Nothing is started before its first task. */
export function buildAgent({ definition, runtime: spec }: Pick<AgentFile, 'definition' | 'runtime'>, parts: AgentParts): LocalAgent {
  const { maxOutputBytes } = definition.limits
  const log = (message: string): void => parts.log('info', message, { agent: definition.id })
  const runtime: Runtime =
    spec.type === 'command'
      ? new CommandRuntime({ ...parts, spec, maxOutputBytes })
      : new ModuleRuntime({ ...parts, spec, maxOutputBytes, log })
  return hostAgent({ definition, runtime, clock: parts.clock })
}
