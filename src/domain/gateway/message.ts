import { z } from 'zod'
import { isRecord, jsonFault } from '../../kit/json.js'

/** Parts of one message or artifact. */
export const MAX_PARTS = 64
/** Characters of an id that a client gives: of a message, context or task. */
export const MAX_CLIENT_ID = 256

/** One piece of content, in the form of A2A 1.0: exactly one of `text`, `raw` (base64), `url` and `data`. */
export interface Part {
  readonly text?: string
  readonly raw?: string
  readonly url?: string
  readonly data?: unknown
  readonly filename?: string
  readonly mediaType?: string
  readonly metadata?: Readonly<Record<string, unknown>>
}

/** What a client or an agent says. */
export interface Message {
  /** Chosen by who says it. */
  readonly messageId: string
  readonly contextId?: string
  readonly taskId?: string
  readonly role: 'user' | 'agent'
  readonly parts: readonly Part[]
  readonly metadata?: Readonly<Record<string, unknown>>
  /** URIs of extensions that it uses. */
  readonly extensions?: readonly string[]
  readonly referenceTaskIds?: readonly string[]
}

/** What an agent made. */
export interface Artifact {
  readonly artifactId: string
  readonly name?: string
  readonly description?: string
  readonly parts: readonly Part[]
  readonly metadata?: Readonly<Record<string, unknown>>
  /** URIs of extensions that it uses. */
  readonly extensions?: readonly string[]
}

/** What is wrong with a value, and where: `message.parts[0].text`. */
export interface MessageFault {
  readonly path: string
  readonly message: string
}

const metadata = z.record(z.string(), z.unknown()).optional()
const id = z.string().min(1).max(MAX_CLIENT_ID)
const CONTENT = ['text', 'raw', 'url', 'data'] as const
const extensions = z.array(z.string().max(2048)).max(32).optional()
/** Base64, of either alphabet. */
const BASE64 = /^[A-Za-z0-9+/_-]*={0,2}$/

const part = z
  .looseObject({
    text: z.string().optional(),
    raw: z.string().regex(BASE64, 'must be base64').optional(),
    url: z.string().max(2048).optional(),
    data: z.unknown().optional(),
    filename: z.string().max(1024).optional(),
    mediaType: z.string().max(256).optional(),
    metadata
  })
  .refine((value) => CONTENT.filter((key) => value[key] !== undefined).length === 1, 'must have exactly one of text, raw, url and data')

const artifact = z.object({
  artifactId: id,
  name: z.string().max(1024).optional(),
  description: z.string().max(4096).optional(),
  parts: z.array(part).min(1).max(MAX_PARTS),
  metadata,
  extensions
})

const message = z.object({
  messageId: id,
  contextId: id.optional(),
  taskId: id.optional(),
  role: z.enum(['user', 'agent']),
  parts: z.array(part).min(1).max(MAX_PARTS),
  metadata,
  extensions,
  referenceTaskIds: z.array(id).max(32).optional()
})

/** A value that was read, or all that is wrong with it. */
export type Read<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly faults: readonly MessageFault[] }

/** Reads a message that somebody sent. Total. `value` is JSON within the limits, or is refused. */
export function readMessage(value: unknown): Read<Message> {
  return read<Message>(message, value, 'message')
}

/** Reads an artifact as an agent reports it. Total. */
export function readArtifact(value: unknown): Read<Artifact> {
  return read<Artifact>(artifact, value, 'artifact')
}

function read<T>(schema: z.ZodType, value: unknown, name: string): Read<T> {
  const fault = isRecord(value) ? jsonFault(value) : 'must be an object'
  if (fault !== null) return { ok: false, faults: [{ path: name, message: fault }] }
  const parsed = schema.safeParse(value)
  if (parsed.success) return { ok: true, value: parsed.data as T }
  const faults = parsed.error.issues.slice(0, 16).map(({ path, message: text }) => ({ path: placeOf(name, path), message: text }))
  return { ok: false, faults }
}

function placeOf(name: string, path: readonly PropertyKey[]): string {
  return path.reduce<string>((place, key) => (typeof key === 'number' ? `${place}[${key}]` : `${place}.${String(key)}`), name)
}
