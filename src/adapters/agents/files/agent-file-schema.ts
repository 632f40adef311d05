import { z } from 'zod'
import { providerSchema } from '../../../domain/card/provider.js'
import { CARD_MAX_CAPABILITIES, isPathStep } from '../../../domain/card/schema.js'
import { type KindWords, plainReason } from '../../../domain/schema-words.js'
import { tierFromText } from '../../../domain/routing/tier.js'
import { isRecord } from '../../../kit/json.js'
import { shown } from '../../../kit/text.js'
import { parseDuration, parseSize } from '../../../kit/units.js'
import { RUNTIMES } from '../runtimes.js'
import { hasIdForm, ID_RULE, idFault } from './agent-identity.js'
import { Text } from './file-values.js'
import type { RuntimeSpec, RuntimeType } from './runtime-type.js'

/** Longest name of an agent, as cards have it. */
const NAME_MAX = 128
const DAY_MS = 86_400_000
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024

const Texts = z.array(Text(1024)).max(64).optional()

const TITLE = 'must be 1 to 128 characters on one line, with a letter or a digit'

/** An id, or a display name; see `agentIdOf`. */
const Name = z
  .string()
  .min(1, TITLE)
  .max(NAME_MAX, TITLE)
  .superRefine((name, context) => {
    const isTitle = shown(name, NAME_MAX) === name && /[\p{L}\p{N}]/u.test(name)
    const reason = isPathStep(name) || hasIdForm(name) ? idFault(name) : isTitle ? null : TITLE
    if (reason !== null) context.addIssue(reason)
  })

const Tier = z.string('must be L0, L1, L2 or L3').transform((text, context) => {
  const tier = tierFromText(text)
  if (tier !== null) return tier
  context.addIssue('must be L0, L1, L2 or L3')
  return z.NEVER
})

const DURATION = 'must be a duration such as 10s, 5m or 2h, at most 24h'

const Duration = (maxMs: number) =>
  z.string(DURATION).transform((text, context) => {
    const ms = parseDuration(text)
    if (ms !== null && ms >= 1 && ms <= maxMs) return ms
    context.addIssue(DURATION)
    return z.NEVER
  })

const SIZE = 'must be a size such as 64KiB or 1MiB, at most 16MiB'

const Size = (maxBytes: number) =>
  z.string(SIZE).transform((text, context) => {
    const bytes = parseSize(text)
    if (bytes !== null && bytes >= 1 && bytes <= maxBytes) return bytes
    context.addIssue(SIZE)
    return z.NEVER
  })

const Schema = z.union([z.record(z.string(), z.unknown()), z.boolean()], { error: 'must be a JSON Schema (a mapping)' })

const CapabilityBlock = z.strictObject({
  id: z
    .string()
    .regex(
      /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$/,
      'must be 1 to 128 characters of letters, digits and ._:/- and begin with a letter or digit'
    ),
  name: Text(128).optional(),
  description: z.string().max(4096).default(''),
  input: Schema.default({}),
  output: Schema.default({}),
  idempotent: z.boolean().default(false),
  sideEffect: z.enum(['none', 'read', 'write', 'exec'], { error: 'must be none, read, write or exec' }).default('exec'),
  default: z.boolean().optional(),
  tags: Texts,
  examples: Texts,
  inputModes: Texts,
  outputModes: Texts
})

const WORD = 'must be 1 to 64 letters, digits, underscores and dashes'
const Word = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, WORD)

const ArgumentBlock = z.strictObject({
  name: Word,
  description: z.string().max(1024).default(''),
  required: z.boolean().default(true)
})

const PromptBlock = z
  .strictObject({
    name: Word,
    description: z.string().max(1024).default(''),
    arguments: z.array(ArgumentBlock).max(32).default([]),
    template: Text(65_536)
  })
  .superRefine(({ arguments: given, template }, context) => {
    for (const [at, { name }] of given.entries()) {
      const path = ['arguments', at, 'name']
      if (given.findIndex((one) => one.name === name) < at)
        context.addIssue({ code: 'custom', path, message: 'is the name of another one too' })
      else if (!template.includes(`{${name}}`))
        context.addIssue({ code: 'custom', path, message: `does not stand in the template as {${name}}` })
    }
  })

/** The runtimes of a table, distinguished by their type. */
function runtimeBlock(runtimes: readonly RuntimeType[]): z.ZodType<RuntimeSpec> {
  const types = runtimes.map(({ type }) => type)
  const known = `${types.slice(0, -1).join(', ')} or ${types.at(-1)}`
  return z.discriminatedUnion(
    'type',
    runtimes.map(({ schema }) => schema) as [RuntimeType['schema'], ...RuntimeType['schema'][]],
    {
      error: ({ input }) => (isRecord(input) ? `must be ${known}` : `must be a mapping with type: ${known}`)
    }
  )
}

