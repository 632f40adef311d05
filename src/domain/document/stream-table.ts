import type { Hash } from '../../kit/sign.js'
import { ClientIds, type StreamKey } from './client-ids.js'
import type { SnapshotHead } from './snapshot.js'
import { type CheckedBlock, DocumentStream, type StreamEnd, type StreamPast } from './stream.js'
import type { UpdateContents } from './update/update.js'

/** Streams that one document may have. */
export const MAX_STREAMS = 4096
/** Reason for the end of a stream that opened a session with another stream's clientID. */
export const CLASH = 'its clientID is that of another'

/** The streams of one document, and the owners of clientIDs. */
export class StreamTable {
  readonly ids: ClientIds
  readonly #streams = new Map<StreamKey, DocumentStream>()

  constructor(hash: Hash) {
    this.ids = new ClientIds(hash)
  }

  /** How many there are. */
  get size(): number {
    return this.#streams.size
  }

  /** All of them, in the order of their first mention. */
  [Symbol.iterator](): Iterator<DocumentStream> {
    return this.#streams.values()
  }

  /** The stream of a key, added if it is new; null when there are {@link MAX_STREAMS}. */
  of(key: StreamKey): DocumentStream | null {
    const known = this.#streams.get(key)
    if (known !== undefined) return known
    if (this.#streams.size >= MAX_STREAMS) return null
    const stream = new DocumentStream(key, this.ids)
    this.#streams.set(key, stream)
    return stream
  }

  /** Number of applied blocks of each stream that has any. */
  lengths(): Record<StreamKey, number> {
    const lengths = [...this].map(({ key, applied }) => [key, applied] as const)
    return Object.fromEntries(lengths.filter(([, applied]) => applied > 0))
  }

  /** Streams that ended. */
  ends(): ReadonlyMap<StreamKey, StreamEnd> {
    return new Map([...this].flatMap(({ key, end }) => (end === null ? [] : [[key, end] as const])))
  }

  /**
   * Effects of the streams on the document, in the order of their keys. `clockOf`: the clock of a clientID in the
   * document.
   */
  pasts(
    clockOf: (client: number) => number
  ): { readonly key: StreamKey; readonly past: StreamPast; readonly end: StreamEnd | null }[] {
    const pasts = [...this].map((stream) => ({ key: stream.key, past: stream.past(clockOf), end: stream.end }))
    return pasts.sort((a, b) => (a.key < b.key ? -1 : 1))
  }

  /** Begins with the streams of a snapshot. `isInForce`: all that it holds counts for good. */
  restore(streams: SnapshotHead['streams'], isInForce: boolean): void {
    for (const { key, opened } of streams) this.ids.open(key, opened.length)
    for (const past of streams) {
      const stream = new DocumentStream(past.key, this.ids, { past, floor: isInForce ? past.length : 0 })
      // A reader of further blocks finds an end again; an end by an access list may be lifted.
      stream.end = isInForce ? null : past.end
      this.#streams.set(past.key, stream)
    }
  }

  /**
   * Learns of sessions of a stream. Gives the stream that never had a session of these, and where it ends; null for no
   * clash.
   */
  open(key: StreamKey, count: number): { readonly stream: DocumentStream; readonly end: StreamEnd } | null {
    const clash = this.ids.open(key, count)
    // The stream with the larger key never had that session; when it came first the session is taken back.
    const stream = clash === null ? null : this.of(clash.loser)
    return clash === null || stream === null
      ? null
      : { stream, end: { at: stream.openedAt(clash.session), reason: CLASH } }
  }

  /** The stream that owns a clientID, or would own it had it not ended; null for none. */
  onceOwnerOf(client: number): StreamKey | null {
    if (this.ids.onceOwnerOf(client) === null) for (const { key, end } of this) if (end !== null) this.ids.end(key)
    return this.ids.onceOwnerOf(client)
  }

  /** The stream of a key; undefined when it is unknown. */
  find(key: StreamKey | null): DocumentStream | undefined {
    return this.#streams.get(key ?? '')
  }

  /** Is an update of a block reversed? See {@link isReversed}. */
  hasReversed({ updates }: CheckedBlock): boolean {
    return updates.some(({ contents }) => this.isReversed(contents))
  }

  /** Is the right one of a crossing of an update before the left one? See {@link DocumentStream.isReversed}. */
  isReversed({ crossings, breaks, writes }: UpdateContents): boolean {
    return crossings.some((crossing) => {
      const stream = this.find(this.ids.ownerOf(crossing.client))
      return stream?.isReversed(crossing, crossing.client === writes?.client ? breaks : []) === true
    })
  }
}
