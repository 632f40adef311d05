import { NodeError } from '../kit/errors.js'
import { shown } from '../kit/text.js'
import { isShortId, MIN_PREFIX } from '../domain/routing/names.js'
import type { Task } from '../domain/task/task.js'
import type { Calls } from '../ports/node-api.js'
import { taskInfo } from './api-messages.js'
import type { NodeCore } from './node.js'
import type { RecordedTask } from './recorded-task.js'
import { taskOfLedger } from './recovery.js'

/** `tasks.list`: the newest first. */
export function listTasks(node: NodeCore, { limit }: Calls['tasks.list']['params']): Calls['tasks.list']['result'] {
  const all = node.tasks.list()
  const tasks = all.slice(0, limit)
  return { tasks: tasks.map((task) => taskInfo(node, task)), more: all.length - tasks.length }
}

function findTask(node: NodeCore, text: string): string {
  const ids = text.length < MIN_PREFIX ? [] : node.tasks.matching(text)
  const [id] = ids
  if (ids.length > 1)
    throw new NodeError('AMBIGUOUS_NAME', `"${shown(text)}" may mean several tasks`, {
      data: { candidates: ids.slice(0, 8) },
      next: ['a2a-node tasks']
    })
  if (id === undefined || isTooShort(text, id)) throw new NodeError('TASK_NOT_FOUND', `no task "${shown(text)}" on this node`)
  return id
}

/** `tasks.show`. @throws NodeError TASK_NOT_FOUND, AMBIGUOUS_NAME */
export async function showTask(node: NodeCore, text: string): Promise<Calls['tasks.show']['result']> {
  const { task, events } = (await keptTask(node, text)) ?? liveTask(node, text)
  return { ...taskInfo(node, task), events: events.map((event) => ({ ...event, at: new Date(event.at).toISOString() })) }
}

/** Of a task that ended before this node started, or long ago, the ledger tells. */
async function keptTask(node: NodeCore, text: string): Promise<RecordedTask | null> {
  if (text.length < MIN_PREFIX || node.tasks.matching(text).length > 0) return null
  const kept = (await taskOfLedger(node.book, text)) ?? (await node.swarms.recordedTask(text))
  return kept === null || isTooShort(text, kept.task.id) ? null : kept
}

function isTooShort(text: string, id: string): boolean {
  return text !== id && isShortId(text, 'task')
}

function liveTask(node: NodeCore, text: string): RecordedTask {
  const id = findTask(node, text)
  const task = node.tasks.get(id)
  if (task === undefined) throw new NodeError('TASK_NOT_FOUND', 'that task is forgotten')
  return { task, events: node.tasks.events(id) }
}

/** `tasks.cancel`. @throws NodeError TASK_NOT_FOUND, AMBIGUOUS_NAME; CONFLICT when it has ended */
export async function cancelTask(node: NodeCore, text: string): Promise<Calls['tasks.cancel']['result']> {
  const kept = await keptTask(node, text)
  if (kept !== null) throw ended(kept.task)
  const id = findTask(node, text)
  const found = node.requests.cancelTask(id) || (await node.swarms.cancelTask(id)) || node.work.cancelTask(id)
  const task = node.tasks.get(id)
  if (task === undefined) throw new NodeError('TASK_NOT_FOUND', 'that task is forgotten')
  if (!found) throw ended(task)
  return taskInfo(node, task)
}

function ended({ id, state }: Task): NodeError {
  return new NodeError('CONFLICT', `the task is ${state} already`, { next: [`a2a-node tasks show ${id}`] })
}
