import type { RuntimeType } from './files/runtime-type.js'
import type { LlmDeps } from './llm/llm-parts.js'
import { llmType } from './llm/llm-type.js'
import { moduleType } from './module/module-type.js'
import { commandType } from './process/command-type.js'

/** The runtimes of agent files, in the order in which errors list them. */
export const RUNTIMES: readonly RuntimeType[] = [commandType, moduleType, llmType]

/** Dependencies of all agents of one runtime, beside the dependencies of every runtime. */
export interface SharedDeps {
  /** Of language models. Absent: they have no provider. */
  readonly llm?: LlmDeps
}
