import { NodeError } from '../kit/errors.js'
import { shown } from '../kit/text.js'
import { SIDE_EFFECTS } from '../domain/card/card.js'
import type { SideEffect } from '../domain/card/card.js'
import type { MessageType } from '../domain/envelope/envelope.js'
import { OPENING_TYPES } from '../domain/envelope/envelope.js'
import { askedWork } from '../domain/policy/asked.js'
import type { AskedWork } from '../domain/policy/asked.js'
import type { PartyCriteria } from '../domain/policy/rule.js'
import type { RoutingParty, Verdict } from '../domain/routing/decide.js'
import { tierFromText, tierText } from '../domain/routing/tier.js'
import type { Tier } from '../domain/routing/tier.js'
import type { Calls } from '../ports/node-api.js'
import type {
  ApprovalInfo,
  PartyCriteriaInfo,
  PolicyInfo,
  PolicyTestParty,
  PolicyTestQuery,
  PolicyTestResult
} from '../ports/policy-api.js'
import { OPERATOR } from './agents.js'
import { parseAddress } from './directory.js'
import type { NodeCore } from './node.js'
import { previewOf } from './preview.js'
import type { Waiting } from './waiting.js'

/** Characters of an input that `approvals ls` shows. */
const INPUT_SHOWN = 1024

/** What `policy show` tells. */
export function policyInfo(node: NodeCore): PolicyInfo {
  const { file, rules, faults } = node.policy.state()
  const ids = node.policy.ids()
  const rows = rules.map(({ from, to, ...rest }, at) => ({ id: ids[at] ?? '', ...rest, from: criteriaInfo(from), to: criteriaInfo(to) }))
  const list = faults?.list ?? []
  return {
    file,
    rules: rows,
    fault: list[0] ?? null,
    faults: list,
    moreFaults: faults?.more ?? 0,
    warnings: node.policy.warnings(),
    approvalTimeoutMs: node.parts.settings.approvalTimeoutMs
  }
}

function criteriaInfo({ tier, ...rest }: PartyCriteria): PartyCriteriaInfo {
  return { ...rest, tier: tier?.map((one) => tierText(one)) ?? null }
}

/**
 * What this node would do with a message: asks the very function that decides live traffic. `from` may be a tier (anybody of
 * it), a node (its operator) or an agent; `to` a tier (an agent of this node) or an agent.
 * @throws NodeError PEER_NOT_FOUND, AGENT_NOT_FOUND, AMBIGUOUS_NAME; USAGE for a type that opens nothing.
 */
export function testPolicy(node: NodeCore, query: PolicyTestQuery): PolicyTestResult {
  const type = query.type ?? 'request'
  if (!OPENING_TYPES.has(type)) throw new NodeError('USAGE', `a ${type} is a reply: it passes along its exchange, whatever the rules say`)
  const sender = anybody(query.from) ?? senderParty(node, query.from)
  // The policy is this node's: a bare name means its own agent when it has one.
  const own = { agentId: query.to, nodeId: node.self }
  const target = anybody(query.to) ?? node.directory.party(own) ?? agentParty(node, query.to)
  const { assumed, ...work } = workOf(node, { ...query, type, target })
  const isArriving = target.address === '' || parseAddress(target.address)?.nodeId === node.self
  const verdict = node.router.ask({
    sender,
    target,
    type,
    ...work,
    justification: query.justification ?? null,
    isReply: false,
    isArriving
  })
  return {
    ...verdictInfo(node, verdict),
    from: partyInfo(node, sender),
    to: partyInfo(node, target),
    type,
    ...work,
    assumed
  }
}

function verdictInfo(node: NodeCore, verdict: Verdict): Pick<PolicyTestResult, 'decision' | 'code' | 'rule' | 'reason' | 'file' | 'line'> {
  const { rule, line } = verdict
  const place = line === undefined ? { file: null, line: null } : { file: node.policy.state().file, line }
  if (verdict.allowed) return { decision: 'allow', code: null, rule, reason: null, ...place }
  const asks = verdict.asks === true
  return { decision: asks ? 'ask' : 'deny', code: asks ? null : verdict.code, rule, reason: verdict.reason, ...place }
}

function anybody(text: string): RoutingParty | null {
  const tier = tierFromText(text)
  // No address: no rule for an agent or a node is for it.
  return tier === null ? null : { address: '', tier, sandboxId: null }
}

/** A node means its operator, unless an agent has that very address. */
function senderParty(node: NodeCore, text: string): RoutingParty {
  if (text.includes('@')) return agentParty(node, text)
  return partyOf(node, { agentId: OPERATOR, nodeId: node.directory.node(text) }, text)
}

function agentParty(node: NodeCore, text: string): RoutingParty {
  return partyOf(node, node.directory.agent(text), text)
}

function partyOf(node: NodeCore, address: { agentId: string; nodeId: string }, text: string): RoutingParty {
  const party = node.directory.party(address)
  if (party === null) throw new NodeError('AGENT_NOT_FOUND', `"${shown(text)}" has no valid certificate and card that this node knows`)
  return party
}

interface Asking {
  readonly type: MessageType
  readonly target: RoutingParty
  readonly capability?: string
  readonly sideEffect?: SideEffect
}

/** A notification names no capability: its target does its default one. */
function workOf(node: NodeCore, { type, target, capability, sideEffect }: Asking): AskedWork & Pick<PolicyTestResult, 'assumed'> {
  const named = type === 'notification' && target.address !== '' ? null : (capability ?? null)
  if (target.address === '') {
    if (sideEffect !== undefined || named === null) return { capability: named, sideEffect: sideEffect ?? null, assumed: null }
    return { capability: named, ...offeredEffect(node, named, target.tier) }
  }
  const address = parseAddress(target.address)
  return { ...askedWork(address === null ? undefined : node.directory.card(address), named), assumed: null }
}

/** What a capability may do where an agent of this node offers it: of several that of the tier, then the one that may do most. */
function offeredEffect({ ownCards, directory, self }: NodeCore, id: string, tier: Tier): Pick<PolicyTestResult, 'sideEffect' | 'assumed'> {
  const offers = ownCards.own().flatMap(({ body }) => {
    const address = { agentId: body.id, nodeId: self }
    const isOfTier = directory.party(address)?.tier === tier
    return body.capabilities.filter((one) => one.id === id).map(({ sideEffect = 'exec' }) => ({ address, sideEffect, isOfTier }))
  })
  const [best] = offers.sort(
    (a, b) => Number(b.isOfTier) - Number(a.isOfTier) || SIDE_EFFECTS.indexOf(b.sideEffect) - SIDE_EFFECTS.indexOf(a.sideEffect)
  )
  if (best === undefined) return { sideEffect: 'exec', assumed: { agent: null } }
  return { sideEffect: best.sideEffect, assumed: { agent: directory.shownAddress(best.address) } }
}

function partyInfo({ directory }: NodeCore, { address, tier, sandboxId }: RoutingParty): PolicyTestParty {
  return { agent: address === '' ? null : directory.shownAddress(address), tier: tierText(tier), sandboxId }
}

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
