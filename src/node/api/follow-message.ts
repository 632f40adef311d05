import type { AbortSignalLike, Timer } from '../../kit/clock.js'
import { asNodeError } from '../../kit/errors.js'
import type { Unsubscribe } from '../../kit/events.js'
import { FINAL_STATES, type Task, type TaskEvent } from '../../domain/task/task.js'
import type { Reply } from '../../ports/node-api.js'
import type { MessageEvent } from '../../ports/policy-api.js'
import { Abort } from '../../kit/abort.js'
import type { NodeCore } from '../node.js'
import { reportOf } from './progress-report.js'
import type { Asked } from '../requests/caller/requests.js'

/** The newest report of an agent is told so often at most, in milliseconds: who reads slowly is not to fall behind. */
const REPORT_MS = 250

/** How whoever sends learns of what was asked, and ends it. */
export interface MessageHooks {
  /** Called when the request to one agent is on its way. */
  readonly onAsked?: (asked: Asked) => void
  /** Aborted when it hangs up: the work whose answer it waited for is then canceled. */
  readonly signal?: AbortSignalLike | undefined
}

/** Sends or calls, telling on the way what holds the request up and how far its agent is. The last event is the reply, or why there is none. */
export function followMessage(
  node: NodeCore,
  run: (hooks: MessageHooks) => Promise<Reply>,
  { push, end }: { readonly push: (event: MessageEvent<Reply>) => void; readonly end: () => void }
): Unsubscribe {
  const gone = new Abort()
  let stop: Unsubscribe = () => {}
  const finish = (event: MessageEvent<Reply>): void => {
    stop()
    push(event)
    end()
  }
  const onAsked = ({ taskId }: Asked): void => {
    if (taskId !== null) stop = followTask(node, taskId, push)
  }
  run({ onAsked, signal: gone }).then(
    (reply) => finish({ type: 'reply', reply }),
    (error: unknown) => finish({ type: 'failed', error: asNodeError(error).toBody() })
  )
  return () => {
    stop()
    gone.abort()
  }
}

/** Tells what holds a task up, and what its agent reports, while it has not ended. */
function followTask(node: NodeCore, taskId: string, push: (event: MessageEvent<Reply>) => void): Unsubscribe {
  const { clock } = node.deps
  let waiting: Task['waitingFor'] = null
  let newest: TaskEvent | undefined
  let timer: Timer | null = null
  const report = (agent: string): void => {
    if (timer !== null || newest?.type !== 'progress') return
    push({ type: 'progress', agent, taskId, ...reportOf(newest.data) })
    newest = undefined
    timer = clock.after(REPORT_MS, () => {
      timer = null
      report(agent)
    })
  }
  const tell = (task: Task): void => {
    // That nothing holds up any more what has ended is no news: its reply follows.
    if (FINAL_STATES.has(task.state) || task.state === 'unknown') return
    const agent = node.directory.shownAddress(task.agent)
    if (task.waitingFor !== waiting) {
      waiting = task.waitingFor
      push({ type: 'waiting', waitingFor: waiting, agent, taskId })
    }
    const event = node.tasks.events(taskId).at(-1)
    if (event?.type !== 'progress') return
    newest = event
    report(agent)
  }
  const stopListening = node.tasks.follow(taskId, tell)
  const now = node.tasks.get(taskId)
  if (now !== undefined) tell(now)
  return () => {
    stopListening()
    clock.clear(timer)
  }
}
