import type { Assert } from 'brittle'
import { buildAgent } from '../../../src/adapters/agents/files/build-agent.js'
import type { LocalAgent } from '../../../src/adapters/agents/files/hosted-agent.js'
import { TokenDays } from '../../../src/adapters/agents/llm/daily-usage.js'
import type { LlmDeps, LlmProvider, LlmSpec } from '../../../src/adapters/agents/llm/llm-parts.js'
import { ProcessGroups } from '../../../src/adapters/agents/process/process-groups.js'
import type { Clock } from '../../../src/kit/clock.js'
import type { AgentDefinition } from '../../../src/ports/agent-runtime.js'
import type { AgentTool, AgentTools } from '../../../src/ports/agent-tools.js'
import { definitionOf } from '../agents/definition.js'
import { realClock } from '../agents/real-clock.js'

/** What a test may choose. */
export interface LlmAgentOptions {
  readonly spec?: Partial<LlmSpec>
  readonly definition?: Partial<AgentDefinition>
  readonly instructions?: string
  readonly provider?: Partial<LlmProvider>
  readonly tools?: AgentTools
  readonly days?: TokenDays
  readonly clock?: Clock
  readonly fetch?: LlmDeps['fetch']
  /** Lines of its log. */
  readonly lines?: string[]
}

/** Makes an agent of a language model that is served at a URL. */
export function llmAgent(t: Assert, url: string, options: LlmAgentOptions = {}): LocalAgent {
  const { clock = realClock, days = new TokenDays({ clock, store: null, onFault: () => {} }), lines = [] } = options
  const provider = { url, model: 'qwen3:8b', apiKey: null, headers: {}, stallTimeoutMs: 60_000, ...options.provider }
  const runtime: LlmSpec = {
    type: 'llm',
    provider: 'local',
    model: null,
    tools: ['*'],
    maxTurns: 8,
    maxTokens: 4096,
    budget: { run: 100_000, day: 1_000_000 },
    ...options.spec
  }
  const definition = { ...definitionOf('llm'), ...options.definition }
  const agent = buildAgent(
    { definition, runtime, instructions: options.instructions ?? 'You are terse.' },
    {
      groups: new ProcessGroups('/nowhere'),
      clock,
      env: {},
      log: (level, message, fields) => lines.push(`${level} ${message} ${JSON.stringify(fields)}`),
      llm: {
        provider: (name) => (name === 'local' ? provider : null),
        tools: options.tools ?? null,
        days,
        fetch: options.fetch ?? fetch
      }
    }
  )
  t.teardown(() => agent.close())
  return agent
}

/** Tools that answer by a function. */
export function toolsThat(
  names: readonly string[],
  call: (name: string, args: unknown, signal: AbortSignal) => unknown,
  left = 0
): AgentTools {
  const inputSchema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
  const tools = names.map((name): AgentTool => ({ name, description: `Does ${name}.`, inputSchema }))
  return {
    open: () =>
      Promise.resolve({
        tools,
        left,
        call: async (name, args, signal) => await call(name, args, signal as AbortSignal)
      })
  }
}
