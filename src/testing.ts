import type * as FastCheck from 'fast-check'
import type { AgentCard, AgentEndpoint, CapabilityDescriptor } from './domain/card/card.js'
import { MESSAGE_TYPES, SCHEMA_VERSION, type A2AEnvelope, type EnvelopeMetadata } from './domain/envelope/envelope.js'
import type { SandboxRules } from './domain/routing/decide.js'
import { TIERS, type Tier } from './domain/routing/tier.js'
import type { TaskProposalPayload } from './domain/task/negotiation.js'
import { bytesToText, keyToText, type NodeId } from './kit/ids.js'
import { jsonFault } from './kit/json.js'

/** The part of fast-check that the generators are made with. */
export type FastCheckPart = Pick<
  typeof FastCheck,
  | 'array'
  | 'boolean'
  | 'constant'
  | 'constantFrom'
  | 'dictionary'
  | 'integer'
  | 'jsonValue'
  | 'nat'
  | 'oneof'
  | 'record'
  | 'string'
  | 'stringMatching'
  | 'subarray'
  | 'tuple'
  | 'uint8Array'
  | 'uniqueArray'
  | 'webUrl'
>

type Arbitrary<T> = FastCheck.Arbitrary<T>

/** One update of a shared document as it is told to others (spec a2a-mcp-mesh, CRDTSyncMessage). */
export interface CRDTSyncMessage {
  /** `agentId@nodeId` of who made the update. */
  readonly sourceAgentId: string
  /** How many updates of each agent it knows; never empty, and the source's own count is at least 1. */
  readonly vectorClock: Readonly<Record<string, number>>
  /** The update. JSON or bytes. */
  readonly payload: unknown
  /** Unix milliseconds. */
  readonly timestamp: number
}

/** A tool as an MCP server lists it (spec a2a-mcp-mesh, properties 18 to 20). */
export interface MCPToolDefinition {
  /** `agentName.toolName`. */
  readonly name: string
  readonly description: string
  /** JSON Schema of an object. */
  readonly inputSchema: Readonly<Record<string, unknown>>
  /** JSON Schema of an object. */
  readonly outputSchema: Readonly<Record<string, unknown>>
  /** Id of the agent that runs it: the part of `name` before the dot. */
  readonly sourceAgentId: string
}

/** Generators of valid values of the mesh, for property tests (spec a2a-mcp-mesh, Generators). */
export interface Arbitraries {
  /** Cards that `validateCard` takes, with random tiers, endpoints and capabilities (of distinct ids). */
  arbAgentCard(): Arbitrary<AgentCard>
  /** Capabilities with random ids, schemas and marks. */
  arbCapabilityDescriptor(): Arbitrary<CapabilityDescriptor>
  /** Envelopes of every type with random ends, metadata and JSON payload; with `bytes`, Uint8Array members too. */
  arbA2AEnvelope(options?: { readonly bytes?: boolean }): Arbitrary<A2AEnvelope>
  /** Tiers of a sender and a recipient. */
  arbTierPair(): Arbitrary<[Tier, Tier]>
  /** Sandbox rules whose allow list holds agent ids and addresses. */
  arbSandboxConfig(): Arbitrary<SandboxRules>
  /** Payloads of task proposals. */
  arbTaskProposal(): Arbitrary<TaskProposalPayload>
  /** Updates of documents with the vector clock of who made them. */
  arbCRDTSyncMessage(): Arbitrary<CRDTSyncMessage>
  /** Tools with the schemas of what they take and give. */
  arbMCPToolDefinition(): Arbitrary<MCPToolDefinition>
  /** Addresses `agentId@nodeId`. */
  arbAddress(): Arbitrary<string>
}

/** The generators, made with the fast-check that the tests use: `arbitraries(fc).arbA2AEnvelope()`. */
export function arbitraries(fc: FastCheckPart): Arbitraries {
  return {
    arbAgentCard: () => cards(fc),
    arbCapabilityDescriptor: () => capabilities(fc),
    arbA2AEnvelope: (options = {}) => envelopes(fc, options.bytes === true),
    arbTierPair: () => fc.tuple(tiers(fc), tiers(fc)),
    arbSandboxConfig: () => sandboxes(fc),
    arbTaskProposal: () => proposals(fc),
    arbCRDTSyncMessage: () => updates(fc),
    arbMCPToolDefinition: () => tools(fc),
    arbAddress: () => addresses(fc)
  }
}

