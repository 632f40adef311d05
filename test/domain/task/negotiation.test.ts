import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { EnvelopeFactory } from '../../../src/domain/envelope/factory.js'
import {
  acceptPayload,
  createProposal,
  proposalPayload,
  rejectPayload,
  stepProposal,
  TaskAcceptPayloadSchema,
  TaskProposalPayloadSchema,
  TaskRejectPayloadSchema,
  type ProposalInput,
  type ProposalParts,
  type TaskProposal
} from '../../../src/domain/task/negotiation.js'
import { arbAddress, arbTaskProposal } from '../../../src/testing.js'
import { holds } from '../../support/holds.js'
import { countingIds } from '../../support/counting-ids.js'

const arbParts: fc.Arbitrary<ProposalParts> = fc
  .tuple(arbTaskProposal(), arbAddress())
  .map(([payload, proposerAgentId]) => {
    const { taskDescription, requiredCapabilities, estimatedComplexity, deadlineMs } = payload
    return {
      proposalId: 'p1',
      correlationId: 'c1',
      taskDescription,
      requiredCapabilities,
      estimatedComplexity,
      deadlineMs,
      proposerAgentId
    }
  })

const PARTS: ProposalParts = {
  proposalId: 'p1',
  correlationId: 'c1',
  taskDescription: 'count lines',
  requiredCapabilities: ['text.stats'],
  estimatedComplexity: 'simple',
  deadlineMs: 100,
  proposerAgentId: 'operator@n'
}

const ACCEPT: ProposalInput = { type: 'accept', agentId: 'text@m', estimatedCompletionMs: 50 }
const REJECT: ProposalInput = { type: 'reject', reason: 'OVERLOADED', alternative: 'later' }

function stepped(input: ProposalInput, now: number): TaskProposal {
  const step = stepProposal(createProposal(PARTS, 0), input, now)
  assert.ok(step.ok)
  return step.proposal
}

test('Feature: a2a-mcp-protocols, Property 23: Task negotiation message structure', async (t) => {
  await holds(
    t,
    fc.property(
      arbParts,
      arbAddress(),
      fc.integer({ min: 1, max: 100_000 }),
      (parts, agentId, estimatedCompletionMs) => {
        const proposal = createProposal(parts, 0)
        const offered = TaskProposalPayloadSchema.parse(proposalPayload(proposal))
        const { taskDescription, requiredCapabilities, estimatedComplexity, deadlineMs } = parts
        assert.deepEqual(offered, { taskDescription, requiredCapabilities, estimatedComplexity, deadlineMs })
        const accepted = stepProposal(proposal, { type: 'accept', agentId, estimatedCompletionMs }, 0)
        assert.ok(accepted.ok)
        assert.deepEqual(TaskAcceptPayloadSchema.parse(acceptPayload(accepted.proposal)), {
          proposalId: 'p1',
          acceptedBy: agentId,
          estimatedCompletionMs
        })
        const rejected = stepProposal(proposal, REJECT, 0)
        assert.ok(rejected.ok)
        assert.equal(TaskRejectPayloadSchema.parse(rejectPayload(rejected.proposal)).rejectionReason, 'OVERLOADED')
      }
    )
  )
})

test('Feature: a2a-mcp-protocols, Property 24: Task acceptance creates correlation thread', async (t) => {
  await holds(
    t,
    fc.property(arbParts, arbAddress(), fc.integer({ min: 1, max: 5 }), (parts, recipient, later) => {
      const make = new EnvelopeFactory(countingIds(), { now: () => 1 })
      const opening = make.create({ sender: parts.proposerAgentId, recipient, type: 'task-proposal', payload: {} })
      const proposal = createProposal({ ...parts, correlationId: opening.correlationId ?? '' }, 0)
      const accept = make.reply(opening, { type: 'task-accept', payload: {} })
      const rest = Array.from({ length: later }, () => make.reply(accept, { type: 'stream-data', payload: 1 }))
      assert.notEqual(proposal.correlationId, '')
      for (const one of [opening, accept, ...rest]) assert.equal(one.correlationId, proposal.correlationId)
    })
  )
})

test('a proposal is answered once: the first of acceptance, rejection and deadline stands', async (t) => {
  const arbStep = fc.tuple(fc.constantFrom(ACCEPT, REJECT, { type: 'tick' } as const), fc.nat({ max: 60 }))
  await holds(
    t,
    fc.property(fc.array(arbStep, { maxLength: 10 }), (script) => {
      let proposal = createProposal(PARTS, 0)
      let now = 0
      const told: string[] = []
      for (const [input, passed] of script) {
        now += passed
        const before = proposal.status
        const step = stepProposal(proposal, input, now)
        assert.equal(step.ok, before === 'pending')
        if (!step.ok) continue
        const expected =
          now >= 100 ? 'timed-out' : { accept: 'accepted', reject: 'rejected', tick: 'pending' }[input.type]
        assert.equal(step.proposal.status, expected)
        proposal = step.proposal
        told.push(...step.effects.map((effect) => effect.type))
      }
      assert.deepEqual(told, proposal.status === 'pending' ? [] : [proposal.status])
    }),
    500
  )
})

test('a proposal without an answer by its deadline gives its proposer PROPOSAL_TIMEOUT', (t) => {
  const step = stepProposal(createProposal(PARTS, 0), { type: 'tick' }, 100)
  assert.ok(step.ok)
  t.is(step.proposal.status, 'timed-out')
  t.alike(step.effects, [{ type: 'timed-out', notify: 'operator@n', code: 'PROPOSAL_TIMEOUT' }])
  t.is(stepped(ACCEPT, 100).status, 'timed-out', 'an answer at the deadline is too late')
})

test('acceptance and rejection keep what they say, and only they have a payload', (t) => {
  t.is(stepped(ACCEPT, 1).acceptedBy, 'text@m')
  t.is(stepped(REJECT, 1).alternativeSuggestion, 'later')
  t.is(acceptPayload(stepped(REJECT, 1)), null)
  t.is(rejectPayload(stepped(ACCEPT, 1)), null)
})

test('proposals that miss a field or have no deadline are refused', (t) => {
  const good = proposalPayload(createProposal(PARTS, 0))
  t.is(TaskProposalPayloadSchema.safeParse(good).success, true)
  for (const key of Object.keys(good))
    t.is(TaskProposalPayloadSchema.safeParse({ ...good, [key]: undefined }).success, false, key)
  t.is(TaskProposalPayloadSchema.safeParse({ ...good, deadlineMs: 0 }).success, false)
  t.is(TaskProposalPayloadSchema.safeParse({ ...good, estimatedComplexity: 'huge' }).success, false)
})
