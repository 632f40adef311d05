import type Corestore from 'corestore'
import type Hypercore from 'hypercore'
import { keyToText } from '../../../kit/ids.js'
import type { StreamKey } from '../../../domain/document/client-ids.js'
import { beginningOf, contiguousLength } from '../cores/core-beginning.js'
import { readEntries } from '../cores/store-scan.js'

/** Contents of a store of documents. */
export interface StreamFacts {
  /** Blocks that could be read. */
  readonly blocks: number
  /**
   * Length of each stream up to its first hole, counted from its first block of all. Infinity for a forked one: nothing
   * of it counts.
   */
  readonly lengths: ReadonlyMap<StreamKey, number>
}

/** Reads every block of the streams of a store. @throws the store's error when one cannot be read */
export async function readStreams(store: Corestore): Promise<StreamFacts> {
  await readEntries(store)
  const lengths = new Map<StreamKey, number>()
  let blocks = 0
  for await (const discoveryKey of store.list()) {
    const core = store.get({ discoveryKey, writable: false })
    try {
      await core.ready()
      const { from, length } = await readCore(core)
      blocks += length - from
      lengths.set(keyToText(core.key), core.core.header.frozen ? Number.POSITIVE_INFINITY : length)
    } finally {
      await core.close()
    }
  }
  return { blocks, lengths }
}

async function readCore(core: Hypercore): Promise<{ readonly from: number; readonly length: number }> {
  const beginning = await beginningOf(core)
  const from = beginning.blocks
  const length = Math.max(from, contiguousLength(core, beginning))
  for (let at = from; at < length; at++) if ((await core.get(at, { wait: false })) === null) return { from, length: at }
  return { from, length }
}
