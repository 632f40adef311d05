import type { Unsubscribe } from '../../kit/events.js'
import type { Calls, Principal, WatchName, Watches, Reply } from '../../ports/node-api.js'
import type { MachineApprovals } from '../../ports/policy-api.js'
import { type ApprovalsApiDeps, listApprovals } from './approvals.js'
import type { MachineApprovalsDeps } from './machine-approvals.js'
import { watchMachines } from './machine-watch.js'
import type { NodeDeps } from '../dependencies.js'
import type { Services } from '../services.js'
import { AsyncQueue } from '../../kit/queue.js'
import type { AbortSignalLike, Timer } from '../../kit/clock.js'
import { asNodeError, type NodeError } from '../../kit/errors.js'
import { FINAL_STATES, type Task, type TaskEvent } from '../../domain/task/task.js'
import type { MessageEvent, ProgressReport } from '../../ports/policy-api.js'
import { Abort } from '../../kit/abort.js'
import type { CallClient } from './call-questions.js'
import type { Asked } from '../requests/caller/requests.js'
import { isRecord } from '../../kit/json.js'
import { type RateLimit, TokenBucket } from '../../kit/rate.js'
import { shown } from '../../kit/text.js'
import { previewOf } from '../../kit/preview.js'
import { tokenOf } from '../../domain/gateway/content.js'

/** Dependencies of the watches. */
export interface WatchDeps extends Pick<Services, 'agents' | 'directory' | 'events' | 'observability' | 'tasks'> {
  readonly deps: Pick<NodeDeps, 'clock' | 'log' | 'logState'>
}

/** The most queued values of an event watch; beyond it, the reader gets a gap. */
const WATCH_QUEUE = 4096
/** Interval between updates of a watched status, in milliseconds. */
const STATUS_MS = 1000
/** Interval between checks of watched agents for changes, in milliseconds. */
const AGENTS_MS = 1000

/** Passes a value to the reader of a watch. */
export type Push<T> = (value: T) => void
/** Ends a watch; with an error when it cannot go on. */
export type End = (error?: unknown) => void
/** Opens a watch: pushes the present state, then the changes, until it is stopped. */
type Watch<N extends WatchName, C> = (
  caller: C,
  params: Watches[N]['params'],
  to: { readonly push: Push<Watches[N]['item']>; readonly end: End }
) => Unsubscribe | Promise<Unsubscribe>

/**
 * The required scope of a watch, its function, and the items for a slow reader: the newest item, which holds the whole
 * state, or all. In the place of lost ones it gets `{type: 'gap', lost}`, or the item that a function makes.
 */
export type WatchRow<N extends WatchName, C> = readonly [
  Principal['scopes'][number],
  Watch<N, C>,
  'newest' | 'all' | ((caller: C, lost: number) => Watches[N]['item'])
]

/** Converts a failure for the caller. */
export type ToError = (error: unknown) => NodeError

/** An iterable that starts to listen when it is read, and stops when its reader, its source or the signal ends it. */
export async function* watching<T>(
  open: (to: { readonly push: Push<T>; readonly end: End }) => Promise<Unsubscribe>,
  queue: AsyncQueue<T>,
  toError: ToError
): AsyncGenerator<T> {
  const [push, end] = [
    (value: T) => queue.push(value),
    (error?: unknown) => queue.end(error === undefined ? null : toError(error))
  ]
  const stopListening = await open({ push, end }).catch((error: unknown) => {
    queue.end()
    throw toError(error)
  })
  try {
    yield* queue
  } finally {
    stopListening()
    queue.end()
  }
}

/** The queue of a watch: see {@link WatchRow}. */
export function queueFor<T>(
  keeps: 'newest' | 'all' | ((lost: number) => T),
  signal: AbortSignalLike | undefined
): AsyncQueue<T> {
  if (keeps === 'newest') return new AsyncQueue<T>(1, null, signal)
  return new AsyncQueue<T>(WATCH_QUEUE, keeps === 'all' ? (lost) => ({ type: 'gap', lost }) as T : keeps, signal)
}

/** `node.status`: once a second. */
export function watchStatus(
  { clock, lookForProblems }: Pick<NodeDeps, 'clock' | 'lookForProblems'>,
  tell: () => void
): Unsubscribe {
  const look = (): void => {
    tell()
    // The next item has the result.
    void lookForProblems?.()
  }
  look()
  const timer = clock.every(STATUS_MS, look)
  return () => clock.clear(timer)
}

