import { NodeError } from '../../../kit/errors.js'
import { nearest } from '../../../kit/text.js'
import type { CompileSchema } from '../../../kit/sign.js'
import type { ToolSchema, RegisteredTool, ToolContext, ToolDefinition, ToolSource } from '../server/tool.js'
import { publishedName } from './published-names.js'
import { publishedSchema } from './published-schema.js'
import { ToolSearch } from './tool-search.js'

/**
 * Tools in a client's list. `all`: every tool; `search`: a fixed few, two of them to find and call the others; `auto`:
 * every tool while they are few, else `search`.
 */
export type Expose = 'auto' | 'all' | 'search'

/** From which size of the list on `auto` is `search`. */
export interface ListLimits {
  readonly tools: number
  /** Estimated: a quarter of the characters of their JSON. */
  readonly tokens: number
}

/** Characters of JSON that cost a model about one token. */
const CHARACTERS_A_TOKEN = 4
/** Estimated tokens of a search's result after its first hit, at most. */
const FOUND_TOKENS = 700

/** The kind of a caller's list. One that once was long enough stays `search`, also when tools disappear. */
export interface ListMode {
  isSearch: boolean
}

/** Agents and their tools. */
export interface MeshSource extends ToolSource {
  /** Number of tools, those of agents that are offline now included. */
  count(): Promise<number>
  /** Tools that a list of `search` has, too: those of the setting, also of agents that are offline. */
  favorites(): Promise<readonly ToolDefinition[]>
  /** May there be any? */
  readonly hasFavorites: boolean
  /** The definitions with whole schemas, where the list has outlines. */
  whole(definitions: readonly ToolDefinition[]): Promise<readonly ToolDefinition[]>
}

/** Dependencies of {@link ExposedTools}. */
export interface ExposedToolsDeps {
  /** The node's own tools. */
  readonly own: ToolSource
  /** Names of own tools that `search` lists. */
  readonly essential: ReadonlySet<string>
  /** The tools to find, describe and call. */
  readonly mesh: MeshSource
  readonly expose: Expose
  readonly limits: ListLimits
  /** Shared by all lists of a caller. */
  readonly mode: ListMode
  readonly compileSchema: CompileSchema
}

/**
 * The tools of the node and of the mesh, and three to find, describe and call those of the mesh. Under `search` a list
 * is the same whatever agents come and go, so that a client's prompt cache stays valid, with the favorites of the
 * config; every tool can be called all the same.
 */
export class ExposedTools implements ToolSource {
  readonly #deps: ExposedToolsDeps
  readonly #meta: ReadonlyMap<string, RegisteredTool>

  constructor(deps: ExposedToolsDeps) {
    this.#deps = deps
    this.#meta = new Map(metaTools(deps).map((tool) => [tool.definition.name, tool]))
    if (deps.expose === 'search') deps.mode.isSearch = true
  }

  async list(): Promise<readonly ToolDefinition[]> {
    const { own, essential, mesh } = this.#deps
    const always = LISTED_META.flatMap((name) => this.#meta.get(name)?.definition ?? [])
    const ofNode = await own.list()
    const isLong = await this.#isSearch()
    const ofMesh = await mesh.whole(await (isLong ? mesh.favorites() : mesh.list()))
    return [...ofNode.filter(({ name }) => !isLong || essential.has(name)), ...always, ...ofMesh]
  }

  /** Is the list that of `search` now? */
  async isSearch(): Promise<boolean> {
    return await this.#isSearch()
  }

  get(name: string): RegisteredTool | undefined | Promise<RegisteredTool | undefined> {
    return this.#meta.get(name) ?? this.#deps.own.get(name) ?? this.#deps.mesh.get(name)
  }

  async alias(name: string): Promise<RegisteredTool | undefined> {
    return await this.#deps.mesh.alias?.(name)
  }

  onChange(changed: () => void): () => void {
    const { own, mesh, mode } = this.#deps
    const ends = [
      own.onChange?.(changed),
      mesh.onChange?.(() => {
        if (!mode.isSearch || mesh.hasFavorites) changed()
      })
    ]
    return () => {
      for (const end of ends) end?.()
    }
  }

  async #isSearch(): Promise<boolean> {
    const { mode, expose, mesh, limits } = this.#deps
    if (mode.isSearch || expose !== 'auto') return mode.isSearch
    mode.isSearch =
      (await mesh.count()) >= limits.tools || tokensOf((await mesh.list()).map(shownTool)) >= limits.tokens
    return mode.isSearch
  }
}

