import { NodeError } from '../../kit/errors.js'
import type { NodeId } from '../../kit/ids.js'
import { nearest } from '../../kit/text.js'
import { OPERATOR, parseAddress, SIDE_EFFECTS, type SideEffect } from '../../domain/card/card.js'
import type { RegisteredCard } from '../../domain/card/registry.js'
import type { MessageType } from '../../domain/envelope/envelope.js'
import { OPENING_TYPES } from '../../domain/envelope/envelope.js'
import { askedWork } from '../../domain/policy/requested-work.js'
import type { AskedWork } from '../../domain/policy/requested-work.js'
import type { PartyCriteria } from '../../domain/policy/rule.js'
import type { RoutingParty, RoutingQuestion, Verdict } from '../../domain/routing/decide.js'
import type { CallerAuthority } from '../../domain/routing/effective.js'
import { displayNames } from '../../domain/routing/names.js'
import { tierText } from '../../domain/routing/tier.js'
import type { Tier } from '../../domain/routing/tier.js'
import type {
  PartyCriteriaInfo,
  PassedOverRule,
  PolicyInfo,
  PolicyTestOther,
  PolicyTestParty,
  PolicyTestQuery,
  PolicyTestResult
} from '../../ports/policy-api.js'
import type { NodeCore } from '../node.js'
import { nodeOf, senderParty, targetParty } from '../policy/policy-parties.js'
import { unanswerableRules } from '../policy/unanswerable-rules.js'

/** Agents that are named as having a capability. */
const LISTED = 8

/** What `policy show` tells. `by`: who wants to know. */
export function policyInfo(node: NodeCore, by: CallerAuthority): PolicyInfo {
  const { directory, registry, self } = node
  const { file, rules, faults } = node.policy.state()
  const ids = node.policy.ids()
  const names = displayNames(directory.nodes())
  const rows = rules.map(({ from, to, ...rest }, at) => ({
    id: ids[at] ?? '',
    ...rest,
    from: criteriaInfo(from, names),
    to: criteriaInfo(to, names)
  }))
  const list = faults?.list ?? []
  return {
    file,
    rules: rows,
    fault: list[0] ?? null,
    faults: list,
    moreFaults: faults?.more ?? 0,
    warnings: node.policy.warnings(),
    unasked: unanswerableRules(rules, { directory, registry, self, sees: (card) => node.visibility.toCaller(card, by) }),
    approvalTimeoutMs: node.deps.settings.approvalTimeoutMs
  }
}

function criteriaInfo({ tier, ...rest }: PartyCriteria, names: ReadonlyMap<NodeId, string>): PartyCriteriaInfo {
  const nodeNames = rest.node?.map((one) => names.get(one) ?? null) ?? null
  return { ...rest, nodeNames, tier: tier?.map((one) => tierText(one)) ?? null }
}

/**
 * What this node would do with a message: asks the very function that decides live traffic. `from` may be a tier (anybody of
 * it), a node (its operator) or an agent; `to` a tier (an agent of this node) or an agent. `by`: who wants to know; agents
 * that it does not find are none.
 * @throws NodeError REVOKED, PEER_NOT_FOUND, AGENT_NOT_FOUND, AMBIGUOUS_NAME; USAGE for a type that opens nothing.
 */
export function testPolicy(node: NodeCore, query: PolicyTestQuery, by: CallerAuthority): PolicyTestResult {
  const type = query.type ?? 'request'
  if (!OPENING_TYPES.has(type)) throw new NodeError('USAGE', `a ${type} is a reply: it passes along its exchange, whatever the rules say`)
  const sees = (card: RegisteredCard): boolean => node.visibility.toCaller(card, by)
  const sender = senderParty(node, query.from, sees)
  const target = targetParty(node, query.to, sees)
  const { assumed, missing, ...work } = workOf(node, { ...query, type, target, sees })
  const isArriving = (nodeOf(target) ?? node.self) === node.self
  const question = { sender, target, type, ...work, justification: query.justification ?? null, isReply: false, isArriving }
  const verdict = node.accessControl.ask(question)
  return {
    ...verdictInfo(node, verdict),
    passedOver: passedOverInfo(node, question),
    from: partyInfo(node, sender),
    to: partyInfo(node, target),
    type,
    ...work,
    assumed,
    missing,
    node: node.directory.ref(node.self).name,
    others: othersOf(node, question, verdict)
  }
}

function verdictInfo(
  node: NodeCore,
  verdict: Verdict
): Pick<PolicyTestResult, 'decision' | 'code' | 'rule' | 'ruleId' | 'reason' | 'file' | 'line'> {
  const { rule } = verdict
  const place = placeOf(node, verdict)
  if (verdict.allowed) return { decision: 'allow', code: null, rule, reason: null, ...place }
  const asks = verdict.asks === true
  return { decision: asks ? 'ask' : 'deny', code: asks ? null : verdict.code, rule, reason: verdict.reason, ...place }
}

