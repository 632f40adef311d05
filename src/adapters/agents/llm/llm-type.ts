import { z } from 'zod'
import { Text } from '../files/file-values.js'
import type { RuntimeType } from '../files/runtime-type.js'
import type { LlmSpec } from './llm-parts.js'
import { LlmRuntime } from './llm-runtime.js'

/** Tokens that a run may use, by default. */
const RUN_TOKENS = 100_000
/** Tokens that all runs of a day may use, by default. */
export const DAY_TOKENS = 1_000_000
/** Tokens of one answer, by default. */
export const ANSWER_TOKENS = 4096

const MODEL = 'must be the name of a provider of the config, or provider/model'

const TokenCount = (min: number, max: number): z.ZodInt => z.int().min(min).max(max)

const BudgetBlock = z.strictObject({
  run: TokenCount(1, 100_000_000).default(RUN_TOKENS),
  day: TokenCount(1, 10_000_000_000).default(DAY_TOKENS)
})

const schema = z.strictObject({
  type: z.literal('llm'),
  model: z.string(MODEL).regex(/^[a-z0-9]+(?:-[a-z0-9]+)*(?:\/[^\p{C}\s]{1,256})?$/u, MODEL),
  tools: z.array(Text(256)).max(64).default([]),
  maxTurns: z.int().min(1).max(64).default(8),
  maxTokens: TokenCount(1, 1_000_000).default(ANSWER_TOKENS),
  budget: BudgetBlock.default({ run: RUN_TOKENS, day: DAY_TOKENS })
})

/** The runtime `llm`. */
export const llmType: RuntimeType<LlmSpec, z.output<typeof schema>> = {
  type: 'llm',
  schema,
  spec({ model, ...rest }) {
    // Models of some providers have slashes of their own.
    const [provider = '', ...name] = model.split('/')
    return { ...rest, provider, model: name.length === 0 ? null : name.join('/') }
  },
  create: ({ definition, runtime, instructions }, { clock, log, llm }) =>
    new LlmRuntime({ spec: runtime, definition, instructions, clock, log, ...(llm === undefined ? {} : { llm }) })
}
