import type { TierText } from '../domain/routing/tier.js'

/** Something that must be on record: a refusal, a membership change, an approval. */
export interface AuditEvent {
  readonly kind: 'refusal' | 'membership' | 'approval' | 'cross-tier' | 'control' | 'strike'
  /** Error code or short verb, e.g. `TIER_VIOLATION`, `revoked`. */
  readonly code: string
  /** The deciding rule, e.g. `tier: L1 may open to L0, L1`. */
  readonly rule?: string
  readonly reason?: string
  /** Node id of the peer, when one caused it. */
  readonly peer?: string
  /** `agentId@nodeId`. */
  readonly sender?: string
  readonly recipient?: string
  readonly messageType?: string
  /** Effective tiers of sender and recipient, for a message across tiers. */
  readonly sourceTier?: TierText
  readonly targetTier?: TierText
  /** Node ids of the relays of the message, in order, separated by spaces. */
  readonly hops?: string
  /** Node id of the acting node, where it is not the peer. */
  readonly by?: string
  /** A unique name of the event: an event with the name of a recent line is not written again. */
  readonly ref?: string
}

/**
 * The append-only, hash-chained record. `append` never throws and never blocks the caller; lines are written in order.
 */
export interface Audit {
  /** `at`: when it happened, unix milliseconds. Default: now. */
  append(event: AuditEvent, at?: number): void
  /** Resolves when every line so far is on disk. */
  flush(): Promise<void>
  close(): Promise<void>
}
