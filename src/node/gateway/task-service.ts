import type { Timer } from '../../kit/clock.js'
import { NodeError } from '../../kit/errors.js'
import { AsyncQueue } from '../../kit/queue.js'
import { sizeOf } from '../../kit/size.js'
import { addressText } from '../../domain/card/card.js'
import {
  ENDED_STATES,
  type GatewayEvent,
  type GatewaySnapshot,
  type GatewayTask,
  RESTING_STATES
} from '../../domain/gateway/task.js'
import type { TaskFilter } from '../../domain/gateway/task-order.js'
import type {
  Gateway,
  GatewayCancel,
  GatewayFollow,
  GatewayPage,
  GatewayPaging,
  GatewayReply,
  GatewaySend,
  OutputRules,
  ContentsTurn
} from '../../ports/gateway.js'
import type { ContextStore } from '../../ports/task-api.js'
import type { Principal } from '../../ports/node-api.js'
import { allow, ownerOf } from './caller.js'
import { TaskIndex, Retention } from './task-index.js'
import { TaskIntake, TaskStates } from './task-intake.js'
import type { NodeDeps } from '../dependencies.js'
import type { CheckShare } from '../agents/check-share.js'
import { TaskLog, type TaskLogDeps, type TaskUpdate } from './task-log.js'
import { AnswerLog } from './answer-log.js'
import { Conversations } from './conversations.js'
import { PushService, type PushServiceDeps } from './push/push-service.js'
import type { DirectReadDeps } from './direct-answer.js'
import { TurnRunner, type TurnRunnerDeps } from './turn-runner.js'
import { type AgentResolver, pastItsTime } from './resolve-agent.js'

/** The most queued events of a follower; beyond it, missed events are read from the log. */
const FOLLOW_QUEUE = 1024
/** Interval between sweeps for expired tasks, in milliseconds. */
const SWEEP_MS = 60_000
/** Bytes of tasks with their contents that end a page early. */
export const MAX_PAGE_BYTES = 524_288

/** Dependencies of {@link TaskService}. */
export type TaskServiceDeps = DirectReadDeps &
  TurnRunnerDeps & {
    readonly resolver: AgentResolver
    readonly checkShare: Pick<CheckShare, 'payers' | 'within'>
    readonly deps: TaskLogDeps & PushServiceDeps['node'] & Pick<NodeDeps, 'compileSchema'>
  }

/** Options of the gateway. */
export interface GatewayOptions {
  /** Delivery of push notifications, and the revoked owners; null: no notifications. */
  readonly push?: Pick<PushServiceDeps, 'webhooks' | 'owners'> | null
  /** The rules for the output of agents; null for none. */
  readonly rules?: OutputRules | null
}

/** The tasks of A2A clients: each is a log of events in the ledger, and its turns are requests of the node. */
export class TaskService implements Gateway {
  readonly push: PushService | null
  /** The conversations of all callers, for the operator of the node. */
  readonly contexts: ContextStore
  readonly #node: TaskServiceDeps
  readonly #index = new TaskIndex()
  readonly #log: TaskLog
  readonly #answers: AnswerLog
  readonly #runs: TurnRunner
  readonly #retention: Retention
  readonly #intake: TaskIntake
  readonly #states: TaskStates
  #timer: Timer | null = null

