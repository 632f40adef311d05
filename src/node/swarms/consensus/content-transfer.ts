import { backoffMs } from '../../../kit/backoff.js'
import { concatBytes, fromBase64, toBase64 } from '../../../kit/bytes.js'
import type { Clock } from '../../../kit/clock.js'
import type { NodeId } from '../../../kit/ids.js'
import {
  MAX_CONTENT_BYTES,
  MAX_PIECES,
  PIECE_BYTES,
  type ParticipantMessageOf
} from '../../../domain/swarm/participant-message.js'
import type { VoteStore } from './vote-store.js'

/** Bytes kept of contents that were not requested; further ones are requested again. */
const MAX_PUSHED_BYTES = 8 * 1024 * 1024
/** Bytes of pieces per message. */
const MESSAGE_BYTES = 48 * 1024
/** Milliseconds until a missing content is requested from the next node; each wait is twice the one before. */
const AGAIN_MS = 1000
/** Longest such wait, in milliseconds. */
const MAX_AGAIN_MS = 32_000

/** A content, named by the index of its record and its digest. */
export interface ContentName {
  readonly index: number
  readonly digest: string
}

/** A piece of a content in a message. */
export type Piece = ParticipantMessageOf<'pieces'>['pieces'][number]

interface WantedContent extends ContentName {
  /** Nodes to ask, one after the other. */
  readonly sources: readonly NodeId[]
  tries: number
  /** The node asked last: no other node's pieces count. */
  asked: NodeId | null
  askedAt: number
  /** The received part, and its bytes. */
  chunks: Uint8Array[]
  at: number
  /** Its announced bytes. */
  bytes: number
}

/** Dependencies of a content transfer. */
export interface ContentTransferDeps {
  readonly clock: Pick<Clock, 'monotonic'>
  readonly swarmVotes: Pick<VoteStore, 'digest'>
  /** Sends to another participant. Never throws. */
  tell(to: NodeId, message: { readonly name: 'swarm'; readonly body: ParticipantMessageOf<'want'> }): void
}

/** Contents of one swarm that are here but not durable yet, and contents being fetched in pieces. */
export class ContentTransfer {
  readonly #deps: ContentTransferDeps
  readonly #swarm: string
  readonly #here = new Map<string, { readonly name: ContentName; readonly content: Uint8Array }>()
  readonly #wanted = new Map<string, WantedContent>()
  #bytes = 0
  #moved = 0

  constructor(deps: ContentTransferDeps, swarm: string) {
    this.#deps = deps
    this.#swarm = swarm
  }

  /** Increases with every piece received. */
  get moved(): number {
    return this.#moved
  }

  /** A content that is here; undefined when it is not. */
  get(name: ContentName): Uint8Array | undefined {
    return this.#here.get(keyOf(name))?.content
  }

