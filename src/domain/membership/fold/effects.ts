import type { MeshId, NodeId } from '../../../kit/ids.js'
import type { Verify } from '../../../kit/sign.js'
import type { Records } from '../records.js'
import type { MemberRecord, MeshRecord } from '../types.js'
import type { WritersChange } from '../writers.js'

/** Effects of an entry on the view. */
export interface FoldResult {
  /** New values by key; null deletes. */
  readonly puts: ReadonlyMap<string, unknown>
  /**
   * Core keys (z32) that become writers, never indexers. The founder's own is a writer from the start and not listed.
   */
  readonly addWriters: readonly string[]
  /**
   * Core keys (z32) that are writers no more. The mesh's first core stays one all the same: it alone confirms the log.
   */
  readonly removeWriters: readonly string[]
  /** Why the entry was not accepted; null when it was. A refused admission has a reason and puts its refusal. */
  readonly skipped: string | null
  /** It was not accepted since a limit is reached: later entries of other members change nothing about that. */
  readonly isFull: boolean
}

/** Context of the fold beside records and entry; the same on every node. */
export interface FoldContext {
  readonly verify: Verify
  /** Was the entry appended by the mesh's bootstrap core? */
  readonly isBootstrapRelay: boolean
  readonly meshId: MeshId
}

/** An entry's surroundings once its author is known to be a member that signed it. */
export interface Scene {
  readonly records: Records
  readonly verify: Verify
  readonly mesh: MeshRecord
  readonly by: NodeId
  readonly author: MemberRecord
}

/** The entry changes nothing. */
export function skip(reason: string): FoldResult {
  return { puts: new Map(), addWriters: [], removeWriters: [], skipped: reason, isFull: false }
}

/** The entry changes nothing, since a limit is reached. */
export function full(reason: string): FoldResult {
  return { ...skip(reason), isFull: true }
}

/** The entry is accepted and puts these. */
export function put(puts: ReadonlyMap<string, unknown>, writers?: WritersChange): FoldResult {
  return {
    puts,
    addWriters: writers?.addWriters ?? [],
    removeWriters: writers?.removeWriters ?? [],
    skipped: null,
    isFull: false
  }
}
