import { importedCard, type ImportedCardSpec } from '../../../src/adapters/mcp/imported/imported-card.js'
import { type ContextIndex, indexHash, NO_CONTEXT } from '../../../src/adapters/mcp/imported/context-index.js'
import { isRecord } from '../../../src/kit/json.js'
import type { AgentOutcome } from '../../../src/ports/agent-runtime.js'
import { agentDefinition, FakeAgent } from '../fake-agents.js'

/** An imported server without its name. */
export const SERVER_SPEC: Omit<ImportedCardSpec, 'name'> = {
  tier: null,
  sandbox: null,
  timeoutMs: 1000,
  concurrency: 4,
  maxOutputBytes: 1000,
  sideEffect: 'exec',
  idempotent: [],
  source: '/config.yaml'
}

/**
 * An agent of an MCP server without tools. `answers` gives the result of a method, or a whole outcome; undefined: the
 * index for `list`, else no answer at all.
 */
export function serverAgent(
  name: string,
  given: Partial<ContextIndex>,
  answers: (method: string, params: Readonly<Record<string, unknown>>) => unknown = () => undefined
): FakeAgent {
  const index: ContextIndex = { ...NO_CONTEXT, ...given }
  const beside = { instructions: '', context: { index, hash: indexHash(index) } }
  const { definition } = importedCard({ ...SERVER_SPEC, name }, [], beside)
  const { capabilities, description } = definition
  return new FakeAgent(agentDefinition(name, { capabilities, description, concurrency: 4 }), ({ input }) => {
    const { method, params } = isRecord(input) ? input : {}
    const answer = answers(String(method), isRecord(params) ? params : {}) ?? (method === 'list' ? index : undefined)
    if (answer === undefined) return null
    return isRecord(answer) && typeof answer['ok'] === 'boolean'
      ? (answer as unknown as AgentOutcome)
      : { ok: true, result: answer }
  })
}

/** Contents of a resource as its agent answers them. */
export function contentsAnswer(...resources: readonly object[]): unknown {
  return { content: resources.map((resource) => ({ type: 'resource', resource })) }
}
