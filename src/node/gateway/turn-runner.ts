import { asNodeError, type ErrorCode, messageOf, NodeError } from '../../kit/errors.js'
import type { NodeId } from '../../kit/ids.js'
import { TransientMap } from '../../kit/transient.js'
import { type AgentAddress, OPERATOR, parseAddress } from '../../domain/card/card.js'
import {
  answerIn,
  type AnswerResult,
  bytesMediaType,
  inputOf,
  JUSTIFICATION_PLACE,
  justificationIn,
  reportParts,
  resultArtifact,
  failurePart,
  statedBy
} from '../../domain/gateway/content.js'
import { type Part, readArtifact } from '../../domain/gateway/message.js'
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
import type { DirectAnswers, DirectPath, DirectWork } from './direct-answer.js'
import { statedEnd } from '../../domain/task/stated.js'
import { isNeverLearned } from '../../domain/task/outcome.js'
import type { AgentThread, Conversation } from '../../domain/gateway/conversation.js'
import type { Conversations } from './conversations.js'
import type { TaskLog } from './task-log.js'
import { isViolation, OutputGuard } from './output-guard.js'
import type { Directory } from '../cards/directory.js'
import type { NodeDeps } from '../dependencies.js'
import type { Requests } from '../requests/caller/requests.js'
import type { Executor } from '../requests/callee/executor.js'
import { tasksOfLedger } from '../requests/recovery.js'
import type { RequestStore } from '../requests/store.js'
import type { TaskTable } from '../tasks/task-table.js'

/** Events of one task beyond which progress reports are no longer recorded. */
export const MAX_REPORTS = 2000
/** Events of earlier turns that are checked together with the current output. */
export const MAX_EVENTS_BEFORE = 256
/** The most events of one task. An agent that makes more fails; a client can add none. */
export const MAX_TASK_EVENTS = 10_000
/** Approximate bytes of the events of one turn; a client can add nothing to a task with more. */
export const MAX_TASK_BYTES = 67_108_864

/** The rules refused the turn. */
const REFUSALS: ReadonlySet<ErrorCode> = new Set([
  'TIER_VIOLATION',
  'SANDBOX_VIOLATION',
  'ESCALATION_REQUIRED',
  'POLICY_DENIED'
])

/** The messages of a waiting task. */
const DEFERRED = {
  approval: 'waiting for approval: a person of its node decides',
  slot: null,
  ack: null,
  peer: 'waiting for its node to be reached'
} as const

/** Dependencies of {@link TurnRunner}. */
export interface TurnRunnerDeps {
  readonly deps: Pick<NodeDeps, 'ids' | 'settings' | 'telemetry' | 'toAgentJson'>
  readonly self: NodeId
  readonly directory: Pick<Directory, 'card'>
  readonly tasks: TaskTable
  readonly requests: Pick<Requests, 'ask' | 'cancelTask'>
  readonly executor: Pick<Executor, 'cancelTask'>
  readonly direct: Pick<DirectAnswers, 'path' | 'begin'>
  readonly requestStore: RequestStore
}

/** Options of {@link TurnRunner}. */
interface TurnRunnerOptions {
  taskOf(id: string): GatewayTask | undefined
  readonly rules: OutputRules | null
  readonly conversations: Pick<Conversations, 'of'>
}

/** The turns of gateway tasks. Each turn is a request of the node, and its events become events of the task. */
export class TurnRunner {
  readonly #node: TurnRunnerDeps
  readonly #log: TaskLog
  readonly #taskOf: (id: string) => GatewayTask | undefined
  readonly #rules: OutputRules | null
  readonly #conversations: Pick<Conversations, 'of'>
  /** By the node's task of the run. */
  readonly #open = new TransientMap<string, FollowedTurn>()

  /** `rules`: for the output of agents; null for none. */
  constructor(node: TurnRunnerDeps, log: TaskLog, { taskOf, rules, conversations }: TurnRunnerOptions) {
    this.#node = node
    this.#log = log
    this.#taskOf = taskOf
    this.#rules = rules
    this.#conversations = conversations
  }

