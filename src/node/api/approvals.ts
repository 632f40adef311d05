import type { Unsubscribe } from '../../kit/events.js'
import { shown, SHOWN_MAX } from '../../kit/text.js'
import { tierText } from '../../domain/routing/tier.js'
import type { Calls } from '../../ports/node-api.js'
import type {
  ApprovalDetail,
  ApprovalElsewhere,
  ApprovalInfo,
  ApprovalList,
  ApprovalResult,
  ApprovalText
} from '../../ports/policy-api.js'
import type { AwaitedApproval } from '../requests/caller/approval-wait.js'
import type { Directory } from '../cards/directory.js'
import { type CallQuestionsDeps, questionInfo } from './call-questions.js'
import type { ApprovalChoice, ApprovalDecision } from '../policy/approvals.js'
import type { Pipelines } from '../pipelines.js'
import type { Services } from '../services.js'
import { previewOf } from '../../kit/preview.js'
import type { PendingApproval } from '../policy/pending-approvals.js'

/** Characters of an input in `approvals ls`. */
const INPUT_SHOWN = 1024

/** Dependencies of the calls about approvals. */
export type ApprovalsApiDeps = CallQuestionsDeps & Pick<Services, 'policy'> & Pick<Pipelines, 'approvals' | 'requests'>

/** Formats agents and nodes for people. */
interface Namer {
  readonly address: ReturnType<Directory['namer']>
  readonly ref: Directory['ref']
}

function namerOf({ directory }: ApprovalsApiDeps): Namer {
  return { address: directory.namer(), ref: (nodeId) => directory.ref(nodeId) }
}

/** Rows of `approvals ls`, oldest first. */
export function listApprovals(node: ApprovalsApiDeps): Required<Omit<ApprovalList, 'machines'>> {
  const namer = namerOf(node)
  // Requests to this node are among its own approvals.
  const elsewhere = node.requests.reports.awaitingApproval().filter(({ target }) => target.nodeId !== node.self)
  return {
    approvals: [
      ...node.approvals.list().map((one) => approvalInfo(one, namer)),
      ...node.questions.list().map((one) => questionInfo(node, one))
    ],
    elsewhere: elsewhere.map((one) => elsewhereInfo(one, namer))
  }
}

/** Calls back with each message that begins to wait for approval, also those of now. */
export function onNewApproval(node: ApprovalsApiDeps, listener: (approval: ApprovalInfo) => void): Unsubscribe {
  let known: ReadonlySet<string> = new Set()
  const look = (): void => {
    const { approvals } = listApprovals(node)
    const before = known
    known = new Set(approvals.map(({ id }) => id))
    for (const one of approvals) if (!before.has(one.id)) listener(one)
  }
  look()
  const stops = [node.approvals.onChange(look), node.questions.onChange(look)]
  return () => stops.forEach((stop) => stop())
}

function elsewhereInfo(one: AwaitedApproval, { address, ref }: Namer): ApprovalElsewhere {
  const { target, capability, taskId, swarm, since, approval } = one
  return {
    agent: shown(address(target)),
    node: ref(target.nodeId),
    capability: capability === null ? null : shown(capability, 128),
    taskId,
    swarm,
    since: new Date(since).toISOString(),
    id: approval === null ? null : shown(approval.id, 64),
    until: approval === null ? null : new Date(approval.until).toISOString()
  }
}

/** One approval, with its whole texts and input. @throws NodeError APPROVAL_NOT_FOUND, AMBIGUOUS_NAME. */
export function showApproval(node: ApprovalsApiDeps, text: string): ApprovalDetail {
  const one = node.approvals.get(text)
  const { request, incoming, threads } = one
  return {
    ...approvalInfo(one, namerOf(node)),
    requestId: request?.requestId ?? null,
    attempt: request?.attempt ?? null,
    copies: threads.length,
    whole: { ...textsOf(one), input: request === null ? incoming.payload : request.input }
  }
}

/** Decides an approval. @throws NodeError the errors of `Approvals`. */
export async function decideApproval(
  node: ApprovalsApiDeps,
  decision: 'allow' | 'deny',
  { id, remember = false, ...who }: Calls['approvals.allow']['params'] & Omit<ApprovalChoice, 'remember'>
): Promise<ApprovalResult> {
  const decided = await node.approvals[decision](id, { remember, ...who })
  const namer = namerOf(node)
  const info = approvalInfo(decided.one, namer)
  return remember ? { ...info, ...rememberedInfo(node, decided, namer) } : info
}

function rememberedInfo(
  { policy }: ApprovalsApiDeps,
  { remembered, thereby }: ApprovalDecision,
  namer: Namer
): Pick<ApprovalResult, 'remembered' | 'alsoDecided'> {
  const { file, rules } = policy.state()
  const at = rules.findIndex(({ line }) => line === remembered?.line)
  return {
    remembered: remembered === null ? null : { file, ...remembered, id: policy.ids()[at] ?? '' },
    alsoDecided: thereby.map(({ one, outcome }) => ({ ...approvalInfo(one, namer), outcome }))
  }
}

function approvalInfo(one: PendingApproval, { address, ref }: Namer): ApprovalInfo {
  const { id, incoming, question, request, rule, askedAt, expiresAt, endsBy } = one
  const { sender, recipient, header, payload } = incoming
  const { description, justification } = textsOf(one)
  const input = previewOf(request === null ? payload : request.input, INPUT_SHOWN)
  const cut: ApprovalText[] = input.endsWith('…') ? ['input'] : []
  if (isLong(description)) cut.push('description')
  if (justification !== null && isLong(justification)) cut.push('justification')
  return {
    id,
    from: shown(address(sender)),
    fromNode: ref(sender.nodeId),
    to: shown(address(recipient)),
    toNode: ref(recipient.nodeId),
    fromTier: tierText(question.sender.tier),
    type: header.type,
    capability: question.capability === null ? null : shown(question.capability, 128),
    sideEffect: question.sideEffect,
    description: shown(description),
    justification: justification === null ? null : shown(justification),
    input: shown(input, INPUT_SHOWN + 1),
    cut,
    rule,
    askedAt: new Date(askedAt).toISOString(),
    expiresAt: new Date(expiresAt).toISOString(),
    endsBy
  }
}

function textsOf({ request, incoming }: PendingApproval): Omit<ApprovalDetail['whole'], 'input'> {
  return { description: request?.description ?? '', justification: incoming.header.metadata?.justification ?? null }
}

function isLong(text: string): boolean {
  return shown(text, Number.POSITIVE_INFINITY).length > SHOWN_MAX
}
