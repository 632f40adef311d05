import { createHash } from 'node:crypto'
import type { CapabilityDescriptor, SideEffect } from '../../../domain/card/card.js'
import type { Tier } from '../../../domain/routing/tier.js'
import { canonicalJson } from '../../../kit/json.js'
import type { AgentDefinition } from '../../../ports/agent-runtime.js'
import type { ImportOffer } from '../../../ports/imports.js'
import type { RemoteCard, RemoteSkill } from './remote-card.js'

/** Runtime name of agents that proxy remote ones. */
export const REMOTE_RUNTIME = 'a2a'
/** Capability of a remote agent whose card lists no skill. */
export const ANY_SKILL = 'message'
/** Most bytes of the capabilities on one card; its other members have the rest of its 64 KiB. */
const MAX_CAPABILITIES_BYTES = 57_344
/** Most characters of the id of a capability. */
const MAX_ID = 128
/** Characters of a shortened description, when whole ones exceed the card. */
const SHORT_DESCRIPTION = 200

/** The config of a remote agent. */
export interface RemoteSpec {
  readonly name: string
  /** URL of its card, or its origin, which means the well-known path. */
  readonly card: string
  /** URL at which it is called; null: that of its card. */
  readonly url: string | null
  readonly tier: Tier | null
  readonly sandbox: string | null
  /** Globs of the offered skills; null: all. */
  readonly skills: readonly string[] | null
  /** Side effect of its skills for policy. */
  readonly sideEffect: SideEffect
  /** Ids of skills that may be retried after an unknown outcome. */
  readonly idempotent: readonly string[]
  readonly timeoutMs: number
  readonly concurrency: number
  readonly maxOutputBytes: number
  /** Does it get the justification of a call, as metadata of the message? */
  readonly passJustification: boolean
  /** sha256 of the only accepted card; null: the first card seen. */
  readonly pin: string | null
  /** Public key (JWK) that must verify its card; null: a signature is optional. */
  readonly key: Readonly<Record<string, unknown>> | null
  /** Path of the config file. */
  readonly source: string
}

/** The agent of the mesh that proxies a remote one. */
export interface RemoteOffer extends ImportOffer {
  readonly card: RemoteCard
  /** Skill ids by capability; null: the message names no skill. */
  readonly skills: ReadonlyMap<string, string | null>
}

/** The capability id of a skill: its own id when valid, else a valid one derived from it, with a hash. */
export function skillCapability(id: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$/.test(id) && !RESERVED.has(id)) return id
  const digest = createHash('sha256').update(id).digest('hex').slice(0, 8)
  const plain = id.replace(/[^A-Za-z0-9._:/-]/g, '_').replace(/^[^A-Za-z0-9]+/, '')
  return `${plain.slice(0, MAX_ID - 9)}${plain === '' ? 'skill' : ''}_${digest}`
}

const RESERVED = new Set(['__proto__', 'constructor', 'prototype'])

/** Makes the agent with one capability a skill. To fit its card it drops examples, then descriptions, then skills. */
export function remoteOffer(spec: RemoteSpec, card: RemoteCard, skills: readonly RemoteSkill[]): RemoteOffer {
  const byId = new Map<string, RemoteSkill>()
  for (const skill of skills) if (!byId.has(skillCapability(skill.id))) byId.set(skillCapability(skill.id), skill)
  const listed = [...byId].map(([id, skill]) => capabilityOf(spec, id, skill))
  const capabilities = fitted(card.skills.length === 0 ? [anySkill(spec, card)] : listed)
  const kept = new Map(capabilities.map(({ id }) => [id, byId.get(id)?.id ?? null]))
  const names = new Set(kept.values())
  const { name, tier, sandbox, timeoutMs, concurrency, maxOutputBytes, source } = spec
  const { provider = null } = card
  const definition: AgentDefinition = {
    id: name,
    name: card.name,
    version: /^\d{1,9}\.\d{1,9}\.\d{1,9}$/.test(card.version) ? card.version : '0.0.0',
    description: card.description,
    tier,
    sandboxId: sandbox,
    protocols: [],
    ...(provider === null ? {} : { provider }),
    capabilities,
    limits: { timeoutMs, concurrency, maxOutputBytes },
    runtime: REMOTE_RUNTIME,
    source
  }
  return { card, definition, skills: kept, leftOut: skills.flatMap(({ id }) => (names.has(id) ? [] : [id])) }
}

/** The side effect is that of the config (default `exec`), never of the remote card. */
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
