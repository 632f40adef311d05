import type Corestore from 'corestore'
import type { StoreDatabase, StoreReading } from 'corestore'

/**
 * Has a store ask its database once in a turn for all that is read in that turn. The engine asks for each node of each tree by
 * itself, and each question goes to a thread and back: a stream of many small blocks comes no faster than these.
 */
export function joinReads(store: Pick<Corestore, 'storage'>): void {
  const { db } = store.storage
  joined(db, new JointReads(db))
}

function joined(db: StoreDatabase, reads: JointReads): StoreDatabase {
  const session = db.session.bind(db)
  db.session = (options) => {
    const made = session(options)
    // A snapshot is asked for itself: it shows what was.
    return made.snapshotted ? made : joined(made, reads)
  }
  db.read = () => reads
  return db
}

/** What is asked in this turn. Flushed when the turn is over, whoever asked. */
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
