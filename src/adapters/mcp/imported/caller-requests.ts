import type { Client, ClientCapabilities, JSONRPCMessage, Transport } from '@modelcontextprotocol/client'
import { isWanted, kindOf, type Severity, type Question, readQuestion } from '../../../domain/task/question.js'
import type { AbortSignalLike } from '../../../kit/clock.js'
import { isRecord } from '../../../kit/json.js'
import type { RunCaller } from '../../../ports/agent-runtime.js'
import { ImportedFault } from './imported-fault.js'

/** Member of `_meta` by which a message of a server names the call on whose stream it came. */
const ORIGIN = 'a2a-node/call'
const LOG_LEVEL_META = 'io.modelcontextprotocol/logLevel'
const CAPABILITIES_META = 'io.modelcontextprotocol/clientCapabilities'
/** Code of JSON-RPC for a question that nobody answers. */
const INTERNAL_ERROR = -32_603

/**
 * Declared to servers with a handshake, whose connection serves every caller: a caller without an ability refuses the
 * request.
 */
export const CALLER_CAPABILITIES: ClientCapabilities = {
  elicitation: { form: {}, url: {} },
  sampling: {},
  roots: {}
}

/** A call of a tool under way. */
interface OpenCall {
  readonly caller: RunCaller | undefined
  id: unknown
}

/**
 * The calls under way over one connection, and the requests and log lines of the server for their callers. On streams
 * of HTTP a message names its call. Elsewhere it belongs to the only call under way. With several, a request is
 * refused, and from then on calls run one at a time.
 */
export class CallerRequests {
  readonly #onUnclaimedLine: () => void
  /** By their arguments, until they are sent. */
  readonly #unsent = new Map<unknown, OpenCall>()
  readonly #open = new Set<OpenCall>()
  #isSerial = false
  /** Calls that wait for the end of an earlier one. */
  #behind = 0
  #last: Promise<void> = Promise.resolve()
  #level: Severity | null = null

  /**
   * `onUnclaimedLine`: a log line may belong to one of several calls. None gets it: their callers may be clients of
   * different rights, which this node cannot tell apart.
   */
  constructor(onUnclaimedLine: () => void = () => {}) {
    this.#onUnclaimedLine = onUnclaimedLine
  }

  /** Learns the ids of calls from the messages of a transport. */
  watch(transport: Transport): void {
    const send = transport.send.bind(transport)
    transport.send = async (message, options) => {
      this.#sent(message)
      await send(message, options)
    }
  }

