import type { AbortSignalLike, Clock } from '../../kit/clock.js'
import { NodeError } from '../../kit/errors.js'
import { TransientMap } from '../../kit/transient.js'
import { addressText, type AgentAddress } from '../../domain/card/card.js'
import { answerIn, bytesMediaType, justificationIn, partsOf } from '../../domain/gateway/content.js'
import { type History, NO_HISTORY } from '../../domain/gateway/conversation.js'
import { type Message, placed } from '../../domain/gateway/message.js'
import {
  ASKING_STATES,
  ENDED_STATES,
  type GatewayInput,
  type GatewayRun,
  type GatewayState,
  type GatewayTask
} from '../../domain/gateway/task.js'
import { answerFault } from '../../domain/gateway/question-answer.js'
import { wholeAnswer } from '../../domain/gateway/whole-answer.js'
import type { GatewaySend, OutputRules } from '../../ports/gateway.js'
import type { Principal } from '../../ports/node-api.js'
import type { CheckShare } from '../agents/check-share.js'
import type { NodeDeps } from '../dependencies.js'
import { memberBehind, ownerOf, powerOf, refuseWeaker } from './caller.js'
import { type DirectReadDeps, onlyReads, readNow } from './direct-answer.js'
import { conversationOf, type Conversations } from './conversations.js'
import type { PushService } from './push/push-service.js'
import { checkSkill, type GatewayTarget, isDuplicate, type AgentResolver } from './resolve-agent.js'
import type { Retention, TaskIndex } from './task-index.js'
import type { TaskLog } from './task-log.js'
import type { TurnRunner, TurnRunnerDeps } from './turn-runner.js'

/** The most running tasks of one member of the mesh; beyond it the member begins none. */
export const MAX_MEMBER_TASKS = 256

/** The states of a task after an answer. */
const GOING_ON: ReadonlySet<GatewayState> = new Set<GatewayState>(['working', ...ENDED_STATES])

/** Dependencies of {@link TaskIntake}. */
export interface TaskIntakeDeps {
  readonly node: DirectReadDeps &
    Pick<TurnRunnerDeps, 'self'> & {
      readonly resolver: AgentResolver
      readonly checkShare: Pick<CheckShare, 'within'>
      readonly deps: Pick<NodeDeps, 'ids' | 'compileSchema'>
    }
  readonly index: TaskIndex
  readonly log: TaskLog
  readonly runs: TurnRunner
  readonly conversations: Conversations
  readonly retention: Retention
  readonly states: TaskStates
  readonly push: PushService | null
  readonly rules: OutputRules | null
}

/** Takes the messages of clients: each is answered at once, begins a task, or continues one. */
export class TaskIntake {
  readonly #deps: TaskIntakeDeps
  /** The message being recorded, by task. */
  readonly #taking = new TransientMap<string, Promise<GatewayTask>>()

  constructor(deps: TaskIntakeDeps) {
    this.#deps = deps
  }

