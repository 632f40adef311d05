import type { NodeError } from '../kit/errors.js'

/** One change of a commit: the value of a key from now on, a text as its UTF-8; null removes the key. */
export interface LedgerChange {
  /** 1 to 512 printable ASCII characters without the space; keys are ordered by their characters. */
  readonly key: string
  readonly value: Uint8Array | string | null
  /**
   * The caller knows that the key has no value. A key that is removed soon may then never reach the disk. Default
   * false.
   */
  readonly isNew?: boolean
}

/**
 * The changes of one commit. A function is called once, when they are written, so that later changes go with them; it
 * must not throw.
 */
export type LedgerChanges = readonly LedgerChange[] | (() => readonly LedgerChange[])

/** The event that a commit survives once it resolves: the end of the process, or a power failure as well. */
export type LedgerDurability = 'process' | 'power'

/** A key and its value. */
export interface LedgerEntry {
  readonly key: string
  readonly value: Uint8Array
}

/**
 * Part of a ledger: `from <= key < to`, in order, at most `limit` entries; with `isReverse` from the end, the last
 * first.
 */
export interface LedgerRange {
  readonly from: string
  readonly to: string
  readonly limit: number
  readonly isReverse?: boolean
}

/** Size of a ledger. */
export interface LedgerSize {
  /** Commits since it was founded. */
  readonly commits: number
  /** Bytes on disk; 0 for one in memory. */
  readonly bytes: number
}

/**
 * Durable state of a node: ordered keys and values, changed by atomic commits in the order of the calls. When one
 * fails, every commit called before its failure was reported fails too, since they may depend on it. A caller that
 * awaited a commit reads its changes.
 */
export interface Ledger {
  /** Why nothing new is taken now: its disk is full, or cannot be written. null or absent: all is taken. */
  readonly fault?: NodeError | null
  /** The value of a key, or null. @throws NodeError STORE_DAMAGED */
  get(key: string): Promise<Uint8Array | null>
  /** The entries of a range. @throws NodeError STORE_DAMAGED */
  list(range: LedgerRange): Promise<LedgerEntry[]>
  /**
   * Makes all the changes or none. When it resolves they survive the process, and with the durability `power` the
   * machine. When it rejects none is made, now and after a restart.
   * @param survives `process`: it need not wait for the disk, whatever the ledger promises. Default: the ledger's
   * durability.
   * @throws NodeError DISK_FULL, NO_PERMISSION, STORE_DAMAGED; INTERNAL for a bad key or a closed ledger
   */
  commit(changes: LedgerChanges, survives?: LedgerDurability): Promise<void>
  /** Frees the space of removed entries. May take seconds; commits continue meanwhile. */
  compact(): Promise<void>
  size(): Promise<LedgerSize>
  /** Waits for earlier calls, then accepts none. */
  close(): Promise<void>
}
