import { BLOCK_LIMITS, encodeBlock } from './block.js'
import type { CheckedBlock, DocumentStream } from './stream.js'
import { cutUpdate } from './update/cut.js'
import { UPDATE_LIMITS } from './update/update.js'

/**
 * Blocks to append in this order, all or none; or why local edits can never be sent. Then rebuild the replica from the
 * streams. `isFull`: the document has no space for them.
 */
export type LocalBlocks =
  | { readonly ok: true; readonly blocks: readonly Uint8Array[] }
  | { readonly ok: false; readonly reason: string; readonly isFull?: true }

interface TakeOptions {
  /** Sessions of this node that are open. */
  readonly sessions: number
  /** Is the document full with the noted edits? */
  isFull(): boolean
  /** Why others would end the stream at a block of it that was noted as its last; null if they would not. */
  faultOf(block: CheckedBlock): string | null
}

/** Local edits that are not yet in the node's stream. */
export class LocalEdits {
  #updates: Uint8Array[] = []

  /** Notes an update of the live document. */
  add(update: Uint8Array): void {
    this.#updates.push(update)
  }

  /**
   * Every noted edit, as blocks of the own stream, checked as others check them. `faultOf`: the checks that need the
   * whole document.
   */
  take(stream: DocumentStream, { sessions, isFull, faultOf }: TakeOptions): LocalBlocks {
    const blocks: Uint8Array[] = []
    const cutting = cut(this.#updates.splice(0))
    if (!cutting.ok) return cutting
    // Others would take the first pieces of it and then wait for ever.
    if (cutting.isCut && isFull()) return { ok: false, reason: 'the document has no room for it', isFull: true }
    const groups = grouped(cutting.updates)
    // A session is announced before anybody uses it, else its clientID could be given to two.
    if (groups.length === 0 && sessions > stream.announced) groups.push([])
    if (stream.end !== null && groups.length > 0) return { ok: false, reason: 'the stream of this node ended' }
    for (const updates of groups) {
      const bytes = encodeBlock({ sessions, updates })
      const reading = stream.check(bytes)
      const fault = reading.ok ? stream.fault(reading.block) : reading.reason
      if (!reading.ok || fault !== null) return { ok: false, reason: fault ?? 'a block is malformed' }
      const isNext = stream.waiting.length === 0
      stream.push(reading.block)
      const misfit = faultOf(reading.block)
      if (misfit !== null) return { ok: false, reason: misfit }
      // Behind blocks that wait it waits as well; that it is in the document already does no harm.
      if (isNext) stream.shift()
      blocks.push(bytes)
    }
    return { ok: true, blocks }
  }
}

type Cutting =
  | { readonly ok: true; readonly updates: readonly Uint8Array[]; readonly isCut: boolean }
  | { readonly ok: false; readonly reason: string }

/** The same edits as updates that others take. */
function cut(edits: readonly Uint8Array[]): Cutting {
  const updates: Uint8Array[] = []
  for (const edit of edits) {
    const cutting = cutUpdate(edit)
    if (!cutting.ok) return cutting
    updates.push(...cutting.pieces)
  }
  return { ok: true, updates, isCut: updates.length > edits.length }
}

/** Updates in groups that fit into a block each. */
function grouped(updates: readonly Uint8Array[]): Uint8Array[][] {
  const groups: Uint8Array[][] = []
  let size = Number.POSITIVE_INFINITY
  for (const update of updates) {
    // A length takes up to five bytes.
    size += update.byteLength + 5
    if (size > UPDATE_LIMITS.maxBytes || (groups.at(-1)?.length ?? 0) >= BLOCK_LIMITS.maxUpdates) {
      groups.push([])
      size = update.byteLength + 5
    }
    groups.at(-1)?.push(update)
  }
  return groups
}
