import type { Mutable } from '../../kit/transient.js'
import c from 'compact-encoding'
import { NodeError } from '../../kit/errors.js'
import { isKeyText, keyFromText, keyToText, utf8, type NodeId } from '../../kit/ids.js'
import { isRecord } from '../../kit/json.js'
import { shown } from '../../kit/text.js'
import { isTier, type Tier } from '../routing/tier.js'
import { MESSAGE_TYPES, SCHEMA_VERSION, type A2AEnvelope, type EnvelopeMetadata } from './envelope.js'
import { ENVELOPE_LIMITS } from './limits.js'

/** An envelope without its payload: the input of routing decisions. */
export type EnvelopeHeader = Omit<A2AEnvelope, 'payload'>

/**
 * The header of an envelope. Member by member: every message within a node comes through here, and spreading is slow.
 */
export function headerOf(envelope: A2AEnvelope): EnvelopeHeader {
  const { id, schemaVersion, sender, recipient, correlationId, type, timestamp, metadata } = envelope
  const header: EnvelopeHeader =
    metadata === undefined
      ? { id, schemaVersion, sender, recipient, type, timestamp }
      : { id, schemaVersion, sender, recipient, type, timestamp, metadata }
  return correlationId === undefined ? header : { ...header, correlationId }
}

/** Cursor over bytes being written or read. */
export type WireState = ReturnType<typeof c.state>

const { maxIdLength, maxNameLength, maxSandboxIdLength, maxJustificationBytes, maxHops } = ENVELOPE_LIMITS

/** Bits of the flags byte: which optional fields follow. Bits without a name must be 0. */
const FLAG = { correlationId: 1, metadata: 2, sandboxId: 4, routingHint: 8, justification: 16, hops: 32 } as const
const ALL_FLAGS = 63
const METADATA_FLAGS = FLAG.sandboxId | FLAG.routingHint | FLAG.justification | FLAG.hops

/** Why a header may not be sent or accepted. */
export interface EnvelopeFault {
  readonly code: 'INVALID_ENVELOPE' | 'SCHEMA_VERSION_MISMATCH'
  readonly reason: string
}

/**
 * The fault of a header, or null when it is sound. The one rule for every codec of envelopes. A foreign version is
 * reported before others.
 */
export function headerFault(header: EnvelopeHeader): EnvelopeFault | null {
  const version = versionFault(header.schemaVersion)
  if (version !== null) return version
  const reason = fieldFault(header)
  return reason === null ? null : { code: 'INVALID_ENVELOPE', reason }
}

/**
 * Checks a header before it is sent.
 * @throws NodeError INVALID_ENVELOPE, SCHEMA_VERSION_MISMATCH with the expected and the actual version
 */
export function assertHeader(header: EnvelopeHeader): void {
  const fault = headerFault(header)
  if (fault !== null) throw new NodeError(fault.code, fault.reason)
}

/**
 * The fault of a schema version: a mismatch for any other number or text, with both versions; invalid for a value that
 * is no version.
 */
export function versionFault(actual: unknown): EnvelopeFault | null {
  if (actual === SCHEMA_VERSION) return null
  const isVersion = typeof actual === 'number' || typeof actual === 'string'
  const reason = `schemaVersion: expected ${SCHEMA_VERSION}, got ${isVersion ? shown(String(actual), 40) : typeof actual}`
  return { code: isVersion ? 'SCHEMA_VERSION_MISMATCH' : 'INVALID_ENVELOPE', reason }
}

function fieldFault(header: EnvelopeHeader): string | null {
  if (!isText(header.id, maxIdLength)) return `id: 1 to ${maxIdLength} characters`
  if (!isText(header.sender, maxNameLength)) return `sender: 1 to ${maxNameLength} characters`
  if (!isText(header.recipient, maxNameLength)) return `recipient: 1 to ${maxNameLength} characters`
  if (!MESSAGE_TYPES.includes(header.type)) return 'type: not a known type of message'
  if (header.correlationId !== undefined && !isText(header.correlationId, maxNameLength))
    return `correlationId: 1 to ${maxNameLength} characters`
  if (!Number.isSafeInteger(header.timestamp) || header.timestamp < 0) return 'timestamp: unix milliseconds'
  if (header.metadata === undefined) return null
  return isRecord(header.metadata) ? metadataFault(header.metadata) : 'metadata: an object'
}

function metadataFault(metadata: EnvelopeMetadata): string | null {
  const { tier, sandboxId, routingHint, justification, hops } = metadata
  if (!isTier(tier)) return 'metadata.tier: 0 to 3'
  if (sandboxId !== undefined && !isText(sandboxId, maxSandboxIdLength))
    return `metadata.sandboxId: 1 to ${maxSandboxIdLength} characters`
  if (routingHint !== undefined && routingHint !== 'capability') return 'metadata.routingHint: capability or absent'
  if (justification !== undefined && !isJustification(justification))
    return `metadata.justification: at most ${maxJustificationBytes} bytes`
  if (hops !== undefined && (!Array.isArray(hops) || hops.length > maxHops || !hops.every(isKeyText)))
    return `metadata.hops: at most ${maxHops} node keys`
  return null
}

function isText(value: unknown, maxLength: number): value is string {
  return typeof value === 'string' && value.length > 0 && value.length <= maxLength && value.isWellFormed()
}

/** May it stand in `metadata.justification`? */
export function isJustification(value: unknown): value is string {
  return (
    typeof value === 'string' &&
    value.length <= maxJustificationBytes &&
    value.isWellFormed() &&
    utf8(value).byteLength <= maxJustificationBytes
  )
}

