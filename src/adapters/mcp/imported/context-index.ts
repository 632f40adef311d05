import { createHash } from 'node:crypto'
import { canonicalJson, isRecord, jsonFault } from '../../../kit/json.js'
import { shown } from '../../../kit/text.js'
import { metaOf } from './imported-result.js'

/** Resources, templates and prompts of one server, each at most; the rest is left out. */
export const MAX_LISTED = { resources: 2000, templates: 256, prompts: 512 } as const
/** Bytes of the index of one server as JSON; items beyond are left out. */
export const MAX_INDEX_BYTES = 524_288
/** Bytes of one item as JSON; a larger or invalid one loses its optional members, then is left out. */
const MAX_ITEM_BYTES = 8192
/** Characters of the URI or URI template of a listed resource. */
const MAX_URI = 4096
/** Characters of a name or title. */
const MAX_NAME = 256
/** Characters of a description; the rest is cut off. */
const MAX_TEXT = 1024
/** Arguments of a prompt. */
const MAX_ARGUMENTS = 64
/** Characters of a server's instructions; the rest is cut off. */
export const MAX_INSTRUCTIONS = 4096

/** A listed resource, template or prompt as its server gives it, bounded; `key` members are exact. */
export type ContextItem = Readonly<Record<string, unknown>>

/** Resources, templates and prompts of an MCP server, and its instructions. */
export interface ContextIndex {
  /** Each with `uri` and `name`. */
  readonly resources: readonly ContextItem[]
  /** Each with `uriTemplate` and `name`. */
  readonly templates: readonly ContextItem[]
  /** Each with `name`. */
  readonly prompts: readonly ContextItem[]
  /** It completes arguments. */
  readonly completes: boolean
  /** It reports changes of resources. */
  readonly watches: boolean
  /** How to use the server; '' for none. */
  readonly instructions: string
}

/** Of a server with tools alone. */
export const NO_CONTEXT: ContextIndex = {
  resources: [],
  templates: [],
  prompts: [],
  completes: false,
  watches: false,
  instructions: ''
}

/** The member of each kind of item that identifies it. */
export const KEYS = { resources: 'uri', templates: 'uriTemplate', prompts: 'name' } as const

/** A kind of item. */
export type ContextKind = keyof typeof KEYS

/** Has an item the shape of its kind? Clients refuse a whole list for one item of another shape. */
type ItemChecks = Readonly<Record<ContextKind, (item: unknown) => boolean>>

/**
 * Reads an index of a server or a peer: unknown members and items of a wrong shape are dropped. Of two items with one
 * key the first counts. Never rejects.
 */
export async function readIndex(value: unknown): Promise<ContextIndex> {
  if (!isRecord(value)) return NO_CONTEXT
  // A node that reads no index, as most do, keeps the schemas of the library out of its memory.
  const { isSpecType } = await import('@modelcontextprotocol/server')
  const checks = { resources: isSpecType.Resource, templates: isSpecType.ResourceTemplate, prompts: isSpecType.Prompt }
  const { completes, watches, instructions } = value
  const budget = { bytes: MAX_INDEX_BYTES }
  return {
    resources: itemsOf(value, 'resources', { budget, checks }),
    templates: itemsOf(value, 'templates', { budget, checks }),
    prompts: itemsOf(value, 'prompts', { budget, checks }),
    completes: completes === true,
    watches: watches === true,
    instructions: instructionsOf(instructions)
  }
}

/** Instructions within their bound; '' for a value that is no text. */
export function instructionsOf(value: unknown): string {
  return typeof value === 'string' ? value.trim().slice(0, MAX_INSTRUCTIONS).toWellFormed() : ''
}

/** The description of an item for clients, with the address of its agent. */
export function addressed({ description }: ContextItem, address: string): string {
  return typeof description === 'string' ? `${description} (${shown(address)})` : `(${shown(address)})`
}

/** 128 bits of the sha256 of an index's canonical JSON, as base64url. */
export function indexHash(index: ContextIndex): string {
  return createHash('sha256').update(canonicalJson(index)).digest('base64url').slice(0, 22)
}

function itemsOf(
  value: Readonly<Record<string, unknown>>,
  kind: ContextKind,
  { budget, checks }: { readonly budget: { bytes: number }; readonly checks: ItemChecks }
): readonly ContextItem[] {
  const given: unknown = value[kind]
  const items = new Map<unknown, ContextItem>()
  for (const one of Array.isArray(given) ? (given as readonly unknown[]) : []) {
    const item = isRecord(one) ? itemOf(one, kind, checks[kind]) : null
    if (item === null || items.has(item[KEYS[kind]])) continue
    budget.bytes -= bytesOf(item)
    if (budget.bytes < 0 || items.size >= MAX_LISTED[kind]) break
    items.set(item[KEYS[kind]], item)
  }
  return [...items.values()]
}

/** null: it cannot be offered. */
function itemOf(
  given: Readonly<Record<string, unknown>>,
  kind: ContextKind,
  isValid: (item: unknown) => boolean
): ContextItem | null {
  const key = given[KEYS[kind]]
  const maxKey = kind === 'prompts' ? MAX_NAME : MAX_URI
  if (typeof key !== 'string' || key === '' || key.length > maxKey || !key.isWellFormed()) return null
  const { name = key, title, description, mimeType, size, annotations, icons, _meta, arguments: args } = given
  if (typeof name !== 'string') return null
  const basic = {
    [KEYS[kind]]: key,
    name: kind === 'prompts' ? key : shown(name, MAX_NAME),
    ...(typeof title === 'string' ? { title: shown(title, MAX_NAME) } : {}),
    ...(typeof description === 'string' ? { description: shown(description, MAX_TEXT) } : {}),
    ...(kind === 'prompts' ? argumentsOf(args) : {}),
    ...(kind !== 'prompts' && typeof mimeType === 'string' ? { mimeType: shown(mimeType, MAX_NAME) } : {}),
    ...(kind === 'resources' && typeof size === 'number' && size >= 0 ? { size } : {})
  }
  const whole = {
    ...basic,
    ...(isRecord(annotations) ? { annotations } : {}),
    ...(Array.isArray(icons) ? { icons } : {}),
    ...metaOf(_meta)
  }
  const fits = (one: unknown): boolean => jsonFault(one) === null && bytesOf(one) <= MAX_ITEM_BYTES && isValid(one)
  return [whole, basic].find(fits) ?? null
}

function argumentsOf(given: unknown): { readonly arguments?: readonly ContextItem[] } {
  if (!Array.isArray(given)) return {}
  const args = (given as readonly unknown[]).slice(0, MAX_ARGUMENTS).flatMap((one) => {
    if (!isRecord(one) || typeof one['name'] !== 'string' || one['name'].length > MAX_NAME) return []
    const { name, title, description, required } = one
    return [
      {
        name,
        ...(typeof title === 'string' ? { title: shown(title, MAX_NAME) } : {}),
        ...(typeof description === 'string' ? { description: shown(description, MAX_TEXT) } : {}),
        ...(typeof required === 'boolean' ? { required } : {})
      }
    ]
  })
  return { arguments: args }
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value))
}
