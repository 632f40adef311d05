import { createParser } from 'eventsource-parser'
import { isRecord, parseJson, RESULT_LIMITS } from '../../../kit/json.js'
import { withoutNulls } from '../../../kit/schema/nulls.js'
import { failedWithin, LlmFault, messageIn } from './llm-fault.js'

/** Marks the end of a stream. */
const DONE = '[DONE]'
/** Its line, when nothing more of a stream has come. */
const DONE_LINE = /(?:^|[\r\n])data: ?\[DONE\][ \t]{0,4}[\r\n]{1,4}$/
/** Characters that show that line. */
const DONE_LENGTH = 32
/** `object` of an answer that is no stream. */
const WHOLE = 'chat.completion'
/** Nothing in a completion is data of a program: arguments of tools are texts. */
const NULLS = { data: new Set<string>() }

type Choice = Readonly<Record<string, unknown>>

/**
 * Reads the body of one answer: a stream of events, lines of JSON, or a whole completion as JSON. It gives chunks as
 * JSON texts, in the form of a stream. Comments, keep-alives, empty frames and events beside the answer give none. A
 * broken JSON object before the finish could be a part of the answer, so it fails. The end follows from the protocol,
 * not from the connection.
 */
export class CompletionReader {
  readonly #decoder = new TextDecoder()
  readonly #parser = createParser({
    onEvent: ({ data, event }) => this.#take(data, event),
    onComment: () => (this.#isStream = true),
    onError: ({ field, value }) => {
      // llama.cpp writes its error as a field of its own.
      if (field === 'error') throw failedWithin(errorValue(value ?? ''))
    }
  })
  #chunks: string[] = []
  /** The last characters of the stream. */
  #tail = ''
  /** Something came that is not white space. */
  #hasBegun = false
  /** The body, when it is JSON and no stream. */
  #whole: string[] | null = null
  /** The first line of a whole body has ended; more of it came after that. */
  #hasBreak = false
  #isSecondLine = false
  /** The body has a JSON text on each line. */
  #isLines = false
  /** Text or calls came. */
  #hasContent = false
  /** Something of a stream came. */
  #isStream = false
  #isOver = false
  #isFinished = false

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
      if (/^[{[]/.test(rest)) this.#whole = []
    }
    if (this.#whole !== null) this.#takePiece(this.#whole, rest)
    else {
      this.#parser.feed(this.#isLines ? asEvents(rest) : rest)
      this.#tail = (this.#tail + rest).slice(-DONE_LENGTH)
      // Some servers write no empty line behind it, and keep the connection open.
      if (DONE_LINE.test(this.#tail)) this.#parser.feed('\n\n')
    }
  }

  /** Text of a body that is JSON. A second line after one that is JSON makes each line a frame. */
  #takePiece(whole: string[], piece: string): void {
    whole.push(piece)
    this.#hasBreak ||= piece.includes('\n')
    // The pieces are joined twice at most.
    if (!this.#hasBreak || this.#isSecondLine || !/\S/.test(piece)) return
    const text = whole.join('')
    const end = text.indexOf('\n')
    this.#isSecondLine = text.slice(end).trim() !== ''
    if (!this.#isSecondLine || !parseJson(text.slice(0, end), RESULT_LIMITS).ok) return
    this.#whole = null
    this.#isLines = true
    this.#parser.feed(`data: ${asEvents(text)}`)
  }

  #take(data: string, event: string | undefined): void {
    this.#isStream = true
    const text = data.trim()
    if (this.#isOver) return
    if (event === 'error') throw failedWithin(errorValue(text))
    if (text === DONE) this.#finish()
    // Keep-alives are written in many forms, but never as JSON objects.
    if (!/^[{[]/.test(text)) return
    const parsed = parseJson(text, RESULT_LIMITS)
    if (parsed.ok) this.#takeChunk(parsed.value)
    // Its text is lost: an answer with a gap would look whole.
    else if (text.startsWith('{') && !this.#isFinished) throw broken(parsed.reason)
  }

  /** The end of a stream, which finishes an answer without a finish reason too. */
  #finish(): void {
    if (!this.#isFinished) this.#takeChunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })
    this.#isOver = true
  }

  #takeWhole(text: string): void {
    const parsed = parseJson(text, RESULT_LIMITS)
    if (!parsed.ok) throw cut()
    const { value } = parsed
    this.#takeChunk(isRecord(value) ? { ...value, object: WHOLE } : value)
    if (!this.#isFinished) throw messageIn(value) === null ? noCompletion() : failedWithin(value)
  }

  #takeChunk(value: unknown): void {
    const failure = errorIn(value)
    if (failure !== null) throw failedWithin(failure)
    const choices = choicesOf(value).map((choice) => asDelta(choice, isWhole(value), this.#hasContent))
    // A ping or a report of progress would be a malformed chunk.
    if (!isRecord(value) || (choices.length === 0 && !isRecord(value['usage']))) return
    this.#isFinished ||= choices.some(hasFinish)
    this.#hasContent ||= choices.some((choice) => hasCalls(choice) || hasText(choice))
    const object = isWhole(value) ? { object: 'chat.completion.chunk' } : {}
    // An empty error is none, and its reader takes any for one.
    this.#chunks.push(JSON.stringify(withoutNulls({ ...value, ...object, choices, error: null, errors: null }, NULLS)))
  }
}

function cut(): LlmFault {
  return new LlmFault('dropped', 'ended its answer in the middle')
}

function broken(reason: string): LlmFault {
  return new LlmFault('dropped', `sent a broken frame, so that a part of its answer is lost: ${reason}`)
}

function noCompletion(): LlmFault {
  return new LlmFault('unreadable', 'gave an answer that cannot be used: it is no completion')
}

/**
 * The error in a frame: `{error}` of most servers, `{object: "error", message}` of vLLM, `{errors}`, `{choices:
 * [{error}]}` of OpenRouter; null for none. One in which nothing is set is none.
 */
function errorIn(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(errorIn).find((error) => error !== null) ?? null
  if (!isRecord(value)) return null
  const { object, error, errors } = value
  if (object === 'error') return value
  if (!isBlank(error)) return error
  if (Array.isArray(errors) && !isBlank(errors)) return errors
  return choicesOf(value).find((choice) => !isBlank(choice['error']))?.['error'] ?? null
}

function isBlank(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return !value
  return Object.values(value).every(isBlank)
}

/** The data of an event `error`: JSON, or text. */
function errorValue(text: string): unknown {
  const parsed = parseJson(text, RESULT_LIMITS)
  return parsed.ok ? (errorIn(parsed.value) ?? parsed.value) : text
}

/** Some servers give an empty reason until they have one. */
function hasFinish({ finish_reason: reason }: Choice): boolean {
  return typeof reason === 'string' && reason !== ''
}

function choicesOf(value: unknown): readonly Choice[] {
  const choices = isRecord(value) ? value['choices'] : null
  return Array.isArray(choices) ? choices.filter(isRecord) : []
}

function isWhole(value: unknown): boolean {
  return isRecord(value) && value['object'] === WHOLE
}

function hasCalls({ delta }: Choice): boolean {
  return isRecord(delta) && Array.isArray(delta['tool_calls']) && delta['tool_calls'].length > 0
}

function hasText({ delta }: Choice): boolean {
  return isRecord(delta) && [delta['content'], delta['refusal']].some((text) => (text ?? '') !== '')
}

/**
 * A choice with its `message` as the delta. That of a whole completion repeats the content that a stream had before it,
 * and is finished without a reason too.
 */
function asDelta(choice: Choice, isOfWhole: boolean, isRepeated: boolean): Choice {
  if (!isRecord(choice['message']) || isRecord(choice['delta'])) return choice
  const { message, finish_reason: finish, ...rest } = choice
  const end = { finish_reason: finish ?? (isOfWhole ? 'stop' : null) }
  if (isOfWhole && isRepeated) return { ...rest, delta: {}, ...end }
  const calls: unknown = message['tool_calls']
  const indexed = Array.isArray(calls)
    ? { tool_calls: calls.map((call, index) => (isRecord(call) ? { index, ...call } : call)) }
    : {}
  return { ...rest, delta: { ...message, ...indexed }, ...end }
}

/** Lines as events. */
function asEvents(lines: string): string {
  return lines.replaceAll('\n', '\n\ndata: ')
}
