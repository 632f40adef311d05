import type * as FastCheck from 'fast-check'
import { MESSAGE_TYPES, SCHEMA_VERSION, type A2AEnvelope } from './domain/envelope/envelope.js'
import type { SandboxRules } from './domain/routing/decide.js'
import { TIERS, type Tier } from './domain/routing/tier.js'
import type { TaskProposalPayload } from './domain/task/negotiation.js'
import { keyToText } from './kit/ids.js'
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

/** Generators of valid values of the mesh, for property tests (spec a2a-mcp-mesh, Generators). */
export interface Arbitraries {
  /** Envelopes of every type with random ends, metadata and JSON payload; with `bytes`, Uint8Array members too. */
  arbA2AEnvelope(options?: { readonly bytes?: boolean }): FastCheck.Arbitrary<A2AEnvelope>
  /** Tiers of a sender and a recipient. */
  arbTierPair(): FastCheck.Arbitrary<[Tier, Tier]>
  /** Sandbox rules whose allow list holds agent ids and addresses. */
  arbSandboxConfig(): FastCheck.Arbitrary<SandboxRules>
  /** Payloads of task proposals. */
  arbTaskProposal(): FastCheck.Arbitrary<TaskProposalPayload>
  /** Addresses `agentId@nodeId`. */
  arbAddress(): FastCheck.Arbitrary<string>
}

/** The generators, made with the fast-check that the tests use: `arbitraries(fc).arbA2AEnvelope()`. */
export function arbitraries(fc: FastCheckPart): Arbitraries {
  const nodeId = fc.uint8Array({ minLength: 32, maxLength: 32 }).map(keyToText)
  const agentId = fc.stringMatching(/^[a-z0-9][a-z0-9._-]{0,20}$/)
  const address = fc.tuple(agentId, nodeId).map(([agent, node]) => `${agent}@${node}`)
  const text = fc.string({ minLength: 1, maxLength: 32, unit: 'binary' })
  const tier = fc.constantFrom(...TIERS)
  const json = fc.jsonValue({ maxDepth: 4 }).filter((value) => jsonFault(value) === null)
  // What JSON cannot tell apart (-0 and 0) is made one before it is compared.
  const plain = json.map((value): unknown => JSON.parse(JSON.stringify(value)))
  const bytes = fc.uint8Array({ maxLength: 200 }).map((one) => new Uint8Array(one))
  const rich = fc.oneof(
    bytes,
    fc.record({ plain, file: bytes, list: fc.array(fc.oneof(plain, bytes), { maxLength: 4 }) }, { noNullPrototype: true })
  )
  const optional = { requiredKeys: [] as [], noNullPrototype: true }

  const metadata = fc
    .tuple(
      fc.record({ tier }, { noNullPrototype: true }),
      fc.record(
        { sandboxId: text, routingHint: fc.constant('capability' as const), justification: text, hops: fc.array(nodeId, { maxLength: 8 }) },
        optional
      )
    )
    .map(([required, rest]) => ({ ...required, ...rest }))

  const arbA2AEnvelope = (options: { readonly bytes?: boolean } = {}): FastCheck.Arbitrary<A2AEnvelope> =>
    fc.record(
      {
        id: text,
        schemaVersion: fc.constant(SCHEMA_VERSION),
        sender: address,
        recipient: fc.oneof(address, fc.constant('*')),
        correlationId: text,
        type: fc.constantFrom(...MESSAGE_TYPES),
        timestamp: fc.nat({ max: Number.MAX_SAFE_INTEGER }),
        payload: options.bytes === true ? fc.oneof(plain, rich) : plain,
        metadata
      },
      { requiredKeys: ['id', 'schemaVersion', 'sender', 'recipient', 'type', 'timestamp', 'payload'], noNullPrototype: true }
    )

  return {
    arbA2AEnvelope,
    arbTierPair: () => fc.tuple(tier, tier),
    arbSandboxConfig: () =>
      fc.record(
        { enforced: fc.boolean(), crossSandboxAllowList: fc.array(fc.oneof(agentId, address), { maxLength: 5 }) },
        { noNullPrototype: true }
      ),
    arbTaskProposal: () =>
      fc.record(
        {
          taskDescription: text,
          requiredCapabilities: fc.array(agentId, { maxLength: 5 }),
          estimatedComplexity: fc.constantFrom('simple' as const, 'medium' as const, 'complex' as const),
          deadlineMs: fc.integer({ min: 1, max: 600_000 }),
          estimatedCompletionMs: fc.integer({ min: 1, max: 600_000 }),
          rejectionReason: text,
          alternativeSuggestion: text
        },
        { requiredKeys: ['taskDescription', 'requiredCapabilities', 'estimatedComplexity', 'deadlineMs'], noNullPrototype: true }
      ),
    arbAddress: () => address
  }
}
