import { z } from 'zod'
import { type NodeId, utf8 } from '../../kit/ids.js'
import { canonicalJson, isRecord, JSON_LIMITS, jsonFault, type JsonLimits } from '../../kit/json.js'
import type { Verify } from '../../kit/sign.js'
import { shown } from '../../kit/text.js'
import { isSealed } from '../membership/signing.js'
import type { Certificate, SignedCard } from '../membership/types.js'
import { tierText, type Tier } from '../routing/tier.js'
import type { AgentEndpoint, CapabilityDescriptor, CardBody } from './card.js'
import { providerSchema } from './provider.js'
import { jsonReason } from '../schema-words.js'

/** Bytes of a card: the UTF-8 of its canonical JSON. */
export const CARD_MAX_BYTES = 65_536
/** Capabilities of one card. */
export const CARD_MAX_CAPABILITIES = 512
/** JSON bounds of a card: flatter than on the wire, because log entries and frames wrap it. */
export const CARD_JSON_LIMITS: JsonLimits = { ...JSON_LIMITS, maxDepth: 24, maxString: CARD_MAX_BYTES }

/** Labels of one card. */
export const CARD_MAX_LABELS = 32

const MAX_FAULTS = 32
/** Names that would reach an object's prototype when used as its keys. */
const RESERVED: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])

/** Text for one line: 1..`max` UTF-16 units, no control or direction characters, not blank. */
export function lineSchema(max: number): z.ZodType<string> {
  return z
    .string()
    .min(1)
    .max(max)
    .refine((text) => shown(text, max) === text && text.trim() !== '', 'has control characters or is blank')
}

const AGENT_ID = /^[a-z0-9._-]{1,64}$/

/** Is it a valid agent id? For the hot path of messages; else {@link agentIdSchema}. */
export function isAgentId(text: string): boolean {
  return AGENT_ID.test(text) && !RESERVED.has(text)
}

/** Is it a step of a path? Readers of URLs take it away, so no URL leads to an agent of that id. */
export function isPathStep(id: string): boolean {
  return id === '.' || id === '..'
}

const tokenSchema = (pattern: RegExp, rule: string): z.ZodType<string> =>
  z.string().refine((text) => pattern.test(text) && !RESERVED.has(text), rule)

/** Id of an agent: 1..64 of `[a-z0-9._-]`. */
export const agentIdSchema: z.ZodType<string> = z.string().refine(isAgentId, 'must be 1..64 of a-z 0-9 . _ -')
/** Id of a capability: 1..128 printable ASCII characters without space, `*` and `@`. */
export const capabilityIdSchema = tokenSchema(
  /^[!-)+-?A-~]{1,128}$/,
  'must be 1..128 printable characters without space, * and @'
)
/** Id of a sandbox: 1..64 of `[A-Za-z0-9._-]`, a letter or digit first. */
export const sandboxIdSchema = tokenSchema(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'must be 1..64 of A-Z a-z 0-9 . _ -')
/** A label of a node: 1..64 of `[A-Za-z0-9._/=:-]`, a letter or digit first. */
export const labelSchema = tokenSchema(
  /^[A-Za-z0-9][A-Za-z0-9._/=:-]{0,63}$/,
  'must be 1..64 of A-Z a-z 0-9 . _ / = : -'
)
/** A tier, 0..3. */
export const tierSchema: z.ZodType<Tier> = z.union([z.literal(0), z.literal(1), z.literal(2), z.literal(3)], {
  error: 'must be 0, 1, 2 or 3'
})

const SEMVER = /^\d{1,9}\.\d{1,9}\.\d{1,9}(?:-[0-9A-Za-z.-]{1,64})?(?:\+[0-9A-Za-z.-]{1,64})?$/
const jsonSchemaSchema = z.custom<unknown>(
  (value) => typeof value === 'boolean' || isRecord(value),
  'must be a JSON Schema: an object or a boolean'
)

const endpointSchema: z.ZodType<AgentEndpoint> = z.strictObject({
  transport: z.enum(['local', 'hyperswarm', 'websocket']),
  address: lineSchema(512).exactOptional()
})

/** One capability, bounded; unknown keys are refused. */
export const capabilitySchema: z.ZodType<CapabilityDescriptor> = z.strictObject({
  id: capabilityIdSchema,
  name: lineSchema(128),
  description: z.string().max(4096),
  inputSchema: jsonSchemaSchema,
  outputSchema: jsonSchemaSchema,
  idempotent: z.boolean().exactOptional(),
  sideEffect: z.enum(['none', 'read', 'write', 'exec']).exactOptional(),
  default: z.boolean().exactOptional(),
  tags: z.array(lineSchema(64)).max(32).exactOptional(),
  examples: z.array(z.string().max(1024)).max(32).exactOptional(),
  inputModes: z.array(lineSchema(128)).max(32).exactOptional(),
  outputModes: z.array(lineSchema(128)).max(32).exactOptional()
})

