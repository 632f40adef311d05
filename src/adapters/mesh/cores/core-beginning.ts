import type Hypercore from 'hypercore'
import { MerkleTree } from 'hypercore/lib/merkle-tree.js'
import { fromUtf8, utf8 } from '../../../kit/ids.js'
import { parseJson } from '../../../kit/json.js'

/** Name of what a core of a document keeps of it. */
const BEGINNING = 'beginning'

/** Where a stream begins here: its blocks before are in a snapshot of the document. */
export interface CoreBeginning {
  /** Blocks before it. */
  readonly blocks: number
  /** It had not come so far here: it must not be written any more. */
  readonly isShort: boolean
}

/** Of a stream that is here from its first block on. */
export const NO_BEGINNING: CoreBeginning = { blocks: 0, isShort: false }

/** Where a stream begins here; this node wrote it itself, so what cannot be read is not there. */
export async function beginningOf(core: Hypercore): Promise<CoreBeginning> {
  const stored = await core.getUserData(BEGINNING)
  const json = stored === null ? null : parseJson(fromUtf8(stored))
  return json?.ok === true ? (json.value as CoreBeginning) : NO_BEGINNING
}

/** Remembers it with the core. */
export async function setBeginning(core: Hypercore, at: CoreBeginning): Promise<void> {
  await core.setUserData(BEGINNING, utf8(JSON.stringify(at)))
}

/** Up to which block a stream is here without a hole, from where it begins on. */
export function contiguousLength(core: Hypercore, { blocks }: Pick<CoreBeginning, 'blocks'>): number {
  const hole = core.core.bitfield.firstUnset(blocks)
  return hole === -1 ? core.length : Math.min(hole, core.length)
}

/**
 * Bytes of the first blocks of a core, here or not, as its writer signed them; null as long as that cannot be told. It can as soon
 * as the block behind them was here: what proves that one says how much is before it.
 */
export async function bytesBefore(core: Pick<Hypercore, 'length' | 'core'>, blocks: number): Promise<number | null> {
  if (blocks > core.length) return null
  // The tree of the first blocks: nodes that are not here make an error.
  const roots = await MerkleTree.getRoots(core.core.state, blocks).catch(() => null)
  return roots?.reduce((sum, { size }) => sum + size, 0) ?? null
}
