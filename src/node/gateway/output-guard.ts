import { sizeOf } from '../../kit/size.js'
import { partsOf, statedBy, RESULT } from '../../domain/gateway/content.js'
import type { Part } from '../../domain/gateway/message.js'
import type { GatewayEvent, GatewayInput } from '../../domain/gateway/task.js'
import type { OutputRules, OutputViolation } from '../../ports/gateway.js'

/** The most bytes of held-back output, files included. */
export const MAX_BUFFERED_BYTES = 16_777_216
/** Characters of earlier turns that are checked together with the current output, counted from the end. */
export const MAX_BEFORE = 65_536
type OutputEvent = Exclude<GatewayInput, { readonly type: 'message' }>

/**
 * Judges the output of an agent in one run before it is recorded, so that nobody can read, follow or send forbidden
 * output. With patterns to look for, all output waits for the end: only then is a pattern known to be absent.
 */
export class OutputGuard {
  readonly #rules: OutputRules
  readonly #before: readonly GatewayEvent[]
  #buffered: OutputEvent[] = []
  #bufferedBytes = 0
  #length = 0

  /** `before`: the events of the task from earlier turns. */
  constructor(rules: OutputRules, before: readonly GatewayEvent[] = []) {
    this.#rules = rules
    this.#before = before
  }

  /** Takes output during the run. Returns the output to record now, or the violation that ends it. */
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

  /** Takes the last output. Returns the held-back output to record, or the violation that forbids it. */
  end(last: unknown): readonly OutputEvent[] | OutputViolation {
    const buffered = this.#buffered.splice(0)
    // The length was counted as the output came.
    const broken = this.#rules.violation(last)
    if (broken !== null || !this.#rules.holdsBack) return broken ?? buffered
    const isAlone = buffered.length === 0 && this.#before.length === 0
    const telling = isAlone ? [] : joinedTexts(this.#before, buffered, statedBy(last)?.parts ?? partsOf(last ?? ''))
    return this.#rules.denied([...telling, ...buffered.map(plain)]) ?? buffered
  }
}

/** True for a violation. */
export function isViolation(given: readonly OutputEvent[] | OutputViolation): given is OutputViolation {
  return !Array.isArray(given)
}

/**
 * The output pieces in each way in which a client may join them: all in order without and with line breaks, all words,
 * each artifact now and before each replacement, and the remains of all artifacts.
 */
function joinedTexts(
  before: readonly GatewayEvent[],
  buffered: readonly OutputEvent[],
  last: readonly Part[]
): readonly string[] {
  const now = new Map<string, string[]>()
  const [all, words]: [string[], string[]] = [[], []]
  const replaced: string[] = []
  const tell = (
    place: 'words' | { readonly artifactId: string; readonly append: boolean },
    texts: readonly string[]
  ): void => {
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
  return [
    ...new Set([
      all.join(''),
      all.join('\n'),
      [...words, ...texts].join(''),
      ...replaced,
      ...artifacts,
      artifacts.join('')
    ])
  ]
}

/** The last output of the agent in earlier turns, at most {@link MAX_BEFORE} characters. */
function lastOf(before: readonly GatewayEvent[]): readonly OutputEvent[] {
  const last: OutputEvent[] = []
  let length = 0
  for (const event of before.toReversed()) {
    // The node, not the agent, writes why a task waits.
    if (
      event.type === 'message' ||
      (event.type === 'status' && event.message?.parts[0]?.metadata?.['waitingFor'] !== undefined)
    )
      continue
    length += textsOf(eventParts(event)).join('').length
    if (length > MAX_BEFORE) break
    last.push(event)
  }
  return last.reverse()
}

function textsOf(parts: readonly Part[]): string[] {
  return parts.flatMap(({ text, data }) => text ?? (typeof data === 'string' ? data : []))
}

/**
 * The counted part of an event: without the fields around each piece, else a text in many pieces would count many
 * times.
 */
function counted(event: OutputEvent): unknown {
  const texts = eventParts(event).map(({ raw: _raw, ...rest }) => rest.text ?? rest)
  if (event.type !== 'artifact') return texts
  const { artifactId: _id, parts: _parts, ...about } = event.artifact
  return [texts, about]
}

/** Without the bytes of files: these are not searched. */
function plain(event: OutputEvent): unknown {
  const parts = eventParts(event).map(({ raw: _raw, ...rest }) => rest)
  return event.type === 'artifact' ? { ...event.artifact, parts } : parts
}

function eventParts(event: OutputEvent): readonly Part[] {
  return event.type === 'artifact' ? event.artifact.parts : (event.message?.parts ?? [])
}
