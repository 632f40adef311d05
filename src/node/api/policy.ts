import { NodeError, asNodeError } from '../../kit/errors.js'
import { type NodeId, isKeyText } from '../../kit/ids.js'
import { nearest, shown } from '../../kit/text.js'
import { OPERATOR, parseAddress, SIDE_EFFECTS, type SideEffect, type AgentAddress } from '../../domain/card/card.js'
import type { RegisteredCard, AgentRegistry } from '../../domain/card/registry.js'
import type { MessageType } from '../../domain/envelope/envelope.js'
import { OPENING_TYPES } from '../../domain/envelope/envelope.js'
import { askedWork } from '../../domain/policy/requested-work.js'
import type { AskedWork } from '../../domain/policy/requested-work.js'
import type { PartyCriteria, PolicyRule } from '../../domain/policy/rule.js'
import type { RoutingParty, RoutingQuestion, Verdict } from '../../domain/routing/decide.js'
import type { CallerAuthority } from '../../domain/routing/effective.js'
import { displayNames } from '../../domain/routing/names.js'
import { tierText, type Tier, tierFromText, TIERS } from '../../domain/routing/tier.js'
import type {
  PartyCriteriaInfo,
  PassedOverRule,
  PolicyInfo,
  PolicyTestOther,
  PolicyTestParty,
  PolicyTestQuery,
  PolicyTestResult,
  UnaskedRule
} from '../../ports/policy-api.js'
import type { NodeDeps } from '../dependencies.js'
import type { Services } from '../services.js'
import { isRecord } from '../../kit/json.js'
import type { Directory } from '../cards/directory.js'

/** Dependencies of the calls about the policy. */
export interface PolicyApiDeps
  extends Pick<Services, 'accessControl' | 'directory' | 'policy' | 'registry' | 'self' | 'visibility'> {
  readonly deps: Pick<NodeDeps, 'log' | 'settings'>
}

/** The most listed agents with a capability. */
const LISTED = 8

/** The result of `policy show`. `by`: the caller. */
export function policyInfo(node: PolicyApiDeps, by: CallerAuthority): PolicyInfo {
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
    unasked: unanswerableRules(rules, {
      directory,
      registry,
      self,
      sees: (card) => node.visibility.toCaller(card, by)
    }),
    approvalTimeoutMs: node.deps.settings.approvalTimeoutMs
  }
}

function criteriaInfo({ tier, ...rest }: PartyCriteria, names: ReadonlyMap<NodeId, string>): PartyCriteriaInfo {
  const nodeNames = rest.node?.map((one) => names.get(one) ?? null) ?? null
  return { ...rest, nodeNames, tier: tier?.map((one) => tierText(one)) ?? null }
}

/**
 * Tests what this node would do with a message, by the very function that decides live traffic. `from` may be a tier
 * (anybody of it), a node (its operator) or an agent; `to` a tier (an agent of this node) or an agent. `by`: the
 * caller; agents that it does not find do not count.
 * @throws NodeError REVOKED, PEER_NOT_FOUND, AGENT_NOT_FOUND, AMBIGUOUS_NAME; USAGE for a type that opens nothing.
 */
export function testPolicy(node: PolicyApiDeps, query: PolicyTestQuery, by: CallerAuthority): PolicyTestResult {
  const type = query.type ?? 'request'
  if (!OPENING_TYPES.has(type))
    throw new NodeError('USAGE', `a ${type} is a reply: it passes along its exchange, whatever the rules say`)
  const sees = (card: RegisteredCard): boolean => node.visibility.toCaller(card, by)
  const sender = senderParty(node, query.from, sees)
  const target = targetParty(node, query.to, sees)
  const { assumed, missing, ...work } = workOf(node, { ...query, type, target, sees })
  const isArriving = (nodeOf(target) ?? node.self) === node.self
  const question = {
    sender,
    target,
    type,
    ...work,
    justification: query.justification ?? null,
    isReply: false,
    isArriving
  }
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
  node: PolicyApiDeps,
  verdict: Verdict
): Pick<PolicyTestResult, 'decision' | 'code' | 'rule' | 'ruleId' | 'reason' | 'file' | 'line'> {
  const { rule } = verdict
  const place = placeOf(node, verdict)
  if (verdict.allowed) return { decision: 'allow', code: null, rule, reason: null, ...place }
  const asks = verdict.asks === true
  return { decision: asks ? 'ask' : 'deny', code: asks ? null : verdict.code, rule, reason: verdict.reason, ...place }
}

