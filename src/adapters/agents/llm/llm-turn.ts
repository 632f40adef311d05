import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { jsonSchema, type ModelMessage, streamText, tool, type ToolSet } from 'ai'
import type { Clock } from '../../../kit/clock.js'
import { isRecord, jsonFault, SIZED_LIMITS } from '../../../kit/json.js'
import { shown } from '../../../kit/text.js'
import { OUTPUT_SETTING } from '../files/hosted-agent.js'
import type { AgentTool } from '../../../ports/agent-tools.js'
import { type ReportedTokens, type TokenCounts, tokensOf } from './llm-progress.js'
import { LlmFault, messageIn } from './llm-fault.js'
import type { Fetch, LlmProvider } from './llm-parts.js'
import { ReasoningFilter, withoutLoneEnd } from './llm-reasoning.js'
import { LlmRequest } from './llm-request.js'

/** Without an answer no tokens are counted. */
const NO_TOKENS: TokenCounts = { input: 0, output: 0, isEstimated: false }
/** Characters of a server's words for a failure within its answer. */
const MAX_WORDS = 300
/** Characters of a value that is hidden in faults. Shorter ones, such as placeholders for local servers, are words. */
const MIN_SECRET = 8

/** Dependencies of all questions of one run. */
export interface TurnDeps {
  readonly provider: LlmProvider
  readonly model: string
  readonly system: string
  readonly tools: readonly AgentTool[]
  /** Bytes of an answer's text. */
  readonly maxTextBytes: number
  readonly clock: Clock
  readonly fetch: Fetch
  readonly signal: AbortSignal
  /** Called with each piece of text as it comes. */
  onText(text: string): void
}

/** A tool that the model wants called. */
export interface TurnCall {
  readonly id: string
  readonly name: string
  /** An object; empty when `fault` gives its fault. */
  readonly args: Readonly<Record<string, unknown>>
  readonly fault: string | null
}

/** The answer of the model. */
export interface Turn {
  /** Without reasoning. */
  readonly text: string
  readonly calls: readonly TurnCall[]
  /** Why it ended, e.g. `stop`, `length`, `tool-calls`; `refusal`: the text is that of a refusal. */
  readonly finish: string
}

/** The end of one question, and its tokens. */
export type AskedTurn =
  | { readonly ok: true; readonly turn: Turn; readonly tokens: TokenCounts }
  | { readonly ok: false; readonly fault: LlmFault; readonly tokens: TokenCounts }

/** Asks the model once and reads its answer to the end. Never rejects; an abort ends it soon, as a fault. */
export async function askModel(
  deps: TurnDeps,
  messages: readonly ModelMessage[],
  { maxTokens }: { readonly maxTokens: number }
): Promise<AskedTurn> {
  const request = new LlmRequest({ fetch: deps.fetch, clock: deps.clock, stallTimeoutMs: deps.provider.stallTimeoutMs })
  const stop = new AbortController()
  const reading = new TurnReading(deps.maxTextBytes, (text) => deps.onText(text))
  let fault: LlmFault | null = null
  try {
    const answer = streamText({
      model: modelOf(deps, request),
      messages: [...messages],
      tools: toolsOf(deps.tools),
      maxOutputTokens: maxTokens,
      maxRetries: 0,
      abortSignal: AbortSignal.any([deps.signal, stop.signal]),
      // The library would print it.
      onError: () => {},
      ...(deps.system === '' ? {} : { system: deps.system })
    })
    for await (const part of answer.fullStream) reading.take(part)
    reading.end()
  } catch (error) {
    fault = error instanceof LlmFault ? error : new LlmFault('unreadable', wordsOf(error))
  } finally {
    stop.abort()
  }
  const failure =
    request.fault ?? fault ?? (deps.signal.aborted ? new LlmFault('dropped', 'was asked no further') : null)
  // The server has read an aborted question all the same.
  const isReceived =
    failure === null || deps.signal.aborted || !(failure.kind === 'unreachable' || failure.kind === 'refused')
  const tokens = isReceived
    ? tokensOf(reading.reported, { sent: request.sentBytes, received: reading.received })
    : NO_TOKENS
  if (failure === null) return { ok: true, turn: reading.turn(), tokens }
  return { ok: false, fault: failure.withoutSecrets(secretsOf(deps.provider)), tokens }
}