  /**
   * Takes a message. Returns the task that it began or continued, or an answer without a task.
   * @throws NodeError on refusal
   */
  async take(by: Principal, request: GatewaySend): Promise<Message | GatewayTask> {
    const isAnswerable =
      request.mayAnswer && request.wait && request.message.taskId === undefined && request.push === undefined
    const found = isAnswerable ? this.#deps.node.resolver.target(by, request) : null
    const target = found instanceof Promise ? await found : found
    const isRead = target !== null && onlyReads(target.capability)
    // A message that began a task before is not answered directly.
    const isNew = isRead && this.#deps.index.begunBy(ownerOf(by), request.message.messageId) === undefined
    return await (isNew ? this.#answer(by, request, target) : this.#taskOf(by, request, target))
  }

  /**
   * Answers a read-only request without a task, or with one when the output exceeds a message.
   * @throws NodeError the failure
   */
  async #answer(by: Principal, request: GatewaySend, target: GatewayTarget): Promise<Message | GatewayTask> {
    const { message, signal } = request
    const { address, capability } = target
    const { ids, clock } = this.#deps.node.deps
    const since = clock.now()
    const names = this.#turn(request)
    const justification = justificationIn(message)
    const head = {
      self: this.#deps.node.self,
      target: address,
      capability: capability.id,
      by: powerOf(by),
      justification
    }
    const { contextId, history } = await this.#opening(by, message, address)
    const conversation = conversationOf({ id: names.taskId, contextId, owner: ownerOf(by) }, message, history)
    this.#deps.index.requestMade(names.requestId, ownerOf(by))
    const reading = readNow(this.#deps.node, head, { conversation, names, rules: this.#deps.rules, signal })
    const { result, needsTask } = await reading.finally(() => this.#deps.index.requestEnded(names.requestId))
    if (needsTask) {
      if (this.#deps.retention.isFull) await this.#deps.retention.make(ownerOf(by))
      const isFirst = this.#deps.index.begunBy(ownerOf(by), message.messageId) === undefined
      const over = this.#deps.runs.isKnown(names) ? names : null
      return isFirst
        ? await this.#begin(by, request, { ...target, contextId, history, over })
        : await this.#taskOf(by, request, target)
    }
    const parts = answerIn(result)?.parts ?? partsOf(result, bytesMediaType(capability.outputSchema))
    const answer: Message = { messageId: ids.next('msg'), contextId, role: 'agent', parts }
    const place = { owner: ownerOf(by), contextId, agent: addressText(address) }
    const exchange = [
      { at: since, message },
      { at: clock.now(), message: answer }
    ] as const
    const kept = this.#deps.conversations.answered(place, exchange, message.contextId === undefined)
    if (message.contextId !== undefined) await kept
    return answer
  }

  /** The task of a message: for a repeated message, the task that it began before. */
  #taskOf(by: Principal, request: GatewaySend, target: GatewayTarget | null): Promise<GatewayTask> {
    const { taskId, messageId } = request.message
    if (taskId !== undefined) {
      // Check the owner before waiting: else the wait would reveal the messages of another owner's task.
      this.#deps.index.find(ownerOf(by), taskId)
      return this.#inTurn(taskId, () => this.#goOn(by, request, taskId))
    }
    const begun = this.#deps.index.begunBy(ownerOf(by), messageId)
    if (begun !== undefined) return this.#begunBefore(by, request, begun)
    return target === null || this.#deps.retention.isFull || request.message.contextId !== undefined
      ? this.#beginLater(by, request, target)
      : this.#begin(by, request, {
          address: target.address,
          capability: target.capability,
          contextId: this.#newContext(),
          history: NO_HISTORY
        })
  }

  /** The context of a message that continues no task, and its history. @throws NodeError STORE_DAMAGED */
  async #opening(by: Principal, { contextId, messageId }: Message, address: AgentAddress): Promise<Opening> {
    if (contextId === undefined) return { contextId: this.#newContext(), history: NO_HISTORY }
    const place = { owner: ownerOf(by), contextId, agent: addressText(address) }
    return { contextId, history: await this.#deps.conversations.before(place, messageId) }
  }

  #newContext(): string {
    return this.#deps.node.deps.ids.next('ctx')
  }

