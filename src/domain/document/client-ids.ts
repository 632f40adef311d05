import { keyFromText, utf8 } from '../../kit/ids.js'
import type { Hash } from '../../kit/sign.js'

/**
 * The key of one member's stream for one document, in z32: the key of its core. A member whose home was restored has a
 * new one, so that forgotten clocks are never used again.
 */
export type StreamKey = string

/** Sessions that one stream may have. */
export const MAX_SESSIONS = 4096

const DOMAIN = utf8('a2a-node/client-id/1\n')

/** One session of a stream's member: the number rises by one with each, from 0 on. */
interface ClientSession {
  readonly stream: StreamKey
  readonly number: number
}

/**
 * The Yjs clientID of a session: 53 bits of hash(prefix, key of the stream, number). Everyone can check its owner, and
 * no one can choose one. A number of JavaScript, and Yjs, hold 53 bits.
 */
export function clientIdOf({ stream, number }: ClientSession, hash: Hash): number {
  const digest = hash(DOMAIN, keyFromText(stream), Uint8Array.of(number >>> 8, number & 255))
  const id = digest.subarray(0, 7).reduce((value, byte, place) => (place === 0 ? byte & 31 : value * 256 + byte), 0)
  // Yjs and its bindings take 0 for none.
  return id === 0 ? 1 : id
}

/** Two streams of which a session has the same clientID. */
export interface ClientIdClash {
  readonly keeper: StreamKey
  /** The one with the larger key, and its session of that clientID. */
  readonly loser: StreamKey
  readonly session: number
}

interface Owner extends ClientSession {
  /** Its stream ended before it could open the session. */
  readonly isLost: boolean
}

/**
 * The owners of the clientIDs of a document. A stream owns those of its sessions. Of two streams with the same one, the
 * smaller key owns it, in any order of arrival. Chance does not cause that: a million sessions clash once in 20,000
 * documents. A search for a clashing key (some 2^44 hashes) ends one of the two streams.
 */
export class ClientIds {
  readonly #hash: Hash
  readonly #owners = new Map<number, Owner>()
  readonly #ended = new Set<StreamKey>()
  readonly #counts = new Map<StreamKey, number>()

  constructor(hash: Hash) {
    this.#hash = hash
  }

  /** How many sessions of a stream are known. */
  sessionsOf(stream: StreamKey): number {
    return this.#counts.get(stream) ?? 0
  }

  /** The owner of a clientID; null when no open session has it. */
  ownerOf(clientId: number): StreamKey | null {
    const owner = this.#owners.get(clientId)
    return owner === undefined || owner.isLost ? null : owner.stream
  }

  /** The same, or else the stream that ended before it opened that session. */
  onceOwnerOf(clientId: number): StreamKey | null {
    return this.#owners.get(clientId)?.stream ?? null
  }

  /**
   * Learns of a stream's sessions up to `count`, at most {@link MAX_SESSIONS}. Returns the first clash that this shows,
   * or null.
   */
  open(stream: StreamKey, count: number): ClientIdClash | null {
    let clash: ClientIdClash | null = null
    const until = Math.min(count, MAX_SESSIONS)
    for (let number = this.sessionsOf(stream); number < until; number++) {
      clash = this.#claim({ stream, number, isLost: false }) ?? clash
    }
    this.#counts.set(stream, Math.max(until, this.sessionsOf(stream)))
    return clash
  }

  /**
   * Computes the later clientIDs of an ended stream, for updates that were built on its uncounted blocks. Costs 4,096
   * hashes, once.
   */
  end(stream: StreamKey): void {
    if (this.#ended.has(stream)) return
    this.#ended.add(stream)
    for (let number = this.sessionsOf(stream); number < MAX_SESSIONS; number++)
      this.#claim({ stream, number, isLost: true })
  }

  #claim(session: Owner): ClientIdClash | null {
    const clientId = clientIdOf(session, this.#hash)
    const other = this.#owners.get(clientId)
    if (other === undefined || (other.isLost && !session.isLost) || other.stream === session.stream) {
      this.#owners.set(clientId, session)
      return null
    }
    if (session.isLost) return null
    const [keeper, loser] = other.stream < session.stream ? [other, session] : [session, other]
    this.#owners.set(clientId, keeper)
    return { keeper: keeper.stream, loser: loser.stream, session: loser.number }
  }
}
