import { createHash } from 'node:crypto'
import { z } from 'zod'
import { canonicalJson, isRecord, JSON_LIMITS, jsonFault } from '../../../kit/json.js'
import { A2A_NULLS, withoutNulls } from '../../../kit/schema/nulls.js'
import { shown } from '../../../kit/text.js'
import type { MessageFault } from '../../../domain/gateway/message.js'
import { readBy } from '../../../domain/gateway/schema-read.js'
import type { ToolChange, ToolListChange } from '../../../ports/imported-tools.js'

/** Most bytes of the fetched card of a remote agent. */
export const MAX_REMOTE_CARD_BYTES = 262_144
/** Most skills of one remote agent. */
export const MAX_REMOTE_SKILLS = 512
/** Most interfaces on one card. */
const MAX_INTERFACES = 32

/** One interface of a remote agent. */
export interface RemoteInterface {
  readonly url: string
  readonly binding: 'JSONRPC' | 'HTTP+JSON'
  readonly version: '1.0' | '0.3'
  /** The tenant of 1.0; '' when absent. */
  readonly tenant: string
}

/** A skill on the card of a remote agent. */
export interface RemoteSkill {
  readonly id: string
  readonly name: string
  readonly description: string
  readonly tags: readonly string[]
  readonly examples: readonly string[]
  readonly inputModes: readonly string[]
  readonly outputModes: readonly string[]
}

/** The bounded card of a remote agent, in one form for both versions. */
export interface RemoteCard {
  readonly name: string
  readonly description: string
  readonly version: string
  /** The supported interfaces in the order of the card; at least one. */
  readonly interfaces: readonly RemoteInterface[]
  readonly isStreaming: boolean
  readonly skills: readonly RemoteSkill[]
  /** The security members of the card, unchanged. JSON. */
  readonly security: unknown
}

const text = (max: number): z.ZodType<string> => z.string().transform((value) => shown(value, max))
const list = (max: number): z.ZodType<readonly string[]> =>
  z
    .array(z.string())
    .transform((values) => values.map((one) => shown(one, max)).filter((one) => one.trim() !== ''))
    .transform((values) => values.slice(0, 32))

const skill: z.ZodType<RemoteSkill> = z.object({
  id: z.string().min(1).max(256),
  name: text(128).default(''),
  description: z
    .string()
    .transform((value) => shown(value, 4096))
    .default(''),
  tags: list(64).default([]),
  examples: list(1024).default([]),
  inputModes: list(128).default([]),
  outputModes: list(128).default([])
})

const head = {
  name: text(128),
  description: text(4096).default(''),
  version: text(64).default(''),
  skills: z.array(skill).max(MAX_REMOTE_SKILLS).default([]),
  capabilities: z.looseObject({ streaming: z.boolean().nullish() }).nullish(),
  securitySchemes: z.unknown().optional(),
  security: z.unknown().optional(),
  securityRequirements: z.unknown().optional()
}

const modern = z.object({
  ...head,
  supportedInterfaces: z
    .array(
      z.object({
        url: z.string(),
        protocolBinding: z.string(),
        protocolVersion: z.string().default('1.0'),
        tenant: z.string().max(256).nullish()
      })
    )
    .min(1)
    .max(MAX_INTERFACES)
})

const legacy = z.object({
  ...head,
  url: z.string(),
  preferredTransport: z.string().default('JSONRPC'),
  protocolVersion: z.string().default('0.3.0'),
  additionalInterfaces: z
    .array(z.object({ url: z.string(), transport: z.string() }))
    .max(MAX_INTERFACES)
    .default([])
})

/** The stored form of a card. */
const kept = z.strictObject({
  name: z.string().max(128),
  description: z.string().max(4096),
  version: z.string().max(64),
  interfaces: z
    .array(
      z.strictObject({
        url: z.string().max(2048),
        binding: z.enum(['JSONRPC', 'HTTP+JSON']),
        version: z.enum(['1.0', '0.3']),
        tenant: z.string().max(256)
      })
    )
    .min(1)
    .max(MAX_INTERFACES),
  isStreaming: z.boolean(),
  skills: z.array(skill).max(MAX_REMOTE_SKILLS),
  security: z.unknown().optional()
})

/** A parsed card, or why it cannot be used; `isCard`: does it look like an agent card? */
export type CardRead =
  | { readonly ok: true; readonly card: RemoteCard }
  | { readonly ok: false; readonly reason: string; readonly isCard: boolean }

/** Reads a card of 1.0 or 0.3; a card of both versions is read as 1.0. Never throws. */
export function readRemoteCard(written: unknown): CardRead {
  const value = withoutNulls(written, A2A_NULLS)
  const fault = isRecord(value) ? jsonFault(value, JSON_LIMITS) : 'it is no JSON object'
  if (fault !== null || !isRecord(value)) return unusable(fault ?? '')
  // 1.0 and 0.3 require one of these members each.
  if (!('supportedInterfaces' in value) && !('url' in value)) return { ok: false, reason: 'it is no agent card', isCard: false }
  const isModern = Array.isArray(value['supportedInterfaces']) && value['supportedInterfaces'].length > 0
  const parsed = isModern ? readBy(modern, value) : readBy(legacy, value)
  if (!parsed.ok) return unusable(faultText(parsed.faults))
  const { name, description, version, skills, capabilities } = parsed.value
  const interfaces = 'supportedInterfaces' in parsed.value ? modernInterfaces(parsed.value) : legacyInterfaces(parsed.value)
  if (interfaces.length === 0) return unusable('it names no address that speaks A2A 1.0 or 0.3 over JSON-RPC or HTTP+JSON')
  if (new Set(skills.map(({ id }) => id)).size < skills.length) return unusable('it has two skills of one id')
  const { securitySchemes = null, security = null, securityRequirements = null } = parsed.value
  const card = {
    name: name.trim() === '' ? 'agent' : name,
    description,
    version,
    interfaces,
    isStreaming: capabilities?.streaming === true,
    skills
  }
  return { ok: true, card: { ...card, security: { securitySchemes, security, securityRequirements } } }
}

