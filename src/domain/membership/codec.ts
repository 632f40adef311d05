import type { z } from 'zod'
import { fromUtf8, type MeshId, type NodeId, utf8 } from '../../kit/ids.js'
import { canonicalJson, JSON_LIMITS, type JsonLimits, parseJson } from '../../kit/json.js'
import { shown } from '../../kit/text.js'
import { entrySchema, joinDataSchema, MESH_INFO_MAX_BYTES, meshInfoSchema } from './schema.js'
import type { Entry, JoinRequest } from './types.js'
import { jsonReason } from '../schema-words.js'

/** Bytes of one encoded log entry: a card of 64 KiB and its wrapping. */
export const ENTRY_MAX_BYTES = 98_304
/** Bytes of a join request on the pairing wire. */
export const JOIN_DATA_MAX_BYTES = 1024

/** The user data of a pairing request. */
export interface JoinData {
  readonly v: 1
  readonly request: JoinRequest
}

const LIMITS: JsonLimits = { ...JSON_LIMITS, maxString: ENTRY_MAX_BYTES }

/**
 * The mesh of an invite. Every node with the code has its signing key, so it is the newcomer's root of trust only with
 * the fingerprint in the code (`rootFault`).
 */
export interface MeshInfo {
  readonly v: 1
  readonly owner: NodeId
  readonly name: string
  readonly mesh: MeshId
}

/** A refused decoding: why, safe to show. */
export interface Undecodable {
  readonly ok: false
  readonly reason: string
}

/** Canonical JSON (RFC 8785) of a signed entry as UTF-8. @throws TypeError for values without a JSON form. */
export function encodeEntry(entry: Entry): Uint8Array {
  return utf8(canonicalJson(entry))
}

/**
 * The entry that others wrote, or why it is none: at most 96 KiB, strict form. Signatures are not checked here. Never
 * throws.
 */
export function decodeEntry(bytes: Uint8Array): { readonly ok: true; readonly entry: Entry } | Undecodable {
  const decoded = decode(bytes, ENTRY_MAX_BYTES, entrySchema)
  return decoded.ok ? { ok: true, entry: decoded.value } : decoded
}

/** The pairing request's user data as canonical JSON in UTF-8. */
export function encodeJoinData(data: JoinData): Uint8Array {
  return utf8(canonicalJson(data))
}

/** The candidate's request out of at most 1 KiB of user data. Its signature is not checked here. Never throws. */
export function decodeJoinData(bytes: Uint8Array): { readonly ok: true; readonly request: JoinRequest } | Undecodable {
  const decoded = decode(bytes, JOIN_DATA_MAX_BYTES, joinDataSchema)
  return decoded.ok ? { ok: true, request: decoded.value.request } : decoded
}

/** The bytes that the invite's key signs: canonical JSON in UTF-8. */
export function encodeMeshInfo(info: MeshInfo): Uint8Array {
  return utf8(canonicalJson(info))
}

/** The mesh of an invite out of at most 512 bytes. Never throws. */
export function decodeMeshInfo(bytes: Uint8Array): { readonly ok: true; readonly info: MeshInfo } | Undecodable {
  const decoded = decode(bytes, MESH_INFO_MAX_BYTES, meshInfoSchema)
  return decoded.ok ? { ok: true, info: decoded.value } : decoded
}

function decode<T>(
  bytes: Uint8Array,
  maxBytes: number,
  schema: z.ZodType<T>
): { readonly ok: true; readonly value: T } | Undecodable {
  if (!(bytes instanceof Uint8Array)) return { ok: false, reason: 'not bytes' }
  if (bytes.byteLength > maxBytes) return { ok: false, reason: `larger than ${maxBytes} bytes` }
  const json = parseJson(fromUtf8(bytes), LIMITS)
  if (!json.ok) return json
  const parsed = schema.safeParse(json.value, { error: jsonReason })
  if (parsed.success) return { ok: true, value: parsed.data }
  const issue = parsed.error.issues[0]
  return {
    ok: false,
    reason: issue === undefined ? 'malformed' : shown(`${issue.path.map(String).join('.')}: ${issue.message}`)
  }
}
