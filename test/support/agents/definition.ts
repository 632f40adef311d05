import type { AgentDefinition, AgentLimits } from '../../../src/ports/agent-runtime.js'

/** A definition with one capability that takes anything, and gives anything unless a schema of its output is given. */
export function definitionOf(
  runtime: string,
  limits: Partial<AgentLimits> = {},
  outputSchema: unknown = {}
): AgentDefinition {
  return {
    id: 'subject',
    name: 'subject',
    version: '1.0.0',
    description: 'An agent under test.',
    tier: null,
    sandboxId: null,
    protocols: [],
    capabilities: [{ id: 'subject.do', name: 'Do', description: '', inputSchema: {}, outputSchema }],
    limits: { timeoutMs: 60_000, concurrency: 1, maxOutputBytes: 65_536, ...limits },
    runtime,
    source: 'test'
  }
}
