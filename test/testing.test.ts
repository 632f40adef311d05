import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import test from 'brittle'
import fc from 'fast-check'
import { createSchemaCompiler } from '../src/adapters/agents/schemas/compile-schema.js'
import { validateCard } from '../src/domain/card/schema.js'
import { decodeEnvelope, encodeEnvelope } from '../src/domain/envelope/codec.js'
import { TaskProposalPayloadSchema } from '../src/domain/task/negotiation.js'
import * as make from '../src/testing.js'
import { holds } from './support/holds.js'

const compile = createSchemaCompiler()

test('the generators make cards and capabilities that the registry takes', async (t) => {
  await holds(
    t,
    fc.property(make.arbAgentCard(), make.arbCapabilityDescriptor(), (card, capability) => {
      assert.deepEqual(validateCard(card).ok, true)
      assert.deepEqual(validateCard({ ...card, capabilities: [capability] }).ok, true)
      for (const schema of [capability.inputSchema, capability.outputSchema])
        assert.equal(typeof compile(schema), 'function')
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

test('the generators are exports of a2a-node/testing, and nothing else of the package needs fast-check', (t) => {
  const named = [
    'AgentCard',
    'A2AEnvelope',
    'CapabilityDescriptor',
    'TaskProposal',
    'CRDTSyncMessage',
    'SandboxConfig',
    'TierPair',
    'MCPToolDefinition'
  ]
  t.alike(Object.keys(make).sort(), ['Address', ...named].map((name) => `arb${name}`).sort())
  const sources = fs.readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
  const needs = (text: string): boolean =>
    /from '(fast-check|.*\/testing\.js)'|import\('(fast-check|.*\/testing\.js)'\)/.test(text)
  t.alike(
    sources.filter((name) => needs(fs.readFileSync(path.join('src', name), 'utf8'))),
    ['testing.ts']
  )
  const { peerDependenciesMeta } = JSON.parse(fs.readFileSync('package.json', 'utf8')) as {
    peerDependenciesMeta: unknown
  }
  t.alike(peerDependenciesMeta, { 'fast-check': { optional: true } }, 'a user who installs the command gets none of it')
})
