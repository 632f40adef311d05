import { fromBase64 } from '../../kit/bytes.js'
import { isRecord, jsonFault } from '../../kit/json.js'
import { shown } from '../../kit/text.js'
import type { ReportedFailure } from './outcome.js'

/** One piece of content of a tool result (MCP, ContentBlock): bytes are base64 text, or a byte array between nodes. */
export type ContentBlock = Readonly<Record<string, unknown>> & { readonly type: string }

/** A tool result in the form of MCP (CallToolResult). */
export interface ToolContent {
  readonly content: readonly ContentBlock[]
  /** The result as JSON, by the tool's output schema. */
  readonly structuredContent?: Readonly<Record<string, unknown>>
  readonly isError?: boolean
  readonly _meta?: Readonly<Record<string, unknown>>
}

/** Bytes of one message that leave the JSON; the envelope has room for 64 attachments, long texts among them. */
const MAX_BYTE_PARTS = 32
/** Shorter base64 texts stay in the JSON. */
const MIN_BASE64 = 1024

const MEMBERS = new Set(['content', 'structuredContent', 'isError', '_meta'])

const isText = (value: unknown): boolean => typeof value === 'string'
const isBytes = (value: unknown): boolean => typeof value === 'string' || value instanceof Uint8Array
const isEmbedded = (value: unknown): boolean =>
  isRecord(value) && isText(value['uri']) && (isText(value['text']) || isBytes(value['blob']))

/** The members that each kind of content must have. */
const KINDS: Readonly<Record<string, Readonly<Record<string, (value: unknown) => boolean>>>> = {
  text: { text: isText },
  image: { data: isBytes, mimeType: isText },
  audio: { data: isBytes, mimeType: isText },
  resource_link: { uri: isText, name: isText },
  resource: { resource: isEmbedded }
}

/**
 * Is a result in the form of MCP: `content` of blocks of the kinds `text`, `image`, `audio`, `resource_link` and
 * `resource`, and no members of another name than those of {@link ToolContent}?
 */
export function isToolContent(value: unknown): value is ToolContent {
  if (!isRecord(value) || !Array.isArray(value['content'])) return false
  const { structuredContent, isError, _meta: meta } = value
  if (structuredContent !== undefined && !isRecord(structuredContent)) return false
  if (isError !== undefined && typeof isError !== 'boolean') return false
  if (meta !== undefined && !isRecord(meta)) return false
  return Object.keys(value).every((key) => MEMBERS.has(key)) && value['content'].every(isBlock)
}

function isBlock(value: unknown): boolean {
  if (!isRecord(value) || typeof value['type'] !== 'string' || !Object.hasOwn(KINDS, value['type'])) return false
  return Object.entries(KINDS[value['type']] ?? {}).every(([member, fits]) => fits(value[member]))
}

/**
 * A tool result as a plain value: its structured content when present; a single text as JSON when it parses, else as
 * text; several blocks, and other kinds than text, as `{content: [...]}`; no content as null.
 */
export function plainValue({
  content,
  structuredContent
}: Pick<ToolContent, 'content' | 'structuredContent'>): unknown {
  if (structuredContent !== undefined) return structuredContent
  const [only] = content
  if (only === undefined) return null
  const text = content.length === 1 ? textOf(only) : null
  if (text === null) return { content }
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}

/** The text of a text block; null for another kind. */
export function textOf(block: unknown): string | null {
  return isRecord(block) && block['type'] === 'text' && typeof block['text'] === 'string' ? block['text'] : null
}

/**
 * The same with its images, audio and embedded files as byte arrays, which travel beside the JSON of a message. Text
 * that is no canonical base64 stays as it is, and so does small or surplus content.
 */
export function withBytes(result: ToolContent): ToolContent {
  let left = MAX_BYTE_PARTS
  const bytesOf = (value: unknown): unknown => {
    if (typeof value !== 'string' || value.length < MIN_BASE64 || left === 0) return value
    const bytes = fromBase64(value)
    if (bytes === null) return value
    left--
    return bytes
  }
  const content = result.content.map((block): ContentBlock => {
    if (block.type === 'image' || block.type === 'audio') return { ...block, data: bytesOf(block['data']) }
    const { resource } = block
    if (block.type !== 'resource' || !isRecord(resource) || resource['blob'] === undefined) return block
    return { ...block, resource: { ...resource, blob: bytesOf(resource['blob']) } }
  })
  return { ...result, content }
}

/** The result of a run for a caller that wants it in the form of MCP; the plain one where it has no other. */
export function contentOf({ result, content }: { readonly result: unknown; readonly content?: ToolContent }): unknown {
  const whole = content ?? result
  return isToolContent(whole) ? withBytes(whole) : result
}

/** Longest text of a failure that is passed on, in characters. */
const MAX_FAILURE_TEXT = 2000
/** Longest content of a failure that is passed on whole, in characters of JSON: errors have no attachments. */
const MAX_FAILURE_JSON = 65_536

/** The failure of a tool whose result is an error, with its content. `data.retryAfter` is in seconds. */
export function toolFailure({ content, _meta: meta }: Pick<ToolContent, 'content' | '_meta'>): {
  readonly ok: false
  readonly code: 'TASK_FAILED'
  readonly message: string
  readonly data?: Readonly<Record<string, unknown>>
  readonly content?: readonly ContentBlock[]
} {
  const text = content.flatMap((one) => textOf(one) ?? []).join('\n')
  const message = text.trim() === '' ? 'the tool failed and does not say why' : shown(text, MAX_FAILURE_TEXT)
  const retryAfter = retryAfterOf(meta)
  return {
    ok: false,
    code: 'TASK_FAILED',
    message,
    ...(retryAfter === null ? {} : { data: { retryAfter } }),
    ...(content.length > 0 ? { content } : {})
  }
}

/** The failure of a run for such a caller: with its content in `data.content`, where that fits. */
export function failedWith(failure: ReportedFailure & { readonly content?: readonly ContentBlock[] }): ReportedFailure {
  const { data = {}, content } = failure
  const isKept = content !== undefined && isRecord(data) && isSmall(content)
  return isKept ? { ...failure, data: { ...data, content } } : failure
}

function isSmall(content: readonly ContentBlock[]): boolean {
  return jsonFault(content) === null && JSON.stringify(content).length <= MAX_FAILURE_JSON
}

/** The content of a tool's failure by the data of an error; null: it has none. */
export function failedContent(data: unknown): ToolContent | null {
  if (!isRecord(data)) return null
  const result = { content: data['content'], isError: true }
  return isToolContent(result) ? result : null
}

/** `retryAfter` (seconds) of the `_meta` of a result or of the data of an error; null when there is none. */
export function retryAfterOf(value: unknown): number | null {
  const seconds = isRecord(value) ? (value['retryAfter'] ?? value['retry-after']) : undefined
  return typeof seconds === 'number' && Number.isFinite(seconds) && seconds >= 0 && seconds <= 86_400 ? seconds : null
}