const LimitsBlock = z.strictObject({
  timeout: Duration(DAY_MS).default(300_000),
  concurrency: z.int().min(1).max(256).default(1),
  maxOutput: Size(MAX_OUTPUT_BYTES).default(10 * 1024 * 1024)
})

const Id = z.string(ID_RULE).superRefine((id, context) => {
  const reason = hasIdForm(id) ? idFault(id) : ID_RULE
  if (reason !== null) context.addIssue(reason)
})

const nodeKeys = {
  /** Absent: see `agentIdOf`. */
  id: Id.optional(),
  version: z
    .string({ error: 'must be text such as 0.1.0 (quote it when it looks like a number)' })
    .max(64)
    .regex(/^\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]+)?$/, 'must be a version such as 0.1.0')
    .default('0.0.0'),
  tier: Tier.nullable().default(null),
  sandbox: z
    .string()
    .regex(
      /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
      'must be 1 to 64 letters, digits, dots, underscores and dashes, a letter or digit first'
    )
    .nullable()
    .default(null),
  provider: providerSchema.optional(),
  capabilities: z.array(CapabilityBlock).min(1, 'must list at least one capability').max(CARD_MAX_CAPABILITIES),
  prompts: z
    .array(PromptBlock)
    .max(64)
    .refine((all) => new Set(all.map(({ name }) => name)).size === all.length, 'must each have a name of its own')
    .default([]),
  limits: LimitsBlock.default({ timeout: 300_000, concurrency: 1, maxOutput: 10 * 1024 * 1024 })
}

/** The front matter of an agent file. Unknown keys above `a2a` pass; inside `a2a` every key must be known. */
function frontMatter(runtimes: readonly RuntimeType[]) {
  return z.looseObject({
    // A key without a value is an absent one, as for the clients whose key it is.
    name: Name.nullish(),
    description: Text(8192),
    tools: z.unknown().optional(),
    model: z.unknown().optional(),
    a2a: z.strictObject({ ...nodeKeys, runtime: runtimeBlock(runtimes) })
  })
}

/** The format of agent files, with the runtimes of a table. */
export class AgentFormat {
  /** The front matter. */
  readonly schema: ReturnType<typeof frontMatter>
  readonly #runtimes: readonly RuntimeType[]

  constructor(runtimes: readonly RuntimeType[]) {
    this.schema = frontMatter(runtimes)
    this.#runtimes = runtimes
  }

  /** The runtime of that type; undefined when there is none. */
  runtime(type: unknown): RuntimeType | undefined {
    return this.#runtimes.find((one) => one.type === type)
  }

  /** The known keys beside an unknown one, for a suggestion. `path` leads to the mapping; `type`: the runtime's. */
  knownKeys(path: readonly PropertyKey[], type?: unknown): readonly string[] {
    const schema = path[1] === 'runtime' ? this.runtime(type)?.schema : this.schema
    return schema === undefined ? [] : keysAt(schema, path.slice(path[1] === 'runtime' ? 2 : 0))
  }
}

function keysAt(schema: z.core.$ZodType, [step, ...rest]: readonly PropertyKey[]): readonly string[] {
  if (schema instanceof z.ZodDefault || schema instanceof z.ZodOptional)
    return keysAt(schema.unwrap(), step === undefined ? [] : [step, ...rest])
  if (schema instanceof z.ZodArray) return keysAt(schema.element, rest)
  if (!(schema instanceof z.ZodObject)) return []
  const member = step === undefined ? undefined : schema.shape[String(step)]
  return member === undefined ? Object.keys(schema.shape) : keysAt(member, rest)
}

/** The format of agent files with every runtime. */
export const AGENT_FORMAT = new AgentFormat(RUNTIMES)

/**
 * Message of a schema issue in the words of agent files: the expected kind and the given one. undefined: the schema's
 * own message.
 */
export function fileReason(issue: z.core.$ZodRawIssue): string | undefined {
  const reason = plainReason(issue, KINDS)
  return issue.code === 'invalid_type' ? `${reason}, not ${kindOf(issue.input)}` : reason
}

const KINDS: KindWords = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a mapping (lines of the form "key: value")',
  record: 'a mapping (lines of the form "key: value")'
}

function kindOf(value: unknown): string {
  if (value === null) return 'empty'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'string') return `the text ${JSON.stringify(shown(value, 40))}`
  return typeof value === 'number' || typeof value === 'boolean'
    ? `the ${typeof value === 'number' ? 'number' : 'word'} ${value}`
    : 'a mapping'
}

/** One capability of a file, checked. */
export type CapabilityFields = z.output<typeof CapabilityBlock>
/** A whole front matter, checked. */
export type AgentFields = z.output<AgentFormat['schema']>

/** Keys at the top level that have a meaning; all others are ignored, and reported as such. */
export const TOP_LEVEL_KEYS: readonly string[] = Object.keys(AGENT_FORMAT.schema.shape)