/** `peers.list`: at each change of links and members. */
export function watchPeers(node: WatchDeps, tell: () => void): Unsubscribe {
  tell()
  const stops = [
    node.events.on((event) => (event.type === 'peer' || event.type === 'membership' ? tell() : undefined)),
    node.deps.log.onChange(tell),
    node.deps.logState.onChange(tell)
  ]
  return () => {
    for (const end of stops) end()
  }
}

type AgentList = Calls['agents.list']['result']

/**
 * `agents.list`: at each added or removed agent, and each change of cards, providers, prompts or the presence of nodes.
 */
export function watchAgents(
  { agents, deps: { clock } }: WatchDeps,
  list: () => AgentList,
  push: Push<AgentList>
): Unsubscribe {
  let last: string | null = null
  const tell = (): void => {
    const now = list()
    const facts = now.agents
      .map(({ id, origin, address, revision, status, provider = null }) => {
        const prompts = origin === 'local' ? (agents.definition(id)?.prompts ?? []) : []
        // Agents become busy often.
        const state = status === 'busy' ? 'ready' : status
        return `${address} ${revision} ${state} ${JSON.stringify([prompts, provider])}`
      })
      .join('\n')
    const text = `${facts}\n${JSON.stringify(now.problems)}`
    if (text !== last) push(now)
    last = text
  }
  tell()
  const timer = clock.every(AGENTS_MS, tell)
  return () => clock.clear(timer)
}

/**
 * `approvals.list`; of requests that wait elsewhere, items of swarms cause no item of their own. `caller`: with those
 * of the other machines of the owner.
 */
export function watchApprovals(
  node: ApprovalsApiDeps & MachineApprovalsDeps & Pick<WatchDeps, 'tasks'>,
  caller: Principal | null,
  push: Push<Watches['approvals.list']['item']>
): Unsubscribe {
  const waiting = new Set<string>()
  let machines: readonly MachineApprovals[] | null = null
  const tell = (): void => push({ ...listApprovals(node), ...(machines === null ? {} : { machines }) })
  tell()
  const onTask = ({ id, role, waitingFor }: Task): void => {
    const isNew = role === 'caller' && waitingFor === 'approval' && !waiting.has(id)
    if (isNew) waiting.add(id)
    if (isNew || (waitingFor !== 'approval' && waiting.delete(id))) tell()
  }
  const stops = [node.approvals.onChange(tell), node.questions.onChange(tell), node.tasks.onChange(onTask)]
  if (caller !== null)
    stops.push(
      watchMachines(node, caller, (now) => {
        machines = now
        tell()
      })
    )
  return () => stops.forEach((stop) => stop())
}

/** `node.events`: recent events that match, and with `follow` also later ones. */
export function watchEvents(
  { events, observability, directory }: Pick<WatchDeps, 'directory' | 'events' | 'observability'>,
  { follow = false, ...query }: Watches['node.events']['params'],
  { push, end }: { readonly push: Push<Watches['node.events']['item']>; readonly end: End }
): Unsubscribe {
  const stop = events.watch(query, { traffic: observability, namer: () => directory.namer(), push })
  if (follow) return stop
  stop()
  end()
  return () => {}
}

/** Reports of an agent to a follower: a slow reader must not fall behind, and a few quick ones are all passed on. */
const REPORT_RATE: RateLimit = { perSecond: 20, burst: 4 }

/** Hooks by which a sender follows its request, and ends it. */
export interface MessageHooks {
  /** Called once the request to one agent is sent. */
  readonly onAsked?: (asked: Asked) => void
  /** Aborted when the sender hangs up: then the work whose answer it awaited is canceled. */
  readonly signal?: AbortSignalLike | undefined
  /** Takes the questions and log lines of the agent. */
  readonly client?: CallClient['hooks']
}

/**
 * Sends or calls, and reports on the way why the request waits and the agent's progress. The last event is the reply or
 * the error.
 */
export function followMessage(
  node: WatchDeps,
  run: (hooks: MessageHooks) => Promise<Reply>,
  { push, end }: { readonly push: (event: MessageEvent<Reply>) => void; readonly end: () => void }
): Unsubscribe {
  const gone = new Abort()
  let followed: TaskFollower | null = null
  const finish = (event: MessageEvent<Reply>): void => {
    followed?.flush()
    followed?.stop()
    push(event)
    end()
  }
  const onAsked = ({ taskId }: Asked): void => {
    if (taskId !== null) followed = new TaskFollower(node, taskId, push)
  }
  const client: CallClient['hooks'] = {
    onQuestion: (question) => push({ type: 'question', question }),
    onLog: (line, agent) => push({ type: 'log', agent, line }),
    onOwner: (id, agent) => push({ type: 'asks-owner', id, agent })
  }
  run({ onAsked, signal: gone, client }).then(
    (reply) => finish({ type: 'reply', reply }),
    (error: unknown) => finish({ type: 'failed', error: asNodeError(error).toBody() })
  )
  return () => {
    followed?.stop()
    gone.abort()
  }
}

