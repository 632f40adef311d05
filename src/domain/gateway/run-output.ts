import { sizeOf } from '../../kit/size.js'
import { artifactOf, resultArtifact, tokenOf } from './content.js'
import type { Artifact } from './message.js'
import { MAX_SENT_BYTES, SentArtifacts } from './sent-artifacts.js'

/** Output that the agent of one run has reported so far, so that its result need not repeat it. */
export class RunOutput {
  readonly #sent = new SentArtifacts()
  #bytes = 0
  /** The last turn of its language model, and its text so far; empty once the text is too long to keep. */
  #model: { readonly turn: number; readonly text: string } | null = null

  /** Bytes of all that it reported, about. */
  get bytes(): number {
    return this.#bytes
  }

  /**
   * The artifact, or the piece of one, in a report; null: none. `mayBePiece`: is output of a language model still
   * recorded?
   */
  take(report: unknown, mayBePiece: boolean): ReturnType<typeof artifactOf> {
    this.#bytes += sizeOf(report)
    return artifactOf(report) ?? (mayBePiece ? this.#pieceOf(report) : null)
  }

  /** An artifact was reported, or a piece of one. */
  sent(artifact: Artifact, append: boolean): void {
    this.#sent.take(artifact, append)
  }

  /** Did a language model report the result piece by piece? Then only its end is missing. */
  isSpoken(result: unknown): boolean {
    return this.#model?.text === result
  }

  /** Does a result repeat only reported artifacts? In a turn after the first one it must name them all. */
  isSent(result: unknown, isFirstTurn: boolean): boolean {
    return isFirstTurn ? this.#sent.covers(result) : this.#sent.isAll(result)
  }

  /** The output of a language model is the result in pieces. */
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
