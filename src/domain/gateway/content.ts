import { fromBase64 } from '../../kit/bytes.js'
import { isRecord, parseJson, SIZED_LIMITS } from '../../kit/json.js'
import { type ErrorBody, NodeError } from '../../kit/errors.js'
import type { CapabilityDescriptor } from '../card/card.js'
import { isEnd, statedState, type StatedState } from '../task/stated.js'
import { type AgentThread, readThread } from './conversation.js'
import {
  type Artifact,
  MAX_MEDIA_TYPE,
  MAX_PARTS,
  type Message,
  type Part,
  readAgentParts,
  readArtifact
} from './message.js'

/**
 * A result of an agent that is none, but the state of its task: a question to its client, or an end without a result,
 * e.g.
 * `{"a2a": {"state": "input-required", "message": "Which one?"}}`.
 */
export interface StatedResult {
  readonly state: StatedState['state']
  readonly parts: readonly Part[]
  /** Ids that the agent wants back with the answer to its question. */
  readonly thread?: AgentThread
}

/** A result of an agent in the words of A2A. */
export interface AnswerResult {
  /** Its message; null for none. */
  readonly parts: readonly Part[] | null
  readonly artifacts: readonly Artifact[]
}

/** Media type of the schema of an answer to a question. */
export const SCHEMA_TYPE = 'application/schema+json'

/** The member of a result, or of a report of progress, that speaks of the task itself. */
const ABOUT = 'a2a'

/**
 * The input of an agent for the parts of a message. As with `send`, a text that is a JSON object is the input itself,
 * and other text is `{"text": ...}`. A message of one data object is that object. Any other is
 * `{"text"?, "data"?: [...], "files"?: [...]}`.
 */
export function inputOf(parts: readonly Part[]): unknown {
  if (parts.every(({ text }) => text !== undefined)) return textInput(parts.map(({ text }) => text).join('\n'))
  const texts = parts.flatMap(({ text }) => (text === undefined ? [] : [text]))
  const data = parts.flatMap((part) => (part.data === undefined ? [] : [part.data]))
  const files = parts.flatMap(fileOf)
  if (data.length === 1 && parts.length === 1 && isRecord(data[0])) return data[0]
  return {
    ...(texts.length === 0 ? {} : { text: texts.join('\n') }),
    ...(data.length === 0 ? {} : { data }),
    ...(files.length === 0 ? {} : { files })
  }
}

function textInput(text: string): unknown {
  const parsed = text.trimStart().startsWith('{') ? parseJson(text, SIZED_LIMITS) : null
  return parsed?.ok === true && isRecord(parsed.value) ? parsed.value : { text }
}

/** Default media types of files that a capability takes: the types on its card. */
export const DEFAULT_INPUT_MODES: readonly string[] = ['application/json', 'text/plain']

/**
 * May a capability be given these files? `image/*` among its modes is all of that kind.
 * @throws NodeError INVALID_INPUT with the reason CONTENT_TYPE
 */
export function checkModes(
  parts: readonly Part[],
  { id, inputModes = DEFAULT_INPUT_MODES }: Pick<CapabilityDescriptor, 'id' | 'inputModes'>
): void {
  for (const { raw, url, mediaType } of parts) {
    const type = mediaType?.split(';')[0]?.trim().toLowerCase() ?? ''
    if ((raw === undefined && url === undefined) || type === '') continue
    const kinds = new Set([type, `${type.split('/')[0] ?? ''}/*`, '*/*'])
    if (inputModes.some((mode) => kinds.has(mode.toLowerCase()))) continue
    throw new NodeError('INVALID_INPUT', `${id} takes no ${type}, only ${inputModes.join(', ')}`, {
      data: { reason: 'CONTENT_TYPE' }
    })
  }
}

function fileOf({ raw, url, filename, mediaType }: Part): object[] {
  if (raw === undefined && url === undefined) return []
  const about = { ...(filename === undefined ? {} : { filename }), ...(mediaType === undefined ? {} : { mediaType }) }
  return [{ ...about, ...(raw === undefined ? { url } : { bytes: raw }) }]
}

/**
 * The media type of results that are bytes in base64, by the schema of the output: `{contentEncoding: base64}`; null
 * for other results.
 */
export function bytesMediaType(outputSchema: unknown): string | null {
  if (!isRecord(outputSchema) || outputSchema['contentEncoding'] !== 'base64') return null
  const type = outputSchema['contentMediaType']
  return typeof type === 'string' && type !== '' && type.length <= MAX_MEDIA_TYPE ? type : 'application/octet-stream'
}

/**
 * A result as content: a text (or `{"text": ...}` alone) is text, anything else is data. `mediaType`: of a result that
 * is bytes in base64, which becomes a file ({@link bytesMediaType}).
 */
export function partsOf(result: unknown, mediaType: string | null = null): readonly Part[] {
  if (mediaType !== null && typeof result === 'string' && fromBase64(result) !== null)
    return [{ raw: result, mediaType }]
  if (typeof result === 'string') return [{ text: result }]
  if (isRecord(result) && typeof result['text'] === 'string' && Object.keys(result).length === 1)
    return [{ text: result['text'] }]
  return [{ data: result ?? null, mediaType: 'application/json' }]
}

