import fc from 'fast-check'
import type { Arbitrary } from 'fast-check'
import type { AgentCard, AgentEndpoint, CapabilityDescriptor } from './domain/card/card.js'
import { MESSAGE_TYPES, SCHEMA_VERSION, type A2AEnvelope, type EnvelopeMetadata } from './domain/envelope/envelope.js'
import type { SandboxRules } from './domain/routing/decide.js'
import { TIERS, type Tier } from './domain/routing/tier.js'
import type { TaskProposalPayload } from './domain/task/negotiation.js'
import { keyToText, type NodeId } from './kit/ids.js'
import { jsonFault } from './kit/json.js'

/** An update of a shared document, as sent to peers (spec a2a-mcp-mesh, CRDTSyncMessage). */
export interface CRDTSyncMessage {
  /** `agentId@nodeId` of the author of the update. */
  readonly sourceAgentId: string
  /** Number of known updates by agent; never empty, and the count of the source is at least 1. */
  readonly vectorClock: Readonly<Record<string, number>>
  /** The update. JSON or bytes. */
  readonly payload: unknown
  /** Unix milliseconds. */
  readonly timestamp: number
}

/** A tool in the list of an MCP server (spec a2a-mcp-mesh, properties 18 to 20). */
export interface MCPToolDefinition {
  /** `agentName.toolName`. */
  readonly name: string
  readonly description: string
  /** JSON Schema of an object. */
  readonly inputSchema: Readonly<Record<string, unknown>>
  /** JSON Schema of an object. */
  readonly outputSchema: Readonly<Record<string, unknown>>
  /** Id of its agent: the part of `name` before the dot. */
  readonly sourceAgentId: string
}

function tiers(): Arbitrary<Tier> {
  return fc.constantFrom(...TIERS)
}

/** Tiers of a sender and a recipient. */
export function arbTierPair(): Arbitrary<[Tier, Tier]> {
  return fc.tuple(tiers(), tiers())
}

function nodeIds(): Arbitrary<NodeId> {
  return fc.uint8Array({ minLength: 32, maxLength: 32 }).map(keyToText)
}

function agentIds(): Arbitrary<string> {
  return fc.stringMatching(/^[a-z0-9][a-z0-9._-]{0,20}$/)
}

/** Addresses `agentId@nodeId`. */
export function arbAddress(): Arbitrary<string> {
  return fc.tuple(agentIds(), nodeIds()).map(([agent, node]) => `${agent}@${node}`)
}

/** Any Unicode text that is not empty. */
function texts(): Arbitrary<string> {
  return fc.string({ minLength: 1, maxLength: 32, unit: 'binary' })
}

function payloads(hasBytes: boolean): Arbitrary<unknown> {
  const json = fc.jsonValue({ maxDepth: 4 }).filter((value) => jsonFault(value) === null)
  // Normalizes values that JSON does not distinguish (-0 and 0).
  const plain = json.map((value): unknown => JSON.parse(JSON.stringify(value)))
  if (!hasBytes) return plain
  const bytes = fc.uint8Array({ maxLength: 200 }).map((one) => new Uint8Array(one))
  const list = fc.array(fc.oneof(plain, bytes), { maxLength: 4 })
  return fc.oneof(plain, bytes, fc.record({ plain, file: bytes, list }, { noNullPrototype: true }))
}

function metadata(): Arbitrary<EnvelopeMetadata> {
  const fields = {
    tier: tiers(),
    sandboxId: texts(),
    routingHint: fc.constant('capability' as const),
    justification: texts(),
    hops: fc.array(nodeIds(), { maxLength: 8 })
  }
  return fc.record(fields, { requiredKeys: ['tier'], noNullPrototype: true })
}

/** Envelopes of every type with random ends, metadata and JSON payload; with `bytes`, Uint8Array members too. */
export function arbA2AEnvelope({ bytes = false }: { readonly bytes?: boolean } = {}): Arbitrary<A2AEnvelope> {
  const fields = {
    id: texts(),
    schemaVersion: fc.constant(SCHEMA_VERSION),
    sender: arbAddress(),
    recipient: fc.oneof(arbAddress(), fc.constant('*')),
    correlationId: texts(),
    type: fc.constantFrom(...MESSAGE_TYPES),
    timestamp: fc.nat({ max: Number.MAX_SAFE_INTEGER }),
    payload: payloads(bytes),
    metadata: metadata()
  }
  const requiredKeys: ('id' | 'schemaVersion' | 'sender' | 'recipient' | 'type' | 'timestamp' | 'payload')[] = [
    'id',
    'schemaVersion',
    'sender',
    'recipient',
    'type',
    'timestamp',
    'payload'
  ]
  return fc.record(fields, { requiredKeys, noNullPrototype: true })
}

/** Sandbox rules whose allow list holds agent ids and addresses. */
export function arbSandboxConfig(): Arbitrary<SandboxRules> {
  const allowed = fc.array(fc.oneof(agentIds(), arbAddress()), { maxLength: 5 })
  return fc.record({ enforced: fc.boolean(), crossSandboxAllowList: allowed }, { noNullPrototype: true })
}

/** Payloads of task proposals. */
export function arbTaskProposal(): Arbitrary<TaskProposalPayload> {
  const span = fc.integer({ min: 1, max: 600_000 })
  const fields = {
    taskDescription: texts(),
    requiredCapabilities: fc.array(agentIds(), { maxLength: 5 }),
    estimatedComplexity: fc.constantFrom('simple' as const, 'medium' as const, 'complex' as const),
    deadlineMs: span,
    estimatedCompletionMs: span,
    rejectionReason: texts(),
    alternativeSuggestion: texts()
  }
  const requiredKeys: ('taskDescription' | 'requiredCapabilities' | 'estimatedComplexity' | 'deadlineMs')[] = [
    'taskDescription',
    'requiredCapabilities',
    'estimatedComplexity',
    'deadlineMs'
  ]
  return fc.record(fields, { requiredKeys, noNullPrototype: true })
}