  /** Begins a task once its agent is found and there is room for it. */
  async #beginLater(by: Principal, request: GatewaySend, known: GatewayTarget | null): Promise<GatewayTask> {
    const target = known ?? (await this.#deps.node.resolver.target(by, request))
    const opening = await this.#opening(by, request.message, target.address)
    if (this.#deps.retention.isFull) await this.#deps.retention.make(ownerOf(by))
    // Meanwhile the same message may have begun a task.
    const isFirst = this.#deps.index.begunBy(ownerOf(by), request.message.messageId) === undefined
    return isFirst ? await this.#begin(by, request, { ...target, ...opening }) : await this.#taskOf(by, request, target)
  }

  /** The task that the same message began, once durable. @throws NodeError CONFLICT for a different message */
  async #begunBefore(by: Principal, request: GatewaySend, id: string): Promise<GatewayTask> {
    await this.#deps.log.begun(id)
    const task = this.#deps.index.get(id)
    const { agent, skill, message } = request
    if (task === undefined) {
      this.#deps.index.notBegun({ id, owner: ownerOf(by), messageId: message.messageId })
      return await this.#taskOf(by, request, null)
    }
    const isSame =
      (agent === null || this.#deps.node.resolver.isCalled(task.agent, agent)) &&
      (skill === null || skill === task.capability)
    await isDuplicate(this.#deps.log, { task, message, isSame })
    await this.#addPush(by, request, task)
    return task
  }

  /** Takes the messages to one task one at a time. */
  async #inTurn(id: string, take: () => Promise<GatewayTask>): Promise<GatewayTask> {
    for (let other = this.#taking.get(id); other !== undefined; other = this.#taking.get(id))
      await other.catch(() => null)
    const taking = take()
    this.#taking.set(id, taking)
    try {
      return await taking
    } finally {
      this.#taking.delete(id)
    }
  }

  /** `over`: the finished run of the task, if any. */
  async #begin(
    by: Principal,
    request: GatewaySend,
    { address, capability, contextId, history, over = null }: GatewayTarget & Opening & Over
  ): Promise<GatewayTask> {
    if (by.kind === 'peer' && this.#deps.index.active(ownerOf(by)) >= MAX_MEMBER_TASKS)
      throw new NodeError('OVERLOADED', `this member has ${MAX_MEMBER_TASKS} tasks under way here`, { retryable: true })
    const fresh = this.#fresh(by, request, { address, capability, contextId, run: over ?? this.#turn(request) })
    const { id } = fresh
    const stated = placed(request.message, { taskId: id, contextId })
    const push = this.#deps.push?.begin(fresh, request.push) ?? []
    // Most tasks run at once: if nobody follows each step, the same commit records that they work.
    const asking = { target: address, capability: capability.id, by: fresh.by, justification: justificationIn(stated) }
    const path =
      over === null && request.wait && request.push === undefined ? this.#deps.node.direct.path(asking) : null
    const conversation = conversationOf(fresh, stated, history)
    const begun: GatewayInput = { type: 'message', message: stated }
    const inputs: readonly GatewayInput[] =
      path === null && over === null ? [begun] : [begun, { type: 'status', state: 'working' }]
    this.#deps.index.begin(fresh)
    const { task, durable } = this.#deps.log.begin(fresh, inputs, push)
    // Direct work may be repeated, so it need not wait for the commit. It may even end before it.
    const isBegun =
      over === null
        ? path !== null && this.#deps.runs.begin(task, conversation, path)
        : this.#deps.runs.retell(task, over)
    try {
      await durable
    } catch (error) {
      this.#deps.index.notBegun(fresh)
      this.#deps.push?.notBegun(fresh)
      if (isBegun) this.#deps.runs.drop(task)
      throw error
    }
    if (!isBegun) await this.#deps.runs.ask(task, conversation)
    return task
  }

  /** A new task without events. */
  #fresh(
    by: Principal,
    request: GatewaySend,
    { address, capability, contextId, run }: GatewayTarget & { readonly contextId: string; readonly run: GatewayRun }
  ): GatewayTask {
    const now = this.#deps.node.deps.clock.now()
    return {
      id: run.taskId,
      contextId,
      owner: this.#deps.index.shared(ownerOf(by)),
      messageId: request.message.messageId,
      agent: this.#deps.index.shared(addressText(address)),
      capability: this.#deps.index.shared(capability.id),
      by: this.#deps.index.sharedPower(ownerOf(by), powerOf(by)),
      state: 'submitted',
      message: null,
      since: now,
      createdAt: now,
      updatedAt: now,
      generation: 0,
      run
    }
  }

  #turn({ isAttended }: GatewaySend): GatewayRun {
    const { ids } = this.#deps.node.deps
    const names = { requestId: ids.next('req'), taskId: ids.next('task') }
    return isAttended === true ? { ...names, isAttended } : names
  }