  /** Begins a new task's turn directly, without a wait. False: it must be asked as a request ({@link ask}). */
  begin(task: GatewayTask, conversation: Conversation, path: DirectPath): boolean {
    const { id, run: names } = task
    if (names === null) return false
    this.#watch(id, names, [])
    // The task's own log is record enough: repeatable work is requested again after a crash.
    try {
      if (this.#node.direct.begin(path, workOf(conversation, names)) !== null) return true
      this.#close(task)
      return false
    } catch (error) {
      this.#failed(task, error)
      return true
    }
  }

  /** True when all events of a run are in memory. Otherwise the run must be repeated to get them. */
  isKnown({ taskId }: GatewayRun): boolean {
    const { tasks } = this.#node
    return tasks.get(taskId)?.generation === tasks.events(taskId).length
  }

  /** Adds the events of a finished, known run to a task. True: the run need not begin. */
  retell(task: GatewayTask, run: GatewayRun): true {
    this.#watch(task.id, run, [])
    const live = this.#node.tasks.get(run.taskId)
    if (live !== undefined) this.look(live)
    return true
  }

  /** Asks the agent of a task; a refusal ends the task. Never rejects. */
  async ask(task: GatewayTask, conversation: Conversation): Promise<void> {
    const { requests, direct, deps: node, self } = this.#node
    const target = parseAddress(task.agent)
    try {
      // The first turn of a task has the id of the task: no output came before it.
      const before = task.run?.taskId === task.id ? [] : await this.#sentBefore(task)
      // A cancel may have come before there was anything to stop.
      if (target === null || ENDED_STATES.has(this.#log.current(this.#taskOf(task.id) ?? task).state)) return
      const { capability, by, run: names } = task
      if (names === null) return
      this.#watch(task.id, names, before)
      const justification = justificationIn(conversation.message)
      const path = direct.path({ target, capability, by, justification })
      if (path !== null && direct.begin(path, workOf(conversation, names)) !== null) return
      await requests.ask({
        ...askingOf({ self, target, capability, by, justification }, conversation),
        timeoutMs: node.settings.defaultTtlMs,
        mayQueue: true,
        names
      })
    } catch (error) {
      this.#failed(task, error)
    }
  }

  #failed(task: GatewayTask, error: unknown): void {
    this.#end(task, task.state === 'submitted' ? 'rejected' : 'failed', asClientError(error))
  }

  async #recorded(taskId: string): Promise<Task | undefined> {
    return (await tasksOfLedger(this.#node.requestStore, taskId)).find(({ task }) => task.id === taskId)?.task
  }

  /**
   * After a start: takes over the outcome of a turn, or asks for a turn that was never asked.
   * @throws NodeError STORE_DAMAGED
   */
  async resume(task: GatewayTask): Promise<void> {
    const { run } = task
    if (run === null) return
    const { taskId, isAttended } = run
    const before = await this.#sentBefore(task)
    const live = this.#node.tasks.get(taskId) ?? (await this.#recorded(taskId))
    if (live === undefined && isAttended === true) return this.#leave(task)
    if (live === undefined) {
      const message = (await this.#log.snapshot(task)).history.findLast(({ role }) => role === 'user')
      if (message === undefined) return this.giveUp(task)
      return await this.ask(task, await this.#conversations.of(task, message))
    }
    // Events from before the start are gone; the present ones are of a run that began again, none of them reported yet.
    this.#watch(task.id, run, before)
    this.look(live)
    if (isAttended === true && this.#open.has(taskId)) this.#leave(task)
  }

  /** Ends a task whose client left with its connection. */
  #leave(task: GatewayTask): void {
    this.#end(task, 'failed', 'interrupted: the node stopped while its client waited for it; ask again')
    this.cancel(task)
  }

  /** Stops the run of a task; false when none is running. */
  cancel({ run }: GatewayTask): boolean {
    const { requests, executor } = this.#node
    return run !== null && (requests.cancelTask(run.taskId) || executor.cancelTask(run.taskId))
  }

  /** Stops the run of a task that failed to begin, without a report. */
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
      // The output of an agent may have any form: its client must not wait for output that cannot be recorded.
      this.#node.deps.telemetry.log('error', 'what an agent told could not be recorded', {
        task: live.id,
        reason: messageOf(error)
      })
      this.#end(task, 'failed', 'what its agent told could not be recorded')
    }
  }

  /** Ends a task whose outcome can never be learned. */
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

  /** Stops following all tasks. */
  close(): void {
    for (const turn of this.#open.values()) turn.stop()
  }

  #unfollow(taskId: string): void {
    this.#open.get(taskId)?.stop()
    this.#open.delete(taskId)
  }

  /** Stops following the run of a task. */
  #close({ run }: GatewayTask): void {
    if (run !== null) this.#unfollow(run.taskId)
  }

