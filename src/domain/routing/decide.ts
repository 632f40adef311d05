import { utf8 } from '../../kit/ids.js'
import { shown } from '../../kit/text.js'
import { OPENING_TYPES, type MessageType } from '../envelope/envelope.js'
import { ENVELOPE_LIMITS } from '../envelope/limits.js'
import type { PolicyQuestion } from '../policy/match.js'
import { CONFLICT_SANDBOX, type Confinement, mayAddress } from './effective.js'
import type { PolicyVerdict, RoutingPolicy } from './policy-verdict.js'
import { tierText, type Tier } from './tier.js'
import type { TierRule } from './tier-rules.js'

/** The owner's rules, as plain data. */
export interface RoutingRules {
  /** One rule a tier; a tier without one may open to no tier. */
  readonly tierRules: readonly TierRule[]
  readonly sandbox: SandboxRules
  /**
   * `exchange`: replies pass along an open exchange. `strict`: they must also pass sandbox and tier rules themselves.
   */
  readonly replies: 'exchange' | 'strict'
  /** The node's own rules; null or absent: none. */
  readonly policy?: RoutingPolicy | null
}

/** Rules of sandboxes (spec a2a-mcp-mesh, SandboxRoutingConfig). */
export interface SandboxRules {
  readonly enforced: boolean
  /** Targets that every sandboxed agent may reach: agent ids (on any node) or addresses `agentId@nodeId`. */
  readonly crossSandboxAllowList: readonly string[]
}

/** One end of a message, with its effective tier and sandbox (see effectiveParty), never its own claims. */
export interface RoutingParty {
  /** `agentId@nodeId`. */
  readonly address: string
  readonly tier: Tier
  readonly sandboxId: string | null
}

/** May this message pass? */
export interface RoutingQuestion extends PolicyQuestion, Confinement {
  readonly sender: RoutingParty
  readonly target: RoutingParty
  /** The certified sender, when its message claims less power; absent otherwise. */
  readonly certified?: RoutingParty
  readonly type: MessageType
  readonly justification: string | null
  /** An exchange that this node let in or sent out matches (see Exchanges). Counts for types that are replies. */
  readonly isReply: boolean
  /** The target works only for the operator of the deciding node, and the message is sent for another caller. */
  readonly isReserved?: true
  /** Is the target an agent of the deciding node? Only then a person of it may be asked; see {@link decide}. */
  readonly isArriving: boolean
}

/**
 * The decision and its rule. `rule` and `reason` are short texts in this node's own words; `line` is the line of the
 * deciding rule in the policy file. With `asks` a person has to allow the message first.
 */
export type Verdict =
  | { readonly allowed: true; readonly rule: string; readonly line?: number }
  | {
      readonly allowed: false
      readonly code: RefusalCode
      readonly rule: string
      readonly reason: string
      readonly line?: number
      readonly asks?: true
    }

/** Why routing refuses. */
export type RefusalCode = 'TIER_VIOLATION' | 'SANDBOX_VIOLATION' | 'ESCALATION_REQUIRED' | 'POLICY_DENIED'

/**
 * Decides whether a message may pass, both for real messages and for `policy test`. Rules apply in this order:
 *
 * 1. The reply rule. A reply passes along an open exchange, whatever the rules say of its direction: otherwise an L1
 *    agent could never answer an L2, nor a sandboxed agent its caller. A reply without an exchange is refused.
 * 2. Operator-only agents, then limits of the caller of this node, then sandboxes, which no policy opens. A sandboxed
 *    sender reaches its own sandbox and the allow list. A sender without a sandbox reaches every sandbox: sandboxes
 *    confine their content, and the owner's operator must be able to give it work.
 * 3. The policy: its first matching rule. `allow` overrides the tier table; `deny` refuses; `ask` holds messages that
 *    the tier table allows. Where no person can be asked, an `ask` rule is skipped and the next matching one decides.
 *    That is so for a message to an agent of another node, which asks its own person. It is also so for a proposal: it
 *    runs nothing and needs an answer within seconds, and its later requests are asked about.
 * 4. The tier table. A missing row refuses.
 */
export function decide(rules: RoutingRules, question: RoutingQuestion): Verdict {
  const isOpening = OPENING_TYPES.has(question.type)
  if (!isOpening) {
    if (!question.isReply) return NO_EXCHANGE
    if (rules.replies === 'exchange') return IN_EXCHANGE
  }
  const confined = confinement(question)
  if (confined !== null) return confined
  const boxed = sandboxRefusal(rules.sandbox, question)
  if (boxed !== null) return boxed
  const found = isOpening ? policyVerdict(rules.policy ?? null, question, mayAsk(question)) : null
  if (found !== null && found.decision !== 'ask') return found.verdict
  const verdict = tierVerdict(rules.tierRules, question)
  return found !== null && verdict.allowed ? found.verdict : verdict
}

/**
 * The first matching `ask` rule that {@link decide} skips: no person can be asked, or the tier table refuses the
 * message. Null for none.
 */
export function passedOver(rules: RoutingRules, question: RoutingQuestion): Verdict | null {
  if (!OPENING_TYPES.has(question.type) || sandboxRefusal(rules.sandbox, question) !== null) return null
  const first = policyVerdict(rules.policy ?? null, question, true)
  if (first?.decision !== 'ask') return null
  return mayAsk(question) && tierVerdict(rules.tierRules, question).allowed ? null : first.verdict
}

/**
 * The decision of the policy. Where the sender claims less power than it has, both parties are matched, so that a claim
 * never selects its rules. The stricter decision counts, and an `allow` must hold for both.
 */