  /** Adds the push config of a message to its task, unless the task has it, or has ended. */
  async #addPush(by: Principal, { push: request }: GatewaySend, { id, state }: GatewayTask): Promise<void> {
    const { push } = this.#deps
    if (request === undefined || push === null || ENDED_STATES.has(state)) return
    const { url, id: name } = request.target
    // Without an id, each repetition of a message would add one more.
    const isKnown = name === undefined && (await push.list(by, id)).some((hook) => hook.url === url)
    if (!isKnown) await push.set(by, id, request)
  }

  async #goOn(by: Principal, request: GatewaySend, taskId: string): Promise<GatewayTask> {
    const { message, skill } = request
    checkSkill(this.#deps.index.find(ownerOf(by), taskId), skill)
    const isKnown = await isDuplicate(this.#deps.log, { task: this.#deps.index.find(ownerOf(by), taskId), message })
    // The hook gets all events from the answer on.
    await this.#addPush(by, request, this.#deps.index.find(ownerOf(by), taskId))
    if (isKnown) return this.#deps.index.find(ownerOf(by), taskId)
    const before = this.#deps.log.current(this.#deps.index.find(ownerOf(by), taskId))
    const { id, contextId } = before
    refuseWeaker(by, before)
    if (message.contextId !== undefined && message.contextId !== contextId)
      throw new NodeError('INVALID_INPUT', 'the task is of another context', { data: { reason: 'CONTEXT' } })
    checkForm(this.#deps.node, by, { task: before, message })
    this.#deps.node.resolver.checkAnswer(by, { task: before, message })
    const thread = before.run?.thread
    const run = thread === undefined ? this.#turn(request) : { ...this.#turn(request), thread }
    const stated = placed(message, { taskId, contextId })
    const reason = this.#deps.log.add(before, { type: 'message', message: stated, run })
    if (reason !== null)
      throw new NodeError('CONFLICT', `the task takes no message: ${reason}`, { data: { state: before.state } })
    this.#deps.log.add(before, { type: 'status', state: 'working' })
    // A cancel may be in the same commit.
    await this.#deps.states.until(id, GOING_ON)
    const task = this.#deps.index.get(id) ?? before
    await this.#deps.runs.ask(task, await this.#deps.conversations.of(task, stated))
    return task
  }
}

/** How long a stream waits for a message that is its whole answer before it begins with a task, in milliseconds. */
export const WHOLE_ANSWER_MS = 2000

/** Dependencies of {@link TaskStates}. */
interface TaskStatesDeps {
  readonly index: Pick<TaskIndex, 'get'>
  readonly log: Pick<TaskLog, 'on' | 'events'>
  readonly clock: Clock
}

/** The durable states of tasks. */
export class TaskStates {
  readonly #deps: TaskStatesDeps

  constructor(deps: TaskStatesDeps) {
    this.#deps = deps
  }

  /** True when a task is durably in one of these states, or gone. */
  isIn(id: string, states: ReadonlySet<GatewayState>): boolean {
    const task = this.#deps.index.get(id)
    return task === undefined || states.has(task.state)
  }

  /**
   * The message that is the whole answer to a task, once the agent has sent anything. null for any other answer, after
   * {@link WHOLE_ANSWER_MS}, and when the signal aborts. @throws NodeError STORE_DAMAGED
   */
  async wholeAnswer(id: string, signal?: AbortSignalLike): Promise<Message | null> {
    const { index, log, clock } = this.#deps
    let wake = (): void => {}
    let isLate = false
    // The first event is the message of the client.
    let after = 1
    const end = (): void => {
      isLate = true
      wake()
    }
    const unlisten = log.on(id, () => wake())
    const timer = clock.after(WHOLE_ANSWER_MS, end)
    signal?.addEventListener('abort', end)
    try {
      for (;;) {
        const changed = new Promise<void>((resolve) => {
          wake = resolve
        })
        const to = index.get(id)?.generation ?? after
        const answer = wholeAnswer(await log.events(id, { after, to }))
        after = to
        if (answer !== undefined) return answer
        if (isLate || signal?.aborted === true || index.get(id) === undefined) return null
        await changed
      }
    } finally {
      unlisten()
      clock.clear(timer)
      signal?.removeEventListener('abort', end)
    }
  }

  /** Waits until a task is durably in one of these states. Resolves early when the signal aborts. */
  async until(id: string, states: ReadonlySet<GatewayState>, signal?: AbortSignalLike): Promise<void> {
    const isThere = (): boolean => this.isIn(id, states) || signal?.aborted === true
    if (isThere()) return
    await new Promise<void>((resolve) => {
      const unlisten = this.#deps.log.on(id, () => isThere() && done())
      signal?.addEventListener('abort', done)
      function done(): void {
        unlisten()
        signal?.removeEventListener('abort', done)
        resolve()
      }
    })
  }
}

/** The context of a message that continues no task. */
interface Opening {
  readonly contextId: string
  readonly history: History
}

/** The finished run of a task. */
interface Over {
  readonly over?: GatewayRun | null
}

/** @throws NodeError INVALID_INPUT when the answer does not fit the schema of the question */
function checkForm(
  { self, checkShare, deps }: Pick<TaskIntakeDeps['node'], 'self' | 'checkShare' | 'deps'>,
  by: Principal,
  { task, message }: { readonly task: GatewayTask; readonly message: Message }
): void {
  if (!ASKING_STATES.has(task.state)) return
  const fault = checkShare.within(memberBehind(by) ?? self, () =>
    answerFault(deps.compileSchema, task.message, message.parts)
  )
  if (fault !== null) throw fault
}
