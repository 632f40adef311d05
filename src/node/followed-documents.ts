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
  /** This node's own stream of a document that is open; null when it has none, undefined when it is not open. */
  ownOf(name: string): StreamKey | null | undefined
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

  constructor(parts: FollowedDocumentsParts) {
    this.#parts = parts
  }

  /** Reads what is stored. */
  async start(): Promise<void> {
    this.#stored = (await this.#parts.store.read<Stored>(STORED)) ?? this.#stored
  }

  /** Is what is written in it kept here? */
  has(name: string): boolean {
    return !this.#stored.forgotten.includes(name)
  }

  /** Follows it again. */
  add(name: string): Promise<void> {
    return this.#store({ forgotten: this.#without(name) })
  }

  /** Follows it no longer. */
  forget(name: string): Promise<void> {
    return this.#store({ forgotten: [...this.#without(name), name] })
  }

  /** The streams to be here, those of open documents first. */
  streams(view: MembershipView): FollowedStream[] {
    const { log, self, ownOf, snapshotsOf } = this.#parts
    const followed = new Map<StreamKey, FollowedStream>()
    const isOpen = ({ name }: { readonly name: string }): number => Number(ownOf(name) !== undefined)
    for (const record of [...view.documents.values()].sort((a, b) => isOpen(b) - isOpen(a))) {
      if (!this.has(record.name) || !memberAccess(view, record, self).maySee) continue
      const own = ownOf(record.name) ?? null
      const streams = [...snapshotsOf(record), ...record.streams.map(({ coreKey }) => coreKey), ...(own === null ? [] : [own])]
      const mayHave = (peer: NodeId): boolean => memberAccess(log.view(), record, peer).maySee
      for (const stream of streams) if (followed.size < MAX_FOLLOWED) followed.set(stream, { stream, mayHave })
    }
    return [...followed.values()]
  }

  #without(name: string): string[] {
    return this.#stored.forgotten.filter((one) => one !== name)
  }

  async #store(stored: Stored): Promise<void> {
    await this.#parts.store.write(STORED, stored)
    this.#stored = stored
  }
}
