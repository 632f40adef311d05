import type { Clock } from '../../../kit/clock.js'
import type { AgentDefinition, AgentOutcome, AgentTask, HealthFinding } from '../../../ports/agent-runtime.js'
import type { LlmSpec } from '../files/agent-file.js'
import type { AgentLog } from '../files/build-agent.js'
import { failure, type Runtime, type RuntimeContext } from '../files/hosted-agent.js'
import type { LlmParts } from './llm-parts.js'

/** Parts of {@link LlmRuntime}. */
export interface LlmRuntimeParts {
  readonly spec: LlmSpec
  readonly definition: AgentDefinition
  /** The text of the agent file. */
  readonly instructions: string
  readonly clock: Clock
  readonly log: AgentLog
  /** Absent: there is no config, so no provider either. */
  readonly llm?: LlmParts
}

/** Asks a language model, turn by turn, until it answers without calling a tool. What that takes is loaded with the first task. */
export class LlmRuntime implements Runtime {
  readonly #parts: LlmRuntimeParts

  constructor(parts: LlmRuntimeParts) {
    this.#parts = parts
  }

  async run(task: AgentTask, context: RuntimeContext): Promise<AgentOutcome> {
    const { llm, spec } = this.#parts
    if (llm === undefined) return failure('LLM_INIT_FAILED', `there is no LLM provider ${spec.provider}: nothing was configured`)
    const { runModel } = await import('./llm-run.js')
    return await runModel({ ...this.#parts, llm }, task, context)
  }

  async check(signal: AbortSignal): Promise<HealthFinding> {
    const { checkProvider } = await import('./llm-check.js')
    return await checkProvider(this.#parts.llm, this.#parts.spec.provider, signal)
  }

  end(): Promise<void> {
    return Promise.resolve()
  }
}
