import { createHash } from 'node:crypto'
import { z } from 'zod'
import { foreignProvider } from '../../../domain/card/provider.js'
import type { AgentProvider } from '../../../kit/names/provider.js'
import { canonicalJson, isRecord, jsonFault } from '../../../kit/json.js'
import { shown } from '../../../kit/text.js'
import type { ToolChange, ToolListChange } from '../../../ports/imported-tools.js'
import { checkCard, findingText } from './card-check.js'
import { KEPT_ENTRIES, KEPT_TEXT } from './card-rules.js'
import { MAX_REMOTE_SKILLS } from './card-schema.js'
import {
  callableInterfaces,
  entries,
  isOldVersion,
  MAX_INTERFACES,
  preferred,
  type RemoteInterface,
  reachableUrl,
  versionRead,
  type WrittenCard
} from './remote-interfaces.js'

/** Most bytes of the fetched card of a remote agent. */
export const MAX_REMOTE_CARD_BYTES = 262_144
/** Most entries of a list of a skill that are kept. */
const MAX_ENTRIES = 32

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
  /**
   * The organization that the card names. null: none, or an invalid one. Absent: an earlier build stored the card
   * without it.
   */
  readonly provider?: AgentProvider | null
}

const words = z.array(z.string())

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
  skills: z
    .array(
      z.strictObject({
        id: z.string(),
        name: z.string(),
        description: z.string(),
        tags: words,
        examples: words,
        inputModes: words,
        outputModes: words
      })
    )
    .max(MAX_REMOTE_SKILLS),
  security: z.unknown().optional()
})

/** A parsed card, or why it cannot be used: the first fault, and the number of further ones. */
export type CardRead =
  | { readonly ok: true; readonly card: RemoteCard }
  | {
      readonly ok: false
      /** The first fault for which it is refused. */
      readonly reason: string
      /** Number of its other faults. */
      readonly more: number
      /** Does it look like an agent card? */
      readonly isCard: boolean
    }

/**
 * Reads a card of 1.0 or 0.3 that has no fault for which an import refuses it ({@link checkCard}). Members of a wrong
 * form that remain are left out. A card of both versions is read as 1.0. Never throws.
 */
export function readRemoteCard(written: unknown): CardRead {
  const { findings, card } = checkCard(written)
  const faults = findings.filter(({ isWarning }) => !isWarning)
  const first = faults.find(({ stopsImport }) => stopsImport)
  // 1.0 and 0.3 require one of these members each.
  const isCard = !isRecord(written) || 'supportedInterfaces' in written || 'url' in written
  if (card !== null && first === undefined) return { ok: true, card: cardFrom(card) }
  return {
    ok: false,
    reason: first === undefined ? 'it does not fit' : findingText(first),
    more: Math.max(0, faults.length - 1),
    isCard
  }
}

/**
 * A card with the address that the config names in place of each one that it lacks. Without a list of interfaces, a
 * card of 1.0 gets one of JSON-RPC. `url`: null for none; then the card stays as it is.
 */
export function cardWithAddress(written: unknown, url: string | null): unknown {
  if (url === null || !isRecord(written)) return written
  const { supportedInterfaces: listed = null, protocolVersion, url: own = null } = written
  if (Array.isArray(listed) && listed.length > 0) {
    const interfaces = listed.map((one: unknown) => (isRecord(one) ? { ...one, url: one['url'] ?? url } : one))
    return { ...written, supportedInterfaces: interfaces }
  }
  if (own !== null) return written
  if ('url' in written || isOldVersion(protocolVersion)) return { ...written, url }
  const isEmpty = 'supportedInterfaces' in written && (listed === null || Array.isArray(listed))
  return isEmpty
    ? { ...written, supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }] }
    : written
}

function cardFrom(card: WrittenCard): RemoteCard {
  const { capabilities, securitySchemes = null, security = null, securityRequirements = null } = card
  const name = textOf(card['name'], KEPT_TEXT.name)
  return {
    name: name.trim() === '' ? 'agent' : name,
    description: textOf(card['description'], KEPT_TEXT.description),
    version: textOf(card['version'], KEPT_TEXT.version),
    interfaces: callableInterfaces(card, versionRead(card)).map(({ used }) => used),
    isStreaming: isRecord(capabilities) && capabilities['streaming'] === true,
    skills: entries(card['skills']).map(([, skill]) => skillFrom(skill)),
    security: { securitySchemes, security, securityRequirements },
    provider: foreignProvider(card['provider'])
  }
}

function skillFrom(skill: WrittenCard): RemoteSkill {
  return {
    id: String(skill['id']),
    name: textOf(skill['name'], KEPT_TEXT.name),
    description: textOf(skill['description'], KEPT_TEXT.description),
    tags: listOf(skill['tags'], KEPT_ENTRIES.tags),
    examples: listOf(skill['examples'], KEPT_ENTRIES.examples),
    inputModes: listOf(skill['inputModes'], KEPT_ENTRIES.inputModes),
    outputModes: listOf(skill['outputModes'], KEPT_ENTRIES.outputModes)
  }
}

function textOf(value: unknown, max: number): string {
  return typeof value === 'string' ? shown(value, max) : ''
}

function listOf(value: unknown, max: number): readonly string[] {
  const texts = Array.isArray(value) ? value.map((one) => textOf(one, max)) : []
  return texts.filter((one) => one.trim() !== '').slice(0, MAX_ENTRIES)
}

/** Reads a stored card; null when the value is no such card. Never throws. */
export function keptCard(value: unknown): RemoteCard | null {
  if (!isRecord(value) || jsonFault(value) !== null) return null
  const parsed = kept.safeParse(value)
  return parsed.success ? { ...parsed.data, security: parsed.data.security ?? null } : null
}

/**
 * The card with addresses that a client can reach. A server behind a container or proxy often does not know its own, so
 * the origin from which the card was fetched takes the place of a missing or unspecified host. `from`: URL of the card.
 */
export function reachableCard(card: RemoteCard, from: string): RemoteCard {
  return { ...card, interfaces: card.interfaces.map((one) => ({ ...one, url: reachableUrl(one.url, from) })) }
}

/** The interface to use: the first of 1.0, else the first. */
export function chosenInterface({ interfaces }: RemoteCard): RemoteInterface {
  const chosen = preferred(interfaces, ({ version }) => version)
  if (chosen === undefined) throw new TypeError('a card without an interface')
  return chosen
}

/**
 * sha256 of the pinned members of a card, as canonical JSON: all that decide where messages go or that language models
 * read.
 * Version and signatures are excluded: a new build alone needs no approval. The provider is too, since cards accepted
 * by earlier builds have none; an import keeps the first one.
 */
export function cardHash(card: RemoteCard): string {
  const { version: _version, provider: _provider, ...pinned } = card
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
  if (parts.length > 0)
    changed.unshift({ name: CARD_ITSELF, parts, description: `${after.name}: ${after.description} At ${about}` })
  return {
    added: [...next].filter((id) => !old.has(id)),
    removed: [...old.keys()].filter((id) => !next.has(id)),
    changed
  }
}

const SKILL_PARTS = ['name', 'description', 'tags', 'examples', 'inputModes', 'outputModes'] as const
const CARD_PARTS = ['name', 'description', 'interfaces', 'isStreaming', 'security'] as const

function isSame(a: unknown, b: unknown): boolean {
  return canonicalJson(a) === canonicalJson(b)
}
