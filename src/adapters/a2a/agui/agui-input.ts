import { z } from 'zod'
import { isJustification } from '../../../domain/envelope/header.js'
import { ENVELOPE_LIMITS } from '../../../domain/envelope/limits.js'
import { MAX_CLIENT_ID, MAX_PARTS, type Part } from '../../../domain/gateway/message.js'
import { readBy } from '../../../domain/gateway/schema-read.js'
import { isRecord } from '../../../kit/json.js'
import { AGUI_VERSION } from './agui-events.js'
import { faultyAt, invalid } from '../server/read-params.js'
import { present } from '../server/wire.js'

/** Most messages of the conversation in the input of a run. */
export const MAX_AGUI_MESSAGES = 10_000
/** Most tools, context items and answers of one run, each. */
export const MAX_AGUI_ITEMS = 1000

/** A message of a user. */
export interface AguiMessage {
  readonly messageId: string
  readonly parts: readonly Part[]
}

/** An answer to an interrupt of an earlier run. */
export interface AguiAnswer {
  readonly interruptId: string
  readonly status: 'resolved' | 'cancelled'
  readonly payload?: unknown
}

/** The input of a run, as far as this node uses it. */
export interface AguiInput {
  readonly threadId: string
  readonly runId: string
  readonly parentRunId: string | null
  /** The last message of a user; null: none. */
  readonly userMessage: AguiMessage | null
  readonly agent: string | null
  readonly skill: string | null
  /** Justification for a more powerful agent. */
  readonly justification: string | null
  readonly resume: readonly AguiAnswer[]
  /** Unused parts of the input. */
  readonly warnings: readonly string[]
}

const id = z.string().min(1).max(MAX_CLIENT_ID)
// Clients before AG-UI 1.0 send null for absent members.
const items = z.array(z.unknown()).max(MAX_AGUI_ITEMS).nullish()

const input = z.object({
  threadId: id,
  runId: id,
  parentRunId: id.nullish(),
  protocolVersion: z.string().max(64).nullish(),
  messages: z.array(z.looseObject({ id: z.string(), role: z.string() })).max(MAX_AGUI_MESSAGES),
  tools: items,
  context: items,
  state: z.unknown().optional(),
  forwardedProps: z.unknown().optional(),
  resume: z
    .array(
      z.object({ interruptId: z.string(), status: z.enum(['resolved', 'cancelled']), payload: z.unknown().optional() })
    )
    .max(MAX_AGUI_ITEMS)
    .nullish()
})

const why = z
  .string()
  .refine(isJustification, `must be a text of at most ${ENVELOPE_LIMITS.maxJustificationBytes} bytes`)
const forwarded = z.looseObject({ agent: id.nullish(), skill: id.nullish(), justification: why.nullish() })

/** Kinds of content that have a source. */
const MEDIA: ReadonlySet<unknown> = new Set(['image', 'audio', 'video', 'document'])

/** Reads a `RunAgentInput` of AG-UI. @throws A2AFault INVALID_PARAMS with all faults */
export function readAguiInput(value: unknown): AguiInput {
  const { threadId, runId, parentRunId, protocolVersion, messages, tools, context, forwardedProps, resume } = read(
    input,
    value,
    ''
  )
  // Other members of forwardedProps are for other parties.
  const { agent, skill, justification } = read(
    forwarded,
    isRecord(forwardedProps) ? forwardedProps : {},
    'forwardedProps.'
  )
  const warnings: string[] = []
  if (typeof protocolVersion === 'string' && protocolVersion !== AGUI_VERSION)
    warnings.push(`this node speaks AG-UI ${AGUI_VERSION}`)
  if ((tools ?? []).length > 0) warnings.push('tools: the agents of this node are not given tools of their client')
  if ((context ?? []).length > 0)
    warnings.push('context: the agents of this node are given what the user says, and nothing beside it')
  const last = messages.findLast(({ role }) => role === 'user')
  const userMessage = last === undefined ? null : { messageId: last.id, parts: partsOf(last['content'], warnings) }
  const answers = (resume ?? []).map(({ interruptId, status, payload }) => ({
    interruptId,
    status,
    payload: payload ?? undefined
  }))
  return {
    threadId,
    runId,
    parentRunId: parentRunId ?? null,
    userMessage,
    agent: agent ?? null,
    skill: skill ?? null,
    justification: justification ?? null,
    resume: answers.map(present),
    warnings
  }
}

function read<T>(schema: z.ZodType<T>, value: unknown, place: string): T {
  const found = readBy(schema, value)
  if (found.ok) return found.value
  throw faultyAt(
    place,
    found.faults.map(({ path, message }) => ({ path: path === '' ? 'the body' : path, message }))
  )
}

/** @throws A2AFault INVALID_PARAMS */
function partsOf(content: unknown, warnings: string[]): readonly Part[] {
  if (typeof content === 'string') return [{ text: content }]
  if (!Array.isArray(content))
    throw invalid('content of the last message of a user', 'must be a text or a list of parts')
  if (content.length > MAX_PARTS) throw invalid('content', `must have at most ${MAX_PARTS} parts`)
  const parts: Part[] = []
  const skipped = new Set<string>()
  for (const one of content as unknown[]) {
    const part = partOf(one)
    if (typeof part === 'string') skipped.add(part)
    else parts.push(part)
  }
  // An unusable part must not fail the run.
  for (const kind of skipped) warnings.push(`content: parts of the kind ${kind} are left out`)
  return parts
}

/** A part of a message; the name of its kind when it is unusable. @throws A2AFault INVALID_PARAMS */
function partOf(value: unknown): Part | string {
  const { type, text, source }: Record<string, unknown> = isRecord(value) ? value : {}
  if (!isRecord(value) || typeof type !== 'string') throw invalid('content', 'a part must have a type')
  const kind = type.slice(0, 64)
  if (type === 'text') {
    if (typeof text !== 'string') throw invalid('content', 'a part of text must have a text')
    return { text }
  }
  // The form of files before AG-UI 1.0.
  if (type === 'binary')
    return (
      fileOf({ raw: value['data'], url: value['url'], filename: value['filename'], mediaType: value['mimeType'] }) ??
      kind
    )
  if (!MEDIA.has(type)) return kind
  if (!isRecord(source)) throw invalid('content', `a part of ${kind} must have a source`)
  const { type: how, value: what, mimeType: mediaType } = source
  if (typeof what !== 'string') throw invalid('content', `the source of ${kind} must have a value`)
  // A file id of a model provider is unusable here.
  return fileOf({ raw: how === 'data' ? what : undefined, url: how === 'url' ? what : undefined, mediaType }) ?? kind
}

function fileOf(
  given: Readonly<Record<'raw' | 'url' | 'mediaType', unknown>> & { readonly filename?: unknown }
): Part | null {
  const text = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)
  const raw = text(given.raw)
  const url = raw === undefined ? text(given.url) : undefined
  if (raw === undefined && url === undefined) return null
  return present({ raw, url, filename: text(given.filename), mediaType: text(given.mediaType) }) as Part
}
