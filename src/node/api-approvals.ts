import { shown } from '../kit/text.js'
import { tierText } from '../domain/routing/tier.js'
import type { Calls } from '../ports/node-api.js'
import type { ApprovalInfo } from '../ports/policy-api.js'
import type { NodeCore } from './node.js'
import { previewOf } from './preview.js'
import type { Waiting } from './waiting.js'

/** Characters of an input that `approvals ls` shows. */
const INPUT_SHOWN = 1024

/** Rows of `approvals ls`, the oldest first. */
export function listApprovals(node: NodeCore): { approvals: ApprovalInfo[] } {
  const namer = node.directory.namer()
  return { approvals: node.approvals.list().map((one) => approvalInfo(one, namer)) }
}

/** A person decides. @throws NodeError what `Approvals` throws. */
export async function decideApproval(
  node: NodeCore,
  decision: 'allow' | 'deny',
  { id, remember = false, by }: Calls['approvals.allow']['params'] & { readonly by: string }
): Promise<ApprovalInfo> {
  return approvalInfo(await node.approvals[decision](id, { remember, by }), node.directory.namer())
}

function approvalInfo({ id, incoming, question, request, rule, askedAt, expiresAt }: Waiting, namer: Namer): ApprovalInfo {
  const { sender, recipient, header, payload } = incoming
  const justification = header.metadata?.justification ?? null
  return {
    id,
    from: shown(namer(sender)),
    to: shown(namer(recipient)),
    fromTier: tierText(question.sender.tier),
    type: header.type,
    capability: question.capability === null ? null : shown(question.capability, 128),
    sideEffect: question.sideEffect,
    description: shown(request?.description ?? ''),
    justification: justification === null ? null : shown(justification),
    input: shown(previewOf(request === null ? payload : request.input, INPUT_SHOWN), INPUT_SHOWN + 1),
    rule,
    askedAt: new Date(askedAt).toISOString(),
    expiresAt: new Date(expiresAt).toISOString()
  }
}

type Namer = ReturnType<NodeCore['directory']['namer']>