const bodyShape = {
  id: agentIdSchema,
  name: lineSchema(128),
  version: z.string().regex(SEMVER, 'must be a semantic version, e.g. 1.0.0'),
  description: z.string().max(8192),
  tier: tierSchema,
  protocols: z.array(lineSchema(64)).max(32),
  endpoints: z.array(endpointSchema).max(16),
  capabilities: z
    .array(capabilitySchema)
    .max(CARD_MAX_CAPABILITIES)
    .refine((list) => new Set(list.map((one) => one.id)).size === list.length, 'has two capabilities of one id'),
  revision: z.int().min(0),
  sandboxId: sandboxIdSchema.exactOptional(),
  labels: z
    .array(labelSchema)
    .min(1)
    .max(CARD_MAX_LABELS)
    .refine((list) => new Set(list).size === list.length, 'has a label twice')
    .exactOptional(),
  external: z.literal(true).exactOptional()
}

/** The signed part of a card, bounded; unknown keys are refused. */
export const cardBodySchema: z.ZodType<CardBody> = z.strictObject(bodyShape)

/** Fields beside the signed body. */
const UNSIGNED = ['origin', 'lastSeenAt', 'provider']

/** A card as a reader holds it; the fields beside the body may still be missing. */
const agentCardSchema = z.strictObject({
  ...bodyShape,
  origin: z.enum(['local', 'remote']).exactOptional(),
  lastSeenAt: z.number().min(0).exactOptional(),
  provider: providerSchema.exactOptional()
})

/** Result of {@link validateCard}. */
export type CardCheck =
  | { readonly ok: true; readonly card: CardBody }
  | { readonly ok: false; readonly faults: readonly string[] }

/**
 * Checks a card (an AgentCard or just its signed body). `card` is the body, without `origin`, `lastSeenAt` and
 * `provider`.
 * `faults` names every missing or incorrect field (at most 32), e.g. `tier: missing`. Never throws.
 */
export function validateCard(value: unknown): CardCheck {
  const fault = jsonFault(value, CARD_JSON_LIMITS)
  if (fault !== null) return { ok: false, faults: [`card: ${fault}`] }
  const parsed = agentCardSchema.safeParse(value, { error: jsonReason })
  if (!parsed.success) return { ok: false, faults: faultsOf(parsed.error, value) }
  const card = cardBodyOf(parsed.data)
  const size = cardBytes(card)
  if (size === null || size > CARD_MAX_BYTES)
    return {
      ok: false,
      faults: [`card: ${size === null ? 'has no JSON form' : `larger than ${CARD_MAX_BYTES} bytes`}`]
    }
  return { ok: true, card }
}

/**
 * The part of a card that its node signs: `origin`, `lastSeenAt`, `provider` and other additions of a reader are left
 * out.
 */
export function cardBodyOf(card: CardBody): CardBody {
  const { id, name, version, description, tier, protocols, endpoints, capabilities, revision } = card
  const body = { id, name, version, description, tier, protocols, endpoints, capabilities, revision }
  const { sandboxId, labels, external } = card
  const marked = external === undefined ? body : { ...body, external }
  return { ...marked, ...(sandboxId === undefined ? {} : { sandboxId }), ...(labels === undefined ? {} : { labels }) }
}

/** Trust anchor of {@link checkSignedCard}: the current certificate of the expected signer. */
export interface CardTrust {
  readonly certificate: Certificate
  readonly verify: Verify
}

/**
 * Checks a card that a node signed: form, size and signature by the certificate's node. Its tier must not be more
 * powerful than the certificate's, and it must be in the certificate's sandbox, if any. Never throws.
 */
export function checkSignedCard(
  signed: unknown,
  trust: CardTrust
): { readonly ok: true; readonly card: CardBody } | { readonly ok: false; readonly reason: string } {
  if (!isRecord(signed) || typeof signed.by !== 'string' || typeof signed.sig !== 'string')
    return { ok: false, reason: 'not a signed card' }
  const checked = validateCard(signed.body)
  if (!checked.ok) return { ok: false, reason: checked.faults.join('; ') }
  const { body } = signed
  if (isRecord(body) && UNSIGNED.some((name) => name in body))
    return { ok: false, reason: 'a signed card has no origin, lastSeenAt and provider' }
  const reason = grantFault(checked.card, signed.by, trust.certificate)
  if (reason !== null) return { ok: false, reason }
  const sealed: SignedCard = { body: checked.card, by: signed.by, sig: signed.sig }
  return isSealed('card', sealed, trust.verify)
    ? { ok: true, card: checked.card }
    : { ok: false, reason: 'the signature is wrong' }
}

function grantFault(card: CardBody, by: NodeId, certificate: Certificate): string | null {
  if (by !== certificate.nodeKey) return 'signed by another node'
  if (card.tier < certificate.maxTier)
    return `tier ${tierText(card.tier)} is more powerful than the certificate's ${tierText(certificate.maxTier)}`
  if (certificate.sandboxId !== undefined && card.sandboxId !== certificate.sandboxId)
    return `not in the node's sandbox ${certificate.sandboxId}`
  return null
}

/** Bytes of a card: the UTF-8 of its canonical JSON; null when it has none. */
export function cardBytes(card: CardBody): number | null {
  try {
    return utf8(canonicalJson(card)).byteLength
  } catch {
    return null
  }
}

function faultsOf(error: z.ZodError, value: unknown): string[] {
  return error.issues.slice(0, MAX_FAULTS).map((issue) => {
    const path = issue.path.length === 0 ? 'card' : shown(issue.path.map(String).join('.'))
    return `${path}: ${valueAt(value, issue.path) === undefined ? 'missing' : shown(issue.message)}`
  })
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let at: unknown = value
  for (const key of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return undefined
    at = (at as Record<PropertyKey, unknown>)[key]
  }
  return at
}
