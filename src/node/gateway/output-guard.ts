import { sizeOf } from '../../kit/size.js'
import { partsOf, questionOf, RESULT } from '../../domain/gateway/content.js'
import type { Part } from '../../domain/gateway/message.js'
import type { GatewayEvent, GatewayInput } from '../../domain/gateway/task.js'
import type { OutputRules, OutputViolation } from '../../ports/gateway.js'

/** Bytes that an agent may say while all of it is held back, files included. */
export const MAX_BUFFERED_BYTES = 16_777_216
/** Characters of the turns before that are read together with what is said now, the last of them. */
export const MAX_BEFORE = 65_536
type OutputEvent = Exclude<GatewayInput, { readonly type: 'message' }>

/**
 * What an agent says in one run, judged before it is on record: nothing that is not there can be read, followed or sent. Where
 * patterns are looked for all of it waits for the end: only then is a pattern known to be absent.
 */
export class OutputGuard {
  readonly #rules: OutputRules
  readonly #before: readonly GatewayEvent[]
  #buffered: OutputEvent[] = []
  #bufferedBytes = 0
  #length = 0

  /** `before`: what was told of the task in the turns before this one. */
  constructor(rules: OutputRules, before: readonly GatewayEvent[] = []) {
    this.#rules = rules
    this.#before = before
  }

  /** An agent says something on its way: what may be recorded now, or why nothing more may. */
  take(event: OutputEvent): readonly OutputEvent[] | OutputViolation {
    const { holdsBack } = this.#rules
    this.#length += this.#rules.lengthOf(counted(event))
    const tooLong = this.#rules.tooLong(this.#length)
    if (tooLong !== null) return tooLong
    if (!holdsBack) return [event]
    this.#bufferedBytes += sizeOf(event)
    if (this.#bufferedBytes > MAX_BUFFERED_BYTES)
      return { words: `what the agent gave has more than ${MAX_BUFFERED_BYTES} bytes`, details: {} }
    this.#buffered.push(event)
    return []
  }

  /** Its last word: all that was held back and may be recorded now, or why none of it may. */
  end(last: unknown): readonly OutputEvent[] | OutputViolation {
    const buffered = this.#buffered.splice(0)
    // How long it is was counted as it came.
    const broken = this.#rules.violation(last)
    if (broken !== null || !this.#rules.holdsBack) return broken ?? buffered
    const isAlone = buffered.length === 0 && this.#before.length === 0
    const telling = isAlone ? [] : joinedTexts(this.#before, buffered, questionOf(last)?.parts ?? partsOf(last ?? ''))
    return this.#rules.denied([...telling, ...buffered.map(plain)]) ?? buffered
  }
}

/** Was something refused? */
export function isViolation(given: readonly OutputEvent[] | OutputViolation): given is OutputViolation {
  return !Array.isArray(given)
}

/**
 * What is told piece by piece, in the ways in which a client may put it together: all in the order in which it came, without and with
 * line breaks, all words, each artifact as it is and as it was before it was replaced, and what is left of all artifacts.
 */
function joinedTexts(before: readonly GatewayEvent[], buffered: readonly OutputEvent[], last: readonly Part[]): readonly string[] {
  const now = new Map<string, string[]>()
  const [all, words]: [string[], string[]] = [[], []]
  const replaced: string[] = []
  const tell = (place: 'words' | { readonly artifactId: string; readonly append: boolean }, texts: readonly string[]): void => {
    all.push(...texts)
    if (place === 'words') return void words.push(...texts)
    const { artifactId, append } = place
    const known = now.get(artifactId)
    if (known !== undefined && append) return void known.push(...texts)
    if (known !== undefined) replaced.push(known.join(''))
    now.set(artifactId, [...texts])
  }
  for (const event of [...lastOf(before), ...buffered]) {
    const texts = textsOf(eventParts(event))
    if (event.type === 'artifact') tell({ artifactId: event.artifact.artifactId, append: event.append }, texts)
    else tell('words', texts)
  }
  const texts = textsOf(last)
  tell({ artifactId: RESULT, append: false }, texts)
  const artifacts = [...now.values()].map((pieces) => pieces.join(''))
  return [...new Set([all.join(''), all.join('\n'), [...words, ...texts].join(''), ...replaced, ...artifacts, artifacts.join('')])]
}

/** What an agent said at last in the turns before, as much as is read with what it says now. */
function lastOf(before: readonly GatewayEvent[]): readonly OutputEvent[] {
  const last: OutputEvent[] = []
  let length = 0
  for (const event of before.toReversed()) {
    // What holds a task up its node says.
    if (event.type === 'message' || (event.type === 'status' && event.message?.parts[0]?.metadata?.['waitingFor'] !== undefined)) continue
    length += textsOf(eventParts(event)).join('').length
    if (length > MAX_BEFORE) break
    last.push(event)
  }
  return last.reverse()
}

function textsOf(parts: readonly Part[]): string[] {
  return parts.flatMap(({ text, data }) => text ?? (typeof data === 'string' ? data : []))
}

/** What counts of its length: not what stands around each piece, or a text in many pieces would be many times as long. */
function counted(event: OutputEvent): unknown {
  const texts = eventParts(event).map(({ raw: _raw, ...rest }) => rest.text ?? rest)
  if (event.type !== 'artifact') return texts
  const { artifactId: _id, parts: _parts, ...about } = event.artifact
  return [texts, about]
}

/** Without the bytes of files: nothing is looked for in those. */
function plain(event: OutputEvent): unknown {
  const parts = eventParts(event).map(({ raw: _raw, ...rest }) => rest)
  return event.type === 'artifact' ? { ...event.artifact, parts } : parts
}

function eventParts(event: OutputEvent): readonly Part[] {
  return event.type === 'artifact' ? event.artifact.parts : (event.message?.parts ?? [])
}
