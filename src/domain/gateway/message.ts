import type { Mutable } from '../../kit/transient.js'
import { isRecord, jsonFault, SIZED_LIMITS, writtenJson } from '../../kit/json.js'
import { A2A_NULLS, withoutNulls } from '../../kit/schema/nulls.js'

/** Parts of one message or artifact. */
export const MAX_PARTS = 64
/** Characters of the media type of a part. */
export const MAX_MEDIA_TYPE = 256
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

/** A message of a client or an agent. */
export interface Message {
  /** Chosen by the sender. */
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

/** A message as the node keeps it: with its task and context. */
export function placed(
  message: Message,
  { taskId, contextId }: { readonly taskId: string; readonly contextId: string }
): Message {
  const { messageId, role, parts, metadata: about, extensions: uses, referenceTaskIds } = message
  const stated: Mutable<Message> = { messageId, contextId, taskId, role, parts }
  if (about !== undefined) stated.metadata = about
  if (uses !== undefined) stated.extensions = uses
  if (referenceTaskIds !== undefined) stated.referenceTaskIds = referenceTaskIds
  return stated
}

/** Does a repeated message equal a kept one? The kept one has a context, which its sender need not have known. */
export function saysTheSame(
  kept: Message,
  { contextId = kept.contextId, parts, metadata: about, extensions: uses }: Message
): boolean {
  const stated = { contextId: kept.contextId, parts: kept.parts, metadata: kept.metadata, extensions: kept.extensions }
  return writtenJson(stated) === writtenJson({ contextId, parts, metadata: about, extensions: uses })
}

/** An output of an agent. */
export interface Artifact {
  readonly artifactId: string
  readonly name?: string
  readonly description?: string
  readonly parts: readonly Part[]
  readonly metadata?: Readonly<Record<string, unknown>>
  /** URIs of extensions that it uses. */
  readonly extensions?: readonly string[]
}

/** A fault of a value and its path: `message.parts[0].text`. */
export interface MessageFault {
  readonly path: string
  readonly message: string
}

/** Reported faults of one value. */
export const MAX_FAULTS = 16
const CONTENT = ['text', 'raw', 'url', 'data'] as const
/** The fault of a part with none of its contents, or several. */
export const ONE_CONTENT = 'must have exactly one of text, raw, url and data'
/** Base64, of either alphabet. */
const BASE64 = /^[A-Za-z0-9+/_-]*={0,2}$/

/** The fault of the value of a member; null: none. */
type MessageCheck = (value: unknown) => string | null

/**
 * The members of an object that are looked at. By hand, and not by a schema of a library: every message is read by it.
 */
type MessageMembers = readonly { readonly name: string; readonly check: MessageCheck; readonly isNeeded?: true }[]

const id = text(1, MAX_CLIENT_ID)
const metadata: MessageCheck = (value) => (isRecord(value) ? null : 'must be an object')
const extensions = texts(text(0, 2048))

const PART: MessageMembers = [
  { name: 'text', check: text() },
  { name: 'raw', check: (value) => (typeof value === 'string' && BASE64.test(value) ? null : 'must be base64') },
  { name: 'url', check: text(0, 2048) },
  { name: 'filename', check: text(0, 1024) },
  { name: 'mediaType', check: text(0, MAX_MEDIA_TYPE) },
  { name: 'metadata', check: metadata }
]

const ARTIFACT: MessageMembers = [
  { name: 'artifactId', check: id, isNeeded: true },
  { name: 'name', check: text(0, 1024) },
  { name: 'description', check: text(0, 4096) },
  { name: 'metadata', check: metadata },
  { name: 'extensions', check: extensions }
]

const MESSAGE: MessageMembers = [
  { name: 'messageId', check: id, isNeeded: true },
  { name: 'contextId', check: id },
  { name: 'taskId', check: id },
  {
    name: 'role',
    check: (value) => (value === 'user' || value === 'agent' ? null : 'must be user or agent'),
    isNeeded: true
  },
  { name: 'metadata', check: metadata },
  { name: 'extensions', check: extensions },
  { name: 'referenceTaskIds', check: texts(id) }
]

/** A parsed value, or its faults. */
export type MessageRead<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly faults: readonly MessageFault[] }

