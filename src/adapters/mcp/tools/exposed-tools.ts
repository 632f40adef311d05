import { NodeError } from '../../../kit/errors.js'
import { byWords, nearest, wordsOf } from '../../../kit/text.js'
import type { CompileSchema } from '../../../kit/sign.js'
import type { ToolSchema, RegisteredTool, ToolContext, ToolDefinition, ToolSource } from '../server/tool.js'

/**
 * Tools in a client's list. `all`: every tool; `search`: the three to find others; `auto`: at most {@link LISTED_MAX},
 * else `search`.
 */
export type Expose = 'auto' | 'all' | 'search'

/** Most tools that `auto` lists. */
export const LISTED_MAX = 100
/** Most tools in the result of a search. */
const FOUND_MAX = 20

/** Dependencies of {@link ExposedTools}. */
export interface ExposedToolsDeps {
  /** The tools to find, describe and call: those of the mesh. */
  readonly source: ToolSource
  readonly expose: Expose
  readonly compileSchema: CompileSchema
}

/**
 * The tools of a source, and three to find, describe and call them, so that a long list costs a model nothing. Under
 * `search`, and under `auto` beyond {@link LISTED_MAX} tools, only these three are listed; every tool can be called all
 * the same.
 */
export class ExposedTools implements ToolSource {
  readonly #deps: ExposedToolsDeps
  readonly #meta: ReadonlyMap<string, RegisteredTool>

  constructor(deps: ExposedToolsDeps) {
    this.#deps = deps
    this.#meta = new Map(metaTools(deps).map((tool) => [tool.definition.name, tool]))
  }

  async list(): Promise<readonly ToolDefinition[]> {
    const { source, expose } = this.#deps
    const meta = [...this.#meta.values()].map(({ definition }) => definition)
    if (expose === 'search') return meta
    const all = await source.list()
    return expose === 'auto' && all.length > LISTED_MAX ? meta : [...meta, ...all]
  }

  get(name: string): RegisteredTool | undefined | Promise<RegisteredTool | undefined> {
    return this.#meta.get(name) ?? this.#deps.source.get(name)
  }

  async alias(name: string): Promise<RegisteredTool | undefined> {
    return await this.#deps.source.alias?.(name)
  }

  onChange(changed: () => void): () => void {
    return this.#deps.source.onChange?.(changed) ?? (() => {})
  }
}

type ExposedArgs = Readonly<Record<string, unknown>>

function metaTools({ source, compileSchema }: ExposedToolsDeps): readonly RegisteredTool[] {
  const name = { type: 'string', minLength: 1, maxLength: 256, description: 'name of the tool' }
  const rows: readonly [string, string, ToolSchema, (args: ExposedArgs, context: ToolContext) => Promise<unknown>][] = [
    [
      'a2a_find_tools',
      'Finds tools of the mesh by words of their names and descriptions. Use it when the list does not show what you need.',
      { query: { type: 'string', minLength: 1, maxLength: 256, description: 'words, e.g. "count lines of a text"' } },
      async ({ query }) => ({ tools: found(String(query), await source.list()) })
    ],
    [
      'a2a_describe_tool',
      'Tells all of one tool: what it does and the schemas of its input and result.',
      { name },
      async (args) => definitionOf(await toolOf(source, args))
    ],
    [
      'a2a_call_tool',
      'Calls a tool of the mesh by its name, as if it were listed.',
      { name, arguments: { type: 'object', description: 'its arguments, as its schema says (default {})' } },
      async (args, context) =>
        await callTool(await toolOf(source, args), (args['arguments'] ?? {}) as ExposedArgs, context)
    ]
  ]
  return rows.map(([toolName, description, properties, handler]) => {
    const [required = ''] = Object.keys(properties)
    const inputSchema = { type: 'object', properties, required: [required], additionalProperties: false }
    const isCall = toolName === 'a2a_call_tool'
    return {
      definition: {
        name: toolName,
        description,
        inputSchema,
        ...(isCall ? {} : { annotations: { readOnlyHint: true } })
      },
      validator: compileSchema(inputSchema),
      handler,
      // The tool that is called has its own deadline.
      ...(isCall ? { timeoutMs: null } : {})
    }
  })
}

function definitionOf({ definition }: RegisteredTool): ToolDefinition {
  return definition
}

async function toolOf(source: ToolSource, { name }: ExposedArgs): Promise<RegisteredTool> {
  const tool = (await source.get(String(name))) ?? (await source.alias?.(String(name)))
  if (tool !== undefined) return tool
  const near = nearest(
    String(name),
    (await source.list()).map((one) => one.name)
  )
  throw new NodeError(
    'CAPABILITY_NOT_FOUND',
    `no tool of that name${near.length === 0 ? '; a2a_find_tools finds them by words' : `; did you mean ${near.join(' or ')}?`}`
  )
}

async function callTool(
  { validator, handler }: RegisteredTool,
  args: ExposedArgs,
  context: ToolContext
): Promise<unknown> {
  const faults = validator(args)
  if (faults.length > 0) {
    const printed = faults.map(({ path, message }) => `${path} ${message}`.trim()).join('; ')
    throw new NodeError('INVALID_INPUT', `the arguments: ${printed}`, { data: { faults } })
  }
  return await handler(args, context)
}

function found(
  query: string,
  all: readonly ToolDefinition[]
): readonly { readonly name: string; readonly description: string }[] {
  const hits = byWords(wordsOf(query), all).slice(0, FOUND_MAX)
  return hits.map(({ name, description }) => ({ name, description }))
}
