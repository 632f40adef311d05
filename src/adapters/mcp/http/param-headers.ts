import type { IncomingHttpHeaders } from 'node:http'
import { isRecord } from '../../../kit/json.js'
import { decodedHeader, headerFault, type HeaderFault } from './http-headers.js'
import type { ToolSchema, RegisteredTool } from '../server/tool.js'
import type { ToolCatalog } from '../server/tool-catalog.js'

/** The word in the schema of an argument that names its header. */
const MARK = 'x-mcp-header'
/** Types of arguments that may have one. */
const TYPES: readonly unknown[] = ['string', 'integer', 'boolean']

/** An argument that a header repeats. */
interface Mirrored {
  /** Its path in the arguments. */
  readonly path: readonly string[]
  /** In lower case. */
  readonly header: string
}

/**
 * Checks the headers that repeat arguments of a call (MCP 2026-07-28, custom headers from tool parameters). A proxy may
 * have decided by these headers, so they must match the arguments.
 */
export class ParamHeaders {
  readonly #tools: Pick<ToolCatalog, 'find'>
  readonly #known = new WeakMap<ToolSchema, readonly Mirrored[]>()

  constructor(tools: Pick<ToolCatalog, 'find'>) {
    this.#tools = tools
  }

  /** The fault of the headers of a `tools/call`; null when they match, or when there is no such tool. */
  faultOf(params: unknown, headers: IncomingHttpHeaders): HeaderFault | null | Promise<HeaderFault | null> {
    const { name, arguments: args } = isRecord(params) ? params : {}
    const found = typeof name === 'string' ? this.#tools.find(name) : undefined
    if (found instanceof Promise) return found.then((tool) => this.#faultOf(tool, args, headers))
    return this.#faultOf(found, args, headers)
  }

  #faultOf(tool: RegisteredTool | undefined, args: unknown, headers: IncomingHttpHeaders): HeaderFault | null {
    if (tool === undefined) return null
    for (const one of this.#mirroredOf(tool.definition.inputSchema)) {
      const fault = faultOf(one, valueAt(args, one.path), headers[one.header])
      if (fault !== null) return fault
    }
    return null
  }

  #mirroredOf(schema: ToolSchema): readonly Mirrored[] {
    const known = this.#known.get(schema)
    if (known !== undefined) return known
    const found: Mirrored[] = []
    collect(schema, [], found)
    this.#known.set(schema, found)
    return found
  }
}

/** Reads marks below `properties` alone: clients ignore a tool with a mark anywhere else. */
function collect(schema: unknown, path: readonly string[], found: Mirrored[]): void {
  if (!isRecord(schema)) return
  const mark = schema[MARK]
  if (path.length > 0 && typeof mark === 'string' && TYPES.includes(schema['type'])) {
    found.push({ path, header: `mcp-param-${mark.toLowerCase()}` })
  }
  const { properties } = schema
  if (!isRecord(properties)) return
  for (const [key, property] of Object.entries(properties)) collect(property, [...path, key], found)
}

function valueAt(args: unknown, path: readonly string[]): unknown {
  let value = args
  for (const key of path) value = isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined
  return value
}

function faultOf(
  { path, header }: Mirrored,
  value: unknown,
  stated: string | readonly string[] | undefined
): HeaderFault | null {
  // An argument that is not given has no header; one of another type is refused by the schema.
  if (typeof value !== 'string' && typeof value !== 'boolean' && typeof value !== 'number') return null
  if (typeof stated !== 'string') return headerFault(`the ${header} header is missing`)
  const text = decodedHeader(stated.trim())
  const isSame =
    text !== null &&
    (text === String(value) || (typeof value === 'number' && isNumeral(text) && Number(text) === value))
  return isSame ? null : headerFault(`the ${header} header is not arguments.${path.join('.')} of the body`)
}

function isNumeral(text: string): boolean {
  return /^-?\d{1,32}(\.\d{1,32})?$/.test(text)
}
