import type { ErrorBody, ErrorCode } from '../kit/errors.js'
import type { SideEffect } from '../domain/card/card.js'
import type { MessageType } from '../domain/envelope/envelope.js'
import type { PartyCriteria, PolicyDecision, PolicyRule } from '../domain/policy/rule.js'
import type { TierText } from '../domain/routing/tier.js'
import type { AgentLogLine, Question } from '../domain/task/question.js'
import type { WaitingFor } from '../domain/task/task.js'
import type { NodeRef } from './node-api.js'
import type { PolicyFault } from './policy.js'

/** {@link PartyCriteria} with tiers as text. */
export interface PartyCriteriaInfo extends Omit<PartyCriteria, 'tier'> {
  /** By position in `node`: the current name of the node of a whole key; null for other texts and unknown keys. */
  readonly nodeNames: readonly (string | null)[] | null
  readonly tier: readonly TierText[] | null
}

/** One rule of `policy show`: a {@link PolicyRule} with tiers as text. */
export interface PolicyRuleInfo extends Omit<PolicyRule, 'from' | 'to'> {
  /**
   * Its name or, without one, `#` and six characters of a hash of its content; independent of its position in the file.
   */
  readonly id: string
  readonly from: PartyCriteriaInfo
  readonly to: PartyCriteriaInfo
}

/** A node as a rule names it, not by its whole key. */
export interface NamedInPolicy {
  /** Line of the rule in its file, 1-based. */
  readonly line: number
  readonly name: string
}

/**
 * A rule that names a node by an unknown name, or by one with several candidates. An unknown name matches no node. With
 * several candidates, a rule with `deny` or `ask` covers each of them and one with `allow` none.
 */
export interface PolicyWarning extends NamedInPolicy {
  /** The candidates as `name (short id)`; empty when there is none. */
  readonly candidates: readonly string[]
  /** Names of nodes like it, when no node is meant. */
  readonly nearest: readonly string[]
  /** All of it in words. */
  readonly message: string
}

/** A rule with `ask` that, at present, only matches messages about which no person can be asked. */
export interface UnaskedRule {
  /** Its line in the file, 1-based. */
  readonly line: number
  /** The reason and the deciding rule, in words. */
  readonly message: string
}

/** A rule whose name of a node means another node, or none, since a rename. */
export interface RenamedInPolicy extends NamedInPolicy {
  /** Absolute path. */
  readonly file: string
  /** Name of the node that it means now; null for none. */
  readonly means: string | null
}

/** `policy show`: the rules in force, in their order. */
export interface PolicyInfo {
  /** Absolute path, whether the file is there or not. */
  readonly file: string
  readonly rules: readonly PolicyRuleInfo[]
  /** The current fault of the file; the rules are then those of its last good version. */
  readonly fault: PolicyFault | null
  /** Its faults, at most 20, in the order of the lines; the first is `fault`. */
  readonly faults: readonly PolicyFault[]
  /** Faults beyond those. */
  readonly moreFaults: number
  readonly warnings: readonly PolicyWarning[]
  /** Warnings of another kind: rules with `ask` where no person can be asked. */
  readonly unasked: readonly UnaskedRule[]
  /** How long a message waits for a person. */
  readonly approvalTimeoutMs: number
}

/** Parameters of `policy test`. */
export interface PolicyTestQuery {
  /** A tier (`L0`..`L3`: anybody of it), a node (its operator) or an agent. */
  readonly from: string
  /** A tier (an agent of this node of it) or an agent. */
  readonly to: string
  /** Default `request`. */
  readonly type?: MessageType
  /** Default: the target's default capability. */
  readonly capability?: string
  /**
   * Side effect of the capability. Default: the card of the target; for a tier see {@link PolicyTestResult.assumed}.
   */
  readonly sideEffect?: SideEffect
  readonly justification?: string
}

/** A node that decides on the message as well, by its own rules. */
export interface PolicyTestOther {
  /** The sender's node decides first, the receiver's node once the message arrives. */
  readonly role: 'sender' | 'receiver'
  /** Its name; null for any sender. */
  readonly node: string | null
  /** It needs its own rule that allows the message: a rule here overrides the refusal of the tier table. */
  readonly needsAllow: boolean
}

/** One end of a message as the rules see it. */
export interface PolicyTestParty {
  /** `id@node name`; null for anybody of a tier. */
  readonly agent: string | null
  readonly tier: TierText
  readonly sandboxId: string | null
}

/**
 * The first matching `ask` rule that was skipped: no person here can be asked, or the tier table refuses the message.
 */
export interface PassedOverRule {
  /** As in {@link PolicyTestResult}: `policy.yaml:3: ask`. */
  readonly rule: string
  readonly ruleId: string | null
  readonly file: string | null
  readonly line: number | null
  /**
   * `elsewhere`: the message is for an agent of another node. `proposal`: it runs nothing; later requests are asked
   * about. `table`: a rule asks only about messages that the tier table allows.
   */
  readonly why: 'elsewhere' | 'proposal' | 'table'
}

