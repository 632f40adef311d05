import { z } from 'zod'

const Text = z.string().max(65_536)
const Id = z.string().min(1).max(128)

/** Payload of a task-proposal (spec a2a-mcp-mesh, TaskProposalPayloadSchema), with bounds. */
export const TaskProposalPayloadSchema = z.object({
  taskDescription: Text,
  requiredCapabilities: z.array(Id).max(64),
  estimatedComplexity: z.enum(['simple', 'medium', 'complex']),
  /** Milliseconds from the sending of the proposal within which an answer counts; a span, as clocks differ. */
  deadlineMs: z.number().positive(),
  estimatedCompletionMs: z.number().positive().exactOptional(),
  rejectionReason: Text.exactOptional(),
  alternativeSuggestion: Text.exactOptional()
})

/** Payload of a task-accept. */
export const TaskAcceptPayloadSchema = z.object({
  proposalId: Id,
  /** `agentId@nodeId` of the accepting agent. */
  acceptedBy: Id,
  estimatedCompletionMs: z.number().positive()
})

/** Payload of a task-reject. */
export const TaskRejectPayloadSchema = z.object({
  proposalId: Id,
  /** A code or short text, e.g. `OVERLOADED`. */
  rejectionReason: z.string().min(1).max(1024),
  alternativeSuggestion: Text.exactOptional()
})

/** Payload of a task-proposal. */
export type TaskProposalPayload = z.infer<typeof TaskProposalPayloadSchema>
/** Payload of a task-accept. */
export type TaskAcceptPayload = z.infer<typeof TaskAcceptPayloadSchema>
/** Payload of a task-reject. */
export type TaskRejectPayload = z.infer<typeof TaskRejectPayloadSchema>

/** State of a proposal. */
export type ProposalStatus = 'pending' | 'accepted' | 'rejected' | 'timed-out'

/** A proposal as its proposer (or the node that got it) follows it (spec a2a-mcp-mesh, TaskProposal). */
export interface TaskProposal {
  readonly proposalId: string
  /** The thread of the proposal, its answer and later messages. */
  readonly correlationId: string
  readonly taskDescription: string
  readonly requiredCapabilities: readonly string[]
  readonly estimatedComplexity: TaskProposalPayload['estimatedComplexity']
  /** Milliseconds from `createdAt` within which an answer counts. */
  readonly deadlineMs: number
  readonly proposerAgentId: string
  readonly createdAt: number
  readonly status: ProposalStatus
  readonly acceptedBy?: string
  readonly estimatedCompletionMs?: number
  readonly rejectionReason?: string
  readonly alternativeSuggestion?: string
}

/** Fields of a new proposal; ids come from the caller. */
export type ProposalParts = Pick<
  TaskProposal,
  | 'proposalId'
  | 'correlationId'
  | 'taskDescription'
  | 'requiredCapabilities'
  | 'estimatedComplexity'
  | 'deadlineMs'
  | 'proposerAgentId'
>

/** Inputs of a proposal. */
export type ProposalInput =
  | { readonly type: 'accept'; readonly agentId: string; readonly estimatedCompletionMs: number }
  | { readonly type: 'reject'; readonly reason: string; readonly alternative?: string }
  | { readonly type: 'tick' }

/** Messages to the proposer. */
export type ProposalEffect =
  | { readonly type: 'accepted'; readonly by: string; readonly estimatedCompletionMs: number }
  | { readonly type: 'rejected'; readonly reason: string; readonly alternative: string | null }
  | { readonly type: 'timed-out'; readonly notify: string; readonly code: 'PROPOSAL_TIMEOUT' }

/** The proposal after an input, or why it does not fit. */
export type ProposalStep =
  | { readonly ok: true; readonly proposal: TaskProposal; readonly effects: readonly ProposalEffect[] }
  | { readonly ok: false; readonly reason: string }

/** A pending proposal. */
export function createProposal(parts: ProposalParts, now: number): TaskProposal {
  return { ...parts, createdAt: now, status: 'pending' }
}

/**
 * Moves a proposal: pending to accepted, rejected or timed-out, then never again. An answer at or after the deadline
 * finds it timed out, whether or not a tick came first.
 */
export function stepProposal(proposal: TaskProposal, input: ProposalInput, now: number): ProposalStep {
  if (proposal.status !== 'pending') return { ok: false, reason: `the proposal is ${proposal.status} already` }
  if (now - proposal.createdAt >= proposal.deadlineMs) {
    const effect: ProposalEffect = { type: 'timed-out', notify: proposal.proposerAgentId, code: 'PROPOSAL_TIMEOUT' }
    return { ok: true, proposal: { ...proposal, status: 'timed-out' }, effects: [effect] }
  }
  switch (input.type) {
    case 'accept': {
      const { agentId, estimatedCompletionMs } = input
      const effect: ProposalEffect = { type: 'accepted', by: agentId, estimatedCompletionMs }
      return {
        ok: true,
        proposal: { ...proposal, status: 'accepted', acceptedBy: agentId, estimatedCompletionMs },
        effects: [effect]
      }
    }
    case 'reject':
      return rejected(proposal, input.reason, input.alternative)
    case 'tick':
      return { ok: true, proposal, effects: [] }
  }
}

function rejected(proposal: TaskProposal, reason: string, alternative: string | undefined): ProposalStep {
  const suggestion = alternative === undefined ? {} : { alternativeSuggestion: alternative }
  return {
    ok: true,
    proposal: { ...proposal, status: 'rejected', rejectionReason: reason, ...suggestion },
    effects: [{ type: 'rejected', reason, alternative: alternative ?? null }]
  }
}

/** The payload that offers a proposal. */
export function proposalPayload(proposal: TaskProposal): TaskProposalPayload {
  const { taskDescription, requiredCapabilities, estimatedComplexity, deadlineMs } = proposal
  return { taskDescription, requiredCapabilities: [...requiredCapabilities], estimatedComplexity, deadlineMs }
}

/** The payload that accepts a proposal; null unless it is accepted. */
export function acceptPayload(proposal: TaskProposal): TaskAcceptPayload | null {
  const { proposalId, status, acceptedBy, estimatedCompletionMs } = proposal
  if (status !== 'accepted' || acceptedBy === undefined || estimatedCompletionMs === undefined) return null
  return { proposalId, acceptedBy, estimatedCompletionMs }
}

/** The payload that rejects a proposal; null unless it is rejected. */
export function rejectPayload(proposal: TaskProposal): TaskRejectPayload | null {
  const { proposalId, status, rejectionReason, alternativeSuggestion } = proposal
  if (status !== 'rejected' || rejectionReason === undefined) return null
  return { proposalId, rejectionReason, ...(alternativeSuggestion === undefined ? {} : { alternativeSuggestion }) }
}
