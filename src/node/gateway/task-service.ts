import type { AbortSignalLike, Timer } from '../../kit/clock.js'
import { NodeError } from '../../kit/errors.js'
import { AsyncQueue } from '../../kit/queue.js'
import { sizeOf } from '../../kit/size.js'
import { TransientMap } from '../../kit/transient.js'
import { addressText } from '../../domain/card/card.js'
import { justificationIn, partsOf } from '../../domain/gateway/content.js'
import { type Message, placed } from '../../domain/gateway/message.js'
import {
  ENDED_STATES,
  type GatewayEvent,
  type GatewayInput,
  type GatewayRun,
  type GatewaySnapshot,
  type GatewayState,
  type GatewayTask,
  RESTING_STATES
} from '../../domain/gateway/task.js'
import type { TaskFilter } from '../../domain/gateway/task-order.js'
import type { Gateway, GatewayFollow, GatewayPage, GatewayPaging, GatewayReply, GatewaySend, OutputRules } from '../../ports/gateway.js'
import type { Principal } from '../../ports/node-api.js'
import { allow, ownerOf, powerOf, refuseWeaker } from './caller.js'
import { TaskIndex, Retention } from './task-index.js'
import { TaskLog, type TaskLogDeps, type TaskUpdate } from './task-log.js'
import { PushService, type PushServiceDeps } from './push/push-service.js'
import { type DirectReadDeps, onlyReads, readNow } from './direct-answer.js'
import { TurnRunner, type TurnRunnerDeps } from './turn-runner.js'
import {
  checkAnswer,
  checkSkill,
  isDuplicate,
  pastItsTime,
  gatewayAgent,
  type GatewayTarget,
  gatewayTarget,
  isCalled,
  type ResolveAgentDeps
} from './resolve-agent.js'

/** Events that a follower may be behind before it is given those that it missed from the log. */
const FOLLOW_QUEUE = 1024
/** How often tasks that are past their time are looked for, in milliseconds. */
const SWEEP_MS = 60_000
/** Tasks of one member of the mesh that may be under way; beyond it the member begins none. */
export const MAX_MEMBER_TASKS = 256

/** What a task that was answered comes to. */
const GOING_ON: ReadonlySet<GatewayState> = new Set<GatewayState>(['working', ...ENDED_STATES])
/** Bytes of tasks with their contents beyond which a page ends, with fewer than were asked for. */
export const MAX_PAGE_BYTES = 1_048_576

/** What the gateway needs of the node. */
export type TaskServiceDeps = ResolveAgentDeps & DirectReadDeps & TurnRunnerDeps & { readonly deps: TaskLogDeps & PushServiceDeps['node'] }

/** What the gateway is given. */
export interface GatewayOptions {
  /** The way to those who want to be told of their tasks, and who of them is gone; null: nobody is told. */
  readonly push?: Pick<PushServiceDeps, 'webhooks' | 'owners'> | null
  /** Of what agents may say; null: anything. */
  readonly rules?: OutputRules | null
}

/** The tasks of A2A clients: each is a log of events in the ledger, and its turns are requests of the node. */
export class TaskService implements Gateway {
  readonly push: PushService | null
  readonly #node: TaskServiceDeps
  readonly #rules: OutputRules | null
  readonly #index = new TaskIndex()
  readonly #log: TaskLog
  readonly #runs: TurnRunner
  readonly #retention: Retention
  /** Messages to tasks that are being recorded, by task. */
  readonly #taking = new TransientMap<string, Promise<GatewayTask>>()
  #timer: Timer | null = null