/** Reads a client's message from JSON within the limits ({@link jsonFault}). Total. */
export function readMessage(value: unknown): MessageRead<Message> {
  return read<Message>(value, MESSAGE, 'message')
}

/** Reads an artifact as an agent reports it. Total. JSON beyond the limits is refused. */
export function readArtifact(value: unknown): MessageRead<Artifact> {
  const fault = jsonFault(value, SIZED_LIMITS)
  return fault === null
    ? read<Artifact>(withoutNulls(value, A2A_NULLS), ARTIFACT, 'artifact')
    : { ok: false, faults: [{ path: 'artifact', message: fault }] }
}

/** Reads parts as an agent gives them; null for invalid ones. Total. */
export function readAgentParts(value: unknown): readonly Part[] | null {
  const artifact = readArtifact({ artifactId: 'parts', parts: value })
  return artifact.ok ? artifact.value.parts : null
}

function read<T>(value: unknown, members: MessageMembers, name: string): MessageRead<T> {
  if (!isRecord(value)) return { ok: false, faults: [{ path: name, message: 'must be an object' }] }
  const faults: MessageFault[] = []
  const kept: Record<string, unknown> = {}
  for (const member of members) {
    const one = value[member.name]
    if (one !== undefined) kept[member.name] = own(one)
    check(member, one, { name, faults })
  }
  kept['parts'] = readParts(value['parts'], { name: `${name}.parts`, faults })
  return faults.length === 0 ? { ok: true, value: kept as T } : { ok: false, faults: faults.slice(0, MAX_FAULTS) }
}

/** A copy: the caller may change the original later. */
function own(value: unknown): unknown {
  if (Array.isArray(value)) return [...(value as unknown[])]
  return isRecord(value) ? { ...value } : value
}

/** The position of a reader and its faults so far. */
interface Reading {
  readonly name: string
  readonly faults: MessageFault[]
}

function readParts(value: unknown, { name, faults }: Reading): readonly Part[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > MAX_PARTS) {
    faults.push({ path: name, message: `must be a list of 1 to ${MAX_PARTS} parts` })
    return []
  }
  return value.map((one: unknown, at) => readPart(one, { name: `${name}[${at}]`, faults }))
}

/** Members that it has beside those that are known are its own. */
function readPart(value: unknown, reading: Reading): Part {
  if (!isRecord(value)) {
    reading.faults.push({ path: reading.name, message: 'must be an object' })
    return {}
  }
  for (const member of PART) check(member, value[member.name], reading)
  let contents = 0
  for (const key of CONTENT) if (value[key] !== undefined) contents++
  if (contents !== 1) reading.faults.push({ path: reading.name, message: ONE_CONTENT })
  return { ...value }
}

function check(
  { name, check: of, isNeeded }: MessageMembers[number],
  value: unknown,
  { name: parent, faults }: Reading
): void {
  const fault = value === undefined && isNeeded === undefined ? null : of(value)
  if (fault !== null) faults.push({ path: `${parent}.${name}`, message: fault })
}

function text(min = 0, max = Number.POSITIVE_INFINITY): MessageCheck {
  const form = max === Number.POSITIVE_INFINITY ? 'must be a text' : `must be a text of ${min} to ${max} characters`
  return (value) => (typeof value === 'string' && value.length >= min && value.length <= max ? null : form)
}

function texts(each: MessageCheck, max = 32): MessageCheck {
  return (value) => {
    if (!Array.isArray(value) || value.length > max) return `must be a list of at most ${max} texts`
    return value.reduce<string | null>((fault, one) => fault ?? each(one), null)
  }
}