function words(): Arbitrary<string> {
  return fc.stringMatching(/^[a-z]{1,8}$/)
}

function objectSchemas(): Arbitrary<Record<string, unknown>> {
  const fields = {
    type: fc.constant('object'),
    required: fc.array(words(), { maxLength: 3 }).map((names) => [...new Set(names)]),
    properties: fc.dictionary(words(), fc.record({ type: fc.constantFrom('string', 'number', 'boolean') }), {
      maxKeys: 4
    })
  }
  return fc.record(fields, { requiredKeys: ['type'], noNullPrototype: true })
}

/** Capabilities with random ids, schemas and flags. */
export function arbCapabilityDescriptor(): Arbitrary<CapabilityDescriptor> {
  const word = words()
  const simple = fc.record({ type: fc.constantFrom('object', 'string', 'array'), title: word })
  const schema = fc.oneof(fc.constant(true), fc.constant({}), simple, objectSchemas())
  const fields = {
    id: fc.tuple(word, word).map(([area, verb]) => `${area}.${verb}`),
    name: word,
    description: fc.string({ maxLength: 60 }),
    inputSchema: schema,
    outputSchema: schema,
    idempotent: fc.boolean(),
    sideEffect: fc.constantFrom('none' as const, 'read' as const, 'write' as const, 'exec' as const),
    default: fc.boolean(),
    tags: fc.array(word, { maxLength: 3 })
  }
  const requiredKeys: ('id' | 'name' | 'description' | 'inputSchema' | 'outputSchema')[] = [
    'id',
    'name',
    'description',
    'inputSchema',
    'outputSchema'
  ]
  return fc.record(fields, { requiredKeys, noNullPrototype: true })
}

function endpoints(): Arbitrary<AgentEndpoint> {
  const fields = {
    transport: fc.constantFrom('local' as const, 'hyperswarm' as const, 'websocket' as const),
    address: fc.webUrl().map((url) => url.slice(0, 512))
  }
  return fc.record(fields, { requiredKeys: ['transport'], noNullPrototype: true })
}

/** Cards that `validateCard` accepts, with random tiers, endpoints and capabilities (of distinct ids). */
export function arbAgentCard(): Arbitrary<AgentCard> {
  const required = {
    id: fc
      .stringMatching(/^[a-z0-9._-]{1,64}$/)
      .filter((id) => !['__proto__', 'constructor', 'prototype'].includes(id)),
    name: fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 32 }).filter((text) => text.trim() !== ''),
    version: fc.tuple(fc.nat(99), fc.nat(99), fc.nat(99)).map((parts) => parts.join('.')),
    description: fc.string({ maxLength: 200 }),
    tier: tiers(),
    protocols: fc.subarray(['a2a/1.0', 'a2a/0.3', 'mcp/2024-11-05']),
    endpoints: fc.array(endpoints(), { maxLength: 3 }),
    capabilities: fc.uniqueArray(arbCapabilityDescriptor(), { selector: (one) => one.id, maxLength: 5 }),
    revision: fc.nat(1_000_000),
    origin: fc.constantFrom('local' as const, 'remote' as const),
    lastSeenAt: fc.nat(2_000_000_000)
  }
  const fields = {
    ...required,
    sandboxId: fc.constantFrom('ci', 'lab', 'home'),
    external: fc.constant(true as const),
    provider: fc.constantFrom(
      { organization: 'Example', url: 'https://example.org' },
      { organization: 'Ünï', url: 'http://[::1]:8080/a?b' }
    )
  }
  return fc.record(fields, { requiredKeys: Object.keys(required) as (keyof typeof required)[], noNullPrototype: true })
}

/** Updates of documents with the vector clock of their author. */
export function arbCRDTSyncMessage(): Arbitrary<CRDTSyncMessage> {
  const clock = fc.dictionary(arbAddress(), fc.integer({ min: 1, max: 1_000_000 }), {
    maxKeys: 5,
    noNullPrototype: true
  })
  const fields = {
    sourceAgentId: arbAddress(),
    known: clock,
    count: fc.integer({ min: 1, max: 1_000_000 }),
    payload: payloads(true),
    timestamp: fc.nat({ max: Number.MAX_SAFE_INTEGER })
  }
  return fc.record(fields, { noNullPrototype: true }).map(({ sourceAgentId, known, count, payload, timestamp }) => ({
    sourceAgentId,
    vectorClock: { ...known, [sourceAgentId]: count },
    payload,
    timestamp
  }))
}

/** Tools with the schemas of their input and output. */
export function arbMCPToolDefinition(): Arbitrary<MCPToolDefinition> {
  const fields = {
    agent: fc.stringMatching(/^[a-z0-9_-]{1,16}$/).filter((id) => id !== '__proto__'),
    tool: fc.stringMatching(/^[a-z][a-z0-9_-]{0,15}$/),
    description: fc.string({ maxLength: 60 }),
    inputSchema: objectSchemas(),
    outputSchema: objectSchemas()
  }
  return fc.record(fields, { noNullPrototype: true }).map(({ agent, tool, ...rest }) => ({
    name: `${agent}.${tool}`,
    ...rest,
    sourceAgentId: agent
  }))
}
