import { sizeOf } from '../../kit/size.js'
import { artifactOf, resultArtifact, tokenOf } from './content.js'
import type { Artifact } from './message.js'
import { MAX_SENT_BYTES, SentArtifacts } from './sent-artifacts.js'

/** What the agent of one run has told on its way, so that its result need not be told twice. */
export class RunOutput {
  readonly #sent = new SentArtifacts()
  #bytes = 0
  /** The turn of its language model that was heard last, and what it said in it; empty once that is too long to be kept. */
  #model: { readonly turn: number; readonly text: string } | null = null

  /** Bytes of all that it reported, about. */
  get bytes(): number {
    return this.#bytes
  }

  /** The artifact, or the piece of one, that a report tells of; null: it is none. `mayBePiece`: is what a language model says recorded still? */
  take(report: unknown, mayBePiece: boolean): ReturnType<typeof artifactOf> {
    this.#bytes += sizeOf(report)
    return artifactOf(report) ?? (mayBePiece ? this.#pieceOf(report) : null)
  }

  /** An artifact was told, or a piece of one. */
  sent(artifact: Artifact, append: boolean): void {
    this.#sent.take(artifact, append)
  }

  /** Did a language model say a result piece by piece? Then nothing is missing but that it was all. */
  isSpoken(result: unknown): boolean {
    return this.#model?.text === result
  }

  /** Does a result say no more than the artifacts that were told? Of a turn behind the first one it has to name them all. */
  isSent(result: unknown, isFirstTurn: boolean): boolean {
    return isFirstTurn ? this.#sent.covers(result) : this.#sent.isAll(result)
  }

  /** What a language model says is the result in pieces. */
  #pieceOf(report: unknown): ReturnType<typeof artifactOf> {
    const status = tokenOf(report)
    if (status === null || status.token === '') return null
    const { token, turn } = status
    const append = this.#model?.turn === turn
    const text = append ? (this.#model?.text ?? '') + token : token
    this.#model = { turn, text: text.length > MAX_SENT_BYTES ? '' : text }
    return { artifact: resultArtifact(token), append, lastChunk: false }
  }
}