function tiers(fc: FastCheckPart): Arbitrary<Tier> {
  return fc.constantFrom(...TIERS)
}

function nodeIds(fc: FastCheckPart): Arbitrary<NodeId> {
  return fc.uint8Array({ minLength: 32, maxLength: 32 }).map(keyToText)
}

function agentIds(fc: FastCheckPart): Arbitrary<string> {
  return fc.stringMatching(/^[a-z0-9][a-z0-9._-]{0,20}$/)
}

function addresses(fc: FastCheckPart): Arbitrary<string> {
  return fc.tuple(agentIds(fc), nodeIds(fc)).map(([agent, node]) => `${agent}@${node}`)
}

/** Any Unicode text that is not empty. */
function texts(fc: FastCheckPart): Arbitrary<string> {
  return fc.string({ minLength: 1, maxLength: 32, unit: 'binary' })
}

function payloads(fc: FastCheckPart, hasBytes: boolean): Arbitrary<unknown> {
  const json = fc.jsonValue({ maxDepth: 4 }).filter((value) => jsonFault(value) === null)
  // What JSON cannot tell apart (-0 and 0) is made one before it is compared.
  const plain = json.map((value): unknown => JSON.parse(JSON.stringify(value)))
  if (!hasBytes) return plain
  const bytes = fc.uint8Array({ maxLength: 200 }).map((one) => new Uint8Array(one))
  const list = fc.array(fc.oneof(plain, bytes), { maxLength: 4 })
  return fc.oneof(plain, bytes, fc.record({ plain, file: bytes, list }, { noNullPrototype: true }))
}

function metadata(fc: FastCheckPart): Arbitrary<EnvelopeMetadata> {
  const fields = {
    tier: tiers(fc),
    sandboxId: texts(fc),
    routingHint: fc.constant('capability' as const),
    justification: texts(fc),
    hops: fc.array(nodeIds(fc), { maxLength: 8 }),
    signature: fc.uint8Array({ minLength: 64, maxLength: 64 }).map(bytesToText)
  }
  return fc.record(fields, { requiredKeys: ['tier'], noNullPrototype: true })
}