function flagsOf(header: EnvelopeHeader): number {
  const { correlationId, metadata } = header
  const own = correlationId === undefined ? 0 : FLAG.correlationId
  if (metadata === undefined) return own
  return (
    own |
    FLAG.metadata |
    (metadata.sandboxId === undefined ? 0 : FLAG.sandboxId) |
    (metadata.routingHint === undefined ? 0 : FLAG.routingHint) |
    (metadata.justification === undefined ? 0 : FLAG.justification) |
    (metadata.hops === undefined ? 0 : FLAG.hops)
  )
}

/** Adds the size of a sound header to the cursor. */
export function measureHeader(state: WireState, header: EnvelopeHeader): void {
  c.uint8.preencode(state, 0)
  c.uint.preencode(state, header.schemaVersion)
  c.utf8.preencode(state, header.id)
  c.utf8.preencode(state, header.sender)
  c.utf8.preencode(state, header.recipient)
  c.uint8.preencode(state, 0)
  if (header.correlationId !== undefined) c.utf8.preencode(state, header.correlationId)
  c.uint64.preencode(state, header.timestamp)
  const { metadata } = header
  if (metadata === undefined) return
  c.uint8.preencode(state, metadata.tier)
  if (metadata.sandboxId !== undefined) c.utf8.preencode(state, metadata.sandboxId)
  if (metadata.justification !== undefined) c.utf8.preencode(state, metadata.justification)
  if (metadata.hops !== undefined) state.end += 1 + 32 * metadata.hops.length
}

/** Writes a sound header. */
export function writeHeader(state: WireState, header: EnvelopeHeader): void {
  c.uint8.encode(state, MESSAGE_TYPES.indexOf(header.type))
  c.uint.encode(state, header.schemaVersion)
  c.utf8.encode(state, header.id)
  c.utf8.encode(state, header.sender)
  c.utf8.encode(state, header.recipient)
  c.uint8.encode(state, flagsOf(header))
  if (header.correlationId !== undefined) c.utf8.encode(state, header.correlationId)
  c.uint64.encode(state, header.timestamp)
  const { metadata } = header
  if (metadata === undefined) return
  c.uint8.encode(state, metadata.tier)
  if (metadata.sandboxId !== undefined) c.utf8.encode(state, metadata.sandboxId)
  if (metadata.justification !== undefined) c.utf8.encode(state, metadata.justification)
  if (metadata.hops !== undefined) writeHops(state, metadata.hops)
}

function writeHops(state: WireState, hops: readonly NodeId[]): void {
  c.uint8.encode(state, hops.length)
  for (const hop of hops) c.fixed32.encode(state, keyFromText(hop))
}

/** Result of reading a header. The id, when readable, allows an answer to the sender of an invalid one. */
export type HeaderReading =
  | { readonly ok: true; readonly header: EnvelopeHeader }
  | ({ readonly ok: false; readonly id: string | null } & EnvelopeFault)

/**
 * Reads a header, bounded by `state.end`.
 * @throws Error when bytes are missing (the caller turns that into a refusal, with the id from `seen`).
 */
export function readHeader(state: WireState, seen: { id: string | null }): HeaderReading {
  const type = MESSAGE_TYPES[c.uint8.decode(state)]
  const schemaVersion = c.uint.decode(state)
  const id = c.utf8.decode(state)
  if (id.length > 0 && id.length <= maxIdLength) seen.id = id
  const version = versionFault(schemaVersion)
  if (version !== null) return { ok: false, id: seen.id, ...version }
  if (type === undefined) return invalid('type: not a known type of message', seen.id)
  const sender = c.utf8.decode(state)
  const recipient = c.utf8.decode(state)
  const flags = c.uint8.decode(state)
  if (flags > ALL_FLAGS || ((flags & METADATA_FLAGS) !== 0 && (flags & FLAG.metadata) === 0))
    return invalid('flags: unknown', seen.id)
  const correlationId = (flags & FLAG.correlationId) === 0 ? undefined : c.utf8.decode(state)
  const timestamp = c.uint64.decode(state)
  const header: Mutable<EnvelopeHeader> = { id, schemaVersion, sender, recipient, type, timestamp }
  if (correlationId !== undefined) header.correlationId = correlationId
  if ((flags & FLAG.metadata) !== 0) header.metadata = readMetadata(state, flags)
  const fault = headerFault(header)
  return fault === null ? { ok: true, header } : { ok: false, id: seen.id, ...fault }
}

function invalid(reason: string, id: string | null): HeaderReading {
  return { ok: false, code: 'INVALID_ENVELOPE', reason, id }
}

function readMetadata(state: WireState, flags: number): EnvelopeMetadata {
  const metadata: Mutable<EnvelopeMetadata> = { tier: c.uint8.decode(state) as Tier }
  if ((flags & FLAG.sandboxId) !== 0) metadata.sandboxId = c.utf8.decode(state)
  if ((flags & FLAG.routingHint) !== 0) metadata.routingHint = 'capability'
  if ((flags & FLAG.justification) !== 0) metadata.justification = c.utf8.decode(state)
  if ((flags & FLAG.hops) !== 0) metadata.hops = readHops(state)
  return metadata
}

function readHops(state: WireState): NodeId[] {
  const hops: NodeId[] = []
  for (let left = c.uint8.decode(state); left > 0; left--) hops.push(keyToText(c.fixed32.decode(state)))
  return hops
}
