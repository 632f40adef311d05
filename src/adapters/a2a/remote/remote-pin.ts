import type { Kept, Remembered } from '../../../domain/pinning/pinned.js'
import { isRecord } from '../../../kit/json.js'
import type { NodeStore } from '../../../ports/storage.js'
import { cardHash, keptCard, type RemoteCard } from './remote-card.js'

/** What is pinned of a remote agent. */
export interface PinnedCard {
  readonly card: RemoteCard
}

/** Keeps the accepted card of one remote agent in the home: what it offers when it is offline, and what its next card is compared with. */
export class RemotePin {
  readonly #store: NodeStore
  readonly #name: string

  constructor(agent: string, store: NodeStore) {
    this.#store = store
    this.#name = `a2a-${agent}`
  }

  /** Reads it, by the same bounds as what is fetched. Never rejects: what cannot be read is lost. */
  async read(): Promise<Remembered<PinnedCard>> {
    try {
      const value = await this.#store.read<unknown>(this.#name)
      if (value === null) return { kind: 'none' }
      if (!isRecord(value)) return { kind: 'lost' }
      const { by, hash } = value
      const card = keptCard(value['card'])
      const isKept = card !== null && cardHash(card) === hash && (by === 'config' || by === 'first-sight' || by === 'accepted')
      return isKept ? { kind: 'kept', accepted: { card, by } } : { kind: 'lost' }
    } catch {
      return { kind: 'lost' }
    }
  }

  /** @throws NodeError DISK_FULL, NO_PERMISSION */
  async write({ card, by }: Kept<PinnedCard>): Promise<void> {
    await this.#store.write(this.#name, { by, hash: cardHash(card), card })
  }
}
