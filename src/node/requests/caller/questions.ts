import type { NodeId } from '../../../kit/ids.js'
import type { Clock } from '../../../kit/clock.js'
import { messageOf, NodeError } from '../../../kit/errors.js'
import { type RateLimit, TokenBucket } from '../../../kit/rate.js'
import type { ControlBody } from '../../../domain/channel/control.js'
import {
  isWanted,
  kindOf,
  type Severity,
  type AgentLogLine,
  MAX_OPEN_QUESTIONS,
  MAX_QUESTIONS,
  type Question,
  type QuestionAnswer,
  type QuestionKind,
  readLogLine,
  readQuestion
} from '../../../domain/task/question.js'
import type { Telemetry } from '../../../ports/telemetry.js'
import type { NextHop } from '../../relay/next-hop.js'

/** Log lines of one request that its caller takes; further ones are dropped. */
const LOG_RATE: RateLimit = { perSecond: 50, burst: 200 }

/** Kept answers of one request that are sent again; a repeated question beyond it gets none. */
const RESEND_RATE: RateLimit = { perSecond: 1, burst: 32 }

/** Answers the questions of one request, and takes its log lines. */
export interface QuestionListener {
  readonly takes: readonly QuestionKind[]
  readonly logLevel: Severity | null
  /** A question of a kind that it takes. A rejection counts as a refusal. */
  onQuestion(question: Question): Promise<QuestionAnswer>
  onLog(line: AgentLogLine): void
}

/** Sends an answer to the node of a request. Never throws. */
export type SendAnswer = (peer: NodeId, body: ControlBody<'answer'>) => void

/** Dependencies of {@link answerSender}. */
interface AnswerSenderDeps {
  readonly telemetry: Telemetry
  readonly nextHop: Pick<NextHop, 'isReachable' | 'sendControl'>
  readonly self: NodeId
  /** Answers work on this very node. */
  answerHere(body: ControlBody<'answer'>): void
}

/** Sends answers to peers that are reachable; a lost one is sent again when its question is repeated. */
export function answerSender({ telemetry, nextHop, self, answerHere }: AnswerSenderDeps): SendAnswer {
  const send: SendAnswer = (peer, body) => {
    if (peer === self) return answerHere(body)
    if (!nextHop.isReachable(peer)) return
    try {
      nextHop.sendControl(peer, 'answer', body)
    } catch (error) {
      if (error instanceof NodeError && error.code === 'PAYLOAD_TOO_LARGE' && !isRefusal(body.answer))
        return send(peer, { ...body, answer: refusal('the answer of the caller is too large') })
      telemetry.log('debug', 'an answer to a question could not be sent', { peer, reason: messageOf(error) })
    }
  }
  return send
}

/** A question of a request, as its caller keeps it. */
interface KeptQuestion {
  /** Its content: after a restart of its node, a number may stand for another question. */
  readonly text: string
  /** null: it is not answered yet. */
  answer: QuestionAnswer | null
}

/** The questions and log lines that come for one request. Each question is passed on once, and each answer is kept. */
export class CallerQuestions {
  readonly #listener: QuestionListener | undefined
  readonly #send: (body: Pick<ControlBody<'answer'>, 'id' | 'answer'>) => void
  readonly #lines: TokenBucket
  readonly #resends: TokenBucket
  readonly #kept = new Map<number, KeptQuestion>()
  #count = 0

  constructor(
    clock: Clock,
    listener: QuestionListener | undefined,
    send: (body: Pick<ControlBody<'answer'>, 'id' | 'answer'>) => void
  ) {
    this.#listener = listener
    this.#send = send
    this.#lines = new TokenBucket(LOG_RATE, clock)
    this.#resends = new TokenBucket(RESEND_RATE, clock)
  }

  /** A question of the agent, as its node sent it; `isAwaited`: a caller still waits for the request. */
  ask({ id, ...asked }: Readonly<Record<string, unknown>> & { readonly id: number }, isAwaited: boolean): void {
    const question = readQuestion(asked)
    const text = JSON.stringify(question)
    const known = this.#kept.get(id)
    if (known?.text === text) {
      if (known.answer !== null && this.#resends.take()) this.#send({ id, answer: known.answer })
      return
    }
    const listener = this.#listener
    const isTaken = isAwaited && question !== null && listener?.takes.includes(kindOf(question)) === true
    if (!isTaken || this.#isFull()) return this.#send({ id, answer: refusal('no caller answers the question now') })
    this.#count++
    const kept: KeptQuestion = { text, answer: null }
    this.#kept.set(id, kept)
    const answered = (answer: QuestionAnswer): void => {
      kept.answer = answer
      if (this.#kept.get(id) === kept) this.#send({ id, answer })
    }
    listener.onQuestion(question).then(answered, (error: unknown) => answered(refusal(messageOf(error))))
  }

  /** The agent's node bounds the questions too, but is not trusted with it. */
  #isFull(): boolean {
    const open = [...this.#kept.values()].filter(({ answer }) => answer === null).length
    return this.#count >= MAX_QUESTIONS || open >= MAX_OPEN_QUESTIONS
  }

  /** A log line of the agent, as its node sent it. */
  log(value: unknown): void {
    const listener = this.#listener
    if (listener === undefined || listener.logLevel === null || !this.#lines.take()) return
    const line = readLogLine(value)
    if (line !== null && isWanted(line.level, listener.logLevel)) listener.onLog(line)
  }
}

function isRefusal(answer: unknown): boolean {
  return !(answer as QuestionAnswer).ok
}

function refusal(message: string): QuestionAnswer {
  return { ok: false, message }
}
