import type { AuditEvent } from '../../ports/audit.js'

const MIB = 1024 * 1024

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
  /** Events with the same key are repeats; null: each has a line of its own. In a flood of keys only what few share may count. */
  readonly repeatKey: (event: AuditEvent, isFlood: boolean) => string | null
}

/**
 * The chains. What peers can cause at will (refusals, exchanges across tiers) stands apart from what people and the mesh
 * decide (approvals, changes of membership). At most 144 MiB on disk in all.
 */
export const AUDIT_CHAINS: readonly AuditChain[] = [
  { name: 'audit', kinds: ['refusal', 'strike', 'control'], maxBytes: 16 * MIB, keepFiles: 4, windowMs: 10_000, repeatKey: ruleKey },
  { name: 'exchanges', kinds: ['cross-tier'], maxBytes: 8 * MIB, keepFiles: 4, windowMs: 60_000, repeatKey: tierKey },
  { name: 'changes', kinds: ['membership'], maxBytes: 8 * MIB, keepFiles: 4, windowMs: 0, repeatKey: () => null },
  { name: 'approvals', kinds: ['approval'], maxBytes: 4 * MIB, keepFiles: 4, windowMs: 0, repeatKey: () => null }
]

/** Who is refused by which rule; whom and what it wanted is not part of it, a peer could vary it for ever. */
function ruleKey({ kind, code, rule = '', peer = '' }: AuditEvent, isFlood: boolean): string {
  return isFlood ? `${kind}\n${code}` : `${kind}\n${code}\n${rule}\n${peer}`
}

/** Every line of an exchange names the rule that let it pass; rules are this node's own, so they are few. */
function tierKey({ code, rule = '', peer = '', sourceTier, targetTier, messageType }: AuditEvent, isFlood: boolean): string {
  return isFlood ? `${code}\n${rule}` : `${code}\n${rule}\n${peer}\n${sourceTier}\n${targetTier}\n${messageType}`
}
