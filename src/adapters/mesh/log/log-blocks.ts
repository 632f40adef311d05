import b4a from 'b4a'
import type { LogHead, LogNode } from 'autobase'
import { MAX_BLOCKS } from './core-messages.js'

/** Largest block of the log that is read, in bytes: an entry of 96 KiB and its envelope. */
export const MAX_LOG_BLOCK_BYTES = 160 * 1024
/** Blocks that one block names as those before it, at most. */
export const MAX_HEADS = 1024
/** Blocks that a writer joins to one batch, at most. */
const MAX_BATCH = 4096

/** A block of a writer that the engine must not see. */
export class BadBlock extends Error {}

/** Position of a block in its core. */
export interface BlockPlace {
  /** Key of its core. */
  readonly core: Uint8Array
  /** Its position, from 0 on. */
  readonly at: number
  /** Blocks that the batch before it still lacks; 0: it begins one. */
  readonly due: number
}

/**
 * Checks the engine's assumptions of a decoded block, by the block and its core alone: the same on every node.
 * @throws BadBlock
 */
export function checkBlock({ batch, actualHeads }: Pick<LogNode, 'batch' | 'actualHeads'>, place: BlockPlace): void {
  if (!Number.isSafeInteger(batch) || batch < 1 || batch > MAX_BATCH)
    throw new BadBlock('a batch of no sensible length')
  if (place.due > 0 && batch !== place.due) throw new BadBlock('a batch that another one breaks off')
  if (actualHeads.length > MAX_HEADS) throw new BadBlock('too many blocks before it')
  if (actualHeads.some(({ length }) => length < 1 || length > MAX_BLOCKS))
    throw new BadBlock('a block before it that no log has')
  if (new Set(actualHeads.map(nameOf)).size < actualHeads.length)
    throw new BadBlock('it names one block before it twice')
  // The engine passes over it, and whether it is here already differs from node to node.
  if (actualHeads.some(({ key, length }) => length > place.at && b4a.equals(key, place.core)))
    throw new BadBlock('it names a later block of its own core')
  const isAlone = actualHeads.length === 1 && isPrevious(actualHeads[0] as LogHead, place)
  if (place.due > 0 && !isAlone) throw new BadBlock('inside a batch it names other blocks than the one before it')
}

/** Is it the block just before, in the same core? */
export function isPrevious({ key, length }: LogHead, { core, at }: Pick<BlockPlace, 'core' | 'at'>): boolean {
  return length === at && b4a.equals(key, core)
}

function nameOf({ key, length }: LogHead): string {
  return `${b4a.toString(key, 'hex')}:${length}`
}
