import type { Part as SdkPart } from '@a2a-js/sdk'
import { inputOf } from '../../../domain/gateway/content.js'
import type { Conversation } from '../../../domain/gateway/conversation.js'
import { MAX_PARTS, type Part } from '../../../domain/gateway/message.js'
import { isRecord } from '../../../kit/json.js'

/** The member of an input that names the task and conversation at the remote agent. */
const ABOUT = 'a2a'

/** An input of an agent of the mesh, in the form of a message to a remote agent. */
export interface RemoteInput {
  readonly parts: readonly Part[]
  /** The task that the message continues; null: a new task. */
  readonly taskId: string | null
  readonly contextId: string | null
  /** Further metadata of the message. */
  readonly metadata?: Readonly<Record<string, unknown>>
}

/** Members of the metadata of a client that are for the nodes between. */
const OWN_METADATA: ReadonlySet<string> = new Set(['skillId', 'skill', 'justification'])

/** The message of a conversation as it came, for its context at the agent (null: a new one). */
export function conversationInput({ message, thread }: Conversation, contextId: string | null): RemoteInput {
  const { parts, metadata = {} } = message
  const kept = Object.entries(metadata).filter(([name]) => !OWN_METADATA.has(name))
  const about = kept.length === 0 ? {} : { metadata: Object.fromEntries(kept) }
  return { parts, taskId: thread?.taskId ?? null, contextId, ...about }
}

/**
 * Converts an input to the parts of a message; the gateway of another node converts them back. A text and
 * `{"text": ...}` alone give one text part; `{"text"?, "data"?: [...], "files"?: [...]}` gives several parts; all else
 * gives one data part. A member `{"a2a": {"taskId", "contextId"}}` continues a task.
 */
export function remoteInput(input: unknown): RemoteInput {
  if (!isRecord(input) || !isRecord(input[ABOUT])) return { parts: partsOfInput(input), taskId: null, contextId: null }
  const { [ABOUT]: about, ...rest } = input
  const { taskId, contextId } = isRecord(about) ? about : {}
  return { parts: partsOfInput(rest), taskId: idOf(taskId), contextId: idOf(contextId) }
}

function idOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' && value.length <= 256 ? value : null
}

function partsOfInput(input: unknown): readonly Part[] {
  if (typeof input === 'string') return [{ text: input }]
  return (isRecord(input) ? severalParts(input) : null) ?? [{ data: input ?? null, mediaType: 'application/json' }]
}

/** null: no message of several parts would give this input. */
function severalParts(input: Record<string, unknown>): readonly Part[] | null {
  const { text, data, files, ...others } = input
  if (Object.keys(others).length > 0 || (text !== undefined && typeof text !== 'string')) return null
  const values = data === undefined ? [] : Array.isArray(data) && data.length > 0 ? data : null
  const parts = files === undefined ? [] : Array.isArray(files) && files.length > 0 ? files.map(filePart) : null
  if (values === null || parts === null || parts.includes(null)) return null
  const all: Part[] = [
    ...(text === undefined ? [] : [{ text }]),
    ...values.map((value: unknown) => ({ data: value, mediaType: 'application/json' })),
    ...(parts as Part[])
  ]
  // A single data value would be converted back to the bare value.
  const isAmbiguous = all.length === 1 && values.length === 1
  return all.length === 0 || all.length > MAX_PARTS || isAmbiguous ? null : all
}

function filePart(file: unknown): Part | null {
  if (!isRecord(file)) return null
  const { bytes, url, filename, mediaType, ...others } = file
  if (Object.keys(others).length > 0 || (bytes === undefined) === (url === undefined)) return null
  if (!isWordOrNone(bytes) || !isWordOrNone(url) || !isWordOrNone(filename) || !isWordOrNone(mediaType)) return null
  if (filename === '' || mediaType === '') return null
  // Other than canonical base64 would not survive the conversion.
  if (bytes !== undefined && Buffer.from(bytes, 'base64').toString('base64') !== bytes) return null
  const about = { ...(filename === undefined ? {} : { filename }), ...(mediaType === undefined ? {} : { mediaType }) }
  return bytes === undefined ? { ...about, url: url ?? '' } : { ...about, raw: bytes }
}

function isWordOrNone(value: unknown): value is string | undefined {
  return value === undefined || typeof value === 'string'
}

/**
 * Converts content to the result of a task: a text joined by `glue`, one data value, or the {@link inputOf} of several
 * parts.
 */
export function valueOfParts(parts: readonly Part[], glue: string): unknown {
  if (parts.length === 0) return null
  if (parts.every(({ text }) => text !== undefined)) return parts.map(({ text }) => text).join(glue)
  const [only] = parts
  return parts.length === 1 && only?.data !== undefined ? only.data : inputOf(parts)
}

/** A part in the form of the client library. */
export function toSdkPart({ text, raw, url, data, filename = '', mediaType = '', metadata }: Part): SdkPart {
  const content: SdkPart['content'] =
    text !== undefined
      ? { $case: 'text', value: text }
      : raw !== undefined
        ? { $case: 'raw', value: Buffer.from(raw, 'base64') }
        : url !== undefined
          ? { $case: 'url', value: url }
          : { $case: 'data', value: data }
  return { content, metadata: metadata === undefined ? undefined : { ...metadata }, filename, mediaType }
}

/** A part from the form of the client library; null for one without content. */
export function fromSdkPart({ content, filename, mediaType, metadata }: SdkPart): Part | null {
  if (content === undefined) return null
  const about = {
    ...(filename === '' ? {} : { filename }),
    ...(mediaType === '' ? {} : { mediaType }),
    ...(metadata === undefined ? {} : { metadata })
  }
  switch (content.$case) {
    case 'text':
      return { text: content.value, ...about }
    case 'raw':
      return { raw: content.value.toString('base64'), ...about }
    case 'url':
      return { url: content.value, ...about }
    case 'data':
      return { data: content.value, ...about }
  }
}
