import { createHash } from 'node:crypto'
import type { CapabilityDescriptor, SideEffect } from '../../../domain/card/card.js'
import type { Tier } from '../../../domain/routing/tier.js'
import { canonicalJson, isRecord, jsonFault } from '../../../kit/json.js'
import type { AgentDefinition } from '../../../ports/agent-runtime.js'
import type { ImportOffer } from '../../../ports/imports.js'
import { shown } from '../../../kit/text.js'
import { contextCapability } from './context-capability.js'
import type { ContextIndex } from './context-index.js'
import type { ImportedTool } from './imported-list.js'
import { ANY_OBJECT, outlineOf, safeSchema, withoutCostly } from './imported-schema.js'
import { definitionHash, definitionsCapability, definitionTag, hashOf } from './tool-definition.js'

/** Bytes of the capabilities of one card; the rest of its 64 KiB is for its other fields. */
export const MAX_CAPABILITIES_BYTES = 61_440
/** The part of them for the capability that gives definitions. */
const DEFINITIONS_BYTES = 512
/** The part of them for the capability that serves resources and prompts. */
const CONTEXT_BYTES = 768
/** Characters of the instructions of a server on its card. */
export const CARD_INSTRUCTIONS = 240
/** Capabilities of one card. */
const MAX_CAPABILITIES = 512
/** Characters of a capability's id. */
const MAX_ID = 128
/** Levels of a schema on a card, which has fewer than a message because log entries wrap it. */
const MAX_CARD_DEPTH = 18
/** A schema with more bytes is left off the card: the node checks by it all the same. */
const MAX_CARD_SCHEMA_BYTES = 2048
/** Start of the description of a server's agent. */
const TOOLS_OF = 'Tools of the MCP server'
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
  /** Its resources and prompts; null: none. */
  readonly context: OfferedContext | null
}

/** Resources and prompts of a server as they are offered. */
export interface OfferedContext {
  readonly index: ContextIndex
  /** Of the index. */
  readonly hash: string
}

/** Content of a card beside tools. */
export interface BesideTools {
  /** How the server is used; '' for none. */
  readonly instructions: string
  readonly context: OfferedContext | null
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
export function importedCard(
  spec: ImportedCardSpec,
  tools: readonly ImportedTool[],
  { instructions, context }: BesideTools = { instructions: '', context: null }
): ImportedCard {
  const byId = new Map(tools.map((tool) => [capabilityId(spec.name, tool.name), tool]))
  const all = [...byId].map(([id, tool]) => ({ capability: capabilityOf(spec, id, tool), tool }))
  const tooled = fitted(all, toolLimits(context))
  const capabilities = [...tooled, ...forNodes(spec.name, tooled, context)]
  const kept = new Map(
    capabilities.flatMap(({ id }) => (byId.has(id) ? [[id, byId.get(id) as ImportedTool] as const] : []))
  )
  const { name, tier, sandbox, timeoutMs, concurrency, maxOutputBytes, source } = spec
  const definition: AgentDefinition = {
    id: name,
    name,
    version: '1.0.0',
    description: cardDescription(name, instructions),
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
    context,
    leftOut: tools.flatMap((tool) => (isKept.has(tool.name) ? [] : [tool.name]))
  }
}

/** The capabilities that nodes call, not models. */
function forNodes(
  server: string,
  tooled: readonly CapabilityDescriptor[],
  context: OfferedContext | null
): readonly CapabilityDescriptor[] {
  const hasIndex = tooled.some((one) => hashOf(one) !== null)
  return [
    ...(hasIndex ? [definitionsCapability(server)] : []),
    ...(context === null ? [] : [contextCapability(server, context.hash)])
  ]
}

/** The description of a server's agent: with the beginning of the instructions, if any. */
function cardDescription(server: string, instructions: string): string {
  return [`${TOOLS_OF} ${server}.`, shown(instructions, CARD_INSTRUCTIONS)].join(' ').trimEnd()
}

/** The instructions in the description of an agent; '' for none, and for an agent that is no server's. */
export function instructionsIn(agentId: string, description: string): string {
  const start = `${TOOLS_OF} ${agentId}. `
  return description.startsWith(start) ? description.slice(start.length) : ''
}

/** Bytes and number of the capabilities of tools. */
interface ToolLimits {
  readonly bytes: number
  readonly count: number
}

/** One is the capability that gives definitions. */
function toolLimits(context: OfferedContext | null): ToolLimits {
  const bytes = MAX_CAPABILITIES_BYTES - DEFINITIONS_BYTES
  return context === null
    ? { bytes, count: MAX_CAPABILITIES - 1 }
    : { bytes: bytes - CONTEXT_BYTES, count: MAX_CAPABILITIES - 2 }
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

function fitted(all: readonly Fitting[], limits: ToolLimits): readonly CapabilityDescriptor[] {
  const most = all.slice(0, limits.count)
  for (const form of FORMS) {
    const some = most.map((one) => marked(form(one.capability), one.tool))
    if (sum(some) <= limits.bytes) return some
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
    if (bytes > limits.bytes) break
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
