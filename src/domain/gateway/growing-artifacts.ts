import { TransientMap } from '../../kit/transient.js'
import { RESULT } from './content.js'
import type { Artifact, Part } from './message.js'

interface Growing {
  /** The artifact as its first piece describes it. */
  readonly about: Artifact
  /** A list of its own, once a piece has followed: thousands may, and each costs its own size. */
  parts: Part[] | null
}

/** Artifacts as they are put together of their pieces. Changed in place. */
export class GrowingArtifacts {
  readonly #all = new TransientMap<string, Growing>()
  readonly #isJoined: boolean

  /**
   * `isJoined`: the text of a result that came in pieces is one part, as of any other result. Default: yes; else parts
   * stay as they came.
   */
  constructor({ isJoined = true }: { readonly isJoined?: boolean } = {}) {
    this.#isJoined = isJoined
  }

  /** Adds the next piece, to the artifact of its id or in its place. */
  take(piece: Artifact, append: boolean): void {
    const known = append ? this.#all.get(piece.artifactId) : undefined
    if (known === undefined) this.#all.set(piece.artifactId, { about: piece, parts: null })
    else addParts((known.parts ??= [...known.about.parts]), piece.parts, this.#isJoined && piece.artifactId === RESULT)
  }

  /** The parts of one as they are now; null: there is none. */
  parts(id: string): readonly Part[] | null {
    const known = this.#all.get(id)
    return known === undefined ? null : (known.parts ?? known.about.parts)
  }

  /** All of them as they are now, in the order in which they came first. */
  all(): Artifact[] {
    return [...this.#all.values()].map(({ about, parts }) => (parts === null ? about : { ...about, parts: [...parts] }))
  }
}

function addParts(parts: Part[], more: readonly Part[], mayJoin: boolean): void {
  const [last, next] = [parts.at(-1), more[0]]
  const isJoined = mayJoin && last !== undefined && next !== undefined && isText(last) && isText(next)
  if (isJoined) parts[parts.length - 1] = { text: last.text + next.text }
  for (let at = isJoined ? 1 : 0; at < more.length; at++) {
    const part = more[at]
    if (part !== undefined) parts.push(part)
  }
}

function isText(part: Part): part is { readonly text: string } {
  return part.text !== undefined && Object.keys(part).length === 1
}