  /** The output of a task before the current turn, as far as it is judged with it. @throws NodeError STORE_DAMAGED */
  async #sentBefore({ id, run, generation }: GatewayTask): Promise<readonly GatewayEvent[]> {
    if (this.#rules?.holdsBack !== true || run?.taskId === id) return []
    const events = await this.#log.events(id, { after: Math.max(0, generation - MAX_EVENTS_BEFORE), to: generation })
    return events.slice(
      0,
      events.findLastIndex(({ type }) => type === 'message')
    )
  }

  #end(task: GatewayTask, state: TurnFailure, why: string | NodeError): void {
    this.#close(task)
    if (RESTING_STATES.has(this.#log.current(task).state)) return
    const part = typeof why === 'string' ? { text: why } : failurePart(why)
    this.#log.add(task, saying(this.#node, task, { state, parts: [part] }))
  }
}

type TurnFailure = 'failed' | 'canceled' | 'rejected'

/** A status event with a message of the agent or its node. */
function saying(
  { deps: { ids } }: Pick<TurnRunnerDeps, 'deps'>,
  { id: taskId, contextId }: GatewayTask,
  { state, parts, thread }: Stated
): Extract<GatewayInput, { readonly type: 'status' }> {
  const message = { messageId: ids.next('msg'), role: 'agent', parts, taskId, contextId } as const
  return thread === undefined ? { type: 'status', state, message } : { type: 'status', state, message, thread }
}

/** A state and the words for it. */
interface Stated {
  readonly state: GatewayState
  readonly parts: readonly Part[]
  readonly thread?: AgentThread
}

/** Dependencies of {@link FollowedTurn}. */
interface FollowedTurnDeps {
  readonly node: Pick<TurnRunnerDeps, 'deps' | 'directory' | 'tasks'>
  readonly log: TaskLog
  /** Ends the task of the turn, unless it rests. */
  end(task: GatewayTask, state: TurnFailure, why: string | NodeError): void
  cancel(task: GatewayTask): void
  unfollow(): void
  /** Stops listening to the node's task. */
  stop(): void
}

/** A running turn: copies the events of the node's task to the gateway task. */
class FollowedTurn {
  /** Id of its gateway task. */
  readonly id: string
  /** Judges the output of its agent. */
  readonly #guard: OutputGuard | null
  readonly #deps: FollowedTurnDeps
  readonly #output = new RunOutput()
  /** The last copied event of the node's task. */
  #seen = 0

  constructor(id: string, guard: OutputGuard | null, deps: FollowedTurnDeps) {
    this.id = id
    this.#guard = guard
    this.#deps = deps
  }

  /** Stops listening. */
  stop(): void {
    this.#deps.stop()
  }

  /** Copies the new events of the node's task to the task. */
  look(task: GatewayTask, live: Task): void {
    for (const event of this.#deps.node.tasks.events(live.id)) {
      if (event.generation <= this.#seen) continue
      this.#seen = event.generation
      this.#tell(task, event)
    }
    // Its client would wait for an outcome that nobody will ever report.
    const isLost = live.state === 'unknown' && live.error !== null && isNeverLearned(live.error)
    if (isLost || FINAL_STATES.has(live.state)) this.#ended(task, live)
  }

  #tell(task: GatewayTask, event: TaskEvent): void {
    if (event.type === 'progress') return this.#report(task, event.data)
    if (event.type !== 'state') return
    const buffered = event.waitingFor === undefined ? null : DEFERRED[event.waitingFor]
    const { state } = this.#deps.log.current(task)
    if (buffered !== null)
      this.#say(task, { state, parts: [{ text: buffered, metadata: { waitingFor: event.waitingFor } }] })
    else if (event.state === 'working') this.#add(task, { type: 'status', state: 'working' })
  }

