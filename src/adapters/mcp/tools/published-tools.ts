import type { Tool, ToolAnnotations } from '@modelcontextprotocol/server'
import type { ToolSchema, ToolDefinition } from '../server/tool.js'
import type { PublishedTool, ToolCatalog } from '../server/tool-catalog.js'
import { publishedSchema } from './published-schema.js'

/** Hints that clients know; a wrong one would make them refuse the whole list. */
const HINTS = ['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint'] as const

/** Input schemas in lists: in the form that every model API accepts, or as they are. */
export type SchemaForm = 'fitted' | 'whole'

/** The tools of a catalogue as `tools/list` gives them; rebuilt only when the catalogue's list changes. */
export function publishedTools(catalog: ToolCatalog, form: SchemaForm): () => Promise<readonly Tool[]> {
  let of: readonly PublishedTool[] | null = null
  let tools: readonly Tool[] = []
  return async () => {
    const listed = await catalog.list()
    if (listed !== of) {
      of = listed
      tools = listed.flatMap(({ name, definition }) =>
        isObject(definition.inputSchema) ? [wireTool(name, definition, form)] : []
      )
    }
    return tools
  }
}

function wireTool(
  name: string,
  { name: canonical, description, inputSchema, outputSchema, version, annotations, source }: ToolDefinition,
  form: SchemaForm
): Tool {
  const meta = { 'a2a-node/name': canonical, ...(source === undefined ? {} : { 'a2a-node/source': source }) }
  const hints = annotations === undefined ? {} : { annotations: hintsOf(annotations) }
  return {
    name,
    description,
    inputSchema: (form === 'whole' ? inputSchema : publishedSchema(inputSchema)) as Tool['inputSchema'],
    // Clients of the old era refuse a list with any other root.
    ...(isObject(outputSchema) ? { outputSchema } : {}),
    ...hints,
    ...(version === undefined ? {} : { version }),
    _meta: meta
  }
}

function isObject(schema: ToolSchema | undefined): schema is ToolSchema & { readonly type: 'object' } {
  return schema?.['type'] === 'object'
}

function hintsOf(annotations: Readonly<Record<string, unknown>>): ToolAnnotations {
  const { title } = annotations
  const hints = HINTS.filter((hint) => typeof annotations[hint] === 'boolean').map((hint) => [hint, annotations[hint]])
  return { ...Object.fromEntries(hints), ...(typeof title === 'string' ? { title } : {}) } as ToolAnnotations
}
