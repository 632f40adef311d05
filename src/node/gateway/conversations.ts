import { BoundedMap } from '../../kit/bounded.js'
import { sizeOf } from '../../kit/size.js'
import {
  type Conversation,
  type ConversationCaller,
  type History,
  MAX_HISTORY
} from '../../domain/gateway/conversation.js'
import {
  type ContextEntries,
  type ContextEntry,
  type ContextExchange,
  type ContextPlace,
  ConversationWindow,
  earlier,
  foldTurns,
  type HistoryEntry
} from '../../domain/gateway/conversation-turns.js'
import type { Message } from '../../domain/gateway/message.js'
import type { GatewayEvent, GatewayTask } from '../../domain/gateway/task.js'
import type { TaskState } from '../../domain/task/task.js'
import type { ContextStore } from '../../ports/task-api.js'
import { type AnswerLog, keyOf } from './answer-log.js'
import type { TaskIndex } from './task-index.js'
import type { TaskLog } from './task-log.js'

/** Contexts whose messages are kept in memory: of others they are read again. */
const MAX_WINDOWS = 128
/** Bytes of these messages. */
const MAX_WINDOWS_BYTES = 8_388_608
/** The newest tasks of a context that are looked at. */
const MAX_CONTEXT_TASKS = 64
/** Events of a task that are read at its first and at its last. */
const [FIRST_EVENTS, LAST_EVENTS] = [64, 960]

/** Bytes of events, about, after which older tasks are not read. */
const MAX_READ_BYTES = 8_388_608
const NOTHING: Promise<unknown> = Promise.resolve()
const NONE: ReadonlyMap<string, number> = new Map()

/** The client, context and agent of a conversation, and the task that is continued, if any. */
export type ConversationPlace = ContextPlace & { readonly taskId?: string }

/** Dependencies of {@link Conversations}. */
interface ConversationsDeps {
  readonly index: Pick<TaskIndex, 'inContext' | 'get' | 'all' | 'owners'>
  readonly log: Pick<TaskLog, 'events'>
  readonly answers: AnswerLog
}

interface OpenWindow {
  readonly window: ConversationWindow
  /** Generation of the last event of each task that is in the window. */
  readonly seen: ReadonlyMap<string, number>
}

/** The messages between clients and agents, by context: read from the logs of tasks, and kept in memory. */
export class Conversations implements ContextStore {
  readonly #deps: ConversationsDeps
  readonly #windows = new BoundedMap<string, OpenWindow>(MAX_WINDOWS)
  /** Reads and writes under way, by window. */
  readonly #turns = new Map<string, Promise<unknown>>()

  constructor(deps: ConversationsDeps) {
    this.#deps = deps
  }

