import { canonicalJson, isRecord } from '../../kit/json.js'
import { sizeOf } from '../../kit/size.js'
import { TransientMap } from '../../kit/transient.js'
import { inputOf, partsOf, RESULT } from './content.js'
import { type Artifact, type Part, readArtifact } from './message.js'

/** Bytes of the artifacts of one run that are remembered as a whole. */
export const MAX_TOLD_BYTES = 524_288

/** The artifacts that an agent told of in one run, put together of their pieces; nothing of them when they are too large. */
export class ToldArtifacts {
  #artifacts = new TransientMap<string, { readonly about: Artifact; parts: Part[] }>()
  #bytes = 0

  /** Takes a piece as it is told. */
  take(piece: Artifact, append: boolean): void {
    this.#bytes += sizeOf(piece)
    if (this.#bytes > MAX_TOLD_BYTES) {
      this.#artifacts = new TransientMap()
      return
    }
    const known = append ? this.#artifacts.get(piece.artifactId) : undefined
    if (known === undefined) this.#artifacts.set(piece.artifactId, { about: piece, parts: [...piece.parts] })
    else known.parts.push(...piece.parts)
  }

  /** One that is told by the name of the result is replaced by it. Does a result say no more than what was told: the one artifact as a value, or `{"artifacts": [...]}` with all of them? */
  covers(result: unknown): boolean {
    const told = [...this.#artifacts.values()]
    const [only, ...more] = told
    if (only === undefined || result === null || result === undefined || this.#artifacts.has(RESULT)) return false
    if (more.length === 0 && isSame(valueOf(only.parts), valueOf(partsOf(result)))) return true
    if (!isRecord(result) || Object.keys(result).length !== 1 || !Array.isArray(result['artifacts'])) return false
    const named = (result['artifacts'] as unknown[]).map((one) => readArtifact(one))
    return (
      named.length === told.length &&
      named.every(
        (one, at) =>
          one.ok && one.value.artifactId === told[at]?.about.artifactId && isSame(valueOf(one.value.parts), valueOf(told[at].parts))
      )
    )
  }
}

/** Content as a value, however its text is cut: a text, one value of data, or what an agent would be given. */
function valueOf(parts: readonly Part[]): unknown {
  if (parts.every(({ text }) => text !== undefined)) return parts.map(({ text }) => text).join('')
  const [only] = parts
  return parts.length === 1 && only?.data !== undefined ? only.data : inputOf(parts)
}

function isSame(one: unknown, other: unknown): boolean {
  return canonicalJson(one) === canonicalJson(other)
}