/** Reads a stored card; null when the value is no such card. Never throws. */
export function keptCard(value: unknown): RemoteCard | null {
  if (!isRecord(value) || jsonFault(value) !== null) return null
  const parsed = kept.safeParse(value)
  return parsed.success ? { ...parsed.data, security: parsed.data.security ?? null } : null
}

function unusable(reason: string): CardRead {
  return { ok: false, reason, isCard: true }
}

function faultText([fault]: readonly MessageFault[]): string {
  return fault === undefined ? 'it does not fit' : shown(`${fault.path}: ${fault.message}`)
}

function modernInterfaces({ supportedInterfaces }: z.infer<typeof modern>): RemoteInterface[] {
  return supportedInterfaces.flatMap(({ url, protocolBinding, protocolVersion, tenant }) =>
    usableInterface({ url, binding: protocolBinding, version: protocolVersion, tenant: tenant ?? '' })
  )
}

function legacyInterfaces({ url, preferredTransport, protocolVersion, additionalInterfaces }: z.infer<typeof legacy>): RemoteInterface[] {
  const all = [{ url, transport: preferredTransport }, ...additionalInterfaces]
  const seen = new Set<string>()
  return all.flatMap((one) => {
    const key = `${one.transport} ${one.url}`
    if (seen.has(key)) return []
    seen.add(key)
    return usableInterface({ url: one.url, binding: one.transport, version: protocolVersion, tenant: '' })
  })
}

function usableInterface({
  url,
  binding,
  version,
  tenant
}: {
  url: string
  binding: string
  version: string
  tenant: string
}): RemoteInterface[] {
  const known = binding.toUpperCase()
  if (known !== 'JSONRPC' && known !== 'HTTP+JSON') return []
  const spoken = /^1(?:\.|$)/.test(version) ? '1.0' : /^0\.3(?:\.|$)/.test(version) ? '0.3' : null
  return spoken === null || url.length > 2048 ? [] : [{ url, binding: known, version: spoken, tenant }]
}

/** Hosts that name every address of their own machine, so none that a client could reach. */
const NOWHERE: ReadonlySet<string> = new Set(['0.0.0.0', '[::]'])

/**
 * The card with addresses that a client can reach. A server behind a container or proxy often does not know its own, so the origin from
 * which the card was fetched takes the place of a missing or unspecified host. `from`: URL of the card.
 */
export function reachableCard(card: RemoteCard, from: string): RemoteCard {
  return { ...card, interfaces: card.interfaces.map((one) => ({ ...one, url: reachableUrl(one.url, from) })) }
}

function reachableUrl(written: string, from: string): string {
  if (!URL.canParse(from)) return written
  // Without a path of its own, the address is that of the agent, not of the card.
  const base = from.replace(/[?#].*$/s, '').replace(/\.well-known\/[^/]*$/, '')
  if (!URL.canParse(written)) return URL.canParse(written, base) ? new URL(written, base).href : written
  const url = new URL(written)
  if (!NOWHERE.has(url.hostname)) return written
  return new URL(base).origin + url.pathname + url.search
}

/** The interface to use: the first of 1.0, else the first. */
export function chosenInterface({ interfaces }: RemoteCard): RemoteInterface {
  const chosen = interfaces.find(({ version }) => version === '1.0') ?? interfaces[0]
  if (chosen === undefined) throw new TypeError('a card without an interface')
  return chosen
}

/**
 * sha256 of the pinned members of a card, as canonical JSON: all that decide where messages go or that language models read.
 * Version and signatures are excluded: a new build alone needs no approval.
 */
export function cardHash(card: RemoteCard): string {
  const { version: _, ...pinned } = card
  return createHash('sha256').update(canonicalJson(pinned)).digest('hex')
}

/** Name of the card itself in a list of changes. */
export const CARD_ITSELF = '(card)'

/** Differences between two cards, for operators: skills by id, and the card itself. */
export function cardChange(before: RemoteCard | null, after: RemoteCard): ToolListChange {
  const old = new Map((before?.skills ?? []).map((one) => [one.id, one]))
  const next = new Set(after.skills.map(({ id }) => id))
  const changed: ToolChange[] = after.skills.flatMap((one) => {
    const known = old.get(one.id)
    const parts = known === undefined ? [] : SKILL_PARTS.filter((part) => !isSame(known[part], one[part]))
    return parts.length === 0 ? [] : [{ name: one.id, parts, description: one.description }]
  })
  const parts = before === null ? [] : CARD_PARTS.filter((part) => !isSame(before[part], after[part]))
  const about = after.interfaces.map(({ url, version }) => `${url} (${version})`).join(', ')
  if (parts.length > 0) changed.unshift({ name: CARD_ITSELF, parts, description: `${after.name}: ${after.description} At ${about}` })
  return { added: [...next].filter((id) => !old.has(id)), removed: [...old.keys()].filter((id) => !next.has(id)), changed }
}

const SKILL_PARTS = ['name', 'description', 'tags', 'examples', 'inputModes', 'outputModes'] as const
const CARD_PARTS = ['name', 'description', 'interfaces', 'isStreaming', 'security'] as const

function isSame(a: unknown, b: unknown): boolean {
  return canonicalJson(a) === canonicalJson(b)
}
