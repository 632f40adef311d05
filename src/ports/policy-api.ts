import type { ErrorBody, ErrorCode } from '../kit/errors.js'
import type { SideEffect } from '../domain/card/card.js'
import type { MessageType } from '../domain/envelope/envelope.js'
import type { PartyCriteria, PolicyDecision, PolicyRule } from '../domain/policy/rule.js'
import type { TierText } from '../domain/routing/tier.js'
import type { WaitingFor } from '../domain/task/task.js'
import type { NodeRef } from './node-api.js'
import type { PolicyFault } from './policy.js'

/** {@link PartyCriteria} with tiers as text. */
export interface PartyCriteriaInfo extends Omit<PartyCriteria, 'tier'> {
  /** By place in `node`: what the node of a whole key is called now; null for other texts, and for keys of nobody. */
  readonly nodeNames: readonly (string | null)[] | null
  readonly tier: readonly TierText[] | null
}

/** One rule of `policy show`: a {@link PolicyRule} with tiers as text. */
export interface PolicyRuleInfo extends Omit<PolicyRule, 'from' | 'to'> {
  /** Its name or, without one, `#` and six characters made of what it says: the same wherever in the file it stands. */
  readonly id: string
  readonly from: PartyCriteriaInfo
  readonly to: PartyCriteriaInfo
}

/** A node as a rule names it, not by its whole key. */
export interface NamedInPolicy {
  /** Where the rule stands in its file, 1-based. */
  readonly line: number
  /** As it was written. */
  readonly name: string
}

/**
 * A rule that names a node by a name that no node has: what it says of it, it says of nobody. Or by one that several may be
 * meant by: then what it denies or asks about is for each of them, and it allows none of them.
 */
export interface PolicyWarning extends NamedInPolicy {
  /** Those that may be meant, as `name (short id)`; empty when no node is. */
  readonly candidates: readonly string[]
  /** Names of nodes like it, when no node is meant. */
  readonly nearest: readonly string[]
  /** All of it in words. */
  readonly message: string
}

/** A rule that asks and that, as things are, only matches what nobody of this node can be asked about. */
export interface UnaskedRule {
  /** Where it stands in its file, 1-based. */
  readonly line: number
  /** Why, and what decides instead, in words. */
  readonly message: string
}

/** A rule of this node whose name of a node means another one, or nobody, since a node was renamed. */
export interface RenamedInPolicy extends NamedInPolicy {
  /** Absolute path. */
  readonly file: string
  /** Name of the node that it means now; null for nobody. */
  readonly means: string | null
}

/** `policy show`: the rules in force, in their order. */
export interface PolicyInfo {
  /** Absolute path, whether the file is there or not. */
  readonly file: string
  readonly rules: readonly PolicyRuleInfo[]
  /** What is wrong with the file now; the rules are then those of its last good version. */
  readonly fault: PolicyFault | null
  /** Everything that is wrong with it, at most 20, in the order of the lines; the first is `fault`. */
  readonly faults: readonly PolicyFault[]
  /** Faults beyond those. */
  readonly moreFaults: number
  readonly warnings: readonly PolicyWarning[]
  /** Warnings of another kind: rules that ask where nobody can be asked. */
  readonly unasked: readonly UnaskedRule[]
  /** How long a message waits for a person. */
  readonly approvalTimeoutMs: number
}

/** What `policy test` asks. */
export interface PolicyTestQuery {
  /** A tier (`L0`..`L3`: anybody of it), a node (its operator) or an agent. */
  readonly from: string
  /** A tier (an agent of this node of it) or an agent. */
  readonly to: string
  /** Default `request`. */
  readonly type?: MessageType
  /** Default: the target's default capability. */
  readonly capability?: string
  /** What the capability may do. Default: what the card of the target says; for a tier see {@link PolicyTestResult.assumed}. */
  readonly sideEffect?: SideEffect
  readonly justification?: string
}

/** A node that decides on the message as well, by its own rules. */
export interface PolicyTestOther {
  /** The sender's node decides first, that of the receiver once the message arrives. */
  readonly role: 'sender' | 'receiver'
  /** Its name; null where the sender is anybody. */
  readonly node: string | null
  /** It needs a rule of its own that allows the message: here one opens what the tier table refuses. */
  readonly needsAllow: boolean
}

/** One end of a message as the rules see it. */
export interface PolicyTestParty {
  /** `id@node name`; null for anybody of a tier. */
  readonly agent: string | null
  readonly tier: TierText
  readonly sandboxId: string | null
}

/** The first rule that would ask about a message and was passed over, since nobody here can be asked, or the tier table refuses it. */
export interface PassedOverRule {
  /** As in {@link PolicyTestResult}: `policy.yaml:3: ask`. */
  readonly rule: string
  readonly ruleId: string | null
  readonly file: string | null
  readonly line: number | null
  /** `elsewhere`: the message is for an agent of another node. `proposal`: it runs nothing; the requests that follow are asked about. `table`: a rule asks only about what the tier table allows. */
  readonly why: 'elsewhere' | 'proposal' | 'table'
}

