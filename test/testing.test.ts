import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { createSchemaCompiler } from '../src/adapters/agents/compile-schema.js'
import { validateCard } from '../src/domain/card/schema.js'
import { decodeEnvelope, encodeEnvelope } from '../src/domain/envelope/codec.js'
import { TaskProposalPayloadSchema } from '../src/domain/task/negotiation.js'
import { arbitraries } from '../src/testing.js'
import { holds } from './support/holds.js'

const make = arbitraries(fc)
const compile = createSchemaCompiler()

test('the generators make cards and capabilities that the registry takes', async (t) => {
  await holds(
    t,
    fc.property(make.arbAgentCard(), make.arbCapabilityDescriptor(), (card, capability) => {
      assert.deepEqual(validateCard(card).ok, true)
      assert.deepEqual(validateCard({ ...card, capabilities: [capability] }).ok, true)
      for (const schema of [capability.inputSchema, capability.outputSchema]) assert.equal(typeof compile(schema), 'function')
    })
  )
})

test('the generators make envelopes, proposals, tiers and sandboxes that their readers take', async (t) => {
  await holds(
    t,
    fc.property(
      make.arbA2AEnvelope(),
      make.arbTaskProposal(),
      make.arbTierPair(),
      make.arbSandboxConfig(),
      (one, proposal, pair, sandbox) => {
        assert.equal(decodeEnvelope(encodeEnvelope(one)).ok, true)
        assert.equal(TaskProposalPayloadSchema.safeParse(proposal).success, true)
        assert.ok(pair.length === 2 && pair.every((tier) => [0, 1, 2, 3].includes(tier)))
        assert.equal(typeof sandbox.enforced, 'boolean')
      }
    )
  )
})

test('the generators make updates whose clock counts their source, and tools named after their agent', async (t) => {
  await holds(
    t,
    fc.property(make.arbCRDTSyncMessage(), make.arbMCPToolDefinition(), (update, tool) => {
      assert.ok((update.vectorClock[update.sourceAgentId] ?? 0) >= 1)
      assert.ok(Object.values(update.vectorClock).every((count) => Number.isInteger(count) && count >= 1))
      assert.match(tool.name, /^[^.]+\.[^.]+$/)
      assert.equal(tool.name.split('.')[0], tool.sourceAgentId)
      for (const schema of [tool.inputSchema, tool.outputSchema]) assert.equal(typeof compile(schema), 'function')
    })
  )
})
