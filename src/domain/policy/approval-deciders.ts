import type { Trust } from '../membership/types.js'
import type { Tier } from '../routing/tier.js'

/** The facts about a pending message by which a machine of the owner may decide it. */
export interface DecidedMessage {
  /** How the asked node regards the node of the sender. */
  readonly senderTrust: Trust
  /** The effective tier of the sender. */
  readonly senderTier: Tier
  /** May the machine open the same work itself, without approval and justification? */
  isFree(): boolean
}

/**
 * May another machine of the owner decide a pending message? One with at least the tier of the asked node decides as
 * that node. A weaker one decides messages of guests only, and raises nothing: it could cause the work itself, and the
 * work gets no stronger rights than its own.
 */
export function mayDecide(machineTier: Tier, nodeTier: Tier, message: DecidedMessage): boolean {
  if (machineTier <= nodeTier) return true
  return message.senderTrust === 'guest' && machineTier <= message.senderTier && message.isFree()
}
