import type Corestore from 'corestore'

/**
 * Closes a store. What it holds in memory is written into its tables before, whose every block has a checksum: a log of the engine
 * that is damaged later loses nothing then.
 */
export async function closeStore(store: Corestore): Promise<void> {
  // A full disk takes no table; the log has it all the same.
  if (store.opened && !store.closed) await store.storage.db.flush().catch(() => {})
  try {
    await store.close()
  } finally {
    // One that could not be read when it was opened keeps its files, and their lock, for itself.
    await store.storage.close()
  }
}
