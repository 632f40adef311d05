import { calleeTaskId, type CalleeTaskIdDeps } from '../../tasks/callee-task-id.js'
import { Abort } from '../../../kit/abort.js'
import { messageOf, type ErrorBody } from '../../../kit/errors.js'
import { addressText, type AgentAddress } from '../../../domain/card/card.js'
import type { RequestRecord } from '../../../domain/reliable/records.js'
import { ENDINGS, notBegun, responseOf, type ReportedFailure } from '../../../domain/task/outcome.js'
import type { AgentHost, HostOutcome } from '../../agents/agent-host.js'
import type { InboundMessage, Thread } from '../../messaging/inbound-message.js'
import type { TaskTable } from '../../tasks/task-table.js'
import { bytesOfRequest, taskOf, type Execution, type InFlight } from './in-flight.js'
import type { CalleeQuestions } from './questions.js'
import type { Replies, RepliesDeps, ResponseParts } from './replies.js'

/** Dependencies of the runner. */
export interface RunnerDeps
  extends Pick<RepliesDeps, 'telemetry' | 'directory' | 'exchanges' | 'callee' | 'commit'>,
    CalleeTaskIdDeps {
  readonly agents: AgentHost
  readonly tasks: TaskTable
  readonly replies: Replies
  readonly inFlight: InFlight
  readonly questions: Pick<CalleeQuestions, 'callerOf' | 'end'>
}

/** The message of a run. */
interface RunMessage extends Pick<InboundMessage, 'peer' | 'recipient'> {
  readonly justification?: string | undefined
  /** Its sender; absent for work of this node. */
  readonly sender?: AgentAddress
}

/** Runs admitted work: opens its task, runs its agent, records its end and answers. */
export class Runner {
  readonly #deps: RunnerDeps

  constructor(deps: RunnerDeps) {
    this.#deps = deps
  }

  /** Adds work in flight and opens its task. */
  open(
    message: RunMessage,
    {
      key,
      payload,
      isNotification,
      threads,
      record
    }: Pick<Execution, 'key' | 'payload' | 'isNotification' | 'threads' | 'record'>,
    name?: string
  ): Execution {
    const { peer, recipient, justification } = message
    const id = record?.taskId ?? name ?? (isNotification ? undefined : this.#sharedTaskId(message, payload))
    const { agent, taskId } = this.#openTask(recipient, payload, { name, id })
    const piece: Execution = {
      key,
      peer,
      recipient,
      payload,
      ...(justification === undefined ? {} : { justification }),
      taskId,
      bytes: bytesOfRequest(payload),
      isNotification,
      isRunning: false,
      hasEnded: false,
      isAwaited: !isNotification,
      isStopped: false,
      ending: null,
      threads,
      record,
      abort: new Abort((error) =>
        this.#deps.telemetry.log('error', 'a program failed while it was stopped', { agent, reason: messageOf(error) })
      ),
      lostAt: null
    }
    this.#deps.inFlight.add(piece)
    return piece
  }

  /** The task id that caller and callee derive alike; undefined for a message without a sender. */
  #sharedTaskId(
    { peer, sender, recipient }: RunMessage,
    { requestId, attempt }: Execution['payload']
  ): string | undefined {
    if (sender === undefined) return undefined
    const [source, target] = [addressText(sender), addressText(recipient)]
    return calleeTaskId(this.#deps, { peer, source, target, requestId, attempt })
  }

  #openTask(
    recipient: Execution['recipient'],
    { capability, description }: Execution['payload'],
    { name, id }: { readonly name: string | undefined; readonly id: string | undefined }
  ): { readonly agent: string; readonly taskId: string } {
    const { agents, directory, tasks } = this.#deps
    // The string of the card, if there is one: thousands of tasks share it.
    const agent = directory.card(recipient)?.address ?? addressText(recipient)
    const { running, slots } = agents.load(recipient.agentId)
    // Named work starts at once.
    const state = running < slots && name !== undefined ? 'working' : 'submitted'
    const opening = {
      kind: 'request',
      role: 'callee',
      agent,
      capability: capability ?? '',
      description,
      state
    } as const
    const taskId = tasks.open(opening, id)
    if (running >= slots) tasks.waitFor(taskId, 'slot')
    return { agent, taskId }
  }

