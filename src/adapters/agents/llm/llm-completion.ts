import { createParser } from 'eventsource-parser'
import { isRecord, parseJson, RESULT_LIMITS } from '../../../kit/json.js'
import { withoutNulls } from '../../../kit/schema/nulls.js'
import { failedWithin, LlmFault, messageIn } from './llm-fault.js'

/** Marks the end of a stream. */
const DONE = '[DONE]'
/** Nothing in a completion is data of a program: arguments of tools are texts. */
const NULLS = { data: new Set<string>() }

/**
 * Reads the body of one answer: a stream of events, or a whole completion as JSON. It gives chunks as JSON texts, in
 * the form of a stream. Comments, keep-alives, empty frames and events beside the answer give none. The end follows
 * from the protocol, not from the connection.
 */
export class CompletionReader {
  readonly #decoder = new TextDecoder()
  readonly #parser = createParser({
    onEvent: ({ data, event }) => this.#take(data, event),
    onComment: () => (this.#isStream = true)
  })
  #chunks: string[] = []
  /** Something came that is not white space. */
  #hasBegun = false
  /** The body, when it is JSON and no stream. */
  #whole: string[] | null = null
  /** Something of a stream came. */
  #isStream = false
  #isOver = false
  #isFinished = false
  /** No more bytes come: what cannot be read is cut off. */
  #isEnding = false

  /** The server said that nothing follows. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** The model has finished; only token counts may follow. */
  get isFinished(): boolean {
    return this.#isFinished
  }

  /** The chunks in the next bytes. @throws LlmFault for the server's error, or a frame that cannot be used */
  feed(bytes: Uint8Array): readonly string[] {
    this.#text(this.#decoder.decode(bytes, { stream: true }))
    return this.#chunks.splice(0)
  }

  /** The last chunks, after the last byte. @throws LlmFault as {@link feed}, and when the answer is not complete */
  end(): readonly string[] {
    this.#isEnding = true
    this.#text(this.#decoder.decode())
    if (this.#whole !== null) this.#takeWhole(this.#whole.join(''))
    // A last frame may lack its empty line.
    else this.#parser.feed('\n\n')
    if (!this.#isFinished && !this.#isOver) throw this.#isStream || !this.#hasBegun ? cut() : noCompletion()
    return this.#chunks.splice(0)
  }

  #text(text: string): void {
    let rest = text
    if (!this.#hasBegun) {
      // No stream has white space before its first field that matters.
      rest = text.trimStart()
      this.#hasBegun = rest !== ''
      if (rest.startsWith('{')) this.#whole = []
    }
    if (this.#whole === null) this.#parser.feed(rest)
    else this.#whole.push(rest)
  }

  #take(data: string, event: string | undefined): void {
    this.#isStream = true
    const text = data.trim()
    if (this.#isOver) return
    if (event === 'error') throw failedWithin(errorValue(text))
    if (text === DONE) this.#isOver = true
    // Keep-alives are written in many forms, but never as JSON objects.
    if (text.startsWith('{')) this.#takeChunk(this.#valueOf(text))
  }

  #takeWhole(text: string): void {
    const value = this.#valueOf(text)
    this.#takeChunk(asChunk(value))
    if (!this.#isFinished) throw messageIn(value) === null ? noCompletion() : failedWithin(value)
  }

  #valueOf(text: string): unknown {
    const parsed = parseJson(text, RESULT_LIMITS)
    if (parsed.ok) return parsed.value
    throw this.#isEnding ? cut() : new LlmFault('unreadable', `sent a frame that cannot be used: ${parsed.reason}`)
  }

  #takeChunk(value: unknown): void {
    const failure = errorIn(value)
    if (failure !== null) throw failedWithin(failure)
    const choices = choicesOf(value)
    // A ping or a report of progress would be a malformed chunk.
    if (!isRecord(value) || (choices.length === 0 && !isRecord(value['usage']))) return
    this.#isFinished ||= choices.some(hasFinish)
    // An empty error is none, and its reader takes any for one.
    this.#chunks.push(JSON.stringify(withoutNulls({ ...value, choices, error: null }, NULLS)))
  }
}

function cut(): LlmFault {
  return new LlmFault('dropped', 'ended its answer in the middle')
}

function noCompletion(): LlmFault {
  return new LlmFault('unreadable', 'gave an answer that cannot be used: it is no completion')
}

/** The error in a frame: `{error}` of most servers, `{object: "error", message}` of vLLM; null for none. */
function errorIn(value: unknown): unknown {
  if (!isRecord(value)) return null
  return value['object'] === 'error' ? value : value['error'] || null
}

/** The data of an event `error`: JSON, or text. */
function errorValue(text: string): unknown {
  const parsed = parseJson(text, RESULT_LIMITS)
  return parsed.ok ? (errorIn(parsed.value) ?? parsed.value) : text
}

/** Some servers give an empty reason until they have one. */
function hasFinish(choice: unknown): boolean {
  const reason = isRecord(choice) ? choice['finish_reason'] : null
  return typeof reason === 'string' && reason !== ''
}

function choicesOf(value: unknown): readonly unknown[] {
  const choices = isRecord(value) ? value['choices'] : null
  return Array.isArray(choices) ? choices.filter(isRecord) : []
}

/** A whole completion as the only chunk of a stream. Anything else stays as it is. */
function asChunk(value: unknown): unknown {
  if (!isRecord(value) || choicesOf(value).length === 0) return value
  const choices = choicesOf(value).map((choice) => {
    if (!isRecord(choice) || !isRecord(choice['message'])) return choice
    const { message, finish_reason: finish, ...rest } = choice
    const calls: unknown = message['tool_calls']
    const indexed = Array.isArray(calls)
      ? { tool_calls: calls.map((call, index) => (isRecord(call) ? { index, ...call } : call)) }
      : {}
    return { ...rest, delta: { ...message, ...indexed }, finish_reason: finish ?? 'stop' }
  })
  return { ...value, object: 'chat.completion.chunk', choices }
}
