import type * as FastCheck from 'fast-check'
import { MESSAGE_TYPES, SCHEMA_VERSION, type A2AEnvelope, type EnvelopeMetadata } from './domain/envelope/envelope.js'
import type { SandboxRules } from './domain/routing/decide.js'
import { TIERS, type Tier } from './domain/routing/tier.js'
import type { TaskProposalPayload } from './domain/task/negotiation.js'
import { keyToText, type NodeId } from './kit/ids.js'
import { jsonFault } from './kit/json.js'

/** The part of fast-check that the generators are made with. */
export type FastCheckPart = Pick<
  typeof FastCheck,
  | 'array'
  | 'boolean'
  | 'constant'
  | 'constantFrom'
  | 'integer'
  | 'jsonValue'
  | 'nat'
  | 'oneof'
  | 'record'
  | 'string'
  | 'stringMatching'
  | 'tuple'
  | 'uint8Array'
>

type Arbitrary<T> = FastCheck.Arbitrary<T>

/** Generators of valid values of the mesh, for property tests (spec a2a-mcp-mesh, Generators). */
export interface Arbitraries {
  /** Envelopes of every type with random ends, metadata and JSON payload; with `bytes`, Uint8Array members too. */
  arbA2AEnvelope(options?: { readonly bytes?: boolean }): Arbitrary<A2AEnvelope>
  /** Tiers of a sender and a recipient. */
  arbTierPair(): Arbitrary<[Tier, Tier]>
  /** Sandbox rules whose allow list holds agent ids and addresses. */
  arbSandboxConfig(): Arbitrary<SandboxRules>
  /** Payloads of task proposals. */
  arbTaskProposal(): Arbitrary<TaskProposalPayload>
  /** Addresses `agentId@nodeId`. */
  arbAddress(): Arbitrary<string>
}

/** The generators, made with the fast-check that the tests use: `arbitraries(fc).arbA2AEnvelope()`. */
export function arbitraries(fc: FastCheckPart): Arbitraries {
  return {
    arbA2AEnvelope: (options = {}) => envelopes(fc, options.bytes === true),
    arbTierPair: () => fc.tuple(tiers(fc), tiers(fc)),
    arbSandboxConfig: () => sandboxes(fc),
    arbTaskProposal: () => proposals(fc),
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
    hops: fc.array(nodeIds(fc), { maxLength: 8 })
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