/** The key, and the words of headers that are long enough for one. */
function secretsOf({ apiKey, headers }: LlmProvider): readonly string[] {
  const values = [apiKey ?? '', ...Object.values(headers).flatMap((value) => value.split(/\s+/))]
  return values.filter((value) => value.length >= MIN_SECRET)
}

type TurnPart = ReturnType<typeof streamText>['fullStream'] extends AsyncIterable<infer P> ? P : never

/** Collects an answer part by part, within its bounds. */
class TurnReading {
  readonly #maxTextBytes: number
  readonly #onText: (text: string) => void
  readonly #text: string[] = []
  readonly #calls: TurnCall[] = []
  readonly #reasoning = new ReasoningFilter()
  #textBytes = 0
  #finish = 'other'
  reported: ReportedTokens = { input: undefined, output: undefined }
  /** Bytes of the whole answer, reasoning and arguments included. */
  received = 0

  constructor(maxTextBytes: number, onText: (text: string) => void) {
    this.#maxTextBytes = maxTextBytes
    this.#onText = onText
  }

  turn(): Turn {
    return { text: withoutLoneEnd(this.#text.join('')), calls: this.#calls, finish: this.#finish }
  }

  /** @throws LlmFault for the server's error, or too much text. */
  take(part: TurnPart): void {
    if (part.type === 'text-delta') this.#takeText(part.text)
    else if (part.type === 'reasoning-delta') this.received += Buffer.byteLength(part.text)
    else if (part.type === 'tool-input-delta') this.received += Buffer.byteLength(part.delta)
    else if (part.type === 'tool-call') this.#calls.push(callOf(part))
    else if (part.type === 'finish-step') {
      // The library takes an answer with a refusal for a filtered one.
      const isRefusal = part.finishReason === 'content-filter' && part.rawFinishReason === 'stop'
      this.#finish = isRefusal ? 'refusal' : part.finishReason
      this.reported = { input: part.usage.inputTokens, output: part.usage.outputTokens }
    } else if (part.type === 'error') {
      throw part.error instanceof LlmFault ? part.error : new LlmFault('unreadable', wordsOf(part.error))
    }
  }

  /** No part follows. @throws LlmFault for too much text */
  end(): void {
    this.#push(this.#reasoning.end())
  }

  #takeText(text: string): void {
    this.received += Buffer.byteLength(text)
    this.#push(this.#reasoning.push(text))
  }

  #push(answer: string): void {
    if (answer === '') return
    this.#textBytes += Buffer.byteLength(answer)
    if (this.#textBytes > this.#maxTextBytes)
      throw new LlmFault('too-large', `answered with more than ${this.#maxTextBytes} bytes of text (${OUTPUT_SETTING})`)
    this.#text.push(answer)
    this.#onText(answer)
  }
}

function modelOf(
  { provider, model }: TurnDeps,
  request: LlmRequest
): ReturnType<ReturnType<typeof createOpenAICompatible>> {
  const { url, apiKey, headers } = provider
  const open = createOpenAICompatible({
    name: 'llm',
    baseURL: url,
    headers: { ...headers },
    includeUsage: true,
    fetch: request.fetch,
    ...(apiKey === null ? {} : { apiKey })
  })
  return open(model)
}

function toolsOf(tools: readonly AgentTool[]): ToolSet {
  return Object.fromEntries(
    tools.map(({ name, description, inputSchema }) => [
      name,
      tool({ description, inputSchema: jsonSchema(inputSchema) })
    ])
  )
}

/** A tool that is unknown is the toolbox's to refuse. */
function callOf({ toolCallId: id, toolName: name, input }: Extract<TurnPart, { type: 'tool-call' }>): TurnCall {
  const args: unknown = input
  if (!isRecord(args)) return { id, name, args: {}, fault: 'the arguments are no JSON object' }
  const fault = jsonFault(args, SIZED_LIMITS)
  return { id, name, args: fault === null ? args : {}, fault }
}

/** The server's message for an unusable answer, or the error found. */
function wordsOf(error: unknown): string {
  const words = messageIn(error instanceof Error ? error.message : error)
  return `gave an answer that cannot be used${words === null || words === '' ? '' : `: ${shown(words, MAX_WORDS)}`}`
}
