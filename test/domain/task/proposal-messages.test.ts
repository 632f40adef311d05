import test from 'brittle'
import type { EnvelopeHeader } from '../../../src/domain/envelope/header.js'
import { createProposal, type ProposalParts } from '../../../src/domain/task/negotiation.js'
import { checkedParts, readAnswer } from '../../../src/domain/task/proposal-messages.js'
import { NodeError } from '../../../src/kit/errors.js'
import { failsWith } from '../../support/fails.js'

const PARTS: ProposalParts = {
  proposalId: 'p1',
  correlationId: 'c1',
  taskDescription: 'count lines',
  requiredCapabilities: ['text.stats'],
  estimatedComplexity: 'simple',
  deadlineMs: 100,
  proposerAgentId: 'operator@n'
}

const header = (type: EnvelopeHeader['type']): EnvelopeHeader => ({
  id: 'm1',
  schemaVersion: 1,
  sender: 'text@m',
  recipient: 'operator@n',
  correlationId: 'c1',
  type,
  timestamp: 1
})

test('a proposal that its receiver could not read is refused before it is sent', async (t) => {
  t.alike(checkedParts(PARTS), PARTS)
  for (const wrong of [{ deadlineMs: 0 }, { taskDescription: 'x'.repeat(65_537) }, { requiredCapabilities: [''] }])
    await failsWith(t, 'INVALID_ENVELOPE', () => checkedParts({ ...PARTS, ...wrong }))
})

test('an acceptance, a rejection and an error answer a proposal; a message of another proposal or of no known form does not', (t) => {
  const proposal = createProposal(PARTS, 0)
  const accept = { proposalId: 'p1', acceptedBy: 'text@m', estimatedCompletionMs: 50 }
  const reject = { proposalId: 'p1', rejectionReason: 'busy' }
  const error = new NodeError('POLICY_DENIED', 'no').toBody()
  t.alike(readAnswer(proposal, header('task-accept'), accept), {
    type: 'accept',
    agentId: 'text@m',
    estimatedCompletionMs: 50
  })
  t.alike(readAnswer(proposal, header('task-reject'), reject), { type: 'reject', reason: 'busy' })
  const later = { ...reject, alternativeSuggestion: 'later' }
  t.alike(readAnswer(proposal, header('task-reject'), later), { type: 'reject', reason: 'busy', alternative: 'later' })
  t.alike(readAnswer(proposal, header('error'), error), { type: 'reject', reason: 'POLICY_DENIED' })
  for (const [type, payload] of [
    ['task-accept', { ...accept, proposalId: 'p2' }],
    ['task-accept', { ...accept, estimatedCompletionMs: 0 }],
    ['task-reject', { ...reject, proposalId: 'p2' }],
    ['task-reject', { ...reject, rejectionReason: '' }],
    ['error', { text: 'no' }],
    ['notification', accept]
  ] as const)
    t.is(readAnswer(proposal, header(type), payload), null)
})
