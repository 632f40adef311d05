import type { MemberRecord, MembershipView } from './types.js'

/**
 * Limits of one member's own cores in the log. They are sizes and not rates: whether a block counts must depend on its
 * core alone. Otherwise nodes with different clocks would read different logs.
 */
export const LOG_SHARE_LIMITS = {
  /** Bytes of one core of a writer that is not the owner's. */
  maxBytes: 33_554_432,
  /** Overhead of a block beside its own bytes: in the tree, in the order and in the index of the store. */
  blockBytes: 256,
  /** Cores that one member has in its life: each home that is restored or repaired has another one. */
  maxCores: 8,
  /** A node appends to its own core only while this many bytes are left: a batch of the largest entries still fits. */
  reserveBytes: 8_388_608
}

/** The limit of one core of the log. */
export interface CoreLimit {
  /** Bytes, see {@link chargeOf}; infinite for the owner's cores, since the owner alone confirms the log. */
  readonly bytes: number
  /** Does the view name its owner? Until then a core that is over the limit waits: it may be the owner's. */
  readonly isKnown: boolean
  /** Is the member revoked? Then only blocks that blocks of others name are fetched. */
  readonly isRevoked: boolean
}

/** May a member have this core (z32), its own or another one? The owner has no bound: it must always get on. */
export function mayHaveCore(
  { coreKey: own, formerCores = [] }: Pick<MemberRecord, 'coreKey' | 'formerCores'>,
  coreKey: string
): boolean {
  const had = new Set<string>([...formerCores, own])
  return had.has(coreKey) || had.size < LOG_SHARE_LIMITS.maxCores
}

/** Charge of the first `blocks` blocks of a core. `bytes`: their size. */
export function chargeOf(blocks: number, bytes: number): number {
  return bytes + blocks * LOG_SHARE_LIMITS.blockBytes
}

/** The limit of each core that the view names, by its key (z32). */
export function coreLimits({ members, mesh }: MembershipView): ReadonlyMap<string, CoreLimit> {
  const limits = new Map<string, CoreLimit>()
  for (const [nodeId, { coreKey, formerCores = [], revoked }] of members) {
    const bytes = nodeId === mesh?.owner ? Number.POSITIVE_INFINITY : LOG_SHARE_LIMITS.maxBytes
    for (const core of [...formerCores, coreKey]) {
      // Members that write nothing may name any core as theirs, also one of the owner.
      const known = limits.get(core) ?? { bytes: 0, isRevoked: true }
      const isRevoked = revoked !== null && known.isRevoked
      limits.set(core, { bytes: Math.max(bytes, known.bytes), isKnown: true, isRevoked })
    }
  }
  if (mesh !== null) limits.set(mesh.id, { bytes: Number.POSITIVE_INFINITY, isKnown: true, isRevoked: false })
  return limits
}
