import { messageOf } from '../../kit/errors.js'
import { addressText } from '../../domain/card/card.js'
import { TaskProposalPayloadSchema } from '../../domain/task/negotiation.js'
import type { TaskRejectPayload } from '../../domain/task/negotiation.js'
import type { offerAcceptSchema } from '../../domain/task/payloads.js'
import type { Telemetry } from '../../ports/telemetry.js'
import type { AgentHost } from '../agents/agent-host.js'
import type { ExchangeTable } from '../messaging/exchange-table.js'
import { threadOf } from '../messaging/inbound-message.js'
import type { InboundMessage } from '../messaging/inbound-message.js'
import type { LedgerQuota } from '../ledger/quota.js'
import type { Outbound } from '../messaging/outbound.js'

type Accept = ReturnType<(typeof offerAcceptSchema)['parse']>

/** What answering offers needs. */
export interface OffersDeps {
  readonly agents: AgentHost
  readonly outbound: Outbound
  readonly exchanges: ExchangeTable
  readonly telemetry: Telemetry
  readonly ledgerQuota: Pick<LedgerQuota, 'refusal'>
}

/** Answers a task-proposal for an agent of this node: it accepts what the agent can do, with its room and an estimate. */
export function answerProposal(deps: OffersDeps, incoming: InboundMessage): void {
  const { agents, outbound, exchanges, telemetry, ledgerQuota } = deps
  const { recipient } = incoming
  const thread = threadOf(incoming)
  const { correlationId } = thread
  const proposal = TaskProposalPayloadSchema.safeParse(incoming.payload)
  const definition = agents.definition(recipient.agentId)
  const lacking = proposal.success
    ? proposal.data.requiredCapabilities.filter((id) => definition?.capabilities.every((one) => one.id !== id) ?? true)
    : []
  const unfit = !proposal.success ? 'INVALID_ENVELOPE' : lacking.length > 0 ? 'CAPABILITY_NOT_FOUND' : null
  // What could not be recorded is not offered.
  const reason = unfit ?? ledgerQuota.refusal?.message ?? null
  const accept: Accept = {
    proposalId: correlationId,
    acceptedBy: addressText(recipient),
    estimatedCompletionMs: agents.estimateMs(recipient.agentId),
    slots: Math.max(1, agents.load(recipient.agentId).slots)
  }
  const reject: TaskRejectPayload = { proposalId: correlationId, rejectionReason: reason ?? '' }
  outbound
    .send({
      ...thread,
      ...(reason === null ? { type: 'task-accept', payload: accept } : { type: 'task-reject', payload: reject })
    })
    .catch((error: unknown) => telemetry.log('warn', 'an offer could not be answered', { correlationId, reason: messageOf(error) }))
    // What follows an accepted offer are requests, each on a thread of its own.
    .finally(() => exchanges.end(thread))
}