  constructor(node: TaskServiceDeps, { push = null, rules = null }: GatewayOptions = {}) {
    this.#node = node
    this.#rules = rules
    this.#log = new TaskLog(
      node.deps,
      (task, isFirst) => {
        if (isFirst) this.#index.add(task)
        else this.#index.put(task)
        this.push?.look(task)
      },
      (task, events) => this.push?.noticesOf(task, events) ?? []
    )
    const find = (by: Principal, id: string, scope: 'read' | 'send'): GatewayTask => {
      allow(by, scope)
      return this.#find(by, id)
    }
    const deps = { node: node.deps, log: this.#log, taskOf: (id: string) => this.#index.get(id), find }
    this.push = push === null ? null : new PushService({ ...deps, ...push })
    this.#runs = new TurnRunner(node, this.#log, { taskOf: (id) => this.#log.changing(id) ?? this.#index.get(id), rules })
    this.#retention = new Retention({ node: node.deps, index: this.#index, log: this.#log, runs: this.#runs, push: this.push })
  }

  /** Reads what there is, and goes on with what had not ended. @throws NodeError STORE_DAMAGED */
  async start(): Promise<void> {
    const read: GatewayTask[] = []
    for await (const task of this.#log.tasks()) read.push(task)
    read.sort((a, b) => a.since - b.since || (a.id < b.id ? -1 : 1))
    for (const task of read) this.#index.put(this.#index.sharing(task))
    this.#node.checkShare.payers = this.#index
    const all = [...this.#index.all()]
    await this.push?.start(all)
    this.#timer = this.#node.deps.clock.every(SWEEP_MS, () => void this.#retention.sweep())
    for (const task of all) if (!RESTING_STATES.has(task.state)) await this.#runs.resume(task)
  }

  /** Listens to nothing any more. */
  stop(): void {
    this.#node.deps.clock.clear(this.#timer)
    this.#runs.close()
    this.push?.stop()
    this.#log.stop()
  }

  async send(by: Principal, request: GatewaySend): Promise<GatewayReply> {
    allow(by, 'send')
    const isAnswerable = request.mayAnswer && request.wait && request.message.taskId === undefined && request.push === undefined
    const found = isAnswerable ? gatewayTarget(this.#node, by, request) : null
    const target = found instanceof Promise ? await found : found
    const isRead = target !== null && onlyReads(target.capability)
    // One that began a task is no longer only read.
    const isNew = isRead && this.#index.begunBy(ownerOf(by), request.message.messageId) === undefined
    const answer = isNew ? await this.#answer(by, request, target) : null
    if (answer !== null && 'role' in answer) return { kind: 'message', message: answer }
    const task = answer ?? (await this.#taskOf(by, request, target))
    if (request.wait && !this.#isIn(task.id, RESTING_STATES)) await this.#until(task.id, RESTING_STATES, request.signal)
    const given = this.#snapshot(task)
    const snapshot = given instanceof Promise ? await given : given
    if (ENDED_STATES.has(snapshot.task.state)) this.#log.recordSent(task.id)
    return { kind: 'task', snapshot }
  }

  async get(by: Principal, id: string): Promise<GatewaySnapshot> {
    allow(by, 'read')
    return (await this.#contents(this.#find(by, id))) ?? pastItsTime()
  }

  isOf(by: Principal, id: string, agentName: string): boolean {
    return isCalled(this.#node, this.#find(by, id).agent, agentName)
  }

  async list(by: Principal, filter: TaskFilter & { readonly agentName?: string }, page: GatewayPaging): Promise<GatewayPage> {
    allow(by, 'read')
    const { agentName, ...rest } = filter
    const agent = agentName === undefined ? {} : { agent: addressText(await gatewayAgent(this.#node, by, agentName)) }
    const { tasks, next, total } = this.#index.page(ownerOf(by), { ...rest, ...agent }, page)
    if (!page.isWhole) return { tasks: tasks.map((task) => ({ task, history: [], artifacts: [] })), next, total }
    const { whole, last } = await this.#whole(tasks)
    return { tasks: whole, next: last === tasks.at(-1) || last === undefined ? next : last, total }
  }

  /** Tasks with their contents, as many of the first as a page has room for, and the last of them. One by one: each may be large. */
  async #whole(tasks: readonly GatewayTask[]): Promise<{ readonly whole: GatewaySnapshot[]; readonly last: GatewayTask | undefined }> {
    const whole: GatewaySnapshot[] = []
    let bytes = 0
    for (const last of tasks) {
      const snapshot = await this.#contents(last)
      if (snapshot === null) continue
      bytes += sizeOf(snapshot)
      whole.push(snapshot)
      if (bytes > MAX_PAGE_BYTES) return { whole, last }
    }
    return { whole, last: tasks.at(-1) }
  }

  /** What a task holds; null: it was let go of while that was read. */
  async #contents(task: GatewayTask): Promise<GatewaySnapshot | null> {
    const snapshot = await this.#log.snapshot(task)
    return this.#index.get(task.id) === undefined ? null : snapshot
  }

  async cancel(by: Principal, id: string, signal?: AbortSignalLike): Promise<GatewaySnapshot> {
    allow(by, 'send')
    const task = this.#log.current(this.#find(by, id))
    if (ENDED_STATES.has(task.state)) throw new NodeError('CONFLICT', `the task is ${task.state} already`, { data: { state: task.state } })
    // Told to stop, its agent may still come to a question: nobody works on what rests.
    if (this.#runs.cancel(task)) await this.#until(id, RESTING_STATES, signal)
    if (signal?.aborted !== true) this.#log.add(this.#log.current(this.#find(by, id)), { type: 'status', state: 'canceled' })
    await this.#until(id, ENDED_STATES, signal)
    return await this.#snapshot(task)
  }

  async *follow(by: Principal, id: string, { after, untilRest = false, signal }: GatewayFollow): AsyncIterable<GatewayEvent> {
    allow(by, 'read')
    const ends = untilRest ? RESTING_STATES : ENDED_STATES
    const { generation, state } = this.#find(by, id)
    const queue = new AsyncQueue<TaskUpdate | null>(FOLLOW_QUEUE, () => null, signal)
    const unlisten = this.#log.on(id, (update) => queue.push(update))
    // Who names what has not happened yet hears of it when it does.
    let last = Math.min(after, generation)
    try {
      for (const event of await this.#log.events(id, after, generation)) {
        last = event.generation
        yield event
      }
      if (ends.has(state)) return
      for await (const update of queue) {
        for (const event of await this.#missed(id, last, update)) {
          last = event.generation
          yield event
          if (event.type === 'status' && ends.has(event.state)) return
        }
        // What waits for its client may be past its time before that one answers.
        if (this.#index.get(id) === undefined) return
      }
    } finally {
      unlisten()
      queue.end()
    }
  }

  /** The events behind a generation up to the news; null: news were lost, and the log has them. */
  async #missed(id: string, last: number, update: TaskUpdate | null): Promise<readonly GatewayEvent[]> {
    const to = update?.event.generation ?? this.#index.get(id)?.generation ?? last
    return update !== null && to === last + 1 ? [update.event] : await this.#log.events(id, last, to)
  }

  #snapshot({ id }: GatewayTask): GatewaySnapshot | Promise<GatewaySnapshot> {
    const task = this.#index.get(id)
    return task === undefined ? pastItsTime() : this.#log.snapshot(task)
  }

  #find(by: Principal, id: string): GatewayTask {
    const task = this.#index.get(id)
    // What another one began is as good as not there.
    if (task === undefined || task.owner !== ownerOf(by)) throw new NodeError('TASK_NOT_FOUND', 'there is no such task')
    return task
  }

  /** An answer without a task, of what only reads; a task where it told more than a message can. @throws NodeError what it failed with */
  async #answer(by: Principal, request: GatewaySend, target: GatewayTarget): Promise<Message | GatewayTask> {
    const { message, signal } = request
    const { address, capability } = target
    const { ids } = this.#node.deps
    const names = this.#turn(request)
    const justification = justificationIn(message)
    const head = { self: this.#node.self, target: address, capability: capability.id, by: powerOf(by), justification }
    this.#index.requestMade(names.requestId, ownerOf(by))
    const reading = readNow(this.#node, head, { parts: message.parts, names, rules: this.#rules, signal })
    const { result, needsTask } = await reading.finally(() => this.#index.requestEnded(names.requestId))
    if (needsTask) {
      if (this.#retention.isFull) await this.#retention.make(ownerOf(by))
      const isFirst = this.#index.begunBy(ownerOf(by), message.messageId) === undefined
      const over = this.#runs.isKnown(names) ? names : null
      return isFirst ? await this.#begin(by, request, { ...target, over }) : await this.#taskOf(by, request, target)
    }
    const contextId = message.contextId ?? ids.next('ctx')
    return { messageId: ids.next('msg'), contextId, role: 'agent', parts: partsOf(result) }
  }

  /** The task of a message: that of the same message before, if there was one. */
  #taskOf(by: Principal, request: GatewaySend, target: GatewayTarget | null): Promise<GatewayTask> {
    const { taskId, messageId } = request.message
    if (taskId !== undefined) {
      // Nobody waits behind the messages to a task of somebody else: how long that takes would tell of it.
      this.#find(by, taskId)
      return this.#inTurn(taskId, () => this.#goOn(by, request, taskId))
    }
    const begun = this.#index.begunBy(ownerOf(by), messageId)
    if (begun !== undefined) return this.#begunBefore(by, request, begun)
    return target === null || this.#retention.isFull ? this.#beginLater(by, request, target) : this.#begin(by, request, target)
  }

  /** Begins one once its agent is found and there is room for it. */
  async #beginLater(by: Principal, request: GatewaySend, known: GatewayTarget | null): Promise<GatewayTask> {
    const target = known ?? (await gatewayTarget(this.#node, by, request))
    if (this.#retention.isFull) await this.#retention.make(ownerOf(by))
    // Meanwhile the same message may have begun another one.
    const isFirst = this.#index.begunBy(ownerOf(by), request.message.messageId) === undefined
    return isFirst ? await this.#begin(by, request, target) : await this.#taskOf(by, request, target)
  }

  /** The task that the same message began, once it is there. @throws NodeError CONFLICT for another message */
  async #begunBefore(by: Principal, request: GatewaySend, id: string): Promise<GatewayTask> {
    await this.#log.begun(id)
    const task = this.#index.get(id)
    const { agent, skill, message } = request
    if (task === undefined) {
      this.#index.notBegun({ id, owner: ownerOf(by), messageId: message.messageId })
      return await this.#taskOf(by, request, null)
    }
    const isSame = (agent === null || isCalled(this.#node, task.agent, agent)) && (skill === null || skill === task.capability)
    await isDuplicate(this.#log, { task, message, isSame })
    return task
  }

  /** Messages to one task are taken one after the other. */
  async #inTurn(id: string, take: () => Promise<GatewayTask>): Promise<GatewayTask> {
    for (let other = this.#taking.get(id); other !== undefined; other = this.#taking.get(id)) await other.catch(() => null)
    const taking = take()
    this.#taking.set(id, taking)
    try {
      return await taking
    } finally {
      this.#taking.delete(id)
    }
  }

  /** `over`: the run that it is of, which is over. */
  async #begin(by: Principal, request: GatewaySend, { address, capability, over = null }: GatewayTarget & Over): Promise<GatewayTask> {
    if (by.kind === 'peer' && this.#index.active(ownerOf(by)) >= MAX_MEMBER_TASKS)
      throw new NodeError('OVERLOADED', `this member has ${MAX_MEMBER_TASKS} tasks under way here`, { retryable: true })
    const fresh = this.#fresh(by, request, { address, capability, run: over ?? this.#turn(request) })
    const { id, contextId } = fresh
    const stated = placed(request.message, { taskId: id, contextId })
    const push = this.push?.begin(fresh, request.push) ?? []
    // Most begin at once: that they do is the same commit, where nobody follows each step.
    const asking = { target: address, capability: capability.id, by: fresh.by, justification: justificationIn(stated) }
    const path = over === null && request.wait && request.push === undefined ? this.#node.direct.path(asking) : null
    const begun: GatewayInput = { type: 'message', message: stated }
    const inputs: readonly GatewayInput[] = path === null && over === null ? [begun] : [begun, { type: 'status', state: 'working' }]
    this.#index.begin(fresh)
    const { task, durable } = this.#log.begin(fresh, inputs, push)
    // What begins at once may be repeated: it need not wait until it is on record that it does, and may have ended by then.
    const isBegun = over === null ? path !== null && this.#runs.begin(task, stated, path) : this.#runs.retell(task, over)
    try {
      await durable
    } catch (error) {
      this.#index.notBegun(fresh)
      this.push?.notBegun(fresh)
      if (isBegun) this.#runs.drop(task)
      throw error
    }
    if (!isBegun) await this.#runs.ask(task, stated)
    return task
  }

  /** A task before anything has happened to it. */
  #fresh(by: Principal, request: GatewaySend, { address, capability, run }: GatewayTarget & { readonly run: GatewayRun }): GatewayTask {
    const { ids, clock } = this.#node.deps
    const now = clock.now()
    return {
      id: run.taskId,
      contextId: request.message.contextId ?? ids.next('ctx'),
      owner: this.#index.shared(ownerOf(by)),
      messageId: request.message.messageId,
      agent: this.#index.shared(addressText(address)),
      capability: this.#index.shared(capability.id),
      by: this.#index.sharedPower(ownerOf(by), powerOf(by)),
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
    const { ids } = this.#node.deps
    const names = { requestId: ids.next('req'), taskId: ids.next('task') }
    return isAttended === true ? { ...names, isAttended } : names
  }

  async #goOn(by: Principal, request: GatewaySend, taskId: string): Promise<GatewayTask> {
    const { message, push, skill } = request
    checkSkill(this.#find(by, taskId), skill)
    if (await isDuplicate(this.#log, { task: this.#find(by, taskId), message })) return this.#find(by, taskId)
    // From the answer on it is to hear all.
    if (push !== undefined && !ENDED_STATES.has(this.#find(by, taskId).state)) await this.push?.set(by, taskId, push)
    const before = this.#log.current(this.#find(by, taskId))
    const { id, contextId } = before
    refuseWeaker(by, before)
    if (message.contextId !== undefined && message.contextId !== contextId)
      throw new NodeError('INVALID_INPUT', 'the task is of another context')
    checkAnswer(this.#node, by, { task: before, message })
    const run = this.#turn(request)
    const reason = this.#log.add(before, { type: 'message', message: { ...message, contextId }, run })
    if (reason !== null) throw new NodeError('CONFLICT', `the task takes no message: ${reason}`, { data: { state: before.state } })
    this.#log.add(before, { type: 'status', state: 'working' })
    // It may be canceled in the same commit.
    await this.#until(id, GOING_ON, undefined)
    const task = this.#index.get(id) ?? before
    await this.#runs.ask(task, message)
    return task
  }

  /** Is a task durably in one of these states, or not there any more? */
  #isIn(id: string, states: ReadonlySet<GatewayState>): boolean {
    const task = this.#index.get(id)
    return task === undefined || states.has(task.state)
  }

  /** Waits until a task is durably in one of these states. Resolves early when the signal aborts. */
  async #until(id: string, states: ReadonlySet<GatewayState>, signal: AbortSignalLike | undefined): Promise<void> {
    const isThere = (): boolean => this.#isIn(id, states) || signal?.aborted === true
    if (isThere()) return
    await new Promise<void>((resolve) => {
      const unlisten = this.#log.on(id, () => isThere() && done())
      signal?.addEventListener('abort', done)
      function done(): void {
        unlisten()
        signal?.removeEventListener('abort', done)
        resolve()
      }
    })
  }
}

/** The run that a task is of, where that is over. */
interface Over {
  readonly over?: GatewayRun | null
}
