import { backoffMs } from '../../../kit/backoff.js'
import type { CompileSchema } from '../../../kit/sign.js'
import type { Clock, Timer } from '../../../kit/clock.js'
import type { NodeId } from '../../../kit/ids.js'
import { type RateLimit, TokenBucket } from '../../../kit/rate.js'
import type { ControlBody } from '../../../domain/channel/control.js'
import {
  formFault,
  isWanted,
  kindOf,
  LOG_LEVELS,
  MAX_OPEN_QUESTIONS,
  MAX_QUESTIONS,
  type Question,
  QUESTION_KINDS,
  type QuestionAnswer,
  readAnswer,
  readLogLine,
  readQuestion
} from '../../../domain/task/question.js'
import type { RunCaller } from '../../../ports/agent-runtime.js'
import { nameOf, type Execution } from './in-flight.js'
import type { Replies } from './replies.js'

/** Delays between repeats of an unanswered question: it, or its answer, may be lost with a link. */
const REPEAT = { baseMs: 5000, maxMs: 60_000 }
/** Milliseconds that a question may hold up other work. */
const BUSY_WAIT_MS = 60_000
/** Log lines of one run to its caller; further ones are dropped. */
const LOG_RATE: RateLimit = { perSecond: 20, burst: 100 }

/** Dependencies of {@link CalleeQuestions}. */
interface CalleeQuestionsDeps {
  readonly clock: Clock
  readonly replies: Pick<Replies, 'progress'>
  readonly compileSchema: CompileSchema
}

/** The questions of running work to its callers. */
export class CalleeQuestions {
  readonly #deps: CalleeQuestionsDeps
  readonly #runs = new Map<Execution, AskedOfCaller>()

  constructor(deps: CalleeQuestionsDeps) {
    this.#deps = deps
  }

  /** The caller of work; undefined for one that takes neither questions nor log lines, as of earlier builds. */
  callerOf(piece: Execution): RunCaller | undefined {
    const { takes, logLevel: level } = piece.payload
    if (piece.isNotification || (takes === undefined && level === undefined)) return undefined
    const logLevel = LOG_LEVELS.find((one) => one === level) ?? null
    let lines: TokenBucket | null = null
    return {
      takes: QUESTION_KINDS.filter((kind) => takes?.includes(kind)),
      logLevel,
      ask: (question, isNeeded) => this.#ask(piece, question, isNeeded),
      log: (line) => {
        const given = isWanted(line.level, logLevel) ? readLogLine(line) : null
        if (given === null || piece.hasEnded) return
        lines ??= new TokenBucket(LOG_RATE, this.#deps.clock)
        if (lines.take()) this.#send(piece, { log: given })
      }
    }
  }

  /** A peer answers a question of its request. */
  onAnswer(peer: NodeId, { requestId: key, id, answer }: ControlBody<'answer'>): void {
    for (const [piece, questions] of this.#runs)
      if (nameOf(piece) === key && isCaller(piece, peer)) questions.answer(id, answer)
  }

  /** A peer is back: its questions may be lost. */
  onOnline(peer: NodeId): void {
    for (const [piece, questions] of this.#runs) if (isCaller(piece, peer)) questions.repeat()
  }

  /** The work is over: no question of it waits any more. */
  end(piece: Execution): void {
    this.#runs.get(piece)?.end()
    this.#runs.delete(piece)
  }

  async #ask(piece: Execution, asked: Question, isNeeded = (): boolean => false): Promise<QuestionAnswer> {
    const question = readQuestion(asked)
    if (question === null) return refusal('the question has another form, or is too large')
    const kind = kindOf(question)
    if (piece.payload.takes?.includes(kind) !== true)
      return refusal(`the caller of this request answers no question of the kind ${kind}`)
    if (!piece.isAwaited || piece.hasEnded || piece.abort.aborted) return refusal('no caller waits for this request')
    let questions = this.#runs.get(piece)
    if (questions === undefined) {
      const { clock } = this.#deps
      questions = new AskedOfCaller({ clock, send: (content) => this.#send(piece, content) })
      this.#runs.set(piece, questions)
      piece.abort.addEventListener('abort', () => this.end(piece))
    }
    return this.#fitting(question, await questions.ask(question, isNeeded))
  }

  /** The answer; a refusal where the content of a form does not fit the form. */
  #fitting({ params }: Question, answer: QuestionAnswer): QuestionAnswer {
    if (!answer.ok || answer.result['action'] !== 'accept') return answer
    const fault = formFault(this.#deps.compileSchema, params['requestedSchema'], answer.result['content'] ?? {})
    return fault === null ? answer : refusal(fault)
  }

  #send({ threads, payload, isAwaited }: Execution, content: Readonly<Record<string, unknown>>): void {
    const thread = threads.at(-1)
    const { requestId, attempt } = payload
    if (isAwaited && thread !== undefined) this.#deps.replies.progress(thread, { requestId, attempt, ...content })
  }
}

interface OpenQuestion {
  readonly question: Question
  readonly settle: (answer: QuestionAnswer) => void
  /** Does it hold up other work? */
  readonly isNeeded: () => boolean
  /** Milliseconds of the monotonic clock. */
  readonly askedAt: number
  repeats: number
  timer: Timer | null
}

/** Dependencies of {@link AskedOfCaller}. */
interface AskedOfCallerDeps {
  readonly clock: Clock
  send(content: { readonly question: Readonly<Record<string, unknown>> }): void
}

/** The questions of one run. */
class AskedOfCaller {
  readonly #deps: AskedOfCallerDeps
  readonly #open = new Map<number, OpenQuestion>()
  #count = 0

  constructor(deps: AskedOfCallerDeps) {
    this.#deps = deps
  }

  ask(question: Question, isNeeded: () => boolean): Promise<QuestionAnswer> {
    if (this.#open.size >= MAX_OPEN_QUESTIONS)
      return Promise.resolve(refusal(`${MAX_OPEN_QUESTIONS} questions of this request wait already`))
    if (this.#count >= MAX_QUESTIONS)
      return Promise.resolve(refusal(`a request may ask its caller ${MAX_QUESTIONS} questions`))
    const id = ++this.#count
    return new Promise((settle) => {
      this.#open.set(id, { question, settle, isNeeded, askedAt: this.#deps.clock.monotonic(), repeats: 0, timer: null })
      this.#tell(id)
    })
  }

  answer(id: number, answer: unknown): void {
    const one = this.#open.get(id)
    if (one === undefined) return
    this.#open.delete(id)
    this.#deps.clock.clear(one.timer)
    one.settle(readAnswer(answer, kindOf(one.question)))
  }

  repeat(): void {
    for (const id of this.#open.keys()) this.#tell(id)
  }

  end(): void {
    for (const id of [...this.#open.keys()]) this.answer(id, refusal('the request ended before its caller answered'))
  }

  #tell(id: number): void {
    const one = this.#open.get(id)
    if (one === undefined) return
    const { clock, send } = this.#deps
    if (clock.monotonic() - one.askedAt >= BUSY_WAIT_MS && one.isNeeded())
      return this.answer(id, refusal('the caller has not answered in time, and other work waits for the agent'))
    clock.clear(one.timer)
    one.timer = clock.after(backoffMs(REPEAT, one.repeats++), () => this.#tell(id))
    send({ question: { id, ...one.question } })
  }
}

function isCaller({ threads }: Execution, peer: NodeId): boolean {
  return threads.some(({ recipient }) => recipient.nodeId === peer)
}

function refusal(message: string): QuestionAnswer & { readonly ok: false } {
  return { ok: false, message }
}
