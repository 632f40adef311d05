import type { Clock } from '../../../kit/clock.js'
import type { AgentDefinition, AgentOutcome, AgentTask, HealthFinding } from '../../../ports/agent-runtime.js'
import type { AgentLog } from '../files/runtime-type.js'
import { failure, type Runtime, type RuntimeContext } from '../files/hosted-agent.js'
import type { LlmDeps, LlmSpec } from './llm-parts.js'

/** Dependencies of {@link LlmRuntime}. */
export interface LlmRuntimeDeps {
  readonly spec: LlmSpec
  readonly definition: AgentDefinition
  /** The text of the agent file. */
  readonly instructions: string
  readonly clock: Clock
  readonly log: AgentLog
  /** Absent: there is no config, so no provider either. */
  readonly llm?: LlmDeps
}

/**
 * Asks a language model, turn by turn, until it answers without calling a tool. Its libraries load with the first task.
 */
export class LlmRuntime implements Runtime {
  readonly #deps: LlmRuntimeDeps

  constructor(deps: LlmRuntimeDeps) {
    this.#deps = deps
  }

  async run(task: AgentTask, context: RuntimeContext): Promise<AgentOutcome> {
    const { llm, spec } = this.#deps
    if (llm === undefined)
      return failure('LLM_INIT_FAILED', `there is no LLM provider ${spec.provider}: nothing was configured`)
    const { runModel } = await import('./llm-run.js')
    return await runModel({ ...this.#deps, llm }, task, context)
  }

  async check(signal: AbortSignal): Promise<HealthFinding> {
    const { checkProvider } = await import('./llm-check.js')
    return await checkProvider(this.#deps.llm, this.#deps.spec.provider, signal)
  }

  end(): Promise<void> {
    return Promise.resolve()
  }
}
