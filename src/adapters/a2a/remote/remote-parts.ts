import type { Part as SdkPart } from '@a2a-js/sdk'
import { inputOf } from '../../../domain/gateway/content.js'
import { MAX_PARTS, type Part } from '../../../domain/gateway/message.js'
import { isRecord } from '../../../kit/json.js'

/** The member of an input that says of which task and conversation of the remote agent it is. */
const ABOUT = 'a2a'

/** What an agent of the mesh is asked with, as a remote agent is asked. */
export interface RemoteInput {
  readonly parts: readonly Part[]
  /** Of the task that goes on with it; null: a new one. */
  readonly taskId: string | null
  readonly contextId: string | null
}

/**
 * An input as the parts of a message, so that the gateway of another node makes the same input of them: text for a text and for
 * `{"text": ...}` alone, several parts for `{"text"?, "data"?: [...], "files"?: [...]}`, else one of data. `{"a2a": {"taskId",
 * "contextId"}}` beside it goes on with a task.
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

/** null: it is not what the parts of a message become. */
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
  // One value alone would come out as itself.
  const isAmbiguous = all.length === 1 && values.length === 1
  return all.length === 0 || all.length > MAX_PARTS || isAmbiguous ? null : all
}

function filePart(file: unknown): Part | null {
  if (!isRecord(file)) return null
  const { bytes, url, filename, mediaType, ...others } = file
  if (Object.keys(others).length > 0 || (bytes === undefined) === (url === undefined)) return null
  if (!isWordOrNone(bytes) || !isWordOrNone(url) || !isWordOrNone(filename) || !isWordOrNone(mediaType)) return null
  if (filename === '' || mediaType === '') return null
  // What is no canonical base64 would come out as other text.
  if (bytes !== undefined && Buffer.from(bytes, 'base64').toString('base64') !== bytes) return null
  const about = { ...(filename === undefined ? {} : { filename }), ...(mediaType === undefined ? {} : { mediaType }) }
  return bytes === undefined ? { ...about, url: url ?? '' } : { ...about, raw: bytes }
}

function isWordOrNone(value: unknown): value is string | undefined {
  return value === undefined || typeof value === 'string'
}

/** Content as the result of a task: a text, one value of data, or what {@link inputOf} makes of several; `glue` stands between texts. */
export function valueOfParts(parts: readonly Part[], glue: string): unknown {
  if (parts.length === 0) return null
  if (parts.every(({ text }) => text !== undefined)) return parts.map(({ text }) => text).join(glue)
  const [only] = parts
  return parts.length === 1 && only?.data !== undefined ? only.data : inputOf(parts)
}

/** A part as the client library wants it. */
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

/** A part that the client library read; null for one without content. */
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