  /** The messages of a context before one of a client, which may be in it already. @throws NodeError STORE_DAMAGED */
  async before(place: ConversationPlace, messageId: string): Promise<History> {
    return (await this.#inTurn(place, (key) => this.#read(key, place))).before(messageId)
  }

  /** A message was answered without a task. `isFirst`: it began the context. Resolves when it is durable. */
  async answered(place: ConversationPlace, exchange: ContextExchange, isFirst: boolean): Promise<void> {
    const { answers } = this.#deps
    if (isFirst) return answers.remember(place, exchange)
    await this.#inTurn(place, async (key) => {
      await answers.put(place, exchange)
      this.#windows.get(key)?.window.add(shortened(exchange))
    })
  }

  /** One at a time: two readers would add the same messages. */
  async #inTurn<T>(place: ConversationPlace, act: (key: string) => Promise<T>): Promise<T> {
    const key = keyOf(place)
    const turn = (this.#turns.get(key) ?? NOTHING).catch(() => {}).then(() => act(key))
    this.#turns.set(key, turn)
    try {
      return await turn
    } finally {
      if (this.#turns.get(key) === turn) this.#turns.delete(key)
    }
  }

  /** Every context of every caller, with the time of its newest change: unix milliseconds. */
  contexts(): Map<string, number> {
    const { index, answers } = this.#deps
    const found = new Map<string, number>()
    const add = (id: string, at: number): void => void found.set(id, Math.max(at, found.get(id) ?? 0))
    for (const { contextId, updatedAt } of index.all()) add(contextId, updatedAt)
    for (const [place, at] of answers.contexts()) add(place.contextId, at)
    return found
  }

  /** The newest messages of a context with all callers and agents. @throws NodeError STORE_DAMAGED */
  async all(contextId: string): Promise<ContextEntries> {
    const { index, answers } = this.#deps
    const entries: ContextEntry[] = []
    let isCut = false
    let bytes = 0
    const add = ({ owner, agent }: Pick<GatewayTask, 'owner' | 'agent'>, some: readonly HistoryEntry[]): void => {
      for (const entry of some) entries.push({ ...entry, owner, agent })
    }
    for (const owner of index.owners()) {
      const { tasks, isCut: isMore } = index.inContext(owner, contextId, MAX_CONTEXT_TASKS)
      isCut ||= isMore
      for (const task of tasks) {
        const events = bytes > MAX_READ_BYTES ? [] : await this.#events(task.id, 0, task.generation)
        isCut ||= events.length < task.generation
        for (const event of events) bytes += sizeOf(event)
        add(task, foldTurns(task.id, events, 0).entries)
      }
    }
    for (const [place] of [...answers.contexts()].filter(([one]) => one.contextId === contextId))
      add(place, (await answers.of(place)).flatMap(shortened))
    return { entries: entries.sort((a, b) => a.at - b.at), isCut }
  }

  stateOf(taskId: string): TaskState | undefined {
    return this.#deps.index.get(taskId)?.state
  }

  /** The conversation of a turn. @throws NodeError STORE_DAMAGED */
  async of(task: GatewayTask, message: Message): Promise<Conversation> {
    const { owner, contextId, agent, id: taskId } = task
    const history = await this.before({ owner, contextId, agent, taskId }, message.messageId)
    const conversation = conversationOf(task, message, history)
    return task.run?.thread === undefined ? conversation : { ...conversation, thread: task.run.thread }
  }

  async #read(key: string, place: ConversationPlace): Promise<ConversationWindow> {
    const open = this.#windows.get(key)
    const { window, seen: before } = open ?? { window: new ConversationWindow(), seen: NONE }
    const answered = open === undefined ? await this.#deps.answers.of(place) : []
    const { tasks, isCut } = this.#newest(place)
    if (isCut && before.size === 0) window.cut()
    const seen = new Map<string, number>()
    const folds: (readonly HistoryEntry[])[] = [answered.flatMap(shortened)]
    let [count, bytes] = [0, 0]
    for (const { id, generation } of tasks) {
      const from = before.get(id) ?? 0
      const isFull = count >= MAX_HISTORY || bytes > MAX_READ_BYTES
      if (from < generation && isFull) window.cut()
      const events = from === generation || isFull ? [] : await this.#events(id, from, generation)
      if (events.length > 0 && events.length < generation - from) window.cut()
      const fold = isFull ? { entries: [], generation } : foldTurns(id, events, from)
      for (const event of events) bytes += sizeOf(event)
      count += fold.entries.length
      seen.set(id, fold.generation)
      folds.push(fold.entries)
    }
    window.add(
      folds
        .reverse()
        .flat()
        .sort((a, b) => a.at - b.at)
    )
    this.#windows.setNewest(key, { window, seen })
    this.#trim()
    return window
  }

  #trim(): void {
    let bytes = 0
    for (const { window } of this.#windows.values()) bytes += window.bytes
    for (const [key, { window }] of this.#windows) {
      if (bytes <= MAX_WINDOWS_BYTES) return
      this.#windows.delete(key)
      bytes -= window.bytes
    }
  }

  /** The newest tasks of a conversation, the newest first, with the one that is continued. */
  #newest({ owner, contextId, agent, taskId }: ConversationPlace): {
    readonly tasks: GatewayTask[]
    readonly isCut: boolean
  } {
    const { index } = this.#deps
    const { tasks, isCut } = index.inContext(owner, contextId, MAX_CONTEXT_TASKS)
    const task = taskId === undefined ? undefined : index.get(taskId)
    if (task !== undefined && !tasks.includes(task)) tasks.unshift(task)
    return { tasks: tasks.filter((one) => one.agent === agent), isCut }
  }

  /** Of many events only the first and the last. The fold of the turns counts those in between. */
  async #events(id: string, from: number, to: number): Promise<readonly GatewayEvent[]> {
    const { log } = this.#deps
    if (to - from <= FIRST_EVENTS + LAST_EVENTS) return await log.events(id, { after: from, to })
    const first = await log.events(id, { after: from, to: from + FIRST_EVENTS })
    return [...first, ...(await log.events(id, { after: to - LAST_EVENTS, to }))]
  }
}

function shortened(exchange: ContextExchange): readonly HistoryEntry[] {
  return exchange.map(({ at, message }) => ({ at, message: earlier(message) }))
}

/** The caller of an owner's tasks. */
export function callerOf(owner: string): ConversationCaller {
  const at = owner.indexOf(':')
  return { kind: owner.slice(0, at), id: owner.slice(at + 1) }
}

/** The conversation of a turn. */
export function conversationOf(
  { id: taskId, contextId, owner }: Pick<GatewayTask, 'id' | 'contextId' | 'owner'>,
  message: Message,
  { messages: history, isCut }: History
): Conversation {
  return { contextId, taskId, message, history, isCut, caller: callerOf(owner) }
}
