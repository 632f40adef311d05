import { asNodeError, type ErrorCode, messageOf, NodeError } from '../../kit/errors.js'
import type { NodeId } from '../../kit/ids.js'
import { TransientMap } from '../../kit/transient.js'
import { type AgentAddress, OPERATOR, parseAddress } from '../../domain/card/card.js'
import { inputOf, JUSTIFICATION_PLACE, justificationIn, questionOf, reportParts, resultArtifact } from '../../domain/gateway/content.js'
import { type Message, type Part, readArtifact } from '../../domain/gateway/message.js'
import {
  ENDED_STATES,
  type GatewayEvent,
  type GatewayInput,
  type GatewayRun,
  type GatewayState,
  type GatewayTask,
  RESTING_STATES
} from '../../domain/gateway/task.js'
import { RunOutput } from '../../domain/gateway/run-output.js'
import type { CallerAuthority } from '../../domain/routing/effective.js'
import { FINAL_STATES, type Task, type TaskEvent } from '../../domain/task/task.js'
import type { OutputRules, OutputViolation } from '../../ports/gateway.js'
import type { Asking } from '../requests/caller/request-codec.js'
import type { DirectAnswers, DirectPath } from './direct-answer.js'
import { isNeverLearned } from '../../domain/task/outcome.js'
import type { TaskLog } from './task-log.js'
import { isViolation, OutputGuard } from './output-guard.js'
import type { NodeDeps } from '../dependencies.js'
import type { Requests } from '../requests/caller/requests.js'
import type { Executor } from '../requests/callee/executor.js'
import { tasksOfLedger } from '../requests/recovery.js'
import type { RequestStore } from '../requests/store.js'
import type { TaskTable } from '../tasks/task-table.js'

/** Events of one task beyond which reports of progress are not recorded any more. */
export const MAX_REPORTS = 2000
/** Events of the turns before that are read together with what is said now. */
export const MAX_EVENTS_BEFORE = 256
/** Events of one task; one whose agent makes more has failed, and its client adds none. */
export const MAX_TASK_EVENTS = 10_000
/** Bytes of them, about, of one turn; its client adds nothing to a task that has more. */
export const MAX_TASK_BYTES = 67_108_864

/** The rules did not let it begin. */
const REFUSALS: ReadonlySet<ErrorCode> = new Set(['TIER_VIOLATION', 'SANDBOX_VIOLATION', 'ESCALATION_REQUIRED', 'POLICY_DENIED'])

/** What is told while a task is held up. */
const DEFERRED = {
  approval: 'waiting for approval: a person of its node decides',
  slot: null,
  ack: null,
  peer: 'waiting for its node to be reached'
} as const

/** What running turns needs of the node. */
export interface TurnRunnerDeps {
  readonly deps: Pick<NodeDeps, 'ids' | 'settings' | 'telemetry' | 'toAgentJson'>
  readonly self: NodeId
  readonly tasks: TaskTable
  readonly requests: Pick<Requests, 'ask' | 'cancelTask'>
  readonly executor: Pick<Executor, 'cancelTask'>
  readonly direct: Pick<DirectAnswers, 'path' | 'begin'>
  readonly requestStore: RequestStore
}

/** The turns of gateway tasks as requests of the node: each is one, and what happens to it happens to the task. */
export class TurnRunner {
  readonly #node: TurnRunnerDeps
  readonly #log: TaskLog
  readonly #taskOf: (id: string) => GatewayTask | undefined
  readonly #rules: OutputRules | null
  /** By the node's task of the run. */
  readonly #open = new TransientMap<string, FollowedTurn>()

  /** `rules`: of what agents may say; null: anything. */
  constructor(
    node: TurnRunnerDeps,
    log: TaskLog,
    { taskOf, rules }: { taskOf(id: string): GatewayTask | undefined; readonly rules: OutputRules | null }
  ) {
    this.#node = node
    this.#log = log
    this.#taskOf = taskOf
    this.#rules = rules
  }

