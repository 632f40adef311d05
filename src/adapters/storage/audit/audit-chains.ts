import type { AuditEvent } from '../../../ports/audit.js'

const MIB = 1024 * 1024

/** When events of a chain share a line. Both compare members that are few: a peer could vary the others for ever. */
export interface RepeatRules {
  /**
   * Events of the same peer, or both of none. Such that differ in nothing else share a line, others once they are too
   * many.
   */
  readonly isRepeat: (one: AuditEvent, other: AuditEvent) => boolean
  /** Events of anybody, once too many kinds of repeats came. */
  readonly isRepeatInFlood: (one: AuditEvent, other: AuditEvent) => boolean
}

/** One chain of the audit log: files and a head of its own, so that no kind of line can push another out. */
export interface AuditChain {
  /** Of its files: `<name>.ndjson`, `<name>.1.ndjson`, ..., `<name>.head`. */
  readonly name: string
  readonly kinds: readonly AuditEvent['kind'][]
  /** Bytes after which a new file is begun. */
  readonly maxBytes: number
  /** Files kept, the growing one included. */
  readonly keepFiles: number
  /** Milliseconds in which events of one key become one line. */
  readonly windowMs: number
  /** Fields that make an event the repeat of another; null: every event has its own line. */
  readonly repeats: RepeatRules | null
}

/** Refusals repeat by peer and rule. */
const BY_RULE: RepeatRules = {
  isRepeat: (one, other) => one.code === other.code && one.rule === other.rule && one.kind === other.kind,
  isRepeatInFlood: (one, other) => one.code === other.code && one.kind === other.kind
}

/** Every line of an exchange names the rule that let it pass; rules are this node's own, so they are few. */
const BY_TIERS: RepeatRules = {
  isRepeat: (one, other) => {
    if (one.rule !== other.rule || one.code !== other.code || one.messageType !== other.messageType) return false
    return one.sourceTier === other.sourceTier && one.targetTier === other.targetTier
  },
  isRepeatInFlood: (one, other) => one.code === other.code && one.rule === other.rule
}

/**
 * The chains. Events that peers can cause at will (refusals, exchanges across tiers) are separate from decisions of
 * people and the mesh (approvals, changes of membership). At most 144 MiB on disk in all.
 */
export const AUDIT_CHAINS: readonly AuditChain[] = [
  {
    name: 'audit',
    kinds: ['refusal', 'strike', 'control'],
    maxBytes: 16 * MIB,
    keepFiles: 4,
    windowMs: 10_000,
    repeats: BY_RULE
  },
  { name: 'exchanges', kinds: ['cross-tier'], maxBytes: 8 * MIB, keepFiles: 4, windowMs: 60_000, repeats: BY_TIERS },
  { name: 'changes', kinds: ['membership'], maxBytes: 8 * MIB, keepFiles: 4, windowMs: 0, repeats: null },
  { name: 'approvals', kinds: ['approval'], maxBytes: 4 * MIB, keepFiles: 4, windowMs: 0, repeats: null }
]
