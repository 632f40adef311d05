import { createHash } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { messageOf } from '../../../kit/errors.js'
import { canonicalJson, isRecord, jsonFault } from '../../../kit/json.js'
import type { CompileSchema } from '../../../kit/sign.js'
import { SCHEMA_NULLS, withoutNulls } from '../../../kit/schema/nulls.js'
import { shown } from '../../../kit/text.js'
import type { ToolListChange } from '../../../ports/imported-tools.js'
import { safeSchema } from './imported-schema.js'

/** Tools of one server. */
export const MAX_IMPORTED_TOOLS = 2000
/** Characters of the name of a tool. */
const MAX_NAME = 256
/** Characters of a description; the rest is cut off. */
export const MAX_DESCRIPTION = 4096
/** Bytes of one schema; a tool with a larger one is left out. */
export const MAX_TOOL_SCHEMA_BYTES = 65_536

/** Pinned fields of a tool, beside its name. */
const PARTS = ['description', 'inputSchema', 'outputSchema'] as const

/** A JSON Schema of an object. */
type ObjectSchema = Readonly<Record<string, unknown>>

/** A tool as it is kept: its server's definition, bounded. */
export interface ImportedTool {
  readonly name: string
  readonly description: string
  readonly inputSchema: ObjectSchema
  /** null: the server promises none. */
  readonly outputSchema: ObjectSchema | null
  /** The server claims that it changes nothing. */
  readonly claimsReadOnly: boolean
}

/** The tools that a server listed. */
export interface ImportedList {
  /** Sorted by name. */
  readonly tools: readonly ImportedTool[]
  /** Tools that cannot be offered, with the reason. */
  readonly faults: readonly { readonly name: string; readonly reason: string }[]
  /** How the server is used, '' for none; outside of the hash. Absent: unknown. */
  readonly instructions?: string
}

/**
 * Reads the tools that a server listed. A tool that breaks a bound is left out with its reason, and never hides the
 * others. Each tool takes a turn of the event loop: compiling all schemas at once would block the node for seconds.
 */
export async function readList(values: readonly unknown[], compileSchema: CompileSchema): Promise<ImportedList> {
  const tools = new Map<string, ImportedTool>()
  const faults: { name: string; reason: string }[] = []
  for (const value of values) {
    const name = isRecord(value) && typeof value['name'] === 'string' ? value['name'] : ''
    const fault = nameFault(name, tools)
    if (fault !== null) faults.push({ name: shown(name, MAX_NAME), reason: fault })
    else if (isRecord(value)) readTool(name, value, { tools, faults, compileSchema })
    await nextTurn()
  }
  return { tools: [...tools.values()].sort((a, b) => (a.name < b.name ? -1 : 1)), faults }
}

function nameFault(name: string, tools: ReadonlyMap<string, unknown>): string | null {
  if (name === '' || name.length > MAX_NAME) return `its name is not 1 to ${MAX_NAME} characters long`
  return tools.has(name) ? 'the server lists two tools of this name' : null
}

interface ListReading {
  readonly tools: Map<string, ImportedTool>
  readonly faults: { name: string; reason: string }[]
  readonly compileSchema: CompileSchema
}

function readTool(name: string, value: Record<string, unknown>, { tools, faults, compileSchema }: ListReading): void {
  const annotations = isRecord(value['annotations']) ? value['annotations'] : {}
  try {
    tools.set(name, {
      name,
      description: typeof value['description'] === 'string' ? cut(value['description']) : '',
      inputSchema: schemaOf(value['inputSchema'] ?? { type: 'object' }, compileSchema),
      outputSchema: (value['outputSchema'] ?? null) === null ? null : schemaOf(value['outputSchema'], compileSchema),
      claimsReadOnly: annotations['readOnlyHint'] === true
    })
  } catch (error) {
    faults.push({ name: shown(name, MAX_NAME), reason: shown(messageOf(error)) })
  }
}

function cut(text: string): string {
  return text.length > MAX_DESCRIPTION ? `${text.slice(0, MAX_DESCRIPTION - 1)}…` : text
}

/** A schema, if need be without its absent members. @throws Error that says why the schema cannot be used. */
function schemaOf(value: unknown, compileSchema: CompileSchema): ObjectSchema {
  try {
    // As it is written first: lists that were accepted are pinned so.
    return usableSchema(value, compileSchema)
  } catch (error) {
    const clean = withoutNulls(value, SCHEMA_NULLS)
    if (clean === value) throw error
    return usableSchema(clean, compileSchema)
  }
}

/** @throws Error that says why the schema cannot be used. */
function usableSchema(value: unknown, compileSchema: CompileSchema): ObjectSchema {
  if (!isRecord(value)) throw new Error('its schema is no object')
  if (value['type'] !== undefined && value['type'] !== 'object') throw new Error('its schema is not that of an object')
  const fault = jsonFault(value)
  if (fault !== null) throw new Error(`its schema: ${fault}`)
  if (Buffer.byteLength(JSON.stringify(value)) > MAX_TOOL_SCHEMA_BYTES)
    throw new Error(`its schema has more than ${MAX_TOOL_SCHEMA_BYTES} bytes`)
  compileSchema(safeSchema(value))
  return value
}

/**
 * sha256 of the canonical JSON of a list: names, descriptions and schemas of its tools, sorted by name. Pins are
 * compared with it.
 */
export function listHash(tools: readonly ImportedTool[]): string {
  return createHash('sha256')
    .update(canonicalJson(tools.map(identityOf)))
    .digest('hex')
}

function identityOf({ name, description, inputSchema, outputSchema }: ImportedTool): object {
  return { name, description, inputSchema, ...(outputSchema === null ? {} : { outputSchema }) }
}

/** How one list differs from another; null when they are the same. */
export function changeOf(before: readonly ImportedTool[], after: readonly ImportedTool[]): ToolListChange | null {
  const old = new Map(before.map((tool) => [tool.name, tool]))
  const next = new Set(after.map(({ name }) => name))
  const added = after.flatMap(({ name }) => (old.has(name) ? [] : [name]))
  const removed = before.flatMap(({ name }) => (next.has(name) ? [] : [name]))
  const changed = after.flatMap((tool) => {
    const known = old.get(tool.name)
    const parts =
      known === undefined ? [] : PARTS.filter((part) => canonicalJson(known[part]) !== canonicalJson(tool[part]))
    return parts.length === 0 ? [] : [{ name: tool.name, parts, description: tool.description }]
  })
  return added.length + removed.length + changed.length === 0 ? null : { added, removed, changed }
}
