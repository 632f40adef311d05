import type Hypercore from 'hypercore'
import { fromUtf8, utf8 } from '../../kit/ids.js'
import { parseJson } from '../../kit/json.js'
import type { StreamBeginning } from '../../ports/documents.js'

/** Name of what a core of a document keeps of it. */
const BEGINNING = 'beginning'

/** Where a stream begins here, and whether it had come so far here: one that had not must not be written any more. */
export interface CoreBeginning extends StreamBeginning {
  readonly isShort: boolean
}

/** Of a stream that is here from its first block on. */
export const NO_BEGINNING: CoreBeginning = { blocks: 0, bytes: 0, isShort: false }

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
export function heldOf(core: Hypercore, { blocks }: Pick<StreamBeginning, 'blocks'>): number {
  const hole = core.core.bitfield.firstUnset(blocks)
  return hole === -1 ? core.length : Math.min(hole, core.length)
}