  constructor(node: TaskServiceDeps, { push = null, rules = null }: GatewayOptions = {}) {
    this.#node = node
    this.#answers = new AnswerLog(node.deps)
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
      return this.#index.find(ownerOf(by), id)
    }
    const deps = { node: node.deps, log: this.#log, taskOf: (id: string) => this.#index.get(id), find }
    this.push = push === null ? null : new PushService({ ...deps, ...push })
    const conversations = new Conversations({ index: this.#index, log: this.#log, answers: this.#answers })
    this.contexts = conversations
    this.#runs = new TurnRunner(node, this.#log, {
      taskOf: (id) => this.#log.changing(id) ?? this.#index.get(id),
      rules,
      conversations
    })
    const shared = { index: this.#index, log: this.#log, runs: this.#runs, push: this.push, conversations }
    this.#retention = new Retention({ ...shared, node: node.deps, answers: this.#answers })
    this.#states = new TaskStates({ index: this.#index, log: this.#log, clock: node.deps.clock })
    this.#intake = new TaskIntake({ ...shared, node, rules, retention: this.#retention, states: this.#states })
  }

  /** Reads the stored tasks, and resumes those that do not rest. @throws NodeError STORE_DAMAGED */
  async start(): Promise<void> {
    const read: GatewayTask[] = []
    for await (const task of this.#log.tasks()) read.push(task)
    read.sort((a, b) => a.since - b.since || (a.id < b.id ? -1 : 1))
    for (const task of read) this.#index.put(this.#index.sharing(task))
    await this.#answers.start()
    this.#node.checkShare.payers = this.#index
    const all = [...this.#index.all()]
    await this.push?.start(all)
    this.#timer = this.#node.deps.clock.every(SWEEP_MS, () => void this.#retention.sweep())
    for (const task of all) if (!RESTING_STATES.has(task.state)) await this.#runs.resume(task)
  }

  /** Stops all work on tasks. */
  stop(): void {
    this.#node.deps.clock.clear(this.#timer)
    this.#runs.close()
    this.push?.stop()
    this.#answers.stop()
    this.#log.stop()
  }

  async send(by: Principal, request: GatewaySend): Promise<GatewayReply> {
    allow(by, 'send')
    const task = await this.#intake.take(by, request)
    if ('role' in task) return { kind: 'message', message: task }
    if (request.wait && !this.#states.isIn(task.id, RESTING_STATES))
      await this.#states.until(task.id, RESTING_STATES, request.signal)
    // The task of a stream is as it was before the wait: its first events are not lost.
    const before = this.#index.get(task.id) ?? pastItsTime()
    const isAnswerable = !request.wait && request.mayAnswer && request.message.taskId === undefined
    const message =
      isAnswerable && request.push === undefined ? await this.#states.wholeAnswer(task.id, request.signal) : null
    if (message !== null) return { kind: 'message', message }
    const given = this.#log.snapshot(before, request.turn)
    const snapshot = given instanceof Promise ? await given : given
    if (ENDED_STATES.has(snapshot.task.state)) this.#log.recordSent(task.id)
    return { kind: 'task', snapshot }
  }

  async get(by: Principal, id: string, { turn }: { readonly turn?: ContentsTurn } = {}): Promise<GatewaySnapshot> {
    allow(by, 'read')
    return (await this.#contents(this.#index.find(ownerOf(by), id), turn)) ?? pastItsTime()
  }

  isOf(by: Principal, id: string, agentName: string): boolean {
    return this.#node.resolver.isCalled(this.#index.find(ownerOf(by), id).agent, agentName)
  }

  async list(
    by: Principal,
    filter: TaskFilter & { readonly agentName?: string },
    page: GatewayPaging
  ): Promise<GatewayPage> {
    allow(by, 'read')
    const { agentName, ...rest } = filter
    const agent = agentName === undefined ? {} : { agent: addressText(await this.#node.resolver.agent(by, agentName)) }
    const { tasks, next, total } = this.#index.page(ownerOf(by), { ...rest, ...agent }, page)
    if (!page.isWhole) return { tasks: tasks.map((task) => ({ task, history: [], artifacts: [] })), next, total }
    const { whole, last } = await this.#whole(tasks, page.turn)
    return { tasks: whole, next: last === tasks.at(-1) || last === undefined ? next : last, total }
  }

  /**
   * Tasks with their contents, as many as a page has room for, and the last of them. One at a time: each may be large.
   */
  async #whole(
    tasks: readonly GatewayTask[],
    turn?: ContentsTurn
  ): Promise<{ readonly whole: GatewaySnapshot[]; readonly last: GatewayTask | undefined }> {
    const whole: GatewaySnapshot[] = []
    let bytes = 0
    for (const last of tasks) {
      const snapshot = await this.#contents(last, turn)
      if (snapshot === null) continue
      bytes += sizeOf(snapshot)
      whole.push(snapshot)
      if (bytes > MAX_PAGE_BYTES) return { whole, last }
    }
    return { whole, last: tasks.at(-1) }
  }

  /** The contents of a task; null when it was removed during the read. */
  async #contents(task: GatewayTask, turn?: ContentsTurn): Promise<GatewaySnapshot | null> {
    const snapshot = await this.#log.snapshot(task, turn)
    return this.#index.get(task.id) === undefined ? null : snapshot
  }

  async cancel(by: Principal, id: string, { signal, turn }: GatewayCancel = {}): Promise<GatewaySnapshot> {
    allow(by, 'send')
    const task = this.#log.current(this.#index.find(ownerOf(by), id))
    if (ENDED_STATES.has(task.state))
      throw new NodeError('CONFLICT', `the task is ${task.state} already`, { data: { state: task.state } })
    // After a cancel, its agent may still ask a question: no work runs on a resting task.
    if (this.#runs.cancel(task)) await this.#states.until(id, RESTING_STATES, signal)
    if (signal?.aborted !== true)
      this.#log.add(this.#log.current(this.#index.find(ownerOf(by), id)), { type: 'status', state: 'canceled' })
    await this.#states.until(id, ENDED_STATES, signal)
    return (await this.#contents(this.#index.get(id) ?? pastItsTime(), turn)) ?? pastItsTime()
  }

  async *follow(
    by: Principal,
    id: string,
    { after, untilRest = false, signal, turn }: GatewayFollow
  ): AsyncIterable<GatewayEvent> {
    allow(by, 'read')
    const ends = untilRest ? RESTING_STATES : ENDED_STATES
    const { generation, state } = this.#index.find(ownerOf(by), id)
    const queue = new AsyncQueue<TaskUpdate | null>(FOLLOW_QUEUE, () => null, signal)
    const unlisten = this.#log.on(id, (update) => queue.push(update))
    // A follower may name a generation in the future.
    let last = Math.min(after, generation)
    try {
      for await (const events of this.#log.eventsByRecord(id, { after, to: generation, turn })) {
        // A reader may be slow: what it has is not held here.
        for (let event = events.shift(); event !== undefined; event = events.shift()) {
          last = event.generation
          yield event
        }
      }
      if (ends.has(state)) return
      turn?.rest()
      for await (const update of queue) {
        for (const event of await this.#missed(id, last, { update, turn })) {
          last = event.generation
          yield event
          if (event.type === 'status' && ends.has(event.state)) return
        }
        turn?.rest()
        // A task that waits for its client may expire before the answer.
        if (this.#index.get(id) === undefined) return
      }
    } finally {
      unlisten()
      queue.end()
    }
  }

  /** The events after a generation up to the update; null: updates were lost, so read the log. */
  async #missed(
    id: string,
    last: number,
    { update, turn }: { readonly update: TaskUpdate | null; readonly turn: ContentsTurn | undefined }
  ): Promise<readonly GatewayEvent[]> {
    const to = update?.event.generation ?? this.#index.get(id)?.generation ?? last
    if (update !== null && to === last + 1) return [update.event]
    return await this.#log.events(id, { after: last, to, turn })
  }
}