  /** Adds a content. */
  put(name: ContentName, content: Uint8Array): void {
    const key = keyOf(name)
    this.#wanted.delete(key)
    if (this.#here.has(key)) return
    this.#here.set(key, { name, content })
    this.#bytes += content.byteLength
  }

  /** Removes a content that is durable or not needed. */
  drop(name: ContentName): void {
    const key = keyOf(name)
    this.#bytes -= this.#here.get(key)?.content.byteLength ?? 0
    this.#here.delete(key)
    this.#wanted.delete(key)
  }

  /** Removes all other contents, and stops their transfers. */
  keep(isOfUse: (name: ContentName) => boolean): void {
    const names = [...this.#here.values()].map(({ name }) => name)
    for (const name of [...names, ...this.#wanted.values()]) if (!isOfUse(name)) this.drop(name)
  }

  /** Fetches contents from the first of some nodes that has them. */
  want(names: readonly ContentName[], sources: readonly NodeId[]): void {
    const fresh = names.filter((name) => !this.#here.has(keyOf(name)) && !this.#wanted.has(keyOf(name)))
    for (const name of fresh) {
      const none = { tries: 0, asked: null, askedAt: Number.NEGATIVE_INFINITY, chunks: [], at: 0, bytes: 0 }
      this.#wanted.set(keyOf(name), { ...name, sources, ...none })
    }
    if (fresh.length > 0) this.tick()
  }

  /** Asks again for missing contents. */
  tick(): void {
    const now = this.#deps.clock.monotonic()
    const due = [...this.#wanted.values()].filter(
      ({ askedAt, tries }) => now - askedAt >= backoffMs({ baseMs: AGAIN_MS, maxMs: MAX_AGAIN_MS }, tries - 1)
    )
    this.#ask(due.slice(0, 4 * MAX_PIECES))
  }

  #ask(due: readonly WantedContent[]): void {
    const byNode = new Map<NodeId, WantedContent[]>()
    for (const one of due) {
      const source = one.sources[one.tries++ % Math.max(1, one.sources.length)]
      if (source === undefined) continue
      // An announced size may be wrong: a transfer from another node begins anew.
      if (one.asked !== source) this.#anew(one)
      one.asked = source
      one.askedAt = this.#deps.clock.monotonic()
      byNode.set(source, [...(byNode.get(source) ?? []), one])
    }
    for (const [node, wants] of byNode) {
      for (let from = 0; from < wants.length; from += MAX_PIECES) this.#send(node, wants.slice(from, from + MAX_PIECES))
    }
  }

  #send(to: NodeId, wanted: readonly WantedContent[]): void {
    const wants = wanted.map(({ index, digest, at }) => ({ index, digest, at }))
    this.#deps.tell(to, { name: 'swarm', body: { kind: 'want', swarm: this.#swarm, wants } })
  }

  /**
   * Takes requested pieces, and with `isWelcome` also whole contents that were not requested. True: a wanted content is
   * complete.
   */
  take(from: NodeId, pieces: readonly Piece[], isWelcome: boolean): boolean {
    let isWhole = false
    for (const piece of pieces) {
      const wanted = this.#wanted.get(keyOf(piece))
      const data = fromBase64(piece.data)
      if (data === null || piece.bytes > MAX_CONTENT_BYTES) continue
      if (wanted?.asked === from) isWhole = this.#grow(wanted, piece, data) || isWhole
      else if (isWelcome && data.byteLength === piece.bytes && this.#bytes + piece.bytes <= MAX_PUSHED_BYTES) {
        if (this.#deps.swarmVotes.digest(data) !== piece.digest) continue
        this.put(piece, data)
        isWhole ||= wanted !== undefined
      }
    }
    return isWhole
  }

  #grow(wanted: WantedContent, piece: Piece, data: Uint8Array): boolean {
    const at = wanted.at + data.byteLength
    if (piece.at !== wanted.at || at > piece.bytes || (data.byteLength === 0 && piece.bytes > 0)) return false
    if (piece.at > 0 && piece.bytes !== wanted.bytes) return this.#anew(wanted)
    wanted.chunks.push(data)
    this.#moved++
    wanted.at = at
    wanted.bytes = piece.bytes
    if (at < piece.bytes) {
      wanted.askedAt = this.#deps.clock.monotonic()
      if (wanted.asked !== null) this.#send(wanted.asked, [wanted])
      return false
    }
    // Memory is used for received pieces, never for the announced size.
    const content = concatBytes(wanted.chunks)
    if (this.#deps.swarmVotes.digest(content) !== wanted.digest) return this.#anew(wanted)
    this.put(wanted, content)
    return true
  }

  /** Begins a transfer anew. */
  #anew(wanted: WantedContent): false {
    Object.assign(wanted, { chunks: [], at: 0 })
    return false
  }
}

/** The piece of a content from a byte offset on. */
export function pieceOf({ index, digest }: ContentName, content: Uint8Array, at: number): Piece {
  return { index, digest, at, bytes: content.byteLength, data: toBase64(content.subarray(at, at + PIECE_BYTES)) }
}

/** Packs pieces into as few messages as possible. */
export function piecesMessages(swarm: string, pieces: readonly Piece[]): ParticipantMessageOf<'pieces'>[] {
  const messages: Piece[][] = []
  let budget = 0
  for (const piece of pieces) {
    const last = messages.at(-1)
    if (last === undefined || budget < piece.data.length || last.length >= MAX_PIECES) {
      messages.push([piece])
      budget = MESSAGE_BYTES - piece.data.length
    } else {
      last.push(piece)
      budget -= piece.data.length
    }
  }
  return messages.map((one) => ({ kind: 'pieces', swarm, pieces: one }))
}

function keyOf({ index, digest }: ContentName): string {
  return `${index} ${digest}`
}
