import { sizeOf } from '../kit/size.js'
import type { Part } from '../domain/gateway/message.js'
import type { GatewayInput } from '../domain/gateway/task.js'
import type { OutputRules, OutputViolation } from '../ports/gateway.js'

/** Bytes that an agent may say while all of it is held back, files included. */
export const MAX_HELD_BYTES = 16_777_216
type Said = Exclude<GatewayInput, { readonly type: 'message' }>

/**
 * What an agent says in one run, judged before it is on record: nothing that is not there can be read, followed or sent. Where
 * patterns are looked for all of it waits for the end: only then is a pattern known to be absent.
 */
export class OutputWatch {
  readonly #rules: OutputRules
  #held: Said[] = []
  #heldBytes = 0
  #length = 0

  constructor(rules: OutputRules) {
    this.#rules = rules
  }

  /** An agent says something on its way: what may be recorded now, or why nothing more may. */
  take(said: Said): readonly Said[] | OutputViolation {
    const { holdsBack } = this.#rules
    this.#length += this.#rules.lengthOf(counted(said))
    const tooLong = this.#rules.tooLong(this.#length)
    if (tooLong !== null) return tooLong
    if (!holdsBack) return [said]
    this.#heldBytes += sizeOf(said)
    if (this.#heldBytes > MAX_HELD_BYTES) return { words: `what the agent gave has more than ${MAX_HELD_BYTES} bytes`, details: {} }
    this.#held.push(said)
    return []
  }

  /** Its last word: all that was held back and may be recorded now, or why none of it may. */
  end(last: unknown): readonly Said[] | OutputViolation {
    const held = this.#held.splice(0)
    // How long it is was counted as it came.
    const broken =
      this.#rules.violation(last) ?? (held.length === 0 ? null : this.#rules.denied([...joinedTexts(held), ...held.map(plain)]))
    return broken ?? held
  }
}

/** Was something refused? */
export function isViolation(given: readonly Said[] | OutputViolation): given is OutputViolation {
  return !Array.isArray(given)
}

/** What is told piece by piece is read as one text. */
function joinedTexts(held: readonly Said[]): string[] {
  const texts = new Map<string, string>()
  for (const said of held) {
    const [place, parts] =
      said.type === 'artifact' ? [`artifact ${said.artifact.artifactId}`, said.artifact.parts] : ['words', partsOf(said)]
    const text = parts.map((part) => part.text ?? '').join('')
    texts.set(place, (texts.get(place) ?? '') + text)
  }
  return [...texts.values()]
}

/** What counts of its length: not what stands around each piece, or a text in many pieces would be many times as long. */
function counted(said: Said): unknown {
  const texts = partsOf(said).map(({ raw: _raw, ...rest }) => rest.text ?? rest)
  if (said.type !== 'artifact') return texts
  const { artifactId: _id, parts: _parts, ...about } = said.artifact
  return [texts, about]
}

/** Without the bytes of files: nothing is looked for in those. */
function plain(said: Said): unknown {
  const parts = partsOf(said).map(({ raw: _raw, ...rest }) => rest)
  return said.type === 'artifact' ? { ...said.artifact, parts } : parts
}

function partsOf(said: Said): readonly Part[] {
  return said.type === 'artifact' ? said.artifact.parts : (said.message?.parts ?? [])
}