  #report(task: GatewayTask, data: unknown): void {
    const { generation } = this.#deps.log.current(task)
    // Output of a language model beyond the recorded reports is in the result itself.
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
    if (generation < MAX_TASK_EVENTS && !isFull)
      return this.#hear(task, { type: 'artifact', artifact: read.value, append, lastChunk })
    this.#deps.cancel(task)
    this.#deps.end(
      task,
      'failed',
      `its agent told of more than ${MAX_TASK_EVENTS} things, or ${MAX_TASK_BYTES} bytes of them`
    )
  }

  /** Records output of an agent during its run. */
  #hear(task: GatewayTask, status: Exclude<GatewayInput, { readonly type: 'message' }>): void {
    const given = this.#guard === null ? [status] : this.#guard.take(status)
    if (isViolation(given)) return this.#hold(task, given)
    for (const one of given) this.#add(task, one)
  }

  /** Records the held-back output, and judges the last one. True when the last one is withheld. */
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
    this.#say(task, { state: 'failed', parts: [{ text: words, metadata: { guardrail: details } }] })
    this.#deps.cancel(task)
  }

  #ended(task: GatewayTask, { id, state, result: given, error }: Task): void {
    const result = this.#deps.node.deps.toAgentJson(given)
    if (state === 'completed') this.#add(task, { type: 'status', state: 'working' })
    const end = statedEnd(error)
    const ending = end === null ? null : { a2a: end }
    if (this.#isWithheld(task, state === 'completed' ? result : (ending ?? error?.message ?? null))) return
    this.#deps.unfollow()
    const stated = statedBy(ending ?? result)
    if (state !== 'completed' && stated === null) {
      const known = error === null ? null : asClientError(NodeError.fromBody(error))
      const isRefused = known !== null && REFUSALS.has(known.code) && this.#deps.log.current(task).state === 'submitted'
      return this.#deps.end(task, state === 'canceled' ? 'canceled' : isRefused ? 'rejected' : 'failed', known ?? state)
    }
    if (stated !== null) return this.#say(task, stated)
    const answer = answerIn(result)
    if (answer !== null) return this.#answered(task, answer)
    // The result of a remote A2A agent was sent already. Artifacts of earlier turns may differ.
    const isSent = this.#output.isSent(result, task.id === id)
    if (this.#output.isSpoken(result))
      this.#add(task, { type: 'artifact', artifact: resultArtifact(''), append: true, lastChunk: true })
    else if (result !== null && result !== undefined && !isSent)
      this.#add(task, {
        type: 'artifact',
        artifact: resultArtifact(result, this.#mediaType(task)),
        append: false,
        lastChunk: true
      })
    this.#add(task, { type: 'status', state: 'completed' })
  }

  #answered(task: GatewayTask, { parts, artifacts }: AnswerResult): void {
    for (const artifact of artifacts) this.#add(task, { type: 'artifact', artifact, append: false, lastChunk: true })
    if (parts === null) this.#add(task, { type: 'status', state: 'completed' })
    else this.#say(task, { state: 'completed', parts })
  }

  /** Of a result that is a file: null for other results. */
  #mediaType({ agent, capability }: GatewayTask): string | null {
    const address = parseAddress(agent)
    const card = address === null ? undefined : this.#deps.node.directory.card(address)
    return bytesMediaType(card?.capabilities.find(({ id }) => id === capability)?.outputSchema)
  }

  #say(task: GatewayTask, stated: Stated): void {
    this.#add(task, saying(this.#deps.node, task, stated))
  }

  /** Adds an event; one that does not fit came too late. */
  #add(task: GatewayTask, input: GatewayInput): void {
    this.#deps.log.add(task, input)
  }
}

/** The agent and capability of a turn, and its caller's rights. */
export interface TurnHead {
  readonly self: string
  readonly target: AgentAddress
  readonly capability: string
  readonly by: CallerAuthority
  readonly justification?: string | undefined
}

function workOf(conversation: Conversation, names: GatewayRun): DirectWork {
  return { input: inputOf(conversation.message.parts), conversation, names }
}

/** An error with advice for a client of the gateway. */
export function asClientError(error: unknown): NodeError {
  const known = asNodeError(error)
  const { code, data, message } = known
  return code === 'ESCALATION_REQUIRED' ? new NodeError(code, `${message}, ${JUSTIFICATION_PLACE}`, { data }) : known
}

/** A turn as a request of the node. */
export function askingOf(
  { self, target, capability, by, justification }: TurnHead,
  conversation: Conversation
): Omit<Asking, 'timeoutMs' | 'mayQueue'> {
  const asking = {
    sender: { agentId: OPERATOR, nodeId: self },
    target,
    capability,
    input: inputOf(conversation.message.parts),
    conversation,
    description: '',
    onBehalfOf: by
  }
  return justification === undefined ? asking : { ...asking, justification }
}