/** Reports why a task waits, and the progress of its agent, until the task ends. */
class TaskFollower {
  readonly stop: Unsubscribe
  readonly #node: WatchDeps
  readonly #taskId: string
  readonly #push: (event: MessageEvent<Reply>) => void
  readonly #spoken = new SpokenText()
  readonly #pace: TokenBucket
  #agent = ''
  #waiting: Task['waitingFor'] = null
  /** The newest progress, not reported yet. */
  #newest: Extract<TaskEvent, { type: 'progress' }> | null = null
  #timer: Timer | null = null
  #seen = 0

  constructor(node: WatchDeps, taskId: string, push: (event: MessageEvent<Reply>) => void) {
    this.#node = node
    this.#taskId = taskId
    this.#push = push
    this.#pace = new TokenBucket(REPORT_RATE, node.deps.clock)
    const stopListening = node.tasks.follow(taskId, (task) => this.#changed(task))
    this.stop = () => {
      stopListening()
      node.deps.clock.clear(this.#timer)
    }
    const now = node.tasks.get(taskId)
    if (now !== undefined) this.#changed(now)
  }

  /** Reports the newest progress, if it waits. */
  flush(): void {
    if (this.#newest === null) return
    const report = { ...reportOf(this.#newest.data), ...this.#spoken.take() }
    this.#push({ type: 'progress', agent: this.#agent, taskId: this.#taskId, ...report })
    this.#newest = null
  }

  #changed(task: Task): void {
    const taskId = this.#taskId
    this.#agent = this.#node.directory.shownAddress(task.agent)
    // An ended task waits no longer, and its reply follows.
    const isOver = FINAL_STATES.has(task.state) || task.state === 'unknown'
    if (!isOver && task.waitingFor !== this.#waiting) {
      this.#waiting = task.waitingFor
      this.#push({ type: 'waiting', waitingFor: task.waitingFor, agent: this.#agent, taskId })
    }
    const events = this.#node.tasks.events(taskId).filter(({ generation }) => generation > this.#seen)
    this.#seen = events.at(-1)?.generation ?? this.#seen
    for (const event of events) {
      if (event.type !== 'progress') continue
      this.#spoken.add(event.data)
      this.#newest = event
    }
    if (!isOver) this.#report()
  }

  #report(): void {
    if (this.#timer !== null || this.#newest === null) return
    if (this.#pace.take()) return this.flush()
    this.#timer = this.#node.deps.clock.after(this.#pace.waitMs(1), () => {
      this.#timer = null
      this.#report()
    })
  }
}

/** The longest text of a language model in one report, in characters. */
const SPOKEN_MAX = 64 * 1024

/** Text of a language model that no report had yet. A new turn begins a line. */
class SpokenText {
  #text = ''
  #turn: number | null = null

  /** Adds the text of a report; other reports have none. */
  add(data: unknown): void {
    const piece = tokenOf(data)
    if (piece === null) return
    const isNext = this.#turn !== null && this.#turn !== piece.turn
    this.#turn = piece.turn
    this.#text = `${this.#text}${isNext ? '\n' : ''}${piece.token}`.slice(-SPOKEN_MAX)
  }

  /** The text since the last call. */
  take(): Pick<ProgressReport, 'text'> {
    const text = this.#text
    this.#text = ''
    return text === '' ? {} : { text }
  }
}

/** The longest text of a progress report, in characters. */
const REPORT_SHOWN = 1024

/**
 * A report of an agent in the form for callers: `progress`, `total` and `message` keep their meaning; anything else
 * becomes text, cut at 1,024 characters.
 */
export function reportOf(data: unknown): ProgressReport {
  if (!isRecord(data)) return { progress: null, total: null, message: textOf(data) }
  const { progress, total, message } = data
  const [at, of] = [numberOf(progress), numberOf(total)]
  const isMeant = at !== null || typeof message === 'string'
  return {
    progress: at,
    total: at === null ? null : of,
    message: isMeant ? (message === undefined ? null : textOf(message)) : textOf(data)
  }
}

function textOf(value: unknown): string {
  return shown(typeof value === 'string' ? value : previewOf(value, REPORT_SHOWN), REPORT_SHOWN)
}

function numberOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null
}
