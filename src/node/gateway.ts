import type { AbortSignalLike, Timer } from '../kit/clock.js'
import { NodeError } from '../kit/errors.js'
import { AsyncQueue } from '../kit/queue.js'
import { sizeOf } from '../kit/size.js'
import { TransientMap } from '../kit/transient.js'
import { addressText } from '../domain/card/card.js'
import { digestText, justificationIn, partsOf } from '../domain/gateway/content.js'
import { type Message, placed } from '../domain/gateway/message.js'
import { decodeRecord, encodeRecord, GATEWAY_KEYS, messageName, type MessageRecord, shortHash } from '../domain/gateway/records.js'
import {
  ENDED_STATES,
  type GatewayEvent,
  type GatewayInput,
  type GatewayRun,
  type GatewaySnapshot,
  type GatewayState,
  type GatewayTask,
  RESTING_STATES
} from '../domain/gateway/task.js'
import type { TaskFilter } from '../domain/gateway/task-order.js'
import type { Gateway, GatewayFollow, GatewayPage, GatewayPaging, GatewayReply, GatewaySend, OutputRules } from '../ports/gateway.js'
import type { LedgerChange } from '../ports/ledger.js'
import type { Principal } from '../ports/node-api.js'
import { parseAddress } from './directory.js'
import { allow, ownerOf, powerOf, refuseWeaker } from './gateway-caller.js'
import { GatewayIndex } from './gateway-index.js'
import { GatewayLog, type GatewayNews } from './gateway-log.js'
import { GatewayPush, type GatewayPushParts } from './gateway-push.js'
import { onlyReads, readNow } from './gateway-reads.js'
import { GatewayRoom } from './gateway-room.js'
import { GatewayRuns } from './gateway-runs.js'
import { gatewayAgent, type GatewayTarget, gatewayTarget, isCalled } from './gateway-targets.js'
import { checkMember } from './member-principal.js'
import type { NodeCore } from './node.js'

/** Events that a follower may be behind before it is given those that it missed from the log. */
const FOLLOW_QUEUE = 1024
/** How often tasks that are past their time are looked for, in milliseconds. */
const SWEEP_MS = 60_000
/** Tasks of one member of the mesh that may be under way; beyond it the member begins none. */
export const MAX_MEMBER_TASKS = 256

/** What a task that was answered comes to. */
const GOING_ON: ReadonlySet<GatewayState> = new Set<GatewayState>(['working', ...ENDED_STATES])
/** Bytes of tasks with their contents beyond which a page ends, with fewer than were asked for. */
export const MAX_PAGE_BYTES = 8_388_608

/** What the gateway is given. */
export interface GatewayOptions {
  /** The way to those who want to be told of their tasks, and who of them is gone; null: nobody is told. */
  readonly push?: Pick<GatewayPushParts, 'webhooks' | 'owners'> | null
  /** Of what agents may say; null: anything. */
  readonly rules?: OutputRules | null
}

/** The tasks of A2A clients: each is a log of events in the ledger, and its turns are requests of the node. */
export class GatewayTasks implements Gateway {
  readonly push: GatewayPush | null
  readonly #node: NodeCore
  readonly #rules: OutputRules | null
  readonly #index = new GatewayIndex()
  readonly #log: GatewayLog
  readonly #runs: GatewayRuns
  readonly #room: GatewayRoom
  /** Messages that are being recorded, by name: the same one waits for the first. */
  readonly #sending = new TransientMap<string, Promise<GatewayTask>>()
  #timer: Timer | null = null
  #unlisten: () => void = () => {}

