import { isRecord, writtenJson } from '../../kit/json.js'
import { sizeOf } from '../../kit/size.js'
import { inputOf, partsOf, RESULT } from './content.js'
import { GrowingArtifacts } from './growing-artifacts.js'
import { type Artifact, type Part, readArtifact } from './message.js'

/** Bytes of the artifacts of one run that are remembered as a whole. */
export const MAX_SENT_BYTES = 524_288

/** The artifacts that an agent reported in one run, put together from their pieces; none when they are too large. */
export class SentArtifacts {
  /** null: too large. */
  #artifacts: GrowingArtifacts | null = new GrowingArtifacts()
  #bytes = 0

  /** Adds a sent piece. */
  take(piece: Artifact, append: boolean): void {
    this.#bytes += sizeOf(piece)
    if (this.#bytes > MAX_SENT_BYTES) this.#artifacts = null
    else this.#artifacts?.take(piece, append)
  }

  /**
   * Does a result only repeat the sent artifacts: the one as a value, or `{"artifacts": [...]}` with all of them? A
   * value for a sent artifact named `result` does not: it replaces that.
   */
  covers(result: unknown): boolean {
    const [only, ...more] = this.#artifacts?.all() ?? []
    if (only === undefined || result === null || result === undefined) return false
    if (more.length === 0 && only.artifactId !== RESULT && isSame(valueOf(only.parts), valueOf(partsOf(result))))
      return true
    return this.isAll(result)
  }

  /** Is a result `{"artifacts": [...]}` with exactly the sent artifacts? */
  isAll(result: unknown): boolean {
    const sent = this.#artifacts?.all() ?? []
    if (!isRecord(result) || Object.keys(result).length !== 1 || !Array.isArray(result['artifacts'])) return false
    const named = (result['artifacts'] as unknown[]).map((one) => readArtifact(one))
    return (
      named.length === sent.length &&
      named.every(
        (one, at) =>
          one.ok &&
          one.value.artifactId === sent[at]?.artifactId &&
          isSame(valueOf(one.value.parts), valueOf(sent[at].parts))
      )
    )
  }
}

/** Content as a value, however its text is cut: a text, one value of data, or the input for an agent. */
function valueOf(parts: readonly Part[]): unknown {
  if (parts.every(({ text }) => text !== undefined)) return parts.map(({ text }) => text).join('')
  const [only] = parts
  return parts.length === 1 && only?.data !== undefined ? only.data : inputOf(parts)
}

function isSame(one: unknown, other: unknown): boolean {
  return writtenJson(one) === writtenJson(other)
}