  /** Answers the requests of the server, and takes its log lines. */
  serve(client: Client): void {
    for (const method of ['elicitation/create', 'sampling/createMessage', 'roots/list'] as const)
      client.setRequestHandler(method, async ({ params }) => (await this.#answer(method, params)) as never)
    client.setNotificationHandler('notifications/message', ({ params }) => {
      const { level, data, logger } = params
      const call = this.#callOf(params)
      if (call === null && this.#open.size > 1) this.#onUnclaimedLine()
      call?.caller?.log({ level, data, ...(logger === undefined ? {} : { logger }) })
    })
  }

  /** Runs a call. `args` identifies it in the message that is sent. @throws the error of `run` */
  async during<T>(
    args: object,
    { caller, signal }: { readonly caller?: RunCaller | undefined; readonly signal: AbortSignal },
    run: () => Promise<T>
  ): Promise<T> {
    const before = this.#last
    let done = (): void => {}
    this.#last = new Promise((resolve) => (done = resolve))
    if (this.#isSerial) await this.#untilEnd(before, signal)
    const call: OpenCall = { caller, id: null }
    this.#unsent.set(args, call)
    this.#open.add(call)
    try {
      return await run()
    } finally {
      this.#unsent.delete(args)
      this.#open.delete(call)
      void before.then(done)
    }
  }

  /** Runs a question to the server that is no call: a request of the server meanwhile may belong to it. */
  async beside<T>(run: () => Promise<T>): Promise<T> {
    const reading: OpenCall = { caller: undefined, id: null }
    this.#open.add(reading)
    try {
      return await run()
    } finally {
      this.#open.delete(reading)
    }
  }

  /** Asks a server with a handshake for the log lines that a caller wants. */
  async wantLog(client: Client, level: Severity | null): Promise<void> {
    if (level === null || client.getServerCapabilities()?.logging === undefined) return
    if (this.#level !== null && isWanted(level, this.#level)) return
    await client.setLoggingLevel(level).then(
      () => (this.#level = level),
      () => {}
    )
  }

  /** Resolves at the end of earlier calls, or at an abort: an aborted call is not sent. */
  async #untilEnd(before: Promise<void>, signal: AbortSignal): Promise<void> {
    let stop = (): void => {}
    const aborted = new Promise<void>((resolve) => (stop = resolve))
    signal.addEventListener('abort', stop)
    this.#behind++
    if (!signal.aborted) await Promise.race([before, aborted])
    this.#behind--
    signal.removeEventListener('abort', stop)
  }

  #sent(message: JSONRPCMessage): void {
    if (!('method' in message) || !('id' in message) || message.method !== 'tools/call') return
    const args = message.params?.['arguments']
    const call = this.#unsent.get(args)
    if (call === undefined) return
    call.id = message.id
    this.#unsent.delete(args)
  }

  /** The call that a message belongs to; null when none is under way, or it may be of several. */
  #callOf(params: unknown): OpenCall | null {
    const meta = isRecord(params) ? params['_meta'] : undefined
    const id = isRecord(meta) ? meta[ORIGIN] : undefined
    const [only, ...others] = this.#open
    if (id === undefined) return only !== undefined && others.length === 0 ? only : null
    return [...this.#open].find((call) => call.id === id) ?? null
  }

  async #answer(method: Question['method'], params: unknown): Promise<Readonly<Record<string, unknown>>> {
    const call = this.#callOf(params)
    if (call === null && this.#open.size > 1) this.#isSerial = true
    if (method === 'roots/list' && call?.caller?.takes.includes('roots') !== true) return { roots: [] }
    if (call === null)
      throw refused(
        this.#open.size > 1
          ? 'several calls are under way, and nothing says which of them asks: from now on they run one at a time'
          : 'no call is under way'
      )
    return await answerOf(call.caller, { method, params }, () => this.#behind > 0)
  }
}

/**
 * The answer of a caller to a request of a server. `isNeeded`: do calls of other callers wait for the end of this one?
 * @throws Error with a code of JSON-RPC when there is none
 */
export async function answerOf(
  caller: RunCaller | undefined,
  asked: { readonly method: unknown; readonly params?: unknown; readonly name?: string },
  isNeeded?: () => boolean
): Promise<Readonly<Record<string, unknown>>> {
  const question = readQuestion(asked)
  if (question === null) throw refused('the request has an unknown form, or is too large')
  if (caller === undefined || !caller.takes.includes(kindOf(question)))
    throw refused(`the caller of this tool has no client that answers ${question.method} (${kindOf(question)})`)
  const answer = await caller.ask(question, isNeeded)
  if (!answer.ok) throw refused(answer.message)
  return answer.result
}

/** The `_meta` by which a call of the protocol without a handshake states what its caller answers and takes. */
export function callerMeta(caller: RunCaller | undefined): Readonly<Record<string, unknown>> {
  const takes = new Set(caller?.takes)
  const modes = { ...(takes.has('form') ? { form: {} } : {}), ...(takes.has('url') ? { url: {} } : {}) }
  const capabilities: ClientCapabilities = {
    ...(Object.keys(modes).length === 0 ? {} : { elicitation: modes }),
    ...(takes.has('sampling') ? { sampling: takes.has('tools') ? { tools: {} } : {} } : {}),
    ...(takes.has('roots') ? { roots: {} } : {})
  }
  const level = caller?.logLevel ?? null
  return { [CAPABILITIES_META]: capabilities, ...(level === null ? {} : { [LOG_LEVEL_META]: level }) }
}

/** Requests in one result of a server that needs answers. */
const MAX_REQUESTS = 8
/** Results of one request that need answers of its caller, at most. */
const MAX_ROUNDS = 16

/**
 * Asks a server until its result is a final one: each time with the answers of the caller to the questions of the last
 * result. @throws ImportedFault
 */
export async function inRounds(
  { caller, signal }: { readonly caller?: RunCaller | undefined; readonly signal: AbortSignalLike },
  ask: (answers: Readonly<Record<string, unknown>>) => Promise<unknown>
): Promise<unknown> {
  let answers: Readonly<Record<string, unknown>> = {}
  for (let round = 0; round <= MAX_ROUNDS; round++) {
    const result = await ask(answers)
    const open = openRequests(result)
    if (open === null) return result
    const { requests, ...state } = open
    answers = { ...state, inputResponses: await answersTo(requests, caller, signal) }
  }
  throw new ImportedFault('answered', `it asked for answers ${MAX_ROUNDS + 1} times`)
}

/** The questions of a result that needs answers; null: it is a final one. @throws ImportedFault for too many */
export function openRequests(
  result: unknown
): { readonly requests: Readonly<Record<string, unknown>>; readonly requestState?: string } | null {
  if (!isRecord(result) || result['resultType'] !== 'input_required') return null
  const { inputRequests, requestState } = result
  const requests = isRecord(inputRequests) ? inputRequests : {}
  if (Object.keys(requests).length > MAX_REQUESTS)
    throw new ImportedFault('answered', `it asks more than ${MAX_REQUESTS} questions at once`)
  return { requests, ...(typeof requestState === 'string' ? { requestState } : {}) }
}

/** Answers to the questions of a result. @throws ImportedFault when one has no answer */
export async function answersTo(
  requests: Readonly<Record<string, unknown>>,
  caller: RunCaller | undefined,
  signal: AbortSignalLike
): Promise<Readonly<Record<string, unknown>>> {
  const answers = Object.entries(requests).map(async ([name, asked]) => [
    name,
    await answerOf(
      caller,
      isRecord(asked) ? { method: asked['method'], params: asked['params'], name } : { method: null }
    )
  ])
  try {
    return Object.fromEntries(await Promise.all(answers)) as Readonly<Record<string, unknown>>
  } catch (error) {
    throw new ImportedFault(
      signal.aborted ? 'unknown' : 'answered',
      `its question has no answer: ${(error as Error).message}`
    )
  }
}

/** Adds to the requests and notifications on the stream of a call the id of the call. undefined: it is no call. */
export function originEdit({ method, body }: RequestInit): ((json: string) => string) | undefined {
  if (method !== 'POST' || typeof body !== 'string' || !body.includes('"tools/call"')) return undefined
  const call = parsed(body)
  if (call?.['method'] !== 'tools/call') return undefined
  return (json) => {
    const message = json.includes('"method"') ? parsed(json) : null
    if (message === null || typeof message['method'] !== 'string') return json
    const params = isRecord(message['params']) ? message['params'] : {}
    const meta = isRecord(params['_meta']) ? params['_meta'] : {}
    return JSON.stringify({ ...message, params: { ...params, _meta: { ...meta, [ORIGIN]: call['id'] } } })
  }
}

function parsed(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) ? value : null
  } catch {
    return null
  }
}

function refused(message: string): Error {
  return Object.assign(new Error(message), { code: INTERNAL_ERROR })
}
