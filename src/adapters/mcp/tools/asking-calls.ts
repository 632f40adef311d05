import { messageOf, NodeError } from '../../../kit/errors.js'
import type { AbortSignalLike, Clock, Timer } from '../../../kit/clock.js'
import { isRecord } from '../../../kit/json.js'
import {
  type Severity,
  type AgentLogLine,
  missingKinds,
  type QuestionAnswer,
  type QuestionKind
} from '../../../domain/task/question.js'
import type { NodeApi } from '../../../ports/node-api.js'
import type { CallQuestion } from '../../../ports/policy-api.js'
import { STATE_TTL_MS } from '../http/request-states.js'
import type { ToolContext } from '../server/tool.js'
import { askClient, type ClientAnswer, type ClientAsk, type ClientRequest, refusedAsk } from './client-ask.js'

/**
 * Calls whose client is asked between two of its requests: in all, and of one caller. The agent's node keeps a run for
 * each, so a further call of the caller ends its oldest.
 */
const MAX_PARKED = 256
const MAX_PARKED_OF_CALLER = 8

/** Milliseconds in which questions that an agent asks at once are gathered for one result. */
const BATCH_MS = 50

/** How a call in the mesh is followed. */
export interface CallContext extends Pick<ToolContext, 'progress'> {
  readonly abortSignal: AbortSignalLike
  /** Abilities of the client; absent: it has none. */
  readonly takes?: readonly QuestionKind[]
  readonly logLevel?: Severity
  /** Takes a question of a kind in `takes`; the answer goes to the API. */
  onQuestion?(question: CallQuestion): void
  /** Takes a log line. */
  onLog?(line: AgentLogLine): void
}

/** Starts a call. */
type StartCall = (context: CallContext) => Promise<unknown>

/** The context of a tool whose client may be asked. */
type AskingContext = Pick<ToolContext, 'abortSignal' | 'client' | 'lines' | 'progress'>

interface AskingCall {
  readonly api: NodeApi
  readonly context: AskingContext
  readonly caller: string
}

/**
 * Runs a call whose agent may ask the client, or goes on with the one of the client's state.
 * @throws NodeError of the call; CANCELED for a lost one
 */
export type RunAsking = (api: NodeApi, context: AskingContext, start: StartCall) => Promise<unknown>

/** Dependencies of {@link AskingCalls}. */
interface AskingDeps {
  readonly clock: Clock
  /** An id that nobody can guess. */
  newId(): string
}

/**
 * Calls whose agents may ask the client. A client with a handshake is asked during its request. Another one gets the
 * questions as a result and asks again with the answers: until then the call goes on here, at most
 * {@link STATE_TTL_MS}.
 */
export class AskingCalls {
  readonly #deps: AskingDeps
  readonly #parked = new Map<string, ParkedCall>()

  constructor(deps: AskingDeps) {
    this.#deps = deps
  }

  /** The calls of one caller. */
  of(caller: string): RunAsking {
    return async (api, context, start) => await this.#run({ api, context, caller }, start)
  }

  async #run(call: AskingCall, start: StartCall): Promise<unknown> {
    try {
      return await this.#asked(call, start)
    } catch (error) {
      const { ask, kinds } = call.context.client
      const missing = missingKinds(error instanceof NodeError ? error.data : null)
      // A client with a handshake reads the failure of the tool.
      if (ask !== undefined || missing.every((kind) => kinds.includes(kind))) throw error
      return refusedAsk(missing.filter((kind) => !kinds.includes(kind)))
    }
  }

  async #asked({ api, context, caller }: AskingCall, start: StartCall): Promise<unknown> {
    const { client, lines } = context
    const id = isRecord(client.state) ? client.state['call'] : undefined
    if (id !== undefined) return await this.#taken(id, caller).round(context)
    const level = lines === null ? {} : { logLevel: lines.least, onLog: lines.send }
    const { ask, kinds } = client
    if (kinds.length === 0) return await start({ ...followed(context), ...level })
    if (ask === undefined)
      return await new ParkedCall({
        ...this.#deps,
        api,
        caller,
        start,
        context,
        park: (call) => this.#park(call)
      }).round(context)
    return await start({
      ...followed(context),
      ...level,
      takes: kinds,
      onQuestion: (question) => void answerBy(api, question, ask(requestOf(question)))
    })
  }

  /** Ends the calls that wait for their clients. */
  close(): void {
    for (const call of this.#parked.values()) call.abandon()
    this.#parked.clear()
  }

  #taken(id: unknown, caller: string): ParkedCall {
    const call = typeof id === 'string' ? this.#parked.get(id) : undefined
    if (call === undefined || call.caller !== caller)
      throw new NodeError('CANCELED', 'the call that asked has ended meanwhile; call again', { retryable: true })
    this.#parked.delete(String(id))
    this.#deps.clock.clear(call.timer)
    return call
  }

  /** The state by which its client comes back to a call; null: there is no room. */
  #park(call: ParkedCall): { readonly call: string } | null {
    const { clock, newId } = this.#deps
    const ofCaller = [...this.#parked].filter(([, { caller }]) => caller === call.caller)
    const [oldest] = ofCaller
    if (oldest !== undefined && ofCaller.length >= MAX_PARKED_OF_CALLER) {
      this.#parked.delete(oldest[0])
      clock.clear(oldest[1].timer)
      oldest[1].abandon()
    }
    if (this.#parked.size >= MAX_PARKED) return null
    const id = newId()
    this.#parked.set(id, call)
    call.timer = clock.after(STATE_TTL_MS, () => {
      this.#parked.delete(id)
      call.abandon()
    })
    return { call: id }
  }
}