function envelopes(fc: FastCheckPart, hasBytes: boolean): Arbitrary<A2AEnvelope> {
  const fields = {
    id: texts(fc),
    schemaVersion: fc.constant(SCHEMA_VERSION),
    sender: addresses(fc),
    recipient: fc.oneof(addresses(fc), fc.constant('*')),
    correlationId: texts(fc),
    type: fc.constantFrom(...MESSAGE_TYPES),
    timestamp: fc.nat({ max: Number.MAX_SAFE_INTEGER }),
    payload: payloads(fc, hasBytes),
    metadata: metadata(fc)
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

function sandboxes(fc: FastCheckPart): Arbitrary<SandboxRules> {
  const allowed = fc.array(fc.oneof(agentIds(fc), addresses(fc)), { maxLength: 5 })
  return fc.record({ enforced: fc.boolean(), crossSandboxAllowList: allowed }, { noNullPrototype: true })
}

function proposals(fc: FastCheckPart): Arbitrary<TaskProposalPayload> {
  const span = fc.integer({ min: 1, max: 600_000 })
  const fields = {
    taskDescription: texts(fc),
    requiredCapabilities: fc.array(agentIds(fc), { maxLength: 5 }),
    estimatedComplexity: fc.constantFrom('simple' as const, 'medium' as const, 'complex' as const),
    deadlineMs: span,
    estimatedCompletionMs: span,
    rejectionReason: texts(fc),
    alternativeSuggestion: texts(fc)
  }
  const requiredKeys: ('taskDescription' | 'requiredCapabilities' | 'estimatedComplexity' | 'deadlineMs')[] = [
    'taskDescription',
    'requiredCapabilities',
    'estimatedComplexity',
    'deadlineMs'
  ]
  return fc.record(fields, { requiredKeys, noNullPrototype: true })
}

function words(fc: FastCheckPart): Arbitrary<string> {
  return fc.stringMatching(/^[a-z]{1,8}$/)
}

function objectSchemas(fc: FastCheckPart): Arbitrary<Record<string, unknown>> {
  const fields = {
    type: fc.constant('object'),
    required: fc.array(words(fc), { maxLength: 3 }).map((names) => [...new Set(names)]),
    properties: fc.dictionary(words(fc), fc.record({ type: fc.constantFrom('string', 'number', 'boolean') }), { maxKeys: 4 })
  }
  return fc.record(fields, { requiredKeys: ['type'], noNullPrototype: true })
}

function capabilities(fc: FastCheckPart): Arbitrary<CapabilityDescriptor> {
  const word = words(fc)
  const simple = fc.record({ type: fc.constantFrom('object', 'string', 'array'), title: word })
  const schema = fc.oneof(fc.constant(true), fc.constant({}), simple, objectSchemas(fc))
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

function endpoints(fc: FastCheckPart): Arbitrary<AgentEndpoint> {
  const fields = {
    transport: fc.constantFrom('local' as const, 'hyperswarm' as const, 'websocket' as const),
    address: fc.webUrl().map((url) => url.slice(0, 512))
  }
  return fc.record(fields, { requiredKeys: ['transport'], noNullPrototype: true })
}

function cards(fc: FastCheckPart): Arbitrary<AgentCard> {
  const required = {
    id: fc.stringMatching(/^[a-z0-9._-]{1,64}$/).filter((id) => !['__proto__', 'constructor', 'prototype'].includes(id)),
    name: fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 32 }).filter((text) => text.trim() !== ''),
    version: fc.tuple(fc.nat(99), fc.nat(99), fc.nat(99)).map((parts) => parts.join('.')),
    description: fc.string({ maxLength: 200 }),
    tier: tiers(fc),
    protocols: fc.subarray(['a2a/1.0', 'a2a/0.3', 'mcp/2024-11-05']),
    endpoints: fc.array(endpoints(fc), { maxLength: 3 }),
    capabilities: fc.uniqueArray(capabilities(fc), { selector: (one) => one.id, maxLength: 5 }),
    revision: fc.nat(1_000_000),
    origin: fc.constantFrom('local' as const, 'remote' as const),
    lastSeenAt: fc.nat(2_000_000_000)
  }
  const fields = { ...required, sandboxId: fc.constantFrom('ci', 'lab', 'home') }
  return fc.record(fields, { requiredKeys: Object.keys(required) as (keyof typeof required)[], noNullPrototype: true })
}

function updates(fc: FastCheckPart): Arbitrary<CRDTSyncMessage> {
  const clock = fc.dictionary(addresses(fc), fc.integer({ min: 1, max: 1_000_000 }), { maxKeys: 5, noNullPrototype: true })
  const fields = {
    sourceAgentId: addresses(fc),
    known: clock,
    count: fc.integer({ min: 1, max: 1_000_000 }),
    payload: payloads(fc, true),
    timestamp: fc.nat({ max: Number.MAX_SAFE_INTEGER })
  }
  return fc.record(fields, { noNullPrototype: true }).map(({ sourceAgentId, known, count, payload, timestamp }) => ({
    sourceAgentId,
    vectorClock: { ...known, [sourceAgentId]: count },
    payload,
    timestamp
  }))
}

function tools(fc: FastCheckPart): Arbitrary<MCPToolDefinition> {
  const fields = {
    agent: fc.stringMatching(/^[a-z0-9_-]{1,16}$/).filter((id) => id !== '__proto__'),
    tool: fc.stringMatching(/^[a-z][a-z0-9_-]{0,15}$/),
    description: fc.string({ maxLength: 60 }),
    inputSchema: objectSchemas(fc),
    outputSchema: objectSchemas(fc)
  }
  return fc.record(fields, { noNullPrototype: true }).map(({ agent, tool, ...rest }) => ({
    name: `${agent}.${tool}`,
    ...rest,
    sourceAgentId: agent
  }))
}
