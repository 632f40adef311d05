import { NodeError } from '../../kit/errors.js'
import { formatDuration } from '../../kit/units.js'
import type { Calls } from '../../ports/node-api.js'
import type { CommandContext } from '../context.js'
import { EXIT, EXIT_CODES } from '../exit-codes.js'

/** `tasks show` of one task. */
export type TaskDetail = Calls['tasks.show']['result']

/** Ends of a task. `unknown` ends it too, though a late answer may still come. */
const ENDED: ReadonlySet<TaskDetail['state']> = new Set(['completed', 'failed', 'canceled', 'rejected', 'unknown'])

/** How a task is followed. */
export interface TaskFollow {
  /** Milliseconds; undefined: without a limit. */
  readonly timeoutMs: number | undefined
  /** Called at first and after each change. */
  onChange?(task: TaskDetail): void
}

/**
 * Follows a task to its end, and gives it; null after Ctrl-C, which leaves the task alone.
 * @throws NodeError TASK_NOT_FOUND, AMBIGUOUS_NAME; TIMEOUT; NODE_NOT_RUNNING when the node stops meanwhile
 */
export async function followTask(
  { api, output }: Pick<CommandContext, 'api' | 'output'>,
  text: string,
  { timeoutMs, onChange }: TaskFollow
): Promise<TaskDetail | null> {
  const { id } = await api().call('tasks.show', { id: text })
  const stop = new AbortController()
  let isInterrupted = false
  const interrupt = (): void => {
    isInterrupted = true
    stop.abort()
  }
  const timer = timeoutMs === undefined ? undefined : setTimeout(() => stop.abort(), timeoutMs)
  process.once('SIGINT', interrupt)
  try {
    // Each change of any task gives a list: it is the sign to look at this one.
    for await (const _ of api().watch('tasks.list', { limit: 1 }, { signal: stop.signal })) {
      const task = await api().call('tasks.show', { id })
      onChange?.(task)
      if (ENDED.has(task.state)) return task
    }
  } catch (error) {
    if (!stop.signal.aborted) throw error
  } finally {
    clearTimeout(timer)
    process.off('SIGINT', interrupt)
  }
  if (isInterrupted) {
    output.note(`no longer followed; the task runs on: ${output.hint(`a2a-node tasks cancel ${id}`)} cancels it`)
    return null
  }
  if (stop.signal.aborted) throw late(id, timeoutMs ?? 0)
  throw new NodeError('NODE_NOT_RUNNING', `the node stopped before task ${id} ended`, {
    next: ['a2a-node start', `a2a-node tasks wait ${id}`]
  })
}

function late(id: string, timeoutMs: number): NodeError {
  return new NodeError('TIMEOUT', `task ${id} has not ended after ${formatDuration(timeoutMs)}; it runs on`, {
    next: [`a2a-node tasks show ${id}`, `a2a-node tasks cancel ${id}`]
  })
}

/** The exit code of an ended task: that of its error, as of `call`. */
export function taskExit({ state, error }: Pick<TaskDetail, 'state' | 'error'>): number {
  if (state === 'completed') return EXIT.ok
  if (state === 'unknown') return EXIT.timedOut
  return error === null ? EXIT.failed : EXIT_CODES[NodeError.fromBody(error).code]
}