/** `policy test`: what this node would do with the message, and by which rule. */
export interface PolicyTestResult {
  readonly decision: PolicyDecision
  /** Why it is refused; null unless it is denied. */
  readonly code: ErrorCode | null
  /** The deciding rule: `policy.yaml:12: ask`, `tier: L1 may open to L0, L1`, ... */
  readonly rule: string
  /** What the deciding rule of the policy file is called, see {@link PolicyRuleInfo.id}; else null. */
  readonly ruleId: string | null
  readonly reason: string | null
  /** Absolute path and line of a deciding rule of the policy file; else null. */
  readonly file: string | null
  readonly line: number | null
  /** null: no rule was. */
  readonly passedOver: PassedOverRule | null
  readonly from: PolicyTestParty
  readonly to: PolicyTestParty
  readonly type: MessageType
  readonly capability: string | null
  readonly sideEffect: SideEffect | null
  /**
   * For a target that is a tier, whose side effect was taken: `id@node name` of the agent of this node that offers the
   * capability (of several that of the tier, then the one that may do most); its `agent` null: none does, then it counts as
   * `exec`. null: nothing had to be assumed.
   */
  readonly assumed: { readonly agent: string | null } | null
  /**
   * The capability is none of the target's (or of any agent of this node, for a tier), so that a message which the rules let
   * pass fails with CAPABILITY_NOT_FOUND: which agents have it, `id@node name`, at most 8; without any, capabilities that are
   * called almost so. null: it has it, or none was named.
   */
  readonly missing: { readonly offeredBy: readonly string[]; readonly nearest: readonly string[] } | null
  /** Name of the node that answers, for itself alone. */
  readonly node: string
  /** The nodes that decide as well; empty when both ends are here. */
  readonly others: readonly PolicyTestOther[]
}

/** One row of `approvals ls`. Texts of the sender are bounded and made safe to show. */
export interface ApprovalInfo {
  readonly id: string
  /** `id@node name` of who asks. */
  readonly from: string
  /** The node of who asks: its key decides, its name is what an admin let it take. */
  readonly fromNode: NodeRef
  /** `id@node name` of the agent that is asked. */
  readonly to: string
  readonly toNode: NodeRef
  readonly fromTier: TierText
  readonly type: MessageType
  readonly capability: string | null
  readonly sideEffect: SideEffect | null
  /** The goal or reason that the sender gives; '' when there is none. */
  readonly description: string
  readonly justification: string | null
  /** The beginning of the input as JSON. */
  readonly input: string
  /** Which of the texts and the input are not whole here: `approvals show` gives them. */
  readonly cut: readonly ApprovalText[]
  /** The rule that asks, where it stands now: e.g. `policy.yaml:12: ask`. */
  readonly rule: string
  readonly askedAt: string
  /** When it ends unless somebody decides. */
  readonly expiresAt: string
  /** By whose time that is: this node waits no longer, or whoever called does not. */
  readonly endsBy: 'node' | 'caller'
}

/** What a sender says in a message that waits. */
export type ApprovalText = 'input' | 'description' | 'justification'

/** `approvals show`: everything that a person may want to see before deciding. */
export interface ApprovalDetail extends ApprovalInfo {
  /** null for what is no request. */
  readonly requestId: string | null
  readonly attempt: number | null
  /** How often it came; all copies hear of the decision. */
  readonly copies: number
  /** As the sender wrote it: not cut, nothing taken out. `input`: JSON, members may be bytes. */
  readonly whole: { readonly description: string; readonly justification: string | null; readonly input: unknown }
}

/** A rule that `--remember` wrote. */
export interface RememberedRule {
  /** Absolute path. */
  readonly file: string
  readonly line: number
  /** See {@link PolicyRuleInfo.id}. */
  readonly id: string
  /** The rule as YAML, on one line. */
  readonly text: string
}

/** What a person decided on; the last two only when it was to be remembered. */
export interface ApprovalResult extends ApprovalInfo {
  /** null: no rule asks about it any more, so none was written. */
  readonly remembered?: RememberedRule | null
  /** Other messages that waited, which that rule has decided on. */
  readonly alsoDecided?: readonly (ApprovalInfo & { readonly outcome: 'allowed' | 'denied' })[]
}

/** How far an agent says that it is. */
export interface ProgressReport {
  readonly progress: number | null
  /** What `progress` will be at the end; null without a `progress`, and when it did not say. */
  readonly total: number | null
  /** At most 1,024 characters, safe to show; null when it said nothing else. */
  readonly message: string | null
}

/** What follows a `send` or `call` while it is under way. */
export type MessageEvent<R> =
  /** Something holds it up: see the states of tasks; null: nothing any more. */
  | { readonly type: 'waiting'; readonly waitingFor: WaitingFor | null; readonly agent: string; readonly taskId: string }
  /** Its agent reports how far it is; of several reports in a quarter of a second the newest. */
  | ({ readonly type: 'progress'; readonly agent: string; readonly taskId: string } & ProgressReport)
  /** The last one: what the call of the same name gives. */
  | { readonly type: 'reply'; readonly reply: R }
  /** The last one: what the call of the same name throws. */
  | { readonly type: 'failed'; readonly error: ErrorBody }