/** The parts of a message of an agent: of an A2A message its own, of other JSON as those of a result. */
function partsIn(message: unknown): readonly Part[] {
  return (isRecord(message) ? readAgentParts(message['parts']) : null) ?? partsOf(message)
}

/** The state that an agent gives its task in the place of a result; null: it gives a result. */
export function statedBy(result: unknown): StatedResult | null {
  const stated = statedState(result)
  if (stated === null) return null
  const { state, message } = stated
  const about = aboutOf(result) ?? {}
  const words = message === undefined ? [{ text: isEnd(stated) ? state : 'more is needed to go on' }] : partsIn(message)
  const parts = readAgentParts(about['parts']) ?? words
  if (isEnd(stated)) return { state, parts }
  const [thread, schema] = [readThread(about), about['schema']]
  const asked = isRecord(schema) ? [...parts, { data: schema, mediaType: SCHEMA_TYPE }] : parts
  return thread === null ? { state, parts: asked } : { state, parts: asked, thread }
}

/**
 * A result in the words of A2A: `{"a2a": {"message"?, "parts"?: [...], "artifacts"?: [...]}}`, of at most
 * {@link MAX_PARTS} artifacts; null for any other. A message of that form is one, and no artifact.
 */
export function answerIn(result: unknown): AnswerResult | null {
  const about = aboutOf(result)
  if (about === null || Object.keys(result as object).length !== 1 || statedState(result) !== null) return null
  const { message, parts: given, artifacts: listed = [] } = about
  if (!Array.isArray(listed) || listed.length > MAX_PARTS) return null
  const artifacts = listed.flatMap((one: unknown) => {
    const read = readArtifact(one)
    return read.ok ? [read.value] : []
  })
  const parts = given === undefined ? (message === undefined ? null : partsIn(message)) : readAgentParts(given)
  if (artifacts.length < listed.length || (given !== undefined && parts === null)) return null
  return parts === null && artifacts.length === 0 ? null : { parts, artifacts }
}

/** The words of a failure of the node, with its code as `metadata.code`. An agent cannot give its words such a code. */
export function failurePart({ code, message }: Pick<ErrorBody, 'code' | 'message'>): Part {
  return { text: `${message} (${code})`, metadata: { code } }
}

/** The code of a failure of the node and its words without the code; null for words of an agent. */
export function failureIn({ text, metadata }: Part): { readonly code: string; readonly message: string } | null {
  const code = metadata?.['code']
  if (typeof code !== 'string' || text === undefined) return null
  const end = ` (${code})`
  return { code, message: text.endsWith(end) ? text.slice(0, -end.length) : text }
}

/**
 * The artifact that a report of progress carries, unchecked: `{"a2a": {"artifact": {...}, "append": true, "lastChunk":
 * false}}`.
 */
export function artifactOf(
  report: unknown
): { readonly artifact: unknown; readonly append: boolean; readonly lastChunk: boolean } | null {
  const about = aboutOf(report)
  if (about === null || (about['artifact'] ?? null) === null) return null
  return { artifact: about['artifact'], append: about['append'] === true, lastChunk: about['lastChunk'] === true }
}

/**
 * A piece of the output of a language model, as its runtime reports it: `{"token": "...", "turn": 1}`. Each turn
 * replaces the one before.
 */
export function tokenOf(report: unknown): { readonly token: string; readonly turn: number } | null {
  if (!isRecord(report) || Object.keys(report).length !== 2) return null
  const { token, turn } = report
  return typeof token === 'string' && typeof turn === 'number' ? { token, turn } : null
}

/** A report of progress in words or data; null for one that says nothing. */
export function reportParts(report: unknown): readonly Part[] | null {
  if (typeof report === 'string') return report === '' ? null : [{ text: report }]
  if (!isRecord(report)) return null
  const { message, text } = report
  if (typeof message === 'string') return [{ text: message }]
  return typeof text === 'string' ? [{ text }] : [{ data: report }]
}

/** Id of the artifact with the result of a task. */
export const RESULT = 'result'

/** The result of a task as its artifact; `mediaType` as for {@link partsOf}. */
export function resultArtifact(result: unknown, mediaType: string | null = null): Artifact {
  return { artifactId: RESULT, name: RESULT, parts: partsOf(result, mediaType) }
}

/**
 * Where the message says so, in the words of an error; faces of the gateway where it goes elsewhere put that in its
 * place.
 */
export const JUSTIFICATION_PLACE = 'in metadata.justification of the message'

/** A client's reason to ask a more powerful agent, if given: the `--justification` of `a2a-node call`. */
export function justificationIn({ metadata }: Pick<Message, 'metadata'>): string | undefined {
  const text = metadata?.['justification']
  return typeof text === 'string' && text !== '' ? text : undefined
}

/** The same as an object whose member may be absent. */
export function justificationOf(message: Pick<Message, 'metadata'>): { readonly justification?: string } {
  const justification = justificationIn(message)
  return justification === undefined ? {} : { justification }
}

function aboutOf(value: unknown): Record<string, unknown> | null {
  if (!isRecord(value)) return null
  const about = value[ABOUT]
  return isRecord(about) ? about : null
}