/** `policy test`: this node's decision on the message, and its rule. */
export interface PolicyTestResult {
  readonly decision: PolicyDecision
  /** Why it is refused; null unless it is denied. */
  readonly code: ErrorCode | null
  /** The deciding rule: `policy.yaml:12: ask`, `tier: L1 may open to L0, L1`, ... */
  readonly rule: string
  /** {@link PolicyRuleInfo.id} of the deciding rule of the policy file; else null. */
  readonly ruleId: string | null
  readonly reason: string | null
  /** Absolute path and line of a deciding rule of the policy file; else null. */
  readonly file: string | null
  readonly line: number | null
  readonly passedOver: PassedOverRule | null
  readonly from: PolicyTestParty
  readonly to: PolicyTestParty
  readonly type: MessageType
  readonly capability: string | null
  readonly sideEffect: SideEffect | null
  /**
   * For a target that is a tier, the source of the side effect: `id@node name` of the agent of this node that offers
   * the capability. Among several it is one of the tier, then the one with the strongest side effect. `agent` null: no
   * agent offers it, and it counts as `exec`. null: nothing had to be assumed.
   */
  readonly assumed: { readonly agent: string | null } | null
  /**
   * The target lacks the capability (for a tier, every agent of this node does), so an allowed message fails with
   * CAPABILITY_NOT_FOUND. It lists up to 8 agents with the capability as `id@node name`; without any, capabilities with
   * similar names. null: the target has it, or none was named.
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
  /** `id@node name` of the sender. */
  readonly from: string
  /** The node of the sender: its key decides, an admin granted its name. */
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
  /** Truncated texts and inputs; `approvals show` gives the whole. */
  readonly cut: readonly ApprovalText[]
  /** The asking rule, at its present line: e.g. `policy.yaml:12: ask`. */
  readonly rule: string
  readonly askedAt: string
  /** Its end without a decision. */
  readonly expiresAt: string
  /** The limit that ends it: the wait of this node, or the timeout of the caller. */
  readonly endsBy: 'node' | 'caller'
  /** Set for a question of an agent to a call of this node: it is answered by content, or by a visit of its URL. */
  readonly question?: 'form' | 'url'
}

/** A request of this node that waits for the approval of a person at its agent's node. */
export interface ApprovalElsewhere {
  /** `id@node name` of the agent that is asked. */
  readonly agent: string
  /** Its node, where the approval waits. */
  readonly node: NodeRef
  readonly capability: string | null
  /** null for items of swarms. */
  readonly taskId: string | null
  /** Id of the swarm of an item; else null. */
  readonly swarm: string | null
  readonly since: string
  /** Id of the approval at that node; null when the node, an older build, does not tell it. */
  readonly id: string | null
  /** Its end there without a decision; null with `id`. */
  readonly until: string | null
}

/** The pending approvals of another machine of this node's owner. */
export interface MachineApprovals {
  readonly node: NodeRef
  /** They wait there, oldest first; empty with `error`. */
  readonly approvals: readonly ApprovalInfo[]
  /** Approvals beyond those. */
  readonly more: number
  /** Why it gave no list; null: it did. */
  readonly error: ErrorBody | null
}

/** Rows of `approvals ls`. */
export interface ApprovalList {
  /** They wait for the owner of this node; oldest first. */
  readonly approvals: readonly ApprovalInfo[]
  /** They wait at other nodes; absent from older builds. */
  readonly elsewhere?: readonly ApprovalElsewhere[]
  /** By other machine of the owner, when asked for: they wait for the owner there. */
  readonly machines?: readonly MachineApprovals[]
}

/** A text of the sender in a message that waits for approval. */
export type ApprovalText = 'input' | 'description' | 'justification'

/** `approvals show`: the full message for the person who decides. */
export interface ApprovalDetail extends ApprovalInfo {
  /** null when it is no request. */
  readonly requestId: string | null
  readonly attempt: number | null
  /** Number of copies that came; all of them get the decision. */
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

/** The decision of a person; the last two only for a remembered one. */
export interface ApprovalResult extends ApprovalInfo {
  /** null: no rule asks about it any more, so none was written. */
  readonly remembered?: RememberedRule | null
  /** Other messages that waited, which that rule has decided on. */
  readonly alsoDecided?: readonly (ApprovalInfo & { readonly outcome: 'allowed' | 'denied' })[]
}

/** An agent's report of its progress. */
export interface ProgressReport {
  readonly progress: number | null
  /** The final value of `progress`; null when unknown. */
  readonly total: number | null
  /** At most 1,024 characters, safe to show; null when it said nothing else. */
  readonly message: string | null
  /**
   * Text of a language model since the last report, with its line breaks, not made safe to show; absent: none. At most
   * 64 Ki characters, the newest.
   */
  readonly text?: string
}

/** A question of an agent to the client of a call. */
export interface CallQuestion extends Question {
  /** For `message.answer`. */
  readonly id: string
  /** The agent, whose name is also in the message of the question. */
  readonly agent: string
}

/** An event of a `send` or `call` under way. */
export type MessageEvent<R> =
  /** Something holds it up: see the states of tasks; null: nothing any more. */
  | {
      readonly type: 'waiting'
      readonly waitingFor: WaitingFor | null
      readonly agent: string
      readonly taskId: string
    }
  /** Its agent reports progress; of several reports in a quarter of a second the newest, and the text of all. */
  | ({ readonly type: 'progress'; readonly agent: string; readonly taskId: string } & ProgressReport)
  /** Its agent asks the client a question of a kind that the client takes. */
  | { readonly type: 'question'; readonly question: CallQuestion }
  /** Its agent asks, and the owner of this node answers: `approvals` has the question. */
  | { readonly type: 'asks-owner'; readonly agent: string; readonly id: string }
  /** A log line of its agent, of a level that the client wants. */
  | { readonly type: 'log'; readonly agent: string; readonly line: AgentLogLine }
  /** The last one: the result of the call of the same name. */
  | { readonly type: 'reply'; readonly reply: R }
  /** The last one: the error of the call of the same name. */
  | { readonly type: 'failed'; readonly error: ErrorBody }