function placeOf(node: NodeCore, { line }: Verdict): Pick<PolicyTestResult, 'ruleId' | 'file' | 'line'> {
  if (line === undefined) return { file: null, line: null, ruleId: null }
  const { file, rules } = node.policy.state()
  return { file, line, ruleId: node.policy.ids()[rules.findIndex((one) => one.line === line)] ?? null }
}

function passedOverInfo(node: NodeCore, question: RoutingQuestion): PassedOverRule | null {
  const verdict = node.accessControl.askedNobody(question)
  if (verdict === null) return null
  const why = !question.isArriving ? 'elsewhere' : question.type === 'task-proposal' ? 'proposal' : 'table'
  return { rule: verdict.rule, ...placeOf(node, verdict), why }
}

/** The nodes of the two ends decide, each by its own rules; the one that is asked here answers for itself alone. */
function othersOf(node: NodeCore, question: RoutingQuestion, verdict: Verdict): PolicyTestOther[] {
  const { sender, target } = question
  // What a rule of this file opens is open here alone.
  const needsAllow = verdict.allowed && verdict.line !== undefined && !node.accessControl.askTable(question).allowed
  const ends = [
    { role: 'sender', id: nodeOf(sender) },
    { role: 'receiver', id: nodeOf(target) ?? node.self }
  ] as const
  return ends.flatMap(({ role, id }) => {
    if (id === node.self) return []
    const name = id === null ? null : node.directory.ref(id).name
    return [{ role, node: name, needsAllow }]
  })
}

interface Asking {
  readonly type: MessageType
  readonly target: RoutingParty
  readonly capability?: string
  readonly sideEffect?: SideEffect
  readonly sees: (card: RegisteredCard) => boolean
}

type Capable = Pick<RegisteredCard, 'capabilities'>
type Assumption = Pick<PolicyTestResult, 'assumed' | 'missing'>

/** A notification names no capability: its target does its default one. */
function workOf(node: NodeCore, { type, target, capability, sideEffect, sees }: Asking): AskedWork & Assumption {
  const address = parseAddress(target.address)
  const card = address === null ? undefined : node.directory.card(address)
  const named = type === 'notification' && address !== null ? null : (capability ?? null)
  const own = node.registry.listAll().filter((one) => one.nodeId === node.self && sees(one))
  const cards = address === null ? own : card === undefined ? [] : [card]
  const isOffered = named === null || cards.some(({ capabilities }) => capabilities.some(({ id }) => id === named))
  const missing = isOffered ? null : missingOf(node, named, { cards, sees })
  if (address !== null) {
    const work = askedWork(card, named)
    return { capability: work.capability, sideEffect: sideEffect ?? work.sideEffect, assumed: null, missing }
  }
  if (sideEffect !== undefined || named === null) return { capability: named, sideEffect: sideEffect ?? null, assumed: null, missing }
  return { capability: named, ...offeredEffect(node, named, { cards, tier: target.tier }), missing }
}

/** What a capability may do where an agent of this node offers it: of several that of the tier, then the one that may do most. */
function offeredEffect(
  { directory }: NodeCore,
  id: string,
  { cards, tier }: { readonly cards: readonly RegisteredCard[]; readonly tier: Tier }
): Pick<PolicyTestResult, 'sideEffect' | 'assumed'> {
  const offers = cards.flatMap(({ id: agentId, nodeId, address, capabilities }) => {
    const isOfTier = directory.party({ agentId, nodeId })?.tier === tier
    return capabilities.filter((one) => one.id === id).map(({ sideEffect = 'exec' }) => ({ address, sideEffect, isOfTier }))
  })
  const [best] = offers.sort(
    (a, b) => Number(b.isOfTier) - Number(a.isOfTier) || SIDE_EFFECTS.indexOf(b.sideEffect) - SIDE_EFFECTS.indexOf(a.sideEffect)
  )
  if (best === undefined) return { sideEffect: 'exec', assumed: { agent: null } }
  return { sideEffect: best.sideEffect, assumed: { agent: directory.shownAddress(best.address) } }
}

/** Who has a capability that the target lacks, and which ones are called almost so: its own first. */
function missingOf(
  { registry, directory }: NodeCore,
  capability: string,
  { cards, sees }: { readonly cards: readonly Capable[]; readonly sees: (card: RegisteredCard) => boolean }
): NonNullable<PolicyTestResult['missing']> {
  const all = registry.listAll().filter((one) => one.id !== OPERATOR && sees(one))
  const offeredBy = all.filter((one) => one.capabilities.some(({ id }) => id === capability)).map(({ address }) => address)
  const idsOf = (list: readonly Capable[]): Set<string> => new Set(list.flatMap(({ capabilities }) => capabilities.map(({ id }) => id)))
  const own = nearest(capability, idsOf(cards))
  const near = own.length > 0 || offeredBy.length > 0 ? own : nearest(capability, idsOf(all))
  return { offeredBy: offeredBy.slice(0, LISTED).map((one) => directory.shownAddress(one)), nearest: near }
}

function partyInfo({ directory }: NodeCore, { address, tier, sandboxId }: RoutingParty): PolicyTestParty {
  return { agent: address === '' ? null : directory.shownAddress(address), tier: tierText(tier), sandboxId }
}