function placeOf(node: PolicyApiDeps, { line }: Verdict): Pick<PolicyTestResult, 'ruleId' | 'file' | 'line'> {
  if (line === undefined) return { file: null, line: null, ruleId: null }
  const { file, rules } = node.policy.state()
  return { file, line, ruleId: node.policy.ids()[rules.findIndex((one) => one.line === line)] ?? null }
}

function passedOverInfo(node: PolicyApiDeps, question: RoutingQuestion): PassedOverRule | null {
  const verdict = node.accessControl.askedNobody(question)
  if (verdict === null) return null
  const why = !question.isArriving ? 'elsewhere' : question.type === 'task-proposal' ? 'proposal' : 'table'
  return { rule: verdict.rule, ...placeOf(node, verdict), why }
}

/** The nodes of both ends decide, each by its own rules; this node answers for itself alone. */
function othersOf(node: PolicyApiDeps, question: RoutingQuestion, verdict: Verdict): PolicyTestOther[] {
  const { sender, target } = question
  // A rule of this file opens nothing at the other node.
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

interface PolicyInquiry {
  readonly type: MessageType
  readonly target: RoutingParty
  readonly capability?: string
  readonly sideEffect?: SideEffect
  readonly sees: (card: RegisteredCard) => boolean
}

type Capable = Pick<RegisteredCard, 'capabilities'>
type Assumption = Pick<PolicyTestResult, 'assumed' | 'missing'>

/** A notification names no capability: its target runs its default one. */
function workOf(
  node: PolicyApiDeps,
  { type, target, capability, sideEffect, sees }: PolicyInquiry
): AskedWork & Assumption {
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
  if (sideEffect !== undefined || named === null)
    return { capability: named, sideEffect: sideEffect ?? null, assumed: null, missing }
  return { capability: named, ...offeredEffect(node, named, { cards, tier: target.tier }), missing }
}

/**
 * The side effect of a capability as local agents offer it: of several, the one of the target's tier, then the
 * strongest.
 */
function offeredEffect(
  { directory }: PolicyApiDeps,
  id: string,
  { cards, tier }: { readonly cards: readonly RegisteredCard[]; readonly tier: Tier }
): Pick<PolicyTestResult, 'sideEffect' | 'assumed'> {
  const offers = cards.flatMap(({ id: agentId, nodeId, address, capabilities }) => {
    const isOfTier = directory.party({ agentId, nodeId })?.tier === tier
    return capabilities
      .filter((one) => one.id === id)
      .map(({ sideEffect = 'exec' }) => ({ address, sideEffect, isOfTier }))
  })
  const [best] = offers.sort(
    (a, b) =>
      Number(b.isOfTier) - Number(a.isOfTier) || SIDE_EFFECTS.indexOf(b.sideEffect) - SIDE_EFFECTS.indexOf(a.sideEffect)
  )
  if (best === undefined) return { sideEffect: 'exec', assumed: { agent: null } }
  return { sideEffect: best.sideEffect, assumed: { agent: directory.shownAddress(best.address) } }
}

/** The agents with a capability that the target lacks, and similar ids of capabilities, the target's first. */
function missingOf(
  { registry, directory }: PolicyApiDeps,
  capability: string,
  { cards, sees }: { readonly cards: readonly Capable[]; readonly sees: (card: RegisteredCard) => boolean }
): NonNullable<PolicyTestResult['missing']> {
  const all = registry.listAll().filter((one) => one.id !== OPERATOR && sees(one))
  const offeredBy = all
    .filter((one) => one.capabilities.some(({ id }) => id === capability))
    .map(({ address }) => address)
  const idsOf = (list: readonly Capable[]): Set<string> =>
    new Set(list.flatMap(({ capabilities }) => capabilities.map(({ id }) => id)))
  const own = nearest(capability, idsOf(cards))
  const near = own.length > 0 || offeredBy.length > 0 ? own : nearest(capability, idsOf(all))
  return { offeredBy: offeredBy.slice(0, LISTED).map((one) => directory.shownAddress(one)), nearest: near }
}

function partyInfo({ directory }: PolicyApiDeps, { address, tier, sandboxId }: RoutingParty): PolicyTestParty {
  return { agent: address === '' ? null : directory.shownAddress(address), tier: tierText(tier), sandboxId }
}

/** True for agents that a caller finds. */
type Sees = (card: RegisteredCard) => boolean

/**
 * The sender of `policy test`: anybody of a tier, a node (its operator) or an agent. A bare name means the node, then
 * this node's agent, then any other agent.
 * @throws NodeError REVOKED, PEER_NOT_FOUND, AGENT_NOT_FOUND, AMBIGUOUS_NAME.
 */
function senderParty(node: PolicyApiDeps, text: string, sees: Sees): RoutingParty {
  const anybody = anybodyOf(text)
  if (anybody !== null) return anybody
  if (text.includes('@')) return agentParty(node, text, sees)
  const missing: NodeError[] = []
  for (const find of [operatorOf, agentOf]) {
    try {
      return partyOf(node, find(node, text, sees))
    } catch (error) {
      const known = asNodeError(error)
      if (known.code !== 'PEER_NOT_FOUND' && (known.code !== 'AGENT_NOT_FOUND' || find === operatorOf)) throw known
      missing.push(known)
    }
  }
  const names = [...new Set(missing.flatMap(({ data }) => nearestOf(data)))].slice(0, 3)
  const hint = names.length === 0 ? '' : `; did you mean ${names.join(' or ')}?`
  throw new NodeError('PEER_NOT_FOUND', `no node and no agent "${shown(text)}" in the mesh${hint}${tierHint(text)}`, {
    data: { nearest: names },
    next: ['a2a-node peers --all', 'a2a-node agents']
  })
}

/**
 * The target of `policy test`: any agent of this node of a tier, or an agent.
 * @throws NodeError as {@link senderParty}.
 */
function targetParty(node: PolicyApiDeps, text: string, sees: Sees): RoutingParty {
  const anybody = anybodyOf(text)
  if (anybody !== null) return anybody
  try {
    return agentParty(node, text, sees)
  } catch (error) {
    const named = asNodeError(error).code === 'AGENT_NOT_FOUND' ? nodeNamed(node, text) : null
    if (named === null) throw withTiers(error, text)
    const agents = node.registry.listAll().filter((card) => card.nodeId === named && card.id !== OPERATOR && sees(card))
    const candidates = agents.slice(0, 8).map(({ address }) => node.directory.shownAddress(address))
    const message = `${node.directory.ref(named).name} is a node; name one of its agents`
    throw new NodeError('AGENT_NOT_FOUND', message, { data: { candidates }, cause: error })
  }
}

/** The node of one end of the message; null for a tier. */
function nodeOf({ address }: RoutingParty): NodeId | null {
  return parseAddress(address)?.nodeId ?? null
}

function anybodyOf(text: string): RoutingParty | null {
  const tier = tierFromText(text)
  // Without an address, no rule for an agent or a node matches.
  return tier === null ? null : { address: '', tier, sandboxId: null }
}

function operatorOf(node: PolicyApiDeps, text: string): AgentAddress {
  return { agentId: OPERATOR, nodeId: node.directory.node(text) }
}

/** The policy is this node's: a bare name means its own agent if there is one. */
function agentOf(node: PolicyApiDeps, text: string, sees: Sees): AgentAddress {
  const own = { agentId: text, nodeId: node.self }
  const card = node.directory.card(own)
  return card === undefined || !sees(card) ? node.directory.agent(text, sees) : own
}

function agentParty(node: PolicyApiDeps, text: string, sees: Sees): RoutingParty {
  try {
    return partyOf(node, agentOf(node, text, sees))
  } catch (error) {
    // The cards of a revoked node are removed with it.
    const named = text.includes('@') ? nodeNamed(node, text.slice(text.indexOf('@') + 1)) : null
    if (named !== null) checkMember(node, named)
    throw error
  }
}

function nodeNamed(node: PolicyApiDeps, text: string): NodeId | null {
  try {
    return node.directory.node(text)
  } catch {
    return null
  }
}

function partyOf(node: PolicyApiDeps, address: AgentAddress): RoutingParty {
  const party = node.directory.party(address)
  if (party !== null) return party
  checkMember(node, address.nodeId)
  const { name } = node.directory.ref(address.nodeId)
  const message = `this node has no card of ${node.directory.shownAddress(address)} yet; it gets it when it is linked to ${shown(name)}`
  throw new NodeError('AGENT_NOT_FOUND', message, { next: ['a2a-node peers --all'] })
}

/** Refuses a revoked node: it has no link, so no message is decided on. */
function checkMember({ deps, directory }: PolicyApiDeps, nodeId: NodeId): void {
  const revoked = deps.log.view().members.get(nodeId)?.revoked ?? null
  if (revoked === null) return
  const { name } = directory.ref(nodeId)
  const by = directory.ref(revoked.by).name
  const message = `${shown(name)} was put out of the mesh by ${shown(by)}: it has no link, so nothing passes between it and this node`
  throw new NodeError('REVOKED', message, { next: ['a2a-node peers --all'] })
}

/** Lists the tiers for a text that looks like a tier and is none. */
function tierHint(text: string): string {
  return /^l\d+$/i.test(text) ? `; the tiers are ${TIERS.map(tierText).join(', ')}` : ''
}

function withTiers(error: unknown, text: string): unknown {
  const known = asNodeError(error)
  const hint = known.code === 'AGENT_NOT_FOUND' ? tierHint(text) : ''
  return hint === ''
    ? error
    : new NodeError(known.code, known.message + hint, { data: known.data, next: known.next, cause: error })
}

function nearestOf(data: unknown): string[] {
  const names = isRecord(data) ? data['nearest'] : null
  return Array.isArray(names) ? names.filter((one) => typeof one === 'string') : []
}

/** The most names in one warning. */
const NAMED = 3
const THERE = 'only the policy of that node can ask a person there'
const INSTEAD = 'the next rule that matches decides, else the tier table'

/** Dependencies of {@link unanswerableRules}. */
interface UnaskedDeps {
  readonly directory: Directory
  readonly registry: AgentRegistry
  readonly self: NodeId
  /** True for agents that the caller finds. */
  readonly sees: (card: RegisteredCard) => boolean
}

/**
 * The rules with `ask` that can ask nobody, given the present members and agents: they match agents of other nodes, or
 * proposals. A rule in doubt is not listed.
 */
function unanswerableRules(rules: readonly PolicyRule[], deps: UnaskedDeps): UnaskedRule[] {
  return rules.flatMap((rule) => {
    const reason = rule.decision === 'ask' ? reasonOf(rule, deps) : null
    return reason === null ? [] : [{ line: rule.line, message: `this rule asks nobody: ${reason}; ${INSTEAD}` }]
  })
}

function reasonOf({ type, to }: PolicyRule, deps: UnaskedDeps): string | null {
  if (type?.every((one) => one === 'task-proposal') === true)
    return 'a proposal runs nothing, and nothing else is meant'
  return elsewhereByNode(to, deps) ?? elsewhereByAgent(to, deps)
}

/** An unknown name has a warning of its own: its future owner is not known. */
function elsewhereByNode({ node }: PartyCriteria, { directory, self }: UnaskedDeps): string | null {
  const meant = node?.map((one) => (isKeyText(one) ? [one] : directory.nodesOfName(one))) ?? []
  const isElsewhere = meant.length > 0 && meant.every((ids) => ids.length > 0 && !ids.includes(self))
  if (!isElsewhere) return null
  const names = [...new Set(meant.flat())].map((id) => directory.ref(id).name)
  return `it is for agents of ${listed(names)} alone, and ${THERE}`
}

/** Agents come and go: an unknown agent may be meant for this node. */
function elsewhereByAgent({ agent }: PartyCriteria, { directory, registry, self, sees }: UnaskedDeps): string | null {
  if (agent === null || registry.ofNode(self).some(({ id }) => agent.includes(id))) return null
  const others = registry.listAll().filter((card) => card.nodeId !== self && agent.includes(card.id) && sees(card))
  if (new Set(others.map(({ id }) => id)).size < agent.length) return null
  const addresses = others.map(({ address }) => directory.shownAddress(address))
  return `no agent of this node is meant, only ${listed(addresses)}, and ${THERE}`
}

function listed(names: readonly string[]): string {
  const reported = names.slice(0, NAMED).map((one) => shown(one, 64))
  return `${reported.join(', ')}${names.length > NAMED ? ` and ${names.length - NAMED} more` : ''}`
}
