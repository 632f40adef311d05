import type Hypercore from 'hypercore'
import { MerkleTree } from 'hypercore/lib/merkle-tree.js'
import { fromUtf8, utf8 } from '../../../kit/ids.js'
import { parseJson } from '../../../kit/json.js'

/** Key of a core's user data that holds its beginning. */
const BEGINNING = 'beginning'

/** Where a stream begins here: its blocks before are in a snapshot of the document. */
export interface CoreBeginning {
  /** Blocks before it. */
  readonly blocks: number
  /** The stream was shorter here when this was set: it must not be written any more. */
  readonly isShort: boolean
}

/** Of a stream that is here from its first block on. */
export const NO_BEGINNING: CoreBeginning = { blocks: 0, isShort: false }

/** Where a stream begins here. This node wrote the record itself, so an unreadable one counts as none. */
export async function beginningOf(core: Hypercore): Promise<CoreBeginning> {
  const stored = await core.getUserData(BEGINNING)
  const json = stored === null ? null : parseJson(fromUtf8(stored))
  return json?.ok === true ? (json.value as CoreBeginning) : NO_BEGINNING
}

/** Stores it with the core. */
export async function setBeginning(core: Hypercore, at: CoreBeginning): Promise<void> {
  await core.setUserData(BEGINNING, utf8(JSON.stringify(at)))
}

/** Length of a stream up to its first hole, searched from its beginning on. */
export function contiguousLength(core: Hypercore, { blocks }: Pick<CoreBeginning, 'blocks'>): number {
  const hole = core.core.bitfield.firstUnset(blocks)
  return hole === -1 ? core.length : Math.min(hole, core.length)
}

/**
 * Bytes of the first blocks of a core, stored or not, as its writer signed them; null while that is unknown. It is
 * known once the block behind them was here, since the proof of that block says how much is before it.
 */
export async function bytesBefore(core: Pick<Hypercore, 'length' | 'core'>, blocks: number): Promise<number | null> {
  if (blocks > core.length) return null
  // The tree of the first blocks: nodes that are not here make an error.
  const roots = await MerkleTree.getRoots(core.core.state, blocks).catch(() => null)
  return roots?.reduce((sum, { size }) => sum + size, 0) ?? null
}