  constructor(node: NodeCore, { push = null, rules = null }: GatewayOptions = {}) {
    this.#node = node
    this.#rules = rules
    this.#log = new GatewayLog(
      node.parts,
      (task) => {
        this.#index.put(task)
        this.push?.look(task)
      },
      (task, events) => this.push?.noticesOf(task, events) ?? []
    )
    const find = (by: Principal, id: string, scope: 'read' | 'send'): GatewayTask => {
      allow(by, scope)
      return this.#find(by, id)
    }
    const parts = { node: node.parts, log: this.#log, taskOf: (id: string) => this.#index.get(id), find }
    this.push = push === null ? null : new GatewayPush({ ...parts, ...push })
    this.#runs = new GatewayRuns(node, this.#log, { taskOf: (id) => this.#index.get(id) ?? this.#log.changing(id), rules })
    this.#room = new GatewayRoom({ node: node.parts, index: this.#index, log: this.#log, runs: this.#runs, push: this.push })
  }

  /** Reads what there is, and goes on with what had not ended. @throws NodeError STORE_DAMAGED */
  async start(): Promise<void> {
    const all: GatewayTask[] = []
    for await (const task of this.#log.tasks()) all.push(this.#index.sharing(task))
    for (const task of all.sort((a, b) => a.since - b.since || (a.id < b.id ? -1 : 1))) this.#index.put(task)
    await this.push?.start(all)
    this.#unlisten = this.#node.tasks.onChange((task) => this.#runs.look(task))
    this.#timer = this.#node.parts.clock.every(SWEEP_MS, () => void this.#room.sweep())
    for (const task of all) if (!RESTING_STATES.has(task.state)) await this.#runs.resume(task)
  }

  /** Listens to nothing any more. */
  stop(): void {
    this.#node.parts.clock.clear(this.#timer)
    this.#unlisten()
    this.push?.stop()
    this.#log.stop()
  }

  async send(by: Principal, request: GatewaySend): Promise<GatewayReply> {
    allow(by, 'send')
    const isAnswerable = request.mayAnswer && request.wait && request.message.taskId === undefined && request.push === undefined
    const found = isAnswerable ? gatewayTarget(this.#node, by, request) : null
    const target = found instanceof Promise ? await found : found
    if (target !== null && onlyReads(target.capability)) return { kind: 'message', message: await this.#answer(by, request, target) }
    const task = await this.#once(by, request, target)
    if (request.wait) await this.#until(task.id, RESTING_STATES, request.signal)
    return { kind: 'task', snapshot: await this.#snapshot(task) }
  }

  async get(by: Principal, id: string): Promise<GatewaySnapshot> {
    allow(by, 'read')
    return await this.#log.snapshot(this.#find(by, id))
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
    const whole = await this.#whole(tasks)
    const last = tasks[whole.length - 1]
    return { tasks: whole, next: whole.length === tasks.length || last === undefined ? next : last, total }
  }

  /** Tasks with their contents, as many of the first as a page has room for. One by one: each may be large. */
  async #whole(tasks: readonly GatewayTask[]): Promise<GatewaySnapshot[]> {
    const whole: GatewaySnapshot[] = []
    let bytes = 0
    for (const task of tasks) {
      const snapshot = await this.#log.snapshot(task)
      bytes += sizeOf(snapshot)
      whole.push(snapshot)
      if (bytes > MAX_PAGE_BYTES) break
    }
    return whole
  }

  async cancel(by: Principal, id: string): Promise<GatewaySnapshot> {
    allow(by, 'send')
    const task = this.#log.current(this.#find(by, id))
    if (ENDED_STATES.has(task.state)) throw new NodeError('CONFLICT', `the task is ${task.state} already`, { data: { state: task.state } })
    // Nobody works on what rests.
    if (!this.#runs.cancel(task)) this.#log.add(task, { type: 'status', state: 'canceled' })
    await this.#until(id, ENDED_STATES, undefined)
    return await this.#snapshot(task)
  }

  async *follow(by: Principal, id: string, { after, untilRest = false, signal }: GatewayFollow): AsyncIterable<GatewayEvent> {
    allow(by, 'read')
    const ends = untilRest ? RESTING_STATES : ENDED_STATES
    const { generation, state } = this.#find(by, id)
    const queue = new AsyncQueue<GatewayNews | null>(FOLLOW_QUEUE, () => null, signal)
    const unlisten = this.#log.on(id, (news) => queue.push(news))
    // Who names what has not happened yet hears of it when it does.
    let last = Math.min(after, generation)
    try {
      for (const event of await this.#log.events(id, after, generation)) {
        last = event.generation
        yield event
      }
      if (ends.has(state)) return
      for await (const news of queue) {
        for (const event of await this.#missed(id, last, news)) {
          last = event.generation
          yield event
          if (event.type === 'status' && ends.has(event.state)) return
        }
      }
    } finally {
      unlisten()
      queue.end()
    }
  }

  /** The events behind a generation up to the news; null: news were lost, and the log has them. */
  async #missed(id: string, last: number, news: GatewayNews | null): Promise<readonly GatewayEvent[]> {
    const to = news?.event.generation ?? this.#index.get(id)?.generation ?? last
    return news !== null && to === last + 1 ? [news.event] : await this.#log.events(id, last, to)
  }

  async #snapshot({ id }: GatewayTask): Promise<GatewaySnapshot> {
    const task = this.#index.get(id)
    if (task === undefined) throw new NodeError('TASK_NOT_FOUND', 'the task is past its time')
    return await this.#log.snapshot(task)
  }

  #find(by: Principal, id: string): GatewayTask {
    const task = this.#index.get(id)
    // What another one began is as good as not there.
    if (task === undefined || task.owner !== ownerOf(by)) throw new NodeError('TASK_NOT_FOUND', 'there is no such task')
    return task
  }

  /** An answer without a task, of what only reads. @throws NodeError what it failed with */
  async #answer(by: Principal, { message, signal }: GatewaySend, { address, capability }: GatewayTarget): Promise<Message> {
    const { ids } = this.#node.parts
    const justification = justificationIn(message)
    const head = { self: this.#node.self, target: address, capability: capability.id, by: powerOf(by), justification }
    const reading = { parts: message.parts, rules: this.#rules, signal }
    const result = await readNow(this.#node, head, reading)
    const contextId = message.contextId ?? ids.next('ctx')
    return { messageId: ids.next('msg'), contextId, role: 'agent', parts: partsOf(result) }
  }

  /** The task of a message: that of the same message before, if there was one. */
  async #once(by: Principal, request: GatewaySend, target: GatewayTarget | null): Promise<GatewayTask> {
    const { ledger, hash } = this.#node.parts
    const name = messageName({ owner: ownerOf(by), messageId: request.message.messageId }, hash)
    const same = this.#sending.get(name)
    if (same !== undefined) await same.catch(() => null)
    const bytes = await ledger.get(GATEWAY_KEYS.message(name))
    const known = bytes === null ? null : decodeRecord<MessageRecord>(bytes)
    const digest = shortHash(digestText(request.message, [request.agent, request.skill]), hash)
    if (known !== null) {
      const task = this.#index.get(known.task)
      if (known.digest === digest && task !== undefined) return task
      throw new NodeError('CONFLICT', 'another message had this messageId: give each its own', { data: { reason: 'MESSAGE_ID_REUSED' } })
    }
    // Between the read and here another one may have begun.
    if (this.#sending.has(name)) return await this.#once(by, request, target)
    const record = (task: string): LedgerChange => ({ key: GATEWAY_KEYS.message(name), value: encodeRecord({ task, digest }), isNew: true })
    const { taskId } = request.message
    const making = taskId === undefined ? this.#begin(by, request, { record, target }) : this.#goOn(by, request, record)
    this.#sending.set(name, making)
    try {
      return await making
    } finally {
      this.#sending.delete(name)
    }
  }

  async #begin(
    by: Principal,
    request: GatewaySend,
    { record, target }: { readonly record: (task: string) => LedgerChange; readonly target: GatewayTarget | null }
  ): Promise<GatewayTask> {
    const { address, capability } = target ?? (await gatewayTarget(this.#node, by, request))
    if (this.#room.isFull) await this.#room.make(ownerOf(by))
    if (by.kind === 'peer' && this.#index.underWay(ownerOf(by)) >= MAX_MEMBER_TASKS)
      throw new NodeError('OVERLOADED', `this member has ${MAX_MEMBER_TASKS} tasks under way here`, { retryable: true })
    const fresh = this.#fresh(by, request, { address, capability })
    const { id, contextId } = fresh
    const said = placed(request.message, { taskId: id, contextId })
    const push = this.push?.begin(fresh, request.push) ?? []
    const inputs: GatewayInput[] = [{ type: 'message', message: said }]
    // Most begin at once: that they do is the same commit, where nobody follows each step.
    const asking = { target: address, capability: capability.id, by: fresh.by, justification: justificationIn(said) }
    const isDirect = request.wait && request.push === undefined && this.#node.direct.fits(asking)
    if (isDirect) inputs.push({ type: 'status', state: 'working' })
    const { task, durable } = this.#log.begin(fresh, inputs, [record(id), ...push])
    // What begins at once may be repeated: it need not wait until it is on record that it does, and may have ended by then.
    const asked = isDirect ? this.#runs.ask(task, said) : null
    try {
      await durable
    } catch (error) {
      this.push?.notBegun(fresh)
      if (asked !== null) this.#runs.drop(task)
      throw error
    }
    await (asked ?? this.#runs.ask(task, said))
    return task
  }

  /** A task before anything has happened to it. */
  #fresh(by: Principal, request: GatewaySend, { address, capability }: GatewayTarget): GatewayTask {
    const { ids, clock } = this.#node.parts
    const run = this.#turn(request)
    const now = clock.now()
    return {
      id: run.taskId,
      contextId: request.message.contextId ?? ids.next('ctx'),
      owner: this.#index.shared(ownerOf(by)),
      agent: this.#index.shared(addressText(address)),
      capability: this.#index.shared(capability.id),
      by: powerOf(by),
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
    const { ids } = this.#node.parts
    const names = { requestId: ids.next('req'), taskId: ids.next('task') }
    return isAttended === true ? { ...names, isAttended } : names
  }

  async #goOn(by: Principal, request: GatewaySend, record: (task: string) => LedgerChange): Promise<GatewayTask> {
    const { message, push } = request
    const { taskId = '' } = message
    // From the answer on it is to hear all.
    if (push !== undefined && !ENDED_STATES.has(this.#find(by, taskId).state)) await this.push?.set(by, taskId, push)
    const before = this.#log.current(this.#find(by, taskId))
    const { id, contextId } = before
    refuseWeaker(by, before)
    if (message.contextId !== undefined && message.contextId !== contextId)
      throw new NodeError('INVALID_INPUT', 'the task is of another context')
    const address = parseAddress(before.agent)
    if (address !== null) checkMember(this.#node, by, { address, capability: before.capability })
    const run = this.#turn(request)
    const reason = this.#log.add(before, { type: 'message', message: { ...message, contextId }, run }, [record(id)])
    if (reason !== null) throw new NodeError('CONFLICT', `the task takes no message: ${reason}`, { data: { state: before.state } })
    this.#log.add(before, { type: 'status', state: 'working' })
    // It may be canceled in the same commit.
    await this.#until(id, GOING_ON, undefined)
    const task = this.#index.get(id) ?? before
    await this.#runs.ask(task, message)
    return task
  }

  /** Waits until a task is durably in one of these states. Resolves early when the signal aborts. */
  async #until(id: string, states: ReadonlySet<GatewayState>, signal: AbortSignalLike | undefined): Promise<void> {
    const isThere = (): boolean => {
      const task = this.#index.get(id)
      return task === undefined || states.has(task.state) || signal?.aborted === true
    }
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
