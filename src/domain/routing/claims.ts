import type { RoutingParty } from './decide.js'
import { weakest, type Tier } from './tier.js'

/**
 * Time after a change of a sender's rights in which its messages may still claim the former ones, in milliseconds: log
 * entries take time to arrive, and clocks differ.
 */
const FORMER_CLAIM_MS = 300_000

/** The rights that a message claims; the sandbox is absent for none. */
export interface ClaimedRights {
  readonly tier: Tier
  readonly sandboxId?: string
}

/** When a message was made, and when the rights of its sender changed; unix milliseconds. */
export interface ClaimTimes {
  readonly madeAt: number
  /** null: they never changed, as far as this node knows. Asked for stronger claims only. */
  changedAt(): number | null
}

/**
 * The rights of a sender for one message: at most the known ones, and at most the claimed ones. A stronger claim counts
 * as the known rights if it may be the former rights of the sender, by the time of the message; null for any other.
 */
export function claimedParty(
  known: RoutingParty,
  claim: ClaimedRights | undefined,
  times: ClaimTimes
): RoutingParty | null {
  if (claim === undefined) return known
  const sandboxId = claim.sandboxId ?? null
  const isStronger = claim.tier < known.tier || (known.sandboxId !== null && sandboxId !== known.sandboxId)
  if (isStronger && !mayBeFormer(times)) return null
  if (claim.tier === known.tier && sandboxId === known.sandboxId) return known
  // Accept a weaker claim: the sender may act for a weaker caller, or know of a change before this node.
  return { ...known, tier: weakest(known.tier, claim.tier), sandboxId: known.sandboxId ?? sandboxId }
}

function mayBeFormer({ madeAt, changedAt }: ClaimTimes): boolean {
  const at = changedAt()
  return at !== null && madeAt <= at + FORMER_CLAIM_MS
}

/** The fields of a certificate or card that date the last change of rights. */
export interface DatedRights {
  readonly certificate: { readonly serial: number; readonly issuedAt: number } | null
  /** `lastSeenAt`: when this node took this revision, unix milliseconds. */
  readonly card: { readonly revision: number; readonly lastSeenAt: number } | undefined
}

/** When the rights of an agent last changed, in unix milliseconds; null for its first certificate and card. */
export function rightsChangedAt({ certificate, card }: DatedRights): number | null {
  const times = [
    ...(certificate !== null && certificate.serial > 1 ? [certificate.issuedAt] : []),
    ...(card !== undefined && card.revision > 1 ? [card.lastSeenAt] : [])
  ]
  return times.length === 0 ? null : Math.max(...times)
}
