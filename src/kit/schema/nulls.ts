import { isRecord } from '../json.js'

/** Which members of foreign JSON are data of a person or program, so that their nulls mean something. */
export interface NullRules {
  /** Members whose value is kept as it is, unless it is null itself. */
  readonly data: ReadonlySet<string>
  /** Members whose own members have names of others: there each null is absent, and nothing is data. */
  readonly maps?: ReadonlySet<string>
  /** Is the null of a member a value? Default: never. */
  isValue?(name: string, parent: Readonly<Record<string, unknown>>): boolean
}

/** Levels within which nulls are left out: more than any foreign JSON may have. */
const MAX_DEPTH = 64

/**
 * JSON without the members that are null: serializers of Java and .NET write absent members so. Null items of lists
 * stay. Returns the value itself when nothing is left out. Below 64 levels everything stays.
 */
export function withoutNulls(value: unknown, rules: NullRules): unknown {
  return cleaned(value, rules, { depth: MAX_DEPTH, isMap: false })
}

interface NullPlace {
  /** Levels that are left. */
  readonly depth: number
  /** Is the value that of a member of `maps`? */
  readonly isMap: boolean
}

function cleaned(value: unknown, rules: NullRules, { depth, isMap }: NullPlace): unknown {
  if (depth === 0) return value
  if (Array.isArray(value)) return cleanedList(value, rules, depth)
  if (!isRecord(value)) return value
  let copy: Record<string, unknown> | null = null
  for (const name of Object.keys(value)) {
    const member = value[name]
    const isAbsent = member === null && (isMap || rules.isValue?.(name, value) !== true)
    const isKept = isAbsent || (!isMap && rules.data.has(name))
    const place = { depth: depth - 1, isMap: !isMap && rules.maps?.has(name) === true }
    const next = isKept ? member : cleaned(member, rules, place)
    if (!isAbsent && next === member) continue
    copy ??= { ...value }
    if (isAbsent) delete copy[name]
    else copy[name] = next
  }
  return copy ?? value
}

function cleanedList(list: readonly unknown[], rules: NullRules, depth: number): readonly unknown[] {
  let copy: unknown[] | null = null
  for (const [at, item] of list.entries()) {
    const next = cleaned(item, rules, { depth: depth - 1, isMap: false })
    if (next === item) continue
    copy ??= [...list]
    copy[at] = next
  }
  return copy ?? list
}

/** The same for JSON as text. Text that is no JSON, or has nothing to leave out, stays as it is. */
export function withoutNullsText(text: string, rules: NullRules): string {
  if (!text.includes('null')) return text
  try {
    const value: unknown = JSON.parse(text)
    const next = withoutNulls(value, rules)
    return next === value ? text : JSON.stringify(next)
  } catch {
    return text
  }
}

/**
 * The same for a stream of server-sent events, each of which has its JSON on one line. Its reader bounds the length of
 * lines.
 */
export class NullFreeEvents {
  readonly #rules: NullRules
  readonly #edit: (json: string) => string
  /** The pieces of the line that has not ended. */
  #open: string[] = []

  /** `edit` changes the JSON of an event. */
  constructor(rules: NullRules, edit: (json: string) => string = (json) => json) {
    this.#rules = rules
    this.#edit = edit
  }

  /** Takes text and returns the lines that it ends. */
  push(text: string): string {
    let lines = ''
    let from = 0
    for (const { 0: end, index } of text.matchAll(/[\r\n]+/g)) {
      lines += this.#line(text.slice(from, index)) + end
      from = index + end.length
    }
    if (from < text.length) this.#open.push(text.slice(from))
    return lines
  }

  /** The line without an end, at the end of the stream. */
  end(): string {
    return this.#line('')
  }

  #line(rest: string): string {
    const line = this.#open.length === 0 ? rest : this.#open.join('') + rest
    this.#open = []
    return line.startsWith('data:') ? `data:${this.#edit(withoutNullsText(line.slice(5), this.#rules))}` : line
  }
}

/** The null id of a response of JSON-RPC means that its request could not be read. */
function isNullId(name: string, parent: Readonly<Record<string, unknown>>): boolean {
  return name === 'id' && 'jsonrpc' in parent
}

const CONTENT = ['text', 'raw', 'url', 'file'] as const

/** Is the null of `data` the content of a part? An error has `data` too. */
function isNullPart(name: string, parent: Readonly<Record<string, unknown>>): boolean {
  return name === 'data' && !('code' in parent) && CONTENT.every((other) => (parent[other] ?? null) === null)
}

/**
 * For cards, tasks and messages of A2A, and input of AG-UI. The null of `data` is a value where a part has no other
 * content.
 */
export const A2A_NULLS: NullRules = {
  data: new Set(['data', 'metadata', 'context', 'state', 'forwardedProps', 'payload']),
  isValue: (name, parent) => isNullId(name, parent) || isNullPart(name, parent)
}

/** For answers of MCP servers: inputs, results and schemas of tools are data. */
export const MCP_NULLS: NullRules = {
  data: new Set(['arguments', 'structuredContent', 'inputSchema', 'outputSchema', '_meta', 'data']),
  isValue: isNullId
}

const VALUES = new Set(['const', 'default', 'example'])

/** For JSON Schemas: `const`, `default` and `example` may be null, and names of properties are no keywords. */
export const SCHEMA_NULLS: NullRules = {
  data: new Set([...VALUES, 'enum', 'examples']),
  maps: new Set(['properties', 'patternProperties', 'dependentSchemas', 'dependencies', 'definitions', '$defs']),
  isValue: (name) => VALUES.has(name)
}

/** Answers of a person (`content`) are data. */
const MCP_CLIENT: NullRules = { data: new Set(['content']), isValue: isNullId }
/** The same for a call of a tool. Arguments of prompts are texts, so a null among them means none. */
const MCP_CALL: NullRules = { data: new Set(['content', 'arguments']), isValue: isNullId }

/**
 * A message of an MCP client without the members that are null, but for data; the message itself when nothing is left
 * out.
 */
export function clientMessage<T extends object>(message: T): T {
  const isCall = 'method' in message && message.method === 'tools/call'
  return withoutNulls(message, isCall ? MCP_CALL : MCP_CLIENT) as T
}
