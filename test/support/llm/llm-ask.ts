import type { Assert } from 'brittle'
import type { AgentOutcome } from '../../../src/ports/agent-runtime.js'
import { type RecordedRun, recordedRun, taskOf } from '../agents/task.js'
import { llmAgent, type LlmAgentOptions } from './llm-agent.js'
import { type Answerer, llmServer } from './llm-server.js'

/** The task of most tests. */
export const HELLO = { ...taskOf('subject.do', { text: 'Say hello.' }), description: '' }
/** An answer in pieces. */
export const PIECES = ['Hel', 'lo, ', 'wörld', ' 👋']

/** Asks an agent once whose server answers so. */
export async function ask(
  t: Assert,
  answers: readonly Answerer[],
  options: LlmAgentOptions = {},
  run = recordedRun()
): Promise<AgentOutcome> {
  const server = await llmServer(t, ...answers)
  return await llmAgent(t, server.url, options).run(HELLO, run)
}

/** The tokens that a run reported, as one text. */
export function tokensOf(run: RecordedRun): string {
  return run.reports.map((one) => (one as { token?: string }).token ?? '').join('')
}

/** The usage that a run reported; undefined for none. */
export function usageOf(run: RecordedRun): unknown {
  return run.reports.map((one) => (one as { usage?: unknown }).usage).find((one) => one !== undefined)
}
