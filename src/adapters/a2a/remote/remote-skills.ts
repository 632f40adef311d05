import { createHash } from 'node:crypto'
import type { CapabilityDescriptor, SideEffect } from '../../../domain/card/card.js'
import type { Tier } from '../../../domain/routing/tier.js'
import { canonicalJson } from '../../../kit/json.js'
import type { AgentDefinition } from '../../../ports/agent-runtime.js'
import type { ImportOffer } from '../../../ports/imports.js'
import type { RemoteCard, RemoteSkill } from './remote-card.js'

/** Runtime of the agents that stand for remote ones. */
export const REMOTE_RUNTIME = 'a2a'
/** Capability of a remote agent whose card lists no skill. */
export const ANY_SKILL = 'message'
/** Bytes of the capabilities of one card; the rest of its 64 KiB is for what else stands on it. */
const MAX_CAPABILITIES_BYTES = 57_344
/** Characters of the id of a capability. */
const MAX_ID = 128
/** Characters of a description where the card has no room for whole ones. */
const SHORT_DESCRIPTION = 200

/** What the config says of a remote agent. */
export interface RemoteSpec {
  readonly name: string
  /** URL of its card, or its origin: then the well-known path. */
  readonly card: string
  readonly tier: Tier | null
  readonly sandbox: string | null
  /** Globs of the skills that are offered; null: all. */
  readonly skills: readonly string[] | null
  /** What policy takes its skills for. */
  readonly sideEffect: SideEffect
  /** Ids of skills that may be asked again after an unknown outcome. */
  readonly idempotent: readonly string[]
  readonly timeoutMs: number
  readonly concurrency: number
  readonly maxOutputBytes: number
  /** sha256 of the only card that is used; null: the one seen first. */
  readonly pin: string | null
  /** Public key (JWK) by which its card must be signed; null: it need not be. */
  readonly key: Readonly<Record<string, unknown>> | null
  /** The config file. */
  readonly source: string
}

/** The agent of the mesh that stands for a remote one. */
export interface RemoteOffer extends ImportOffer {
  readonly card: RemoteCard
  /** The id of the skill behind each capability; null: none is named to the agent. */
  readonly skills: ReadonlyMap<string, string | null>
}

/** The capability of a skill: its own id where capabilities may be called so, else one made of it, with a hash. */
export function skillCapability(id: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$/.test(id) && !RESERVED.has(id)) return id
  const digest = createHash('sha256').update(id).digest('hex').slice(0, 8)
  const plain = id.replace(/[^A-Za-z0-9._:/-]/g, '_').replace(/^[^A-Za-z0-9]+/, '')
  return `${plain.slice(0, MAX_ID - 9)}${plain === '' ? 'skill' : ''}_${digest}`
}

const RESERVED = new Set(['__proto__', 'constructor', 'prototype'])

/** Makes the agent: one capability a skill, fitted into a card. Examples go first, then descriptions, then skills. */
export function remoteOffer(spec: RemoteSpec, card: RemoteCard, skills: readonly RemoteSkill[]): RemoteOffer {
  const byId = new Map<string, RemoteSkill>()
  for (const skill of skills) if (!byId.has(skillCapability(skill.id))) byId.set(skillCapability(skill.id), skill)
  const listed = [...byId].map(([id, skill]) => capabilityOf(spec, id, skill))
  const capabilities = fitted(card.skills.length === 0 ? [anySkill(spec, card)] : listed)
  const kept = new Map(capabilities.map(({ id }) => [id, byId.get(id)?.id ?? null]))
  const names = new Set(kept.values())
  const { name, tier, sandbox, timeoutMs, concurrency, maxOutputBytes, source } = spec
  const definition: AgentDefinition = {
    id: name,
    name: card.name,
    version: /^\d{1,9}\.\d{1,9}\.\d{1,9}$/.test(card.version) ? card.version : '0.0.0',
    description: card.description,
    tier,
    sandboxId: sandbox,
    protocols: [],
    capabilities,
    limits: { timeoutMs, concurrency, maxOutputBytes },
    runtime: REMOTE_RUNTIME,
    source
  }
  return { card, definition, skills: kept, leftOut: skills.flatMap(({ id }) => (names.has(id) ? [] : [id])) }
}

/** What a remote agent says of itself decides nothing: policy goes by the config, which says `exec` unless a person wrote something else. */
function capabilityOf({ sideEffect, idempotent }: RemoteSpec, id: string, skill: RemoteSkill): CapabilityDescriptor {
  return {
    id,
    name: skill.name.trim() === '' ? id : skill.name,
    description: skill.description,
    inputSchema: {},
    outputSchema: {},
    idempotent: idempotent.includes(skill.id),
    sideEffect,
    tags: [...skill.tags.slice(0, 31), REMOTE_RUNTIME],
    examples: skill.examples,
    inputModes: skill.inputModes,
    outputModes: skill.outputModes
  }
}

function anySkill({ sideEffect, idempotent }: RemoteSpec, { description }: RemoteCard): CapabilityDescriptor {
  const about = { name: ANY_SKILL, description: description.slice(0, 1000), inputSchema: {}, outputSchema: {} }
  return { id: ANY_SKILL, ...about, idempotent: idempotent.includes(ANY_SKILL), sideEffect, tags: [REMOTE_RUNTIME] }
}

function fitted(capabilities: readonly CapabilityDescriptor[]): readonly CapabilityDescriptor[] {
  const bare = (one: CapabilityDescriptor): CapabilityDescriptor => ({ ...one, examples: [] })
  const variants = [
    (one: CapabilityDescriptor) => one,
    bare,
    (one: CapabilityDescriptor) => ({ ...bare(one), description: one.description.slice(0, SHORT_DESCRIPTION) })
  ]
  for (const variant of variants) {
    const some = capabilities.map(variant)
    if (bytesOf(some) <= MAX_CAPABILITIES_BYTES) return some
  }
  const kept: CapabilityDescriptor[] = []
  let bytes = 2
  for (const { id, name, inputSchema, outputSchema, idempotent = false, sideEffect = 'exec' } of capabilities) {
    const one = { id, name, description: '', inputSchema, outputSchema, idempotent, sideEffect }
    bytes += bytesOf(one) + 1
    if (bytes > MAX_CAPABILITIES_BYTES) break
    kept.push(one)
  }
  return kept
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(canonicalJson(value))
}
