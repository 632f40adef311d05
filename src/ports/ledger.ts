import type { NodeError } from '../kit/errors.js'

/** One change of a commit: the value of a key from now on, a text as its UTF-8; null removes the key. */
export interface LedgerChange {
  /** 1 to 512 printable ASCII characters without the space; keys are ordered by their characters. */
  readonly key: string
  readonly value: Uint8Array | string | null
  /** Whoever makes it knows that the key has no value: what is removed soon after need never get to the disk. Default false. */
  readonly isNew?: boolean
}

/** The changes of one commit; a function is asked for them once, when they are written: what happened since the call goes with them. It must not throw. */
export type LedgerChanges = readonly LedgerChange[] | (() => readonly LedgerChange[])

/** What a commit survives once it resolves: the end of the process, or the end of the machine's power as well. */
export type LedgerDurability = 'process' | 'power'

/** A key and its value. */
export interface LedgerEntry {
  readonly key: string
  readonly value: Uint8Array
}

/** Part of a ledger: `from <= key < to`, in order, at most `limit` entries; with `isReverse` from the end, the last first. */
export interface LedgerRange {
  readonly from: string
  readonly to: string
  readonly limit: number
  readonly isReverse?: boolean
}

/** What a ledger holds. */
export interface LedgerSize {
  /** Commits since it was founded. */
  readonly commits: number
  /** Bytes on disk; 0 for one in memory. */
  readonly bytes: number
}

/**
 * What a node must not forget: keys and values in order, changed by atomic commits. Commits take effect in the order of
 * the calls; once one fails, those called before its failure was told fail too, so that what builds on it is not there either.
 * What a commit changes is read by whoever has awaited it.
 */
export interface Ledger {
  /** Why nothing new is taken now: its disk is full, or cannot be written. null or absent: all is taken. */
  readonly fault?: NodeError | null
  /** The value of a key, or null. @throws NodeError STORE_DAMAGED */
  get(key: string): Promise<Uint8Array | null>
  /** The entries of a range. @throws NodeError STORE_DAMAGED */
  list(range: LedgerRange): Promise<LedgerEntry[]>
  /**
   * Makes all the changes or none. When it resolves they are as durable as the ledger promises: they survive the process,
   * and with the durability `power` the machine. When it rejects none is there, now and after a restart.
   * @param survives `process`: it need not wait for the disk, whatever the ledger promises. Default: what the ledger promises.
   * @throws NodeError DISK_FULL, NO_PERMISSION, STORE_DAMAGED; INTERNAL for a bad key or a closed ledger
   */
  commit(changes: LedgerChanges, survives?: LedgerDurability): Promise<void>
  /** Gives the room of removed entries back. May take seconds; commits go on meanwhile. */
  compact(): Promise<void>
  size(): Promise<LedgerSize>
  /** Waits for what was called before; then nothing more is taken. */
  close(): Promise<void>
}
