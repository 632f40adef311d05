import type { Clock } from '../../kit/clock.js'
import { messageOf, NodeError } from '../../kit/errors.js'
import { Emitter, type Unsubscribe } from '../../kit/events.js'
import type { IdSource } from '../../kit/ids.js'
import { type IdKind, resolveId } from '../../kit/resolve-id.js'
import type { AgentAddress } from '../../domain/card/card.js'
import { kindOf, type Question, type QuestionAnswer, readAnswer } from '../../domain/task/question.js'
import type { Telemetry } from '../../ports/telemetry.js'

/** Questions that wait for the owner of this node at once. */
export const MAX_PENDING_QUESTIONS = 256

const IDS: IdKind = {
  one: 'waiting question',
  several: 'questions',
  prefix: 'ask_',
  code: 'APPROVAL_NOT_FOUND',
  list: 'a2a-node approvals ls'
}

/** A question of an agent to a caller of this node, as it waits for an answer. */
export interface PendingQuestion {
  readonly id: string
  /** Its text names the agent and its node. */
  readonly question: Question
  /** The asking agent, and the capability that it runs. */
  readonly agent: AgentAddress
  readonly capability: string | null
  /** Unix milliseconds; the end is that of its caller's patience. */
  readonly askedAt: number
  readonly expiresAt: number
  /** The caller that answers; null: the owner of this node. */
  readonly owner: string | null
}

/** A question in the list, with its answer. */
export interface AskedQuestion {
  readonly id: string
  /** Never rejects. */
  readonly answer: Promise<QuestionAnswer>
  /** Its request has ended: the answer is a refusal, unless there is one. */
  close(): void
}

interface ListedQuestion {
  readonly one: PendingQuestion
  readonly settle: (answer: QuestionAnswer) => void
}

/** Dependencies of {@link PendingQuestions}. */
interface PendingQuestionsDeps {
  readonly clock: Clock
  readonly ids: IdSource
  readonly telemetry: Pick<Telemetry, 'log'>
}

/** The questions of agents that wait for a caller's client, or for the owner of this node. Each is answered once. */
export class PendingQuestions {
  readonly #deps: PendingQuestionsDeps
  readonly #listed = new Map<string, ListedQuestion>()
  readonly #changes: Emitter<null>

  constructor(deps: PendingQuestionsDeps) {
    this.#deps = deps
    this.#changes = new Emitter((error) =>
      deps.telemetry.log('error', 'a listener of questions failed', { error: messageOf(error) })
    )
  }

  /** Is it an id of a question, or the beginning of one? */
  isId(text: string): boolean {
    return text.startsWith(IDS.prefix)
  }

  /** Lists a question; null when too many wait for the owner of this node. */
  add(asked: Omit<PendingQuestion, 'id' | 'askedAt' | 'expiresAt'>, waitMs: number): AskedQuestion | null {
    if (asked.owner === null && this.list().length >= MAX_PENDING_QUESTIONS) return null
    const { clock, ids } = this.#deps
    const [id, askedAt] = [ids.next('ask'), clock.now()]
    const answer = new Promise<QuestionAnswer>((settle) => {
      this.#listed.set(id, { one: { ...asked, id, askedAt, expiresAt: askedAt + waitMs }, settle })
    })
    this.#changed(asked)
    return {
      id,
      answer,
      close: () => this.#settle(id, { ok: false, message: 'the request ended before its caller answered' })
    }
  }

  /** The questions to the owner of this node, oldest first. */
  list(): readonly PendingQuestion[] {
    return [...this.#listed.values()].flatMap(({ one }) => (one.owner === null ? [one] : []))
  }

  /** The question of an id or prefix to the owner of this node. @throws NodeError APPROVAL_NOT_FOUND, AMBIGUOUS_NAME */
  get(text: string): PendingQuestion {
    return resolveId(text, new Map(this.list().map((one) => [one.id, one])), IDS)
  }

  /**
   * Answers a question. An answer of another form counts as a refusal.
   * @throws NodeError APPROVAL_NOT_FOUND for an unknown or answered question, and for one to another caller
   */
  answer(id: string, owner: string | null, answer: unknown): void {
    const listed = this.#listed.get(id)
    if (listed === undefined || listed.one.owner !== owner)
      throw new NodeError('APPROVAL_NOT_FOUND', 'no such question waits: it was answered, or its request has ended')
    this.#settle(id, readAnswer(answer, kindOf(listed.one.question)))
  }

  /** Calls back after each change of the questions to the owner of this node. */
  onChange(listener: () => void): Unsubscribe {
    return this.#changes.on(listener)
  }

  #settle(id: string, answer: QuestionAnswer): void {
    const listed = this.#listed.get(id)
    if (!this.#listed.delete(id) || listed === undefined) return
    listed.settle(answer)
    this.#changed(listed.one)
  }

  #changed({ owner }: Pick<PendingQuestion, 'owner'>): void {
    if (owner === null) this.#changes.emit(null)
  }
}
