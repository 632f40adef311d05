import type Corestore from 'corestore'
import type { StoreDatabase, StoreReading } from 'corestore'

/**
 * Makes a store ask its database once a turn for all reads of that turn. The engine asks for each node of each tree on
 * its own, and each question goes to a thread and back. Their speed limits a stream of many small blocks.
 */
export function joinReads(store: Pick<Corestore, 'storage'>): void {
  const { db } = store.storage
  joined(db, new JointReads(db))
}

function joined(db: StoreDatabase, reads: JointReads): StoreDatabase {
  const session = db.session.bind(db)
  db.session = (options) => {
    const made = session(options)
    // A snapshot is read on its own: it shows an earlier state.
    return made.snapshotted ? made : joined(made, reads)
  }
  db.read = () => reads
  return db
}

/** The reads of one turn, flushed at its end. */
class JointReads implements StoreReading {
  readonly #read: StoreDatabase['read']
  #asked: StoreReading | null = null

  constructor(db: StoreDatabase) {
    this.#read = db.read.bind(db)
  }

  get(key: Uint8Array): Promise<Uint8Array | null> {
    this.#asked ??= this.#begin()
    return this.#asked.get(key)
  }

  tryFlush(): void {}

  destroy(): void {}

  #begin(): StoreReading {
    const asked = this.#read({ autoDestroy: true })
    setImmediate(() => {
      this.#asked = null
      asked.tryFlush()
    })
    return asked
  }
}
