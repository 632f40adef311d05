import { AGENT_FORMAT } from './agent-file-schema.js'
import { hostAgent, type LocalAgent } from './hosted-agent.js'
import type { AgentDeps, RuntimeFile } from './runtime-type.js'

/**
 * Makes an agent of a checked file. Nothing is started before its first task or health check.
 * @throws TypeError for a runtime that the format does not have
 */
export function buildAgent(file: RuntimeFile, deps: AgentDeps, format = AGENT_FORMAT): LocalAgent {
  const { definition, runtime } = file
  const type = format.runtime(runtime.type)
  if (type === undefined) throw new TypeError(`no runtime ${runtime.type}`)
  return hostAgent({ definition, runtime: type.create(file, deps), clock: deps.clock })
}
