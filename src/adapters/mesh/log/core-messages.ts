import c from 'compact-encoding'
import type { State } from 'compact-encoding'

/** Blocks of a core that replication may speak of: one message makes hypercore walk over all that it names. */
export const MAX_BLOCKS = 16_777_216

/** Types of messages of hypercore: blocks and proofs; then those that name blocks by start and length. */
const DATA = 3
const WANT = 5
const BITFIELD = 7
const RANGE = 8
/** Flag of a range: its length is 1 and not written. */
const IS_ONE = 2
const BITS_PER_WORD = 32
/** Flags of data: its parts. */
const HAS_BLOCK = 1
const HAS_HASH = 2
const HAS_SEEK = 4
const HAS_UPGRADE = 8
const HASH_BYTES = 32

/** The checked content of a message of replication. */
export interface CoreMessage {
  /** Its fault; null: none. */
  readonly fault: string | null
  /**
   * End of the blocks that its sender claims to have or to lack, of which the engine keeps a map; 0: it claims none.
   */
  readonly mapped: number
}

const UNREADABLE: CoreMessage = { fault: 'a message of replication that cannot be read', mapped: 0 }
const HARMLESS: CoreMessage = { fault: null, mapped: 0 }

/**
 * Reads a message of replication as far as it must be checked. An unreadable one has a fault: messages after it might
 * be read. Never throws.
 */
export function readCoreMessage(state: State): CoreMessage {
  try {
    const type = c.uint.decode(state)
    if (type === DATA) return { fault: dataFault(state), mapped: 0 }
    if (type < WANT || type > RANGE) return HARMLESS
    const end = lastBlock(type, state)
    if (end > MAX_BLOCKS) return { fault: 'a range of blocks that no log has', mapped: 0 }
    return { fault: null, mapped: type >= BITFIELD ? end : 0 }
  } catch {
    return UNREADABLE
  }
}

/** End of the blocks that a message names. */
function lastBlock(type: number, state: State): number {
  const flags = type === RANGE ? c.uint.decode(state) : 0
  const start = c.uint.decode(state)
  if ((flags & IS_ONE) !== 0) return start + 1
  return start + c.uint.decode(state) * (type === BITFIELD ? BITS_PER_WORD : 1)
}

/**
 * The fault of blocks and proofs, or null. Of an upgrade hypercore takes the last root, which an upgrade to no block
 * does not have.
 *
 * Hypercore compares unrequested data with an upgrade from the first block on with its own tree, to find a fork. It
 * hashes the nodes as they come: one too many, or one inside a block beside them, makes it freeze a core without a
 * fork.
 */
function dataFault(state: State): string | null {
  const flags = c.uint.decode(state)
  const isAsked = c.uint.decode(state) !== 0
  if ((flags & HAS_UPGRADE) === 0) return null
  c.uint.decode(state)
  for (const kind of [HAS_BLOCK, HAS_HASH, HAS_SEEK]) if ((flags & kind) !== 0) skipPart(state, kind)
  const start = c.uint.decode(state)
  const length = c.uint.decode(state)
  if (length === 0) return 'an upgrade to nothing'
  if (isAsked || start !== 0) return null
  if (length > MAX_BLOCKS) return 'a proof of more blocks than a log has'
  if ((flags & (HAS_BLOCK | HAS_HASH | HAS_SEEK)) !== 0) return 'a proof of a fork with something beside it'
  const roots = rootsOf(length)
  if (c.uint.decode(state) !== roots.length) return 'a proof of a fork that is none'
  return roots.every((root) => nodeAt(state) === root) ? null : 'a proof of a fork that is none'
}

/** Passes over a block, a hash or a seek with its nodes. */
function skipPart(state: State, kind: number): void {
  c.uint.decode(state)
  if (kind === HAS_BLOCK) {
    const bytes = c.uint.decode(state)
    state.start += bytes
  }
  for (let nodes = c.uint.decode(state); nodes > 0; nodes--) nodeAt(state)
}

/** Index of the node that comes next. */
function nodeAt(state: State): number {
  const index = c.uint.decode(state)
  c.uint.decode(state)
  state.start += HASH_BYTES
  return index
}

/** Indexes of the roots of a tree over `blocks` blocks, from left to right (flat in-order numbering). */
function rootsOf(blocks: number): readonly number[] {
  const roots: number[] = []
  let before = 0
  for (let span = MAX_BLOCKS; span >= 1; span /= 2) {
    if (blocks - before < span) continue
    roots.push(2 * before + span - 1)
    before += span
  }
  return roots
}
