import type Corestore from 'corestore'

/** Below all keys, and above them. */
const ALL = { gte: new Uint8Array(), lt: new Uint8Array([255, 255]) }

/**
 * Reads every entry of a store, also entries that are not blocks of a core: trees, heads, indexes. The engine checks
 * each against its sum.
 * @throws the engine's error for a damaged one
 */
export async function readEntries(store: Corestore): Promise<void> {
  await store.ready()
  const entries = store.storage.db.iterator(ALL)
  for await (const _ of entries);
}