  /** Has the agent of a task that begins begin with it, in this very turn. False: it has to be asked ({@link ask}). */
  begin(task: GatewayTask, status: Pick<Message, 'parts'>, path: DirectPath): boolean {
    const { id, run: names } = task
    if (names === null) return false
    this.#watch(id, names, [])
    // The task's own log is all the record that it needs: what may be repeated is asked for again after a crash.
    try {
      if (this.#node.direct.begin(path, { input: inputOf(status.parts), names }) !== null) return true
      this.#close(task)
      return false
    } catch (error) {
      this.#failed(task, error)
      return true
    }
  }

  /** Is all that a run told still at hand? Else it has to be done again to be told. */
  isKnown({ taskId }: GatewayRun): boolean {
    const { tasks } = this.#node
    return tasks.get(taskId)?.generation === tasks.events(taskId).length
  }

  /** Tells of a task what its run told, which is over and known. True: it need not be begun. */
  retell(task: GatewayTask, run: GatewayRun): true {
    this.#watch(task.id, run, [])
    const live = this.#node.tasks.get(run.taskId)
    if (live !== undefined) this.look(live)
    return true
  }

  /** Asks the agent of a task. What it refuses is how the task ends. Never rejects. */
  async ask(task: GatewayTask, status: Pick<Message, 'parts' | 'metadata'>): Promise<void> {
    const { requests, direct, deps: node, self } = this.#node
    const target = parseAddress(task.agent)
    try {
      // The first turn of a task bears its name: nothing was told before it.
      const before = task.run?.taskId === task.id ? [] : await this.#sentBefore(task)
      // It may have been canceled before there was anything to stop.
      if (target === null || ENDED_STATES.has(this.#log.current(this.#taskOf(task.id) ?? task).state)) return
      const { capability, by, run: names } = task
      if (names === null) return
      this.#watch(task.id, names, before)
      const justification = justificationIn(status)
      const path = direct.path({ target, capability, by, justification })
      if (path !== null && direct.begin(path, { input: inputOf(status.parts), names }) !== null) return
      await requests.ask({
        ...askingOf({ self, target, capability, by, justification }, status.parts),
        timeoutMs: node.settings.defaultTtlMs,
        mayQueue: true,
        names
      })
    } catch (error) {
      this.#failed(task, error)
    }
  }

  #failed(task: GatewayTask, error: unknown): void {
    const { code, message } = asClientError(error)
    this.#end(task, task.state === 'submitted' ? 'rejected' : 'failed', `${message} (${code})`)
  }

  async #recorded(taskId: string): Promise<Task | undefined> {
    return (await tasksOfLedger(this.#node.requestStore, taskId)).find(({ task }) => task.id === taskId)?.task
  }

  /** After a start: what came of a turn while nobody looked; one that was never asked for is asked for now. @throws NodeError STORE_DAMAGED */
  async resume(task: GatewayTask): Promise<void> {
    const { run } = task
    if (run === null) return
    const { taskId, isAttended } = run
    const before = await this.#sentBefore(task)
    const live = this.#node.tasks.get(taskId) ?? (await this.#recorded(taskId))
    if (live === undefined && isAttended === true) return this.#leave(task)
    if (live === undefined) {
      const status = (await this.#log.snapshot(task)).history.findLast(({ role }) => role === 'user')
      return await this.ask(task, status ?? { parts: [] })
    }
    // What was told before the start is not among its events any more: they are of what began again since, none of it told yet.
    this.#watch(task.id, run, before)
    this.look(live)
    if (isAttended === true && this.#open.has(taskId)) this.#leave(task)
  }

  /** Its client went with the connection. */
  #leave(task: GatewayTask): void {
    this.#end(task, 'failed', 'interrupted: the node stopped while its client waited for it; ask again')
    this.cancel(task)
  }

  /** Stops what a task has under way; false when nothing is. */
  cancel({ run }: GatewayTask): boolean {
    const { requests, executor } = this.#node
    return run !== null && (requests.cancelTask(run.taskId) || executor.cancelTask(run.taskId))
  }

  /** Stops what a task has under way that there is not, after all: nobody hears of it. */
  drop(task: GatewayTask): void {
    this.#close(task)
    this.cancel(task)
  }

  /** A task of the node has changed. */
  look(live: Task): void {
    const turn = this.#open.get(live.id)
    const task = turn === undefined ? undefined : this.#taskOf(turn.id)
    if (turn === undefined || task === undefined) return
    try {
      turn.look(task, live)
    } catch (error) {
      // What an agent gives may be of any form: its client must not wait for what cannot be told.
      this.#node.deps.telemetry.log('error', 'what an agent told could not be recorded', { task: live.id, reason: messageOf(error) })
      this.#end(task, 'failed', 'what its agent told could not be recorded')
    }
  }

  /** Nobody will learn any more how a task ended. */
  giveUp(task: GatewayTask): void {
    this.#end(task, 'failed', 'its outcome was never learned')
  }

  #watch(id: string, { taskId }: GatewayRun, before: readonly GatewayEvent[]): void {
    this.#unfollow(taskId)
    const turn = new FollowedTurn(id, this.#rules === null ? null : new OutputGuard(this.#rules, before), {
      node: this.#node,
      log: this.#log,
      end: (...ended) => this.#end(...ended),
      cancel: (task) => this.cancel(task),
      unfollow: () => this.#unfollow(taskId),
      stop: this.#node.tasks.follow(taskId, (live) => this.look(live))
    })
    this.#open.set(taskId, turn)
  }

  /** Follows no task any more. */
  close(): void {
    for (const turn of this.#open.values()) turn.stop()
  }

  #unfollow(taskId: string): void {
    this.#open.get(taskId)?.stop()
    this.#open.delete(taskId)
  }

  /** Nobody hears any more of the run of a task. */
  #close({ run }: GatewayTask): void {
    if (run !== null) this.#unfollow(run.taskId)
  }

  /** What was told of a task before the turn that is under way, as far as it is judged with that. @throws NodeError STORE_DAMAGED */
  async #sentBefore({ id, run, generation }: GatewayTask): Promise<readonly GatewayEvent[]> {
    if (this.#rules?.holdsBack !== true || run?.taskId === id) return []
    const events = await this.#log.events(id, Math.max(0, generation - MAX_EVENTS_BEFORE), generation)
    return events.slice(
      0,
      events.findLastIndex(({ type }) => type === 'message')
    )
  }

  #end(task: GatewayTask, state: TurnFailure, why: string): void {
    this.#close(task)
    if (RESTING_STATES.has(this.#log.current(task).state)) return
    this.#log.add(task, saying(this.#node, task, { state, parts: [{ text: why }] }))
  }
}

type TurnFailure = 'failed' | 'canceled' | 'rejected'

/** What a status event says to the client, by its agent or its node. */
function saying(
  { deps: { ids } }: Pick<TurnRunnerDeps, 'deps'>,
  { id: taskId, contextId }: GatewayTask,
  { state, parts }: { readonly state: GatewayState; readonly parts: readonly Part[] }
): Extract<GatewayInput, { readonly type: 'status' }> {
  return { type: 'status', state, message: { messageId: ids.next('msg'), role: 'agent', parts, taskId, contextId } }
}

/** What following a turn needs. */
interface FollowedTurnDeps {
  readonly node: Pick<TurnRunnerDeps, 'deps' | 'tasks'>
  readonly log: TaskLog
  /** Ends the task of the turn, unless it rests. */
  end(task: GatewayTask, state: TurnFailure, why: string): void
  cancel(task: GatewayTask): void
  unfollow(): void
  /** Listens to the node's task no more. */
  stop(): void
}

/** A turn under way: what happens to the node's task of it happens to the task of the gateway. */
class FollowedTurn {
  /** Of the task that it is a turn of. */
  readonly id: string
  /** Judges what its agent says. */
  readonly #guard: OutputGuard | null
  readonly #deps: FollowedTurnDeps
  readonly #output = new RunOutput()
  /** The last event of the node's task that was told. */
  #seen = 0

  constructor(id: string, guard: OutputGuard | null, deps: FollowedTurnDeps) {
    this.id = id
    this.#guard = guard
    this.#deps = deps
  }

  /** Listens no more. */
  stop(): void {
    this.#deps.stop()
  }

  /** Tells the task what happened to the node's task since it was looked at last. */
  look(task: GatewayTask, live: Task): void {
    for (const event of this.#deps.node.tasks.events(live.id)) {
      if (event.generation <= this.#seen) continue
      this.#seen = event.generation
      this.#tell(task, event)
    }
    // Its client would wait for what nobody will ever tell.
    const isLost = live.state === 'unknown' && live.error !== null && isNeverLearned(live.error)
    if (isLost || FINAL_STATES.has(live.state)) this.#ended(task, live)
  }

  #tell(task: GatewayTask, event: TaskEvent): void {
    if (event.type === 'progress') return this.#report(task, event.data)
    if (event.type !== 'state') return
    const buffered = event.waitingFor === undefined ? null : DEFERRED[event.waitingFor]
    const { state } = this.#deps.log.current(task)
    if (buffered !== null) this.#say(task, state, [{ text: buffered, metadata: { waitingFor: event.waitingFor } }])
    else if (event.state === 'working') this.#add(task, { type: 'status', state: 'working' })
  }

  #report(task: GatewayTask, data: unknown): void {
    const { generation } = this.#deps.log.current(task)
    // Beyond what is recorded of reports the result itself tells what a language model said.
    const reported = this.#output.take(data, generation < MAX_REPORTS)
    const isFull = this.#output.bytes > MAX_TASK_BYTES
    if (reported === null) {
      const parts = generation < MAX_REPORTS && !isFull ? reportParts(data) : null
      this.#add(task, { type: 'status', state: 'working' })
      if (parts !== null) this.#hear(task, saying(this.#deps.node, task, { state: 'working', parts }))
      return
    }
    const { artifact, append, lastChunk } = reported
    const read = readArtifact(artifact)
    if (!read.ok) return
    this.#add(task, { type: 'status', state: 'working' })
    this.#output.sent(read.value, append)
    if (generation < MAX_TASK_EVENTS && !isFull) return this.#hear(task, { type: 'artifact', artifact: read.value, append, lastChunk })
    this.#deps.cancel(task)
    this.#deps.end(task, 'failed', `its agent told of more than ${MAX_TASK_EVENTS} things, or ${MAX_TASK_BYTES} bytes of them`)
  }

  /** What an agent says on its way. */
  #hear(task: GatewayTask, status: Exclude<GatewayInput, { readonly type: 'message' }>): void {
    const given = this.#guard === null ? [status] : this.#guard.take(status)
    if (isViolation(given)) return this.#hold(task, given)
    for (const one of given) this.#add(task, one)
  }

