import type { Timer } from '../../kit/clock.js'
import { NodeError } from '../../kit/errors.js'
import type { Unsubscribe } from '../../kit/events.js'
import { type IdKind, mayStandFor, resolveId } from '../../kit/resolve-id.js'
import { shown } from '../../kit/text.js'
import { type CallerAuthority, mayAddress } from '../../domain/routing/effective.js'
import type { Task } from '../../domain/task/task.js'
import type { Calls } from '../../ports/node-api.js'
import { taskInfo } from './messages.js'
import { parseAddress } from '../../domain/card/card.js'
import type { NodeDeps } from '../dependencies.js'
import type { Pipelines } from '../pipelines.js'
import type { Services } from '../services.js'
import type { RecordedTask } from '../tasks/from-record.js'
import { tasksOfLedger } from '../requests/recovery.js'
import type { SwarmEvent, SwarmInfo } from '../../ports/swarm-api.js'
import type { SwarmView } from '../swarms/finished-swarm.js'

/** Dependencies of the calls about tasks and swarms. */
export interface TasksApiDeps
  extends Pick<Services, 'directory' | 'requestStore' | 'tasks' | 'visibility'>,
    Pick<Pipelines, 'executor' | 'requests' | 'swarms'> {
  readonly deps: Pick<NodeDeps, 'clock'>
}

/** How long changes of tasks are gathered, in milliseconds. */
const TASKS_MS = 100

/**
 * Calls `tell` now and after changes of tasks, gathered: each call lists all, and a swarm changes tasks many times a
 * second.
 */
export function watchTasks(node: TasksApiDeps, tell: () => void): Unsubscribe {
  const { clock } = node.deps
  let timer: Timer | null = null
  tell()
  const stopListening = node.tasks.onChange(() => {
    timer ??= clock.after(TASKS_MS, () => {
      timer = null
      tell()
    })
  })
  return () => {
    stopListening()
    clock.clear(timer)
  }
}

/** Rows of `tasks`, newest first. A sandboxed caller, or one limited to some agents, sees the tasks of its agents. */
export function listTasks(
  node: TasksApiDeps,
  { limit }: Calls['tasks.list']['params'],
  by: CallerAuthority
): Calls['tasks.list']['result'] {
  const all = node.tasks.list().filter((task) => isSeen(node, task, by))
  const tasks = all.slice(0, limit)
  return { tasks: tasks.map((task) => taskInfo(node, task)), more: all.length - tasks.length }
}

/** True when the caller may see the agent of a task. A swarm task belongs to no single agent. */
function isSeen(node: TasksApiDeps, { kind, agent }: Pick<Task, 'kind' | 'agent'>, by: CallerAuthority): boolean {
  const isSandboxed = (by.sandboxId ?? null) !== null
  if (!isSandboxed && by.agents === undefined) return true
  const address = kind === 'swarm' ? null : parseAddress(agent)
  if (address === null || !mayAddress(address.agentId, by)) return false
  if (!isSandboxed) return true
  const card = node.directory.card(address)
  return card !== undefined && node.visibility.toCaller(card, by)
}

const TASK_IDS: IdKind = {
  one: 'task',
  where: 'on this node',
  several: 'tasks',
  prefix: 'task_',
  code: 'TASK_NOT_FOUND',
  list: 'a2a-node tasks'
}

/** One task and its events. @throws NodeError TASK_NOT_FOUND, AMBIGUOUS_NAME, STORE_DAMAGED */
export async function showTask(
  node: TasksApiDeps,
  text: string,
  by: CallerAuthority
): Promise<Calls['tasks.show']['result']> {
  const { task, events } = await findTask(node, text, by)
  return {
    ...taskInfo(node, task),
    events: events.map((event) => ({ ...event, at: new Date(event.at).toISOString() }))
  }
}

interface FoundTask extends RecordedTask {
  /** True when it is in memory. */
  readonly isLive: boolean
}

