import { asNodeError, type ErrorCode, messageOf, NodeError } from '../../kit/errors.js'
import type { Unsubscribe } from '../../kit/events.js'
import type { NodeId } from '../../kit/ids.js'
import { TransientMap } from '../../kit/transient.js'
import { type AgentAddress, OPERATOR, parseAddress } from '../../domain/card/card.js'
import {
  artifactOf,
  inputOf,
  JUSTIFICATION_PLACE,
  justificationIn,
  questionOf,
  reportParts,
  resultArtifact,
  tokenOf
} from '../../domain/gateway/content.js'
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
import { MAX_SENT_BYTES, SentArtifacts } from '../../domain/gateway/sent-artifacts.js'
import type { CallerAuthority } from '../../domain/routing/effective.js'
import { FINAL_STATES, type Task, type TaskEvent } from '../../domain/task/task.js'
import type { OutputRules, OutputViolation } from '../../ports/gateway.js'
import { sizeOf } from '../../kit/size.js'
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
  readonly #open = new TransientMap<string, OpenRun>()

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
    try {
      this.#tellAll(live)
    } catch (error) {
      // What an agent gives may be of any form: its client must not wait for what cannot be told.
      const task = this.#taskOf(this.#open.get(live.id)?.id ?? '')
      this.#node.deps.telemetry.log('error', 'what an agent told could not be recorded', { task: live.id, reason: messageOf(error) })
      if (task !== undefined) this.#end(task, 'failed', 'what its agent told could not be recorded')
    }
  }

  #tellAll(live: Task): void {
    const run = this.#open.get(live.id)
    const task = run === undefined ? undefined : this.#taskOf(run.id)
    if (run === undefined || task === undefined) return
    for (const event of this.#node.tasks.events(live.id)) {
      if (event.generation <= run.seen) continue
      run.seen = event.generation
      this.#tell(task, event)
    }
    // Its client would wait for what nobody will ever tell.
    const isLost = live.state === 'unknown' && live.error !== null && isNeverLearned(live.error)
    if (isLost || FINAL_STATES.has(live.state)) this.#ended(task, live)
  }

  /** Nobody will learn any more how a task ended. */
  giveUp(task: GatewayTask): void {
    this.#end(task, 'failed', 'its outcome was never learned')
  }

  #watch(id: string, run: GatewayRun, before: readonly GatewayEvent[]): void {
    const watch = this.#rules === null ? null : new OutputGuard(this.#rules, before)
    this.#unfollow(run.taskId)
    const stop = this.#node.tasks.follow(run.taskId, (live) => this.look(live))
    this.#open.set(run.taskId, { id, seen: 0, watch, sent: new SentArtifacts(), bytes: 0, model: null, stop })
  }

  #openOf({ run }: GatewayTask): OpenRun | undefined {
    return run === null ? undefined : this.#open.get(run.taskId)
  }

  /** Follows no task any more. */
  close(): void {
    for (const { stop } of this.#open.values()) stop()
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

  #tell(task: GatewayTask, event: TaskEvent): void {
    if (event.type === 'progress') return this.#report(task, event.data)
    if (event.type !== 'state') return
    const buffered = event.waitingFor === undefined ? null : DEFERRED[event.waitingFor]
    const { state } = this.#log.current(task)
    if (buffered !== null) this.#say(task, state, [{ text: buffered, metadata: { waitingFor: event.waitingFor } }])
    else if (event.state === 'working') this.#add(task, { type: 'status', state: 'working' })
  }

  #report(task: GatewayTask, data: unknown): void {
    const { generation } = this.#log.current(task)
    const reported = artifactOf(data) ?? this.#pieceOf(task, data)
    const run = this.#openOf(task)
    if (run !== undefined) run.bytes += sizeOf(data)
    const isFull = (run?.bytes ?? 0) > MAX_TASK_BYTES
    if (reported === null) {
      const parts = generation < MAX_REPORTS && !isFull ? reportParts(data) : null
      this.#add(task, { type: 'status', state: 'working' })
      if (parts !== null) this.#hear(task, this.#saying(task, 'working', parts))
      return
    }
    const { artifact, append, lastChunk } = reported
    const read = readArtifact(artifact)
    if (!read.ok) return
    this.#add(task, { type: 'status', state: 'working' })
    run?.sent.take(read.value, append)
    if (generation < MAX_TASK_EVENTS && !isFull) return this.#hear(task, { type: 'artifact', artifact: read.value, append, lastChunk })
    this.cancel(task)
    this.#end(task, 'failed', `its agent told of more than ${MAX_TASK_EVENTS} things, or ${MAX_TASK_BYTES} bytes of them`)
  }

  /** What a language model says is the result in pieces; beyond what is recorded of reports the result itself tells it. */
  #pieceOf(task: GatewayTask, data: unknown): ReturnType<typeof artifactOf> {
    const run = this.#openOf(task)
    const status = this.#log.current(task).generation < MAX_REPORTS ? tokenOf(data) : null
    if (run === undefined || status === null || status.token === '') return null
    const { token, turn } = status
    const append = run.model?.turn === turn
    const text = append ? (run.model?.text ?? '') + token : token
    run.model = { turn, text: text.length > MAX_SENT_BYTES ? '' : text }
    return { artifact: resultArtifact(token), append, lastChunk: false }
  }

  /** What an agent says on its way. */
  #hear(task: GatewayTask, status: Exclude<GatewayInput, { readonly type: 'message' }>): void {
    const watch = this.#openOf(task)?.watch ?? null
    const given = watch === null ? [status] : watch.take(status)
    if (isViolation(given)) return this.#hold(task, given)
    for (const one of given) this.#add(task, one)
  }

  /** The last word of an agent, with what was held back before it. Is it held back itself? */
  #onTask(task: GatewayTask, last: unknown): boolean {
    const given = this.#openOf(task)?.watch?.end(last) ?? []
    if (isViolation(given)) {
      this.#hold(task, given)
      return true
    }
    for (const one of given) this.#add(task, one)
    return false
  }

  #hold(task: GatewayTask, { words, details }: OutputViolation): void {
    this.#close(task)
    this.#say(task, 'failed', [{ text: words, metadata: { guardrail: details } }])
    this.cancel(task)
  }

  #ended(task: GatewayTask, { id, state, result: given, error }: Task): void {
    const result = this.#node.deps.toAgentJson(given)
    if (state === 'completed') this.#add(task, { type: 'status', state: 'working' })
    if (this.#onTask(task, state === 'completed' ? result : (error?.message ?? null))) return
    if (state !== 'completed') {
      this.#unfollow(id)
      const known = error === null ? null : asClientError(NodeError.fromBody(error))
      const isRefused = known !== null && REFUSALS.has(known.code) && this.#log.current(task).state === 'submitted'
      const why = known === null ? state : `${known.message} (${known.code})`
      return this.#end(task, state === 'canceled' ? 'canceled' : isRefused ? 'rejected' : 'failed', why)
    }
    const run = this.#open.get(id)
    this.#unfollow(id)
    const question = questionOf(result)
    if (question !== null) return this.#say(task, question.state, question.parts)
    // The result of an A2A agent elsewhere is what it told of already. What stands there of turns before may be something else.
    const isSent = task.id === id ? run?.sent.covers(result) === true : run?.sent.isAll(result) === true
    const isSpoken = (run?.model ?? null)?.text === result
    // Of what a language model said nothing is missing but that it was all.
    if (isSpoken) this.#add(task, { type: 'artifact', artifact: resultArtifact(''), append: true, lastChunk: true })
    else if (result !== null && result !== undefined && !isSent)
      this.#add(task, { type: 'artifact', artifact: resultArtifact(result), append: false, lastChunk: true })
    this.#add(task, { type: 'status', state: 'completed' })
  }

  #end(task: GatewayTask, state: 'failed' | 'canceled' | 'rejected', why: string): void {
    this.#close(task)
    if (RESTING_STATES.has(this.#log.current(task).state)) return
    this.#say(task, state, [{ text: why }])
  }

  #say(task: GatewayTask, state: GatewayState, parts: readonly Part[]): void {
    this.#add(task, this.#saying(task, state, parts))
  }

  #saying(
    { id: taskId, contextId }: GatewayTask,
    state: GatewayState,
    parts: readonly Part[]
  ): Extract<GatewayInput, { readonly type: 'status' }> {
    const messageId = this.#node.deps.ids.next('msg')
    return { type: 'status', state, message: { messageId, role: 'agent', parts, taskId, contextId } }
  }

  /** What does not fit any more came too late. */
  #add(task: GatewayTask, input: GatewayInput): void {
    this.#log.add(task, input)
  }
}

/** A run under way. */
interface OpenRun {
  /** Of the task that it is a turn of. */
  readonly id: string
  /** The last event of the node's task that was told. */
  seen: number
  /** Judges what its agent says. */
  readonly watch: OutputGuard | null
  readonly sent: SentArtifacts
  /** Of all that it reported, about. */
  bytes: number
  /** The turn of its language model that was heard last, and what it said in it; empty once that is too long to be kept. */
  model: { readonly turn: number; readonly text: string } | null
  /** Ends following the task of the node. */
  readonly stop: Unsubscribe
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