function policyVerdict(
  policy: RoutingPolicy | null,
  question: RoutingQuestion,
  isAskable: boolean
): PolicyVerdict | null {
  if (policy === null) return null
  const one = policy.find(question, isAskable)
  const { certified } = question
  if (certified === undefined) return one
  const other = policy.find({ ...question, sender: certified }, isAskable)
  for (const decision of ['deny', 'ask'] as const) {
    if (one?.decision === decision) return one
    if (other?.decision === decision) return other
  }
  return other === null ? null : one
}

function mayAsk({ isArriving, type }: RoutingQuestion): boolean {
  return isArriving && type !== 'task-proposal'
}

const IN_EXCHANGE: Verdict = { allowed: true, rule: 'reply: within an open exchange' }

const NO_EXCHANGE: Verdict = {
  allowed: false,
  code: 'TIER_VIOLATION',
  rule: 'reply: no open exchange',
  reason: 'a reply passes only along an exchange that this node let in or sent out and that has not ended'
}

const RESERVED: Verdict = {
  allowed: false,
  code: 'POLICY_DENIED',
  rule: 'agent: it works for the operator of its node alone',
  reason: 'the agent works for the operator of its node alone'
}

const OTHER_AGENT: Verdict = {
  allowed: false,
  code: 'POLICY_DENIED',
  rule: 'caller: it is limited to some agents',
  reason: 'the caller was connected for other agents alone'
}

function confinement({ confinedTo, confinedAgents, capability, target, isReserved }: RoutingQuestion): Verdict | null {
  if (isReserved === true) return RESERVED
  const agentId = target.address.slice(0, target.address.lastIndexOf('@'))
  if (confinedAgents !== undefined && !mayAddress(agentId, { agents: confinedAgents })) return OTHER_AGENT
  if (confinedTo === undefined || (capability !== null && confinedTo.includes(capability))) return null
  return {
    allowed: false,
    code: 'POLICY_DENIED',
    rule: 'token: it is limited to some capabilities',
    reason: 'the token of the caller is not good for this capability'
  }
}

function sandboxRefusal(
  { enforced, crossSandboxAllowList }: SandboxRules,
  { sender, target }: RoutingQuestion
): Verdict | null {
  if (!enforced) return null
  const own = sender.sandboxId
  if (own === CONFLICT_SANDBOX || target.sandboxId === CONFLICT_SANDBOX) return CONFLICTING
  if (own === null || own === target.sandboxId || listed(crossSandboxAllowList, target.address)) return null
  const where = target.sandboxId === null ? 'outside any sandbox' : `in sandbox ${shown(target.sandboxId, 64)}`
  return {
    allowed: false,
    code: 'SANDBOX_VIOLATION',
    rule: `sandbox: ${shown(own, 64)} reaches only itself and the allow list`,
    reason: `the sender is in sandbox ${shown(own, 64)}, the target is ${where}`
  }
}

const CONFLICTING: Verdict = {
  allowed: false,
  code: 'SANDBOX_VIOLATION',
  rule: 'sandbox: an agent in two sandboxes can neither send nor receive',
  reason: 'the certificate, the card and the hops name different sandboxes'
}

function listed(allowList: readonly string[], address: string): boolean {
  if (allowList.length === 0) return false
  const at = address.indexOf('@')
  return allowList.includes(address) || allowList.includes(at < 0 ? address : address.slice(0, at))
}

function tierVerdict(tierRules: readonly TierRule[], question: RoutingQuestion): Verdict {
  const from = question.sender.tier
  const to = question.target.tier
  const rule = ruleOf(tierRules, from)
  if (!rule.allowedTargetTiers.includes(to)) {
    return {
      allowed: false,
      code: 'TIER_VIOLATION',
      rule: ruleText(rule),
      reason: `an ${tierText(from)} agent may not open to an ${tierText(to)} agent`
    }
  }
  if (!rule.requiresEscalationJustification || to > 1 || to >= from) return { allowed: true, rule: ruleText(rule) }
  const fault = justificationFault(question.justification)
  if (fault === null)
    return { allowed: true, rule: `escalation: ${tierText(from)} to ${tierText(to)} with a justification` }
  return {
    allowed: false,
    code: 'ESCALATION_REQUIRED',
    rule: `escalation: ${tierText(from)} to ${tierText(to)} needs a justification`,
    reason: fault
  }
}

function ruleOf(tierRules: readonly TierRule[], tier: Tier): TierRule {
  for (const rule of tierRules) if (rule.sourceTier === tier) return rule
  return { sourceTier: tier, allowedTargetTiers: [], requiresEscalationJustification: false }
}

/** The texts of rules, made once: rules are few, and every message names the one that let it pass. */
const RULE_TEXTS = new WeakMap<TierRule, string>()

function ruleText(rule: TierRule): string {
  const known = RULE_TEXTS.get(rule)
  if (known !== undefined) return known
  const list = rule.allowedTargetTiers.map(tierText).join(', ')
  const text = `tier: ${tierText(rule.sourceTier)} may open to ${list === '' ? 'nobody' : list}`
  RULE_TEXTS.set(rule, text)
  return text
}

function justificationFault(justification: string | null): string | null {
  const { maxJustificationBytes } = ENVELOPE_LIMITS
  if (justification === null || justification.trim() === '')
    return 'the justification is missing: say why a more powerful agent is asked'
  // A UTF-16 unit is at most 3 bytes of UTF-8, so short texts need no encoding.
  const isShort =
    justification.length * 3 <= maxJustificationBytes || utf8(justification).byteLength <= maxJustificationBytes
  return isShort ? null : `the justification is longer than ${maxJustificationBytes} bytes`
}