/** The task of an id or prefix, among the visible ones in memory and in the ledger. */
async function findTask(node: TasksApiDeps, text: string, by: CallerAuthority): Promise<FoundTask> {
  const found = new Map<string, FoundTask>()
  const add = ({ task, events }: RecordedTask, isLive: boolean): void => {
    if (!found.has(task.id) && isSeen(node, task, by)) found.set(task.id, { task, events, isLive })
  }
  const exact = node.tasks.get(text)
  const live = exact === undefined ? node.tasks.list().filter(({ id }) => id.startsWith(text)) : [exact]
  for (const task of live) add({ task, events: node.tasks.events(task.id) }, true)
  if (!found.has(text) && mayStandFor(text, TASK_IDS))
    for (const one of await recordedTasks(node, text)) add(one, false)
  return resolveId(text, found, TASK_IDS)
}

/** Tasks in the ledger only: ended before this start, or long ago. */
async function recordedTasks(node: TasksApiDeps, text: string): Promise<RecordedTask[]> {
  const [ofRequests, ofSwarms] = await Promise.all([
    tasksOfLedger(node.requestStore, text),
    node.swarms.recordedTasks(text)
  ])
  return [...ofRequests, ...ofSwarms]
}

/** Cancels a task. @throws NodeError TASK_NOT_FOUND, AMBIGUOUS_NAME, CONFLICT when it has ended, STORE_DAMAGED */
export async function cancelTask(
  node: TasksApiDeps,
  text: string,
  { by, caller }: { readonly by: CallerAuthority; readonly caller: string }
): Promise<Calls['tasks.cancel']['result']> {
  const { task: known, isLive } = await findTask(node, text, by)
  if (!isLive) throw ended(known)
  const { id } = known
  const found =
    node.requests.cancelTask(id) || (await node.swarms.cancelTask(id, caller)) || node.executor.cancelTask(id)
  const task = node.tasks.get(id)
  if (task === undefined) throw new NodeError('TASK_NOT_FOUND', 'that task is forgotten')
  if (!found) throw ended(task)
  return taskInfo(node, task)
}

function ended({ id, state }: Task): NodeError {
  return new NodeError('CONFLICT', `the task is ${state} already`, { next: [`a2a-node tasks show ${id}`] })
}

/**
 * Rows of `swarm ls`. A sandboxed caller sees swarms launched from its sandbox; one limited to some agents sees none.
 * @throws NodeError STORE_DAMAGED
 */
export async function listSwarms({ swarms }: Pick<TasksApiDeps, 'swarms'>, by: CallerAuthority): Promise<SwarmInfo[]> {
  const all = await swarms.listAll()
  if ((by.sandboxId ?? null) === null && by.agents === undefined) return all
  const views = await Promise.all(all.map(({ id }) => swarms.find(id)))
  return all.filter((_, at) => isSwarmSeen(views[at], by))
}

/** A swarm that the caller sees. @throws NodeError SWARM_NOT_FOUND, AMBIGUOUS_NAME, STORE_DAMAGED */
export async function findSwarm(
  { swarms }: Pick<TasksApiDeps, 'swarms'>,
  id: string,
  by: CallerAuthority
): Promise<SwarmView> {
  const view = await swarms.find(id)
  if (!isSwarmSeen(view, by)) throw new NodeError('SWARM_NOT_FOUND', `no swarm "${shown(id)}" on this node`)
  return view
}

/** A swarm works with any agents, so a caller limited to some of them must not read its results. */
function isSwarmSeen(view: SwarmView | undefined, { sandboxId = null, agents }: CallerAuthority): boolean {
  if (agents !== undefined) return false
  return sandboxId === null || view?.head.onBehalfOf?.sandboxId === sandboxId
}

/** Pushes the events of a swarm from the first one to `done`. */
export function watchSwarm(
  view: SwarmView,
  { push, end }: { readonly push: (event: SwarmEvent) => void; readonly end: () => void }
): Unsubscribe {
  const pass = (event: SwarmEvent): void => {
    push(event)
    if (event.type === 'done') end()
  }
  const { past, stop } = view.follow(pass)
  for (const event of past) pass(event)
  return stop
}
