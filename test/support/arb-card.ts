import type fastCheck from 'fast-check'
import type { Arbitrary } from 'fast-check'
import type { AgentCard, AgentEndpoint, CapabilityDescriptor } from '../../src/domain/card/card.js'
import type { Tier } from '../../src/domain/routing/tier.js'

/** The library as its caller has it: this file imports none, so that it can be given to users of `a2a-node/testing`. */
export type FastCheck = typeof fastCheck

const AGENT_ID = [...'abcdefghijklmnopqrstuvwxyz0123456789._-']

/** Valid capability descriptors with random ids, schemas and marks. */
export function arbCapabilityDescriptor(fc: FastCheck): Arbitrary<CapabilityDescriptor> {
  const word = fc.string({ unit: fc.constantFrom(...'abcdefghijklmnopqrstuvwxyz'), minLength: 1, maxLength: 8 })
  const schema = fc.oneof(
    fc.constant(true),
    fc.constant({}),
    fc.record({ type: fc.constantFrom('object', 'string', 'array'), title: word }),
    fc.record({
      type: fc.constant('object'),
      required: fc.array(word, { maxLength: 3 }),
      properties: fc.dictionary(word, fc.record({ type: fc.constantFrom('string', 'number', 'boolean') }), { maxKeys: 4 })
    })
  )
  return fc.record(
    {
      id: fc.tuple(word, word).map(([area, verb]) => `${area}.${verb}`),
      name: word,
      description: fc.string({ maxLength: 60 }),
      inputSchema: schema,
      outputSchema: schema,
      idempotent: fc.boolean(),
      sideEffect: fc.constantFrom('none' as const, 'read' as const, 'write' as const, 'exec' as const),
      default: fc.boolean(),
      tags: fc.array(word, { maxLength: 3 })
    },
    { requiredKeys: ['id', 'name', 'description', 'inputSchema', 'outputSchema'], noNullPrototype: true }
  )
}

/** Valid AgentCards with random tiers, capabilities (of distinct ids) and endpoints. */
export function arbAgentCard(fc: FastCheck): Arbitrary<AgentCard> {
  const name = fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 32 }).filter((text) => text.trim() !== '')
  const endpoint: Arbitrary<AgentEndpoint> = fc.record(
    {
      transport: fc.constantFrom('local' as const, 'hyperswarm' as const, 'websocket' as const),
      address: fc.webUrl().map((url) => url.slice(0, 512))
    },
    { requiredKeys: ['transport'], noNullPrototype: true }
  )
  return fc.record(
    {
      id: fc
        .string({ unit: fc.constantFrom(...AGENT_ID), minLength: 1, maxLength: 64 })
        .filter((id) => !['__proto__', 'constructor', 'prototype'].includes(id)),
      name,
      version: fc.tuple(fc.nat(99), fc.nat(99), fc.nat(99)).map((parts) => parts.join('.')),
      description: fc.string({ maxLength: 200 }),
      tier: fc.constantFrom<Tier[]>(0, 1, 2, 3),
      protocols: fc.subarray(['a2a/1.0', 'a2a/0.3', 'mcp/2024-11-05']),
      endpoints: fc.array(endpoint, { maxLength: 3 }),
      capabilities: fc.uniqueArray(arbCapabilityDescriptor(fc), { selector: (one) => one.id, maxLength: 5 }),
      revision: fc.nat(1_000_000),
      sandboxId: fc.constantFrom('ci', 'lab', 'home'),
      origin: fc.constantFrom('local' as const, 'remote' as const),
      lastSeenAt: fc.nat(2_000_000_000)
    },
    {
      requiredKeys: [
        'id',
        'name',
        'version',
        'description',
        'tier',
        'protocols',
        'endpoints',
        'capabilities',
        'revision',
        'origin',
        'lastSeenAt'
      ],
      noNullPrototype: true
    }
  )
}
