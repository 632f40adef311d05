import { createHash } from 'node:crypto'
import type { CapabilityDescriptor, SideEffect } from '../../../domain/card/card.js'
import type { Tier } from '../../../domain/routing/tier.js'
import { canonicalJson, isRecord, jsonFault } from '../../../kit/json.js'
import type { AgentDefinition } from '../../../ports/agent-runtime.js'
import type { ImportOffer } from '../../../ports/imports.js'
import type { ImportedTool } from './imported-list.js'
import { ANY_OBJECT, outlineOf, safeSchema, withoutCostly } from './imported-schema.js'
import { definitionHash, definitionsCapability, definitionTag, hashOf } from './tool-definition.js'

/** Bytes of the capabilities of one card; the rest of its 64 KiB is for its other fields. */
export const MAX_CAPABILITIES_BYTES = 61_440
/** The part of them for the capability that gives definitions. */
const DEFINITIONS_BYTES = 512
/** Capabilities of one card. */
const MAX_CAPABILITIES = 512
/** Characters of a capability's id. */
const MAX_ID = 128
/** Levels of a schema on a card, which has fewer than a message because log entries wrap it. */
const MAX_CARD_DEPTH = 18
/** A schema with more bytes is left off the card: the node checks by it all the same. */
const MAX_CARD_SCHEMA_BYTES = 2048
/** Characters of a description where the card has no room for whole ones. */
const SHORT_DESCRIPTION = 200

/** Settings of a server's agent in the config. */
export interface ImportedCardSpec {
  readonly name: string
  readonly tier: Tier | null
  readonly sandbox: string | null
  readonly timeoutMs: number
  readonly concurrency: number
  readonly maxOutputBytes: number
  readonly sideEffect: SideEffect
  readonly idempotent: readonly string[]
  /** The config file. */
  readonly source: string
}

/** The agent of a server. */
export interface ImportedCard extends ImportOffer {
  /** By the hashes of the card. */
  readonly definitions: ReadonlyMap<string, ImportedTool>
  /** The tool of each capability. */
  readonly tools: ReadonlyMap<string, ImportedTool>
}

/**
 * The start of the capabilities of a server. Its `_` become `-`, so that no tool of another server has the same
 * capability.
 */
export function capabilityPrefix(server: string): string {
  return `mcp_${server.replaceAll('_', '-')}_`
}

/**
 * The capability of a tool: `mcp_<server>_<tool>`, in the letters of capabilities, cut with a hash where that is not
 * the name itself.
 */
export function capabilityId(server: string, tool: string): string {
  const plain = `${capabilityPrefix(server)}${tool.replace(/[^A-Za-z0-9_.-]/g, '_')}`
  if (plain.length <= MAX_ID && plain.endsWith(tool)) return plain
  const digest = createHash('sha256').update(tool).digest('hex').slice(0, 8)
  return `${plain.slice(0, MAX_ID - 9)}_${digest}`
}

/**
 * Makes the agent of a server: one capability a tool, fitted into a card. Long schemas go first, then descriptions,
 * then tools. A capability whose tool is not whole on the card has the hash of its definition, and another capability
 * gives that.
 */
export function importedCard(spec: ImportedCardSpec, tools: readonly ImportedTool[]): ImportedCard {
  const byId = new Map(tools.map((tool) => [capabilityId(spec.name, tool.name), tool]))
  const tooled = fitted([...byId].map(([id, tool]) => ({ capability: capabilityOf(spec, id, tool), tool })))
  const hasIndex = tooled.some((one) => hashOf(one) !== null)
  const capabilities = [...tooled, ...(hasIndex ? [definitionsCapability(spec.name)] : [])]
  const kept = new Map(
    capabilities.flatMap(({ id }) => (byId.has(id) ? [[id, byId.get(id) as ImportedTool] as const] : []))
  )
  const { name, tier, sandbox, timeoutMs, concurrency, maxOutputBytes, source } = spec
  const definition: AgentDefinition = {
    id: name,
    name,
    version: '1.0.0',
    description: `Tools of the MCP server ${name}.`,
    tier,
    sandboxId: sandbox,
    protocols: [],
    capabilities,
    limits: { timeoutMs, concurrency, maxOutputBytes },
    runtime: 'mcp',
    source
  }
  const isKept = new Set([...kept.values()].map((tool) => tool.name))
  const definitions = new Map([...kept.values()].map((tool) => [definitionHash(tool), tool]))
  return {
    definition,
    definitions,
    tools: kept,
    leftOut: tools.flatMap((tool) => (isKept.has(tool.name) ? [] : [tool.name]))
  }
}

