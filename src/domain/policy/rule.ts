import type { SideEffect } from '../card/card.js'
import type { MessageType } from '../envelope/envelope.js'
import type { Trust } from '../membership/types.js'
import type { Tier } from '../routing/tier.js'

/** The decision of a rule for matching messages. `ask`: a person of the receiving node decides. */
export type PolicyDecision = 'allow' | 'ask' | 'deny'

/** Which senders or targets a rule is for; null: any. Of a list one must fit, of the criteria all. */
export interface PartyCriteria {
  /** Node ids (52 characters of z32) or their beginnings (at least 4), or names of members as `peers` shows them. */
  readonly node: readonly string[] | null
  readonly agent: readonly string[] | null
  readonly tier: readonly Tier[] | null
  /** Effective sandboxes; null in the list: in none. */
  readonly sandbox: readonly (string | null)[] | null
  /** How the deciding node regards its node; absent: either way. */
  readonly trust?: readonly Trust[]
}

/** One rule of the policy file, as it was written. */
export interface PolicyRule {
  /** Its line in the file, 1-based. */
  readonly line: number
  /** Name of the rule, unique in its file: `[a-z0-9._-]{1,64}`. */
  readonly name?: string
  readonly from: PartyCriteria
  readonly to: PartyCriteria
  /** Ids of capabilities, or their beginnings with a `*` at the end; null: any, also a message that names none. */
  readonly capability: readonly string[] | null
  /** Types that open an exchange; null: any. */
  readonly type: readonly MessageType[] | null
  /** Side effects of the capability, by the card of the target; null: any. */
  readonly sideEffect: readonly SideEffect[] | null
  readonly decision: PolicyDecision
}

/** Criteria that anybody fits. */
export const ANYBODY: PartyCriteria = { node: null, agent: null, tier: null, sandbox: null }