  /** The last word of an agent, with what was held back before it. Is it held back itself? */
  #isWithheld(task: GatewayTask, last: unknown): boolean {
    const given = this.#guard?.end(last) ?? []
    if (isViolation(given)) {
      this.#hold(task, given)
      return true
    }
    for (const one of given) this.#add(task, one)
    return false
  }

  #hold(task: GatewayTask, { words, details }: OutputViolation): void {
    this.#deps.unfollow()
    this.#say(task, 'failed', [{ text: words, metadata: { guardrail: details } }])
    this.#deps.cancel(task)
  }

  #ended(task: GatewayTask, { id, state, result: given, error }: Task): void {
    const result = this.#deps.node.deps.toAgentJson(given)
    if (state === 'completed') this.#add(task, { type: 'status', state: 'working' })
    if (this.#isWithheld(task, state === 'completed' ? result : (error?.message ?? null))) return
    this.#deps.unfollow()
    if (state !== 'completed') {
      const known = error === null ? null : asClientError(NodeError.fromBody(error))
      const isRefused = known !== null && REFUSALS.has(known.code) && this.#deps.log.current(task).state === 'submitted'
      const why = known === null ? state : `${known.message} (${known.code})`
      return this.#deps.end(task, state === 'canceled' ? 'canceled' : isRefused ? 'rejected' : 'failed', why)
    }
    const question = questionOf(result)
    if (question !== null) return this.#say(task, question.state, question.parts)
    // The result of an A2A agent elsewhere is what it told of already. What stands there of turns before may be something else.
    const isSent = this.#output.isSent(result, task.id === id)
    if (this.#output.isSpoken(result)) this.#add(task, { type: 'artifact', artifact: resultArtifact(''), append: true, lastChunk: true })
    else if (result !== null && result !== undefined && !isSent)
      this.#add(task, { type: 'artifact', artifact: resultArtifact(result), append: false, lastChunk: true })
    this.#add(task, { type: 'status', state: 'completed' })
  }

  #say(task: GatewayTask, state: GatewayState, parts: readonly Part[]): void {
    this.#add(task, saying(this.#deps.node, task, { state, parts }))
  }

  /** What does not fit any more came too late. */
  #add(task: GatewayTask, input: GatewayInput): void {
    this.#deps.log.add(task, input)
  }
}

/** Who is asked for what, in whose name. */
export interface TurnHead {
  readonly self: string
  readonly target: AgentAddress
  readonly capability: string
  readonly by: CallerAuthority
  readonly justification?: string | undefined
}

/** An error with what a client of the gateway can do about it. */
export function asClientError(error: unknown): NodeError {
  const known = asNodeError(error)
  if (known.code !== 'ESCALATION_REQUIRED') return known
  return new NodeError(known.code, `${known.message}, ${JUSTIFICATION_PLACE}`, { data: known.data })
}

/** A turn as the node asks for it. */
export function askingOf(
  { self, target, capability, by, justification }: TurnHead,
  parts: readonly Part[]
): Pick<Asking, 'sender' | 'target' | 'capability' | 'input' | 'description' | 'onBehalfOf' | 'justification'> {
  const asking = { sender: { agentId: OPERATOR, nodeId: self }, target, capability, input: inputOf(parts), description: '', onBehalfOf: by }
  return justification === undefined ? asking : { ...asking, justification }
}
