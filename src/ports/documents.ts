import type { NodeError } from '../kit/errors.js'
import type { NodeId } from '../kit/ids.js'
import type { StreamKey } from '../domain/document/client-ids.js'

/** The stored part of a stream. */
export interface StreamSize {
  /** Blocks that are here without a hole, from where it begins on; counted from the first one of all. */
  readonly blocks: number
  /** Blocks before it begins here. */
  readonly from: number
  /** Bytes of all signed blocks from there on; 0 while unknown. */
  readonly bytes: number
}

/** How long a stream is, as far as that is known here. */
export interface StreamExtent {
  /** Blocks that its writer signed, whether they are here or not; 0: not known. */
  readonly blocks: number
  /** Linked members that announced their length of it. */
  readonly announced: ReadonlySet<NodeId>
  /** Does one of them claim to have more? The claim is not verified. */
  readonly isMore: boolean
  /**
   * Blocks fetched from peers since it is followed: in no order, so the length without a hole may stay the same
   * meanwhile.
   */
  readonly fetched: number
  /** A peer gave a block of it that is larger than any of a document: nothing more of it is fetched. */
  readonly isOversized: boolean
}

/** An own stream as it is here. */
export interface OwnStreamState {
  readonly stream: StreamKey
  readonly blocks: number
  /** No: others have more of it, or some of its blocks are gone. */
  readonly isWhole: boolean
}

/** A stream to be here. */
export interface FollowedStream {
  readonly stream: StreamKey
  /** May a peer have it? Asked again at each call of {@link DocumentStreams.follow}, and for each new link. */
  mayHave(peer: NodeId): boolean
  /**
   * May this number of bytes of it be stored? Asked with the bytes that its writer signed: when it is opened, when it
   * grows, and at each call of {@link DocumentStreams.follow}. After a no it is neither fetched nor given to others
   * until the next yes. Absent: yes.
   */
  mayHold?(bytes: number): boolean
  /**
   * Counts bytes of it that came from others (0: none). Gives the milliseconds after which more of it may be requested.
   * Absent: 0.
   */
  fetched?(bytes: number): number
}

/** Callbacks for the owner of the streams. Handlers must not throw. */
export interface StreamHandlers {
  /** More of a stream is here: of another member, or an own one once it was appended. */
  onBlocks(stream: StreamKey): void
  /** Blocks of it came from another node. This node fetches its own blocks only after its store was put back. */
  onFetched(stream: StreamKey): void
  /**
   * Its writer signed two branches of it. It takes nothing more, now and after a restart; reported again when it is
   * followed again.
   */
  onForked(stream: StreamKey): void
}

/**
 * Streams of documents: one signed append-only core for each document and member. Nothing is opened before the first
 * call that needs it. A peer never gets blocks that it may not have.
 */
export interface DocumentStreams {
  /**
   * Why the store cannot be read any more, STORE_DAMAGED; null: it was read so far. Only a repair of the stopped node
   * ends it.
   */
  readonly fault: NodeError | null
  start(handlers: StreamHandlers): void
  /**
   * Sets the streams to keep, including own ones. A stream that is no longer listed stays on disk until
   * {@link DocumentStreams.remove}.
   */
  follow(streams: readonly FollowedStream[]): void
  /** This node's own stream of a document, by its id; made when there is none. */
  own(document: string): Promise<OwnStreamState>
  /**
   * Appends to an own stream; resolves when it survives this process, to how many blocks the stream has then.
   * @throws NodeError OVERLOADED when the stream is full, CONFLICT when others have more of it than is here
   */
  append(stream: StreamKey, blocks: readonly Uint8Array[]): Promise<number>
  /**
   * Drops the first `blocks` blocks of a stream here and never fetches them again. The start never moves back. Ignored
   * for a stream that is not followed.
   * @throws NodeError CONFLICT when it cannot be opened
   */
  begin(stream: StreamKey, blocks: number): Promise<void>
  /**
   * Local blocks from `from` on, in order and without a gap, at most `limit`. None before the local start of a stream,
   * or of a stream that is not followed.
   * @throws NodeError CONFLICT when the stream cannot be opened, STORE_DAMAGED when the store of documents cannot
   */
  read(stream: StreamKey, from: number, limit: number): Promise<readonly Uint8Array[]>
  /** Nothing of a stream that is not followed. */
  size(stream: StreamKey): StreamSize
  /** How long it is said to be; nothing of a stream that is not followed. */
  extent(stream: StreamKey): StreamExtent
  /**
   * Signed length of a stream in blocks, local or not; also of a stream that is not followed.
   * @throws NodeError CONFLICT when it cannot be opened
   */
  length(stream: StreamKey): Promise<number>
  /** The last bytes given to {@link DocumentStreams.keep} for a document id; null: none. */
  kept(document: string): Promise<Uint8Array | null>
  /** Keeps something of a document beside its streams, for this node alone; null: nothing any more. */
  keep(document: string, bytes: Uint8Array | null): Promise<void>
  /** Resolves when the local blocks survive a loss of power, too. */
  flush(): Promise<void>
  /** Removes the local blocks of streams that are no longer followed. */
  remove(streams: readonly StreamKey[]): Promise<void>
  close(): Promise<void>
}