  /** Runs the agent. Resolves when the end is on record. */
  async run(piece: Execution): Promise<HostOutcome> {
    const { agents, tasks, telemetry, questions } = this.#deps
    const task = taskOf(piece)
    const { takes, logLevel } = piece.payload
    const caller = takes === undefined && logLevel === undefined ? undefined : questions.callerOf(piece)
    const outcome = await agents.run(piece.recipient.agentId, task, {
      signal: piece.abort,
      onStart: () => {
        tasks.attempt(piece.taskId, task.attempt)
        const { record } = piece
        if (record === null) return this.#started(piece)
        return this.#begin(piece, record).then(() => this.#started(piece))
      },
      onProgress: (data) => this.#progress(piece, data),
      caller
    })
    piece.hasEnded = true
    if (caller !== undefined) questions.end(piece)
    telemetry.count(outcome.ok ? 'tasks_completed' : 'tasks_failed')
    // An end that is not durable may change after a crash, so it is not shown before.
    const ending = this.#finish(piece, outcome)
    piece.ending = ending
    const unfit = ending === null ? null : await ending
    if (unfit !== null) tasks.fail(piece.taskId, unfit)
    else if (outcome.ok) tasks.complete(piece.taskId, outcome.result)
    else this.#failedRun(piece, outcome)
    this.#deps.inFlight.remove(piece)
    return outcome
  }

  #failedRun(piece: Execution, stated: ReportedFailure): void {
    const { tasks, callee } = this.#deps
    const { status, error } = callee.endOf(piece, stated)
    if (status === 'unknown') tasks.unknown(piece.taskId, error)
    else tasks.fail(piece.taskId, error)
  }

  /**
   * Makes the beginning durable first, unless the work is repeatable and new: another end of the node must be counted.
   * @throws NodeError OVERLOADED when the ledger refuses it, TIMEOUT past its deadline.
   */
  async #begin(piece: Execution, before: RequestRecord): Promise<void> {
    const { record, changes, isLeft } = this.#deps.callee.begin(before)
    piece.record = record
    const commit = this.#deps.commit(changes)
    if (!record.isRepeatable || isLeft) return await commit.catch(notBegun)
    commit.catch((error: unknown) =>
      this.#deps.telemetry.log('warn', 'that work began could not be recorded', {
        requestId: record.requestId,
        reason: messageOf(error)
      })
    )
  }

  #started(piece: Execution): void {
    piece.isRunning = true
    this.#deps.telemetry.count('tasks_started')
    this.#deps.tasks.working(piece.taskId)
  }

  #progress({ taskId, isAwaited, threads, payload: { requestId, attempt } }: Execution, data: unknown): void {
    this.#deps.tasks.progress(taskId, data)
    const thread = threads.at(-1)
    if (isAwaited && thread !== undefined) this.#deps.replies.progress(thread, { requestId, attempt, progress: data })
  }

  /**
   * Records and reports the end; resolves with the error when the result fits no message. null: no caller waits, or
   * `stopped` ends it.
   */
  #finish(piece: Execution, outcome: HostOutcome): Promise<ErrorBody | null> | null {
    return piece.isNotification || piece.isStopped ? null : this.#conclusion(piece, outcome)
  }

  /** The end and the answer are one commit; a request that found no room may be sent again as if new. */
  async #conclusion(piece: Execution, outcome: HostOutcome): Promise<ErrorBody | null> {
    const { isAwaited, threads } = piece
    const { response, changes, ...concluded } = this.#deps.callee.ending(piece, outcome)
    let unfit = concluded.unfit ?? null
    if (isAwaited) await this.#answer(threads, response, { changes, onUnfit: (error) => (unfit = error) })
    else await this.#deps.replies.note(changes)
    if (!isAwaited) for (const thread of threads) this.#deps.exchanges.end(thread)
    return unfit
  }

  /** This node stops during work with a waiting caller: the caller is told, and the record says so. */
  async stopped({ payload, record, isRunning, threads }: Execution): Promise<void> {
    const { callee } = this.#deps
    const isUnknown = record !== null && isRunning && !record.isRepeatable
    const changes =
      record === null ? [] : isUnknown ? callee.end(record, ENDINGS.interrupted) : callee.stopped(record, isRunning)
    if (payload.swarm !== null && !isUnknown) return await this.#deps.replies.note(changes)
    const response = isUnknown ? responseOf(payload, ENDINGS.interrupted) : responseOf(payload, ENDINGS.stopped)
    await this.#answer(threads, response, { changes })
  }

  /** The first answer and the changes are one commit. */
  async #answer(threads: readonly Thread[], response: unknown, parts: ResponseParts): Promise<void> {
    // While the ledger refuses changes, further threads join.
    for (const [at, thread] of threads.entries())
      await this.#deps.replies.respond(thread, response, at === 0 ? parts : {})
  }
}
