import { NodeError, type ErrorBody } from '../../../kit/errors.js'
import { isNotDone, outcomeOf, type Answer, type Ended, type RequestDeps, type RequestMaking } from './request-codec.js'
import { inDoubt } from './record.js'
import type { TaskTable } from '../../tasks/task-table.js'

/** Callbacks for the end of a request. */
interface OutcomeListener {
  /** No caller waits any more; a late answer still counts. */
  onGivenUp(): void
  /** It has ended for good. */
  onEnd(): void
  /** Its peer must drop it: a later copy would begin it. */
  onUnwanted(): void
}

/** The end of one request: keeps the caller's answer, the task and the record consistent. */
export class RequestOutcome {
  /** Never rejects. */
  readonly answer: Promise<Answer>
  readonly #deps: RequestDeps
  readonly #making: RequestMaking
  readonly #listener: OutcomeListener
  #settle: (answer: Answer) => void = () => {}
  #isOver = false
  #hasGivenUp: boolean
  /** The end for the caller, unless a reply is recorded first. */
  #fallbackEnd: Ended | null = null

  constructor(deps: RequestDeps, making: RequestMaking, listener: OutcomeListener) {
    this.#deps = deps
    this.#making = making
    this.#listener = listener
    this.#hasGivenUp = making.record?.current.status === 'unknown'
    this.answer = new Promise((resolve) => {
      this.#settle = resolve
    })
  }

  /** Has it ended? A timeout is no end: a late answer still counts. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** Is its outcome unknown, while a late answer still counts? */
  get hasGivenUp(): boolean {
    return this.#hasGivenUp
  }

  /** Does its caller wait for it? */
  get isAwaited(): boolean {
    return !this.#isOver && !this.#hasGivenUp
  }

  /** May it wait for its peer to come back or to have room? */
  get mayWait(): boolean {
    return this.#making.asking.mayQueue && this.isAwaited
  }

  /** Is its end recorded, or being recorded? */
  get isSettled(): boolean {
    return this.#making.record?.isSettled === true
  }

  /** The error with which it failed or will fail; null for neither. */
  get failure(): ErrorBody | null {
    return this.#fallbackEnd?.outcome === 'FAILED' ? this.#fallbackEnd.error : null
  }

  /** Changes its task. Leases have no task of their own. */
  note(tell: (tasks: TaskTable, taskId: string) => void): void {
    const { taskId } = this.#making.names
    if (taskId !== null) tell(this.#deps.tasks, taskId)
  }

  /** It could not be sent, or can never be answered. */
  fail(error: ErrorBody): void {
    this.#conclude({ outcome: 'FAILED', error })
  }

  /** Cancels it at the peer; the answer is a failure with CANCELED, unless another is being recorded. */
  cancel(): void {
    this.#conclude({ outcome: 'FAILED', error: new NodeError('CANCELED', 'canceled by its caller').toBody() }, true)
  }

  /** A reply counts once it is recorded; this end applies if the commit fails. */
  #conclude(answer: Ended, isUnwanted?: boolean): void {
    if (this.isSettled) this.#fallbackEnd ??= answer
    else void this.finish(answer, isUnwanted)
  }

  /** A reply was not recorded: the fallback end applies. */
  notRecorded(): void {
    if (this.#fallbackEnd !== null) void this.finish(this.#fallbackEnd, true)
  }

  /** This node stops: no caller will take the answer. */
  abandon(): void {
    if (this.#isOver) return
    this.close()
    this.#settle({
      outcome: 'UNKNOWN',
      error: new NodeError('CANCELED', 'this node stopped; the work may still go on').toBody()
    })
  }

  /**
   * The outcome is unknown; a late answer still counts. `retryAt` null: its peer will never know it, so it is not asked
   * again.
   */
  unknown(stated: ErrorBody, retryAt: number | null): void {
    const { asking, record } = this.#making
    const doubt = inDoubt(stated, asking, record)
    const error = retryAt === null ? { ...doubt, isFinal: true as const } : doubt
    this.note((tasks, id) => tasks.unknown(id, error))
    const changes = record?.ended({ status: 'unknown', error, retryAt }, this.#deps.clock.now()) ?? []
    void this.#deps.record(changes, this.#making.names.requestId)
    if (!this.isAwaited) return
    this.#hasGivenUp = true
    this.#listener.onGivenUp()
    this.#settle({ outcome: 'UNKNOWN', error })
  }

  /** Shows the end once it is durable. The caller is told once the ledger took it or refused it for now. */
  async finish(answer: Ended, isUnwanted = isNotDone(answer)): Promise<void> {
    if (this.#isOver) return
    this.close()
    this.#fallbackEnd = answer
    if (isUnwanted) this.#listener.onUnwanted()
    const tell = (): void =>
      this.note((tasks, id) =>
        answer.outcome === 'COMPLETED' ? tasks.complete(id, answer.result) : tasks.fail(id, answer.error)
      )
    const { record, names } = this.#making
    const changes = record?.ended(outcomeOf(answer), this.#deps.clock.now()) ?? []
    const isNow =
      changes.length === 0 || (answer.outcome === 'FAILED' && answer.error.code === 'CANCELED' && !this.#hasGivenUp)
    if (isNow) tell()
    const isKept = await this.#deps.record(changes, names.requestId)
    if (isKept && !isNow) tell()
    this.#settle(answer)
    if (!isKept) this.#deps.ends.add({ changes, notify: isNow ? () => {} : tell })
  }

  /** Ignores further answers. */
  close(): void {
    this.#isOver = true
    this.#listener.onEnd()
  }
}
