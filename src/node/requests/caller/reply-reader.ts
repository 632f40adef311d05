import type { ErrorBody } from '../../../kit/errors.js'
import type { EnvelopeHeader } from '../../../domain/envelope/codec.js'
import { decideRepeat, errorForCaller } from '../../../domain/reliable/repeat.js'
import { ENDINGS } from '../../../domain/task/outcome.js'
import type { Admission } from '../../reliable/lane-receiver.js'
import type { RequestOutcome } from './outcome.js'
import { isByNeighbour, isOfOneCopy, leftMs, outcomeOf, readReply } from './request-codec.js'
import type { Answer, Ended, RequestDeps, RequestMaking } from './request-codec.js'
import { CallerQuestions } from './questions.js'
import { storedForm } from './record.js'
import type { RequestSending } from './sending.js'

/** Dependencies of the reply reader. */
interface ReplyReaderParts {
  readonly outcome: RequestOutcome
  readonly sending: RequestSending
  /** Its peer refused it, and it may wait. */
  onRefused(error: ErrorBody): void
  /** The ledger did not take the reply. */
  onNotRecorded(): void
}

/** Reads the replies to one request: progress, its end, a reason to send it again, or the end of one copy. */
export class ReplyReader {
  readonly #clock: RequestDeps['clock']
  readonly #making: RequestMaking
  readonly #parts: ReplyReaderParts
  /** Most requests have neither questions nor log lines. */
  #questions: CallerQuestions | null = null
  readonly #sendAnswer: RequestDeps['sendAnswer']
  /** The last error of its peer for a single copy. */
  #ofOneCopy: ErrorBody | null = null

  constructor(
    { clock, sendAnswer }: Pick<RequestDeps, 'clock' | 'sendAnswer'>,
    making: RequestMaking,
    parts: ReplyReaderParts
  ) {
    this.#clock = clock
    this.#making = making
    this.#parts = parts
    this.#sendAnswer = sendAnswer
  }

  #asked(): CallerQuestions {
    const { target, questions } = this.#making.asking
    const { key } = this.#parts.sending
    this.#questions ??= new CallerQuestions(this.#clock, questions, (body) =>
      this.#sendAnswer(target.nodeId, { requestId: key, ...body })
    )
    return this.#questions
  }

  /** The ledger changes of a reply over a lane, for the commit that acknowledges it. */
  admit(header: EnvelopeHeader, payload: unknown): Pick<Admission, 'changes' | 'failed'> {
    const changes = this.#changes(header, payload)
    return { changes, failed: () => changes.length > 0 && this.#parts.onNotRecorded() }
  }

  #changes(header: EnvelopeHeader, payload: unknown): Admission['changes'] {
    const { record, asking } = this.#making
    const answer = this.#parts.outcome.isOver ? null : this.#read(header, payload)
    if (answer === null || !('outcome' in answer) || record === null || this.#isStale(answer)) return []
    const now = this.#clock.now()
    if (this.#isOneOfCopies(answer) && !this.#parts.sending.copies.isLast) return []
    // Its peer has dropped it: after a crash it must be sent again.
    if (this.#repeats(answer)) return record.waiting(now, () => storedForm(asking), answer.error)
    return record.ended(outcomeOf(answer), now)
  }

  /** Handles a reply. */
  receive(header: EnvelopeHeader, payload: unknown): void {
    const { outcome, sending } = this.#parts
    const answer = this.#read(header, payload)
    if (answer === null) return
    if (this.#isStale(answer)) return sending.stale()
    if ('run' in answer) outcome.note((tasks, id) => tasks.attempt(id, answer.run ?? 1))
    if ('progress' in answer) outcome.note((tasks, id) => tasks.progress(id, answer.progress))
    else if ('question' in answer) this.#asked().ask(answer.question, outcome.isAwaited)
    else if ('log' in answer) this.#asked().log(answer.log)
    else if (answer.outcome === 'UNKNOWN') outcome.unknown(answer.error, null)
    // Another copy may still be under way, with an answer of its own.
    else if (isOfOneCopy(answer) && !sending.copies.denied() && this.#isOneOfCopies(answer))
      this.#ofOneCopy = answer.error
    else if (this.#repeats(answer)) this.#parts.onRefused(answer.error)
    else void outcome.finish(answer)
  }

  /** A copy never arrived and never will. Past its deadline no later copy begins it either. */
  undelivered(): void {
    const { outcome, sending } = this.#parts
    if (!outcome.isOver && sending.copies.denied())
      outcome.fail(this.#ofOneCopy ?? sending.refusal ?? ENDINGS.undelivered.error)
    else if (outcome.hasGivenUp) sending.giveUp()
  }

  /** The content of a reply; null when it does not count. Swarms judge their own leases. */
  #read(header: EnvelopeHeader, payload: unknown): ReturnType<typeof readReply> {
    const { names, record, asking } = this.#making
    const answer = readReply(header, payload, { names, peer: asking.target.nodeId })
    if (answer === null || !('outcome' in answer) || answer.outcome !== 'FAILED' || record === null) return answer
    return {
      ...answer,
      error: errorForCaller({ error: answer.error, isUnknown: false, isRepeatable: record.current.isRepeatable })
    }
  }

  /**
   * Does a refusal concern one of several copies? The others of an unrepeatable request are queries, so its peer's
   * refusal ends it. A neighbour may refuse any copy.
   */
  #isOneOfCopies(answer: Answer): boolean {
    return isOfOneCopy(answer) && (this.#making.record?.current.isRepeatable !== false || isByNeighbour(answer.error))
  }

  /**
   * Does it answer a query from before its peer's refusal? The peer kept no record then, so it could only report no
   * trace.
   */
  #isStale(answer: NonNullable<ReturnType<typeof readReply>>): boolean {
    return 'outcome' in answer && answer.outcome === 'UNKNOWN' && this.#parts.sending.isStale
  }

  /**
   * Is the request sent again after this answer? Only when its caller lets it wait, and the answer is not its agent's
   * own.
   */
  #repeats(answer: Answer): answer is Extract<Ended, { outcome: 'FAILED' }> {
    if (answer.outcome !== 'FAILED' || !this.#parts.outcome.mayWait) return false
    const isRepeatable = this.#making.record?.current.isRepeatable ?? true
    const left = leftMs(this.#making, this.#clock.now())
    const tried = { error: answer.error, isUnknown: false, isRepeatable, failures: 0, retries: 0, leftMs: left }
    return decideRepeat(tried).type === 'repeat'
  }
}
