/**
 * Types for authors of `module` agents: `export default { async run(task, ctx) { ... } }`.
 * @module
 */
export type { Agent, AgentContext } from './adapters/agents/module/module-agent.js'
export type { AgentTask } from './ports/agent-runtime.js'
