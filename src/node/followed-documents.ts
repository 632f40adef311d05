import type { NodeId } from '../kit/ids.js'
import type { StreamKey } from '../domain/document/client-ids.js'
import type { DocumentRecord, MembershipView } from '../domain/membership/types.js'
import type { FollowedStream } from '../ports/documents.js'
import type { MemberLog } from '../ports/mesh.js'
import type { NodeStore } from '../ports/storage.js'
import { memberAccess } from './document-access.js'

/** Name of the stored document of what is not followed. */
const STORED = 'documents'
/** Streams that a node follows; of further documents those that are open. */
const MAX_FOLLOWED = 896

/** What {@link FollowedDocuments} needs. */
export interface FollowedDocumentsParts {
  readonly store: NodeStore
  readonly log: Pick<MemberLog, 'view'>
  readonly self: NodeId
  /** Is a document open here? Its streams are followed before those of others. */
  isOpen(name: string): boolean
  /** This node's own streams of a document that the log may not name yet. */
  ownOf(name: string): readonly StreamKey[]
  /** Cores of its snapshots. */
  snapshotsOf(record: DocumentRecord): readonly StreamKey[]
}

/** Stored: names that are not followed. */
interface Stored {
  readonly forgotten: readonly string[]
}

/** Which documents a node follows: all that it may see, save those it was told to forget. */
export class FollowedDocuments {
  readonly #parts: FollowedDocumentsParts
  #stored: Stored = { forgotten: [] }
  /** Documents that are being removed here, until they are. */
  readonly #leaving = new Map<string, Promise<void>>()
  #writing: Promise<void> = Promise.resolve()

  constructor(parts: FollowedDocumentsParts) {
    this.#parts = parts
  }

  /** Reads what is stored. */
  async start(): Promise<void> {
    this.#stored = (await this.#parts.store.read<Stored>(STORED)) ?? this.#stored
  }

  /** Is what is written in it kept here? */
  has(name: string): boolean {
    return !this.#stored.forgotten.includes(name) && !this.#leaving.has(name)
  }

  /** Follows it again, once it is removed: of what is fetched while it goes some would be taken away again, and not be asked for. */
  async add(name: string): Promise<void> {
    await this.#leaving.get(name)
    await this.#store((forgotten) => forgotten.filter((one) => one !== name))
  }

  /** Follows it no longer, at once; `remove` then removes what is here of it. */
  forget(name: string, remove: () => Promise<void>): Promise<void> {
    const done = this.#store((forgotten) => [...forgotten.filter((one) => one !== name), name]).then(remove)
    const over = done.catch(() => {}).then(() => void (this.#leaving.get(name) === over && this.#leaving.delete(name)))
    this.#leaving.set(name, over)
    return done
  }

  /** The streams to be here, those of open documents first. */
  streams(view: MembershipView): FollowedStream[] {
    const { log, self, isOpen, ownOf, snapshotsOf } = this.#parts
    const followed = new Map<StreamKey, FollowedStream>()
    for (const record of [...view.documents.values()].sort((a, b) => Number(isOpen(b.name)) - Number(isOpen(a.name)))) {
      if (!this.has(record.name) || !memberAccess(view, record, self).maySee) continue
      const streams = [...snapshotsOf(record), ...record.streams.map(({ coreKey }) => coreKey), ...ownOf(record.name)]
      const mayHave = (peer: NodeId): boolean => memberAccess(log.view(), record, peer).maySee
      for (const stream of streams) if (followed.size < MAX_FOLLOWED) followed.set(stream, { stream, mayHave })
    }
    return [...followed.values()]
  }

  /** One change after the other, each of what the one before left. */
  #store(change: (forgotten: readonly string[]) => readonly string[]): Promise<void> {
    const done = this.#writing.then(async () => {
      const stored = { forgotten: change(this.#stored.forgotten) }
      await this.#parts.store.write(STORED, stored)
      this.#stored = stored
    })
    this.#writing = done.catch(() => {})
    return done
  }
}