/**
 * A server's own claims decide nothing: a hostile server could pass a policy for readers by its readOnlyHint. The hint
 * is shown as a tag. Policy follows the config, which says `exec` unless a person wrote something else.
 */
function capabilityOf(spec: ImportedCardSpec, id: string, tool: ImportedTool): CapabilityDescriptor {
  return {
    id,
    name: nameOf(tool.name),
    description: tool.description,
    inputSchema: cardSchema(tool.inputSchema),
    outputSchema: tool.outputSchema === null ? {} : cardSchema(tool.outputSchema),
    idempotent: spec.idempotent.includes(tool.name),
    sideEffect: spec.sideEffect,
    tags: ['mcp', ...(tool.claimsReadOnly ? ['claims to be read-only'] : [])]
  }
}

function nameOf(tool: string): string {
  const clean = tool.replace(/[^\x20-\x7e]/g, '_').slice(0, 128)
  return clean.trim() === '' ? 'tool' : clean
}

/** The schema for a card: whole when it is small, else its outline. */
export function cardSchema(schema: Readonly<Record<string, unknown>>): unknown {
  const safe = safeSchema(schema)
  return [safe, outlineOf(safe)].find(fitsCard) ?? ANY_OBJECT
}

function fitsCard(schema: unknown): boolean {
  const fault = jsonFault(schema, { maxDepth: MAX_CARD_DEPTH, maxKeys: 1000, maxString: MAX_CARD_SCHEMA_BYTES })
  return fault === null && bytesOf(schema) <= MAX_CARD_SCHEMA_BYTES
}

/** Forms of a capability, from whole to short. */
const FORMS: readonly ((one: CapabilityDescriptor) => CapabilityDescriptor)[] = [
  (one) => one,
  (one) => ({ ...one, description: shorter(one.description) }),
  (one) => ({ ...one, description: shorter(one.description), outputSchema: {} }),
  (one) => ({
    ...one,
    description: shorter(one.description),
    inputSchema: outlined(one),
    outputSchema: {}
  }),
  (one) => ({
    ...one,
    description: shorter(one.description),
    inputSchema: ANY_OBJECT,
    outputSchema: {}
  })
]

interface Fitting {
  readonly capability: CapabilityDescriptor
  readonly tool: ImportedTool
}

function fitted(all: readonly Fitting[]): readonly CapabilityDescriptor[] {
  // One is the capability that gives definitions.
  const most = all.slice(0, MAX_CAPABILITIES - 1)
  for (const form of FORMS) {
    const some = most.map((one) => marked(form(one.capability), one.tool))
    if (sum(some) <= MAX_CAPABILITIES_BYTES - DEFINITIONS_BYTES) return some
  }
  const kept: CapabilityDescriptor[] = []
  let bytes = 0
  for (const { capability, tool } of most) {
    const { idempotent, ...rest } = capability
    const description = shorter(capability.description).slice(0, 80)
    const bare = {
      ...rest,
      ...(idempotent === true ? { idempotent } : {}),
      description,
      inputSchema: ANY_OBJECT,
      outputSchema: {}
    }
    const one = marked(bare, tool)
    bytes += bytesOf(one) + 1
    if (bytes > MAX_CAPABILITIES_BYTES - DEFINITIONS_BYTES) break
    kept.push(one)
  }
  return kept
}

/** With the hash of the definition where the card does not have all of it that a caller needs. */
function marked(capability: CapabilityDescriptor, tool: ImportedTool): CapabilityDescriptor {
  const isWhole =
    capability.description === tool.description &&
    canonicalJson(capability.inputSchema) === canonicalJson(withoutCostly(tool.inputSchema))
  if (isWhole) return capability
  return { ...capability, tags: [...(capability.tags ?? []), definitionTag(definitionHash(tool))] }
}

function outlined({ inputSchema }: CapabilityDescriptor): unknown {
  return isRecord(inputSchema) ? outlineOf(inputSchema) : inputSchema
}

function shorter(text: string): string {
  return text.length > SHORT_DESCRIPTION ? `${text.slice(0, SHORT_DESCRIPTION - 1)}…` : text
}

function sum(capabilities: readonly CapabilityDescriptor[]): number {
  return capabilities.reduce((bytes, one) => bytes + bytesOf(one) + 1, 0)
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(canonicalJson(value))
}
