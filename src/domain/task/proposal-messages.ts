import { NodeError } from '../../kit/errors.js'
import type { EnvelopeHeader } from '../envelope/header.js'
import { TaskAcceptPayloadSchema, TaskProposalPayloadSchema, TaskRejectPayloadSchema } from './negotiation.js'
import type { ProposalInput, ProposalParts, TaskProposal } from './negotiation.js'
import { errorBodySchema } from './payloads.js'

/** The parts of a proposal, checked as its receiver does. @throws NodeError INVALID_ENVELOPE. */
export function checkedParts(fields: ProposalParts): ProposalParts {
  const {
    proposalId,
    correlationId,
    taskDescription,
    requiredCapabilities,
    estimatedComplexity,
    deadlineMs,
    proposerAgentId
  } = fields
  const payload = TaskProposalPayloadSchema.safeParse({
    taskDescription,
    requiredCapabilities,
    estimatedComplexity,
    deadlineMs
  })
  if (!payload.success)
    throw new NodeError('INVALID_ENVELOPE', `the proposal is not valid: ${payload.error.issues[0]?.message ?? ''}`)
  return { ...payload.data, proposalId, correlationId, proposerAgentId }
}

/** The answer to a proposal in a message of the other side; null when the message is no answer. */
export function readAnswer(proposal: TaskProposal, header: EnvelopeHeader, payload: unknown): ProposalInput | null {
  if (header.type === 'task-accept') {
    const accept = TaskAcceptPayloadSchema.safeParse(payload)
    if (!accept.success || accept.data.proposalId !== proposal.proposalId) return null
    return { type: 'accept', agentId: header.sender, estimatedCompletionMs: accept.data.estimatedCompletionMs }
  }
  if (header.type === 'task-reject') {
    const reject = TaskRejectPayloadSchema.safeParse(payload)
    if (!reject.success || reject.data.proposalId !== proposal.proposalId) return null
    const { rejectionReason: reason, alternativeSuggestion: alternative } = reject.data
    return { type: 'reject', reason, ...(alternative === undefined ? {} : { alternative }) }
  }
  const error = header.type === 'error' ? errorBodySchema.safeParse(payload) : null
  return error?.success === true ? { type: 'reject', reason: error.data.code } : null
}