/** Dependencies of {@link ParkedCall}. */
interface ParkedCallDeps extends AskingCall {
  readonly clock: Clock
  readonly start: StartCall
  park(call: ParkedCall): { readonly call: string } | null
}

/** One call over several requests of its client. */
class ParkedCall {
  readonly caller: string
  timer: Timer | null = null
  readonly #deps: ParkedCallDeps
  readonly #abort = new AbortController()
  /** By the names that the client gets. */
  readonly #open = new Map<string, CallQuestion>()
  readonly #end: Promise<unknown>
  #context: AskingContext
  /** Names of the answers of this round that were given. */
  readonly #given = new Set<string>()
  #isOver = false
  #wake: () => void = () => {}

  constructor(deps: ParkedCallDeps) {
    this.caller = deps.caller
    this.#deps = deps
    this.#context = deps.context
    const { lines, client } = deps.context
    this.#end = deps.start({
      progress: (report) => this.#context.progress(report),
      abortSignal: this.#abort.signal,
      takes: client.kinds,
      onQuestion: (question) => {
        const { name, id } = question
        const key = name === undefined || this.#open.has(name) ? id : name
        this.#open.set(key, question)
        // A client that knows the questions may answer them in the first request.
        if (name === key && !this.#given.has(name)) void this.#give(name, question)
        this.#deps.clock.after(BATCH_MS, () => this.#wake())
      },
      ...(lines === null
        ? {}
        : { logLevel: lines.least, onLog: (line: AgentLogLine) => this.#context.lines?.send(line) })
    })
    const over = (): void => {
      this.#isOver = true
      this.#wake()
    }
    this.#end.then(over, over)
  }

  /** Ends it: its client does not come back. */
  abandon(): void {
    this.#abort.abort()
  }

  /** One request of its client: gives the answers, and resolves with the result or the next questions. */
  async round(context: AskingContext): Promise<unknown> {
    if (context !== this.#context) this.#given.clear()
    this.#context = context
    const abort = (): void => this.abandon()
    if (context.abortSignal.aborted) abort()
    context.abortSignal.addEventListener('abort', abort)
    try {
      for (const [name, question] of [...this.#open]) if (!this.#given.has(name)) await this.#give(name, question)
      for (;;) {
        if (this.#isOver) return await this.#end
        if (this.#open.size > 0) {
          const asked = this.#ask()
          if (asked !== null) return asked
          continue
        }
        await new Promise<void>((resolve) => (this.#wake = resolve))
      }
    } finally {
      context.abortSignal.removeEventListener('abort', abort)
    }
  }

  async #give(name: string, question: CallQuestion): Promise<void> {
    const given = this.#context.client.answer(name)
    if (given === undefined) return
    this.#given.add(name)
    this.#open.delete(name)
    await answerBy(this.#deps.api, question, Promise.resolve(resultOf(given)))
  }

  /** The open questions for its client; null: it cannot wait, and they are refused. */
  #ask(): ClientAsk | null {
    const state = this.#deps.park(this)
    const questions = [...this.#open.values()]
    if (state !== null)
      return askClient(Object.fromEntries([...this.#open].map(([name, one]) => [name, requestOf(one)])), state)
    this.#open.clear()
    const refused = Promise.reject<Readonly<Record<string, unknown>>>(
      new Error('too many calls wait for their clients')
    )
    for (const one of questions) void answerBy(this.#deps.api, one, refused)
    return null
  }
}

function followed({ progress, abortSignal }: AskingContext): CallContext {
  return { progress, abortSignal }
}

/** A question as the client gets it. */
function requestOf({ method, params }: CallQuestion): ClientRequest {
  return { method, params } as unknown as ClientRequest
}

/** Gives the node the answer to a question. Its request may have ended meanwhile. */
async function answerBy(
  api: NodeApi,
  { id }: CallQuestion,
  given: Promise<Readonly<Record<string, unknown>>>
): Promise<void> {
  const answer: QuestionAnswer = await given.then(
    (result) => ({ ok: true, result }),
    (error: unknown) => ({ ok: false, message: messageOf(error).slice(0, 1024) })
  )
  const refused = { ok: false, message: 'the node of the caller refused the answer' } as const
  await api
    .call('message.answer', { id, answer })
    .catch(() => api.call('message.answer', { id, answer: refused }))
    .catch(() => {})
}

function resultOf(view: ClientAnswer): Readonly<Record<string, unknown>> {
  if (view.kind === 'sampling') return { ...view.result }
  if (view.kind === 'roots') return { roots: view.roots }
  const { action, content } = view
  return { action, ...(content === undefined ? {} : { content }) }
}