/** Meta tools that every list has. The other one can be called: a search gives the same. */
const LISTED_META = ['a2a_find_tools', 'a2a_call_tool']

type ExposedArgs = Readonly<Record<string, unknown>>
type MetaRow = readonly [
  name: string,
  description: string,
  properties: ToolSchema,
  handler: (args: ExposedArgs, context: ToolContext) => Promise<unknown>
]

function metaTools({ mesh, compileSchema }: ExposedToolsDeps): readonly RegisteredTool[] {
  const name = { type: 'string', minLength: 1, maxLength: 256, description: 'name of the tool' }
  const search = new ToolSearch()
  const rows: readonly MetaRow[] = [
    [
      'a2a_find_tools',
      'Finds tools of all machines of the mesh for a task. Gives the best few with their input schemas; call them with a2a_call_tool.',
      {
        query: {
          type: 'string',
          minLength: 1,
          maxLength: 256,
          description: 'the task in plain words, e.g. "count the lines of a text"; names of machines count too'
        }
      },
      async ({ query }) => {
        const hits = await search.find(String(query), await mesh.list())
        return await foundTools(mesh, await mesh.whole(hits))
      }
    ],
    [
      'a2a_describe_tool',
      'Tells all of one tool: what it does and the schemas of its input and result.',
      { name },
      async (args) => {
        const { definition } = await toolOf(mesh, args)
        const [whole = definition] = await mesh.whole([definition])
        return describedTool(whole)
      }
    ],
    [
      'a2a_call_tool',
      'Calls a tool that a2a_find_tools found.',
      { name, arguments: { type: 'object', description: 'its arguments, as its schema says (default {})' } },
      async (args, context) =>
        await callTool(await toolOf(mesh, args), (args['arguments'] ?? {}) as ExposedArgs, context)
    ]
  ]
  return rows.map((row) => metaTool(row, compileSchema))
}

function metaTool([name, description, properties, handler]: MetaRow, compileSchema: CompileSchema): RegisteredTool {
  const [required = ''] = Object.keys(properties)
  const inputSchema = { type: 'object', properties, required: [required], additionalProperties: false }
  const isCall = name === 'a2a_call_tool'
  return {
    definition: { name, description, inputSchema, ...(isCall ? {} : { annotations: { readOnlyHint: true } }) },
    validator: compileSchema(inputSchema),
    handler,
    // The tool that is called has its own deadline.
    ...(isCall ? { timeoutMs: null } : {})
  }
}

/** A tool as a model reads it. */
function shownTool({ name, description, purpose, inputSchema }: ToolDefinition): {
  readonly name: string
  readonly description: string
  readonly inputSchema: ToolSchema
} {
  return { name: publishedName(name), description: purpose ?? description, inputSchema: publishedSchema(inputSchema) }
}

/** Hits with their whole schemas, as far as there is room; `more` names the others. */
async function foundTools(mesh: MeshSource, hits: readonly ToolDefinition[]): Promise<unknown> {
  if (hits.length === 0)
    return { tools: [], next: 'try other words; a2a_list_agents shows the agents of the mesh and what they can do' }
  const tools: unknown[] = []
  const more: string[] = []
  let tokens = 0
  for (const hit of hits) {
    const shown = { ...shownTool(hit), name: await nameOf(mesh, hit) }
    if (tools.length > 0) tokens += tokensOf(shown)
    if (tokens > FOUND_TOKENS) more.push(shown.name)
    else tools.push(shown)
  }
  return more.length === 0 ? { tools } : { tools, more, next: 'a2a_describe_tool gives the schema of one of `more`' }
}

/** The published name, or the canonical one where another tool would look the same. */
async function nameOf(mesh: MeshSource, { name }: ToolDefinition): Promise<string> {
  const published = publishedName(name)
  return (await mesh.get(published))?.definition.name === name ? published : name
}

function describedTool({ name, description, inputSchema, outputSchema, annotations, source }: ToolDefinition): unknown {
  const schemas = { inputSchema: publishedSchema(inputSchema), ...(outputSchema === undefined ? {} : { outputSchema }) }
  return { name, description, ...schemas, annotations, source }
}

function tokensOf(value: unknown): number {
  return JSON.stringify(value).length / CHARACTERS_A_TOKEN
}

async function toolOf(mesh: ToolSource, { name }: ExposedArgs): Promise<RegisteredTool> {
  const tool = (await mesh.get(String(name))) ?? (await mesh.alias?.(String(name)))
  if (tool !== undefined) return tool
  const near = nearest(
    String(name),
    (await mesh.list()).map((one) => one.name)
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
