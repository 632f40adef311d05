import { z } from 'zod'
import { fromBase64, toBase64 } from '../../kit/bytes.js'
import { NodeError } from '../../kit/errors.js'
import { isKeyText, type NodeId } from '../../kit/ids.js'
import { isRecord, JSON_LIMITS, jsonFault, parseJson } from '../../kit/json.js'
import { lift, restore, type Attachment } from './attachments.js'
import { MESSAGE_TYPES, type A2AEnvelope } from './envelope.js'
import { assertHeader, type EnvelopeFault, headerFault, versionFault } from './header.js'
import { ENVELOPE_LIMITS } from './limits.js'
import { jsonReason } from '../schema-words.js'

const { maxAttachments, maxBytes } = ENVELOPE_LIMITS

/** Base64 and the rest of the JSON around 16 MiB of bytes. */
const MAX_TEXT = Math.ceil((maxBytes * 4) / 3) + 2 * ENVELOPE_LIMITS.maxJsonBytes

/** Tier of an agent, 0 to 3 (spec a2a-mcp-mesh, AgentTierSchema). */
export const AgentTierSchema = z.union([z.literal(0), z.literal(1), z.literal(2), z.literal(3)])

/** Type of a message (spec a2a-mcp-mesh, A2AMessageTypeSchema). */
export const A2AMessageTypeSchema = z.enum(MESSAGE_TYPES)

const NodeIdSchema = z.custom<NodeId>(isKeyText, 'a node key in z32')

/** Claims of a sender beside its message. */
export const EnvelopeMetadataSchema = z.object({
  tier: AgentTierSchema,
  sandboxId: z.string().exactOptional(),
  routingHint: z.literal('capability').exactOptional(),
  justification: z.string().exactOptional(),
  hops: z.array(NodeIdSchema).max(ENVELOPE_LIMITS.maxHops).exactOptional()
})

/**
 * An envelope at the edges of the system (spec a2a-mcp-mesh, A2AEnvelopeSchema): shape by this schema, bounds by the
 * same rule as the binary codec. Unknown members are dropped.
 */
export const A2AEnvelopeSchema: z.ZodType<A2AEnvelope> = z
  .object({
    id: z.string(),
    schemaVersion: z.number().int().positive(),
    sender: z.string(),
    recipient: z.string(),
    correlationId: z.string().exactOptional(),
    type: A2AMessageTypeSchema,
    timestamp: z.number(),
    payload: z.unknown(),
    metadata: EnvelopeMetadataSchema.exactOptional()
  })
  .superRefine((envelope, context) => {
    const fault = headerFault(envelope)
    if (fault !== null) context.addIssue({ code: 'custom', message: fault.reason })
  })

const AttachmentsSchema = z
  .array(z.object({ pointer: z.string().max(ENVELOPE_LIMITS.maxHeaderBytes), base64: z.string() }))
  .max(maxAttachments)
  .default([])

/** Result of {@link envelopeFromJson}. */
export type EnvelopeReading =
  | { readonly ok: true; readonly envelope: A2AEnvelope }
  | ({ readonly ok: false } & EnvelopeFault)

/**
 * An envelope as JSON text, for the edges that speak JSON. Byte arrays of the payload stand as null and come beside it
 * in `attachments: [{pointer, base64}]`.
 * @throws NodeError INVALID_ENVELOPE when a field is out of bounds or the payload has no JSON form;
 * SCHEMA_VERSION_MISMATCH
 */
export function envelopeToJson(envelope: A2AEnvelope): string {
  assertHeader(envelope)
  const fault = jsonFault(envelope.payload, { ...JSON_LIMITS, maxString: maxBytes })
  if (fault !== null) throw new NodeError('INVALID_ENVELOPE', fault)
  const lifted = lift(envelope.payload, { maxInlineText: Number.POSITIVE_INFINITY })
  if (lifted === null) throw new NodeError('INVALID_ENVELOPE', `payload: more than ${maxAttachments} byte arrays`)
  const attachments = lifted.attachments.map(({ pointer, content }) => ({
    pointer,
    base64: toBase64(content as Uint8Array)
  }))
  try {
    return JSON.stringify({ ...envelope, payload: lifted.json, ...(attachments.length === 0 ? {} : { attachments }) })
  } catch (cause) {
    throw new NodeError('INVALID_ENVELOPE', 'payload: it has no JSON form', { cause })
  }
}

/** Reads the text of {@link envelopeToJson}. Never throws; a foreign schema version is named with the expected one. */
export function envelopeFromJson(text: string): EnvelopeReading {
  if (text.length > MAX_TEXT) return invalid('larger than 16 MiB')
  const json = parseJson(text, { ...JSON_LIMITS, maxDepth: JSON_LIMITS.maxDepth + 1, maxString: MAX_TEXT })
  if (!json.ok) return invalid(json.reason)
  if (!isRecord(json.value)) return invalid('not an object')
  const version = versionFault(json.value['schemaVersion'])
  if (version?.code === 'SCHEMA_VERSION_MISMATCH') return { ok: false, ...version }
  const shape = A2AEnvelopeSchema.safeParse({ payload: undefined, ...json.value }, { error: jsonReason })
  if (!shape.success) return invalid(issueText(shape.error))
  const attachments = attachmentsOf(json.value.attachments)
  if (attachments === null) return invalid('attachments: pointers and base64')
  const payload = restore(shape.data.payload, attachments)
  return payload.ok ? { ok: true, envelope: { ...shape.data, payload: payload.value } } : invalid(payload.reason)
}

function attachmentsOf(value: unknown): readonly Attachment[] | null {
  const rows = AttachmentsSchema.safeParse(value)
  if (!rows.success) return null
  const attachments: Attachment[] = []
  for (const { pointer, base64 } of rows.data) {
    const content = fromBase64(base64)
    if (content === null) return null
    attachments.push({ pointer, content: new Uint8Array(content) })
  }
  return attachments
}

function issueText(error: z.ZodError): string {
  const issue = error.issues[0]
  if (issue === undefined) return 'not an envelope'
  return issue.path.length === 0 ? issue.message : `${issue.path.join('.')}: ${issue.message}`
}

function invalid(reason: string): EnvelopeReading {
  return { ok: false, code: 'INVALID_ENVELOPE', reason }
}
