import { MAX_LISTED_TASKS } from '../../adapters/control/terms.js'
import { NodeError } from '../../kit/errors.js'
import { shown } from '../../kit/text.js'
import type { TaskEventInfo, TaskInfo, TaskList } from '../../ports/task-api.js'
import type { Action } from '../context.js'
import { EXIT } from '../exit-codes.js'
import { showWatch } from '../terminal/live.js'
import { countOption, isSet } from '../options.js'
import { jsonLine, jsonText, type Output, type Style } from '../terminal/output.js'
import { type Cell, printFacts, tableLines } from '../terminal/render.js'
import { agoText, timeText, WAITING_TEXT } from '../words.js'

const STYLES: Readonly<Record<string, Style>> = {
  completed: 'green',
  failed: 'red',
  rejected: 'red',
  working: 'cyan',
  canceled: 'dim',
  unknown: 'yellow'
}

const EVENT_MAX = 200
const HINT_MAX = 1000
/** The default next step of task errors; the command has just printed this task. */
const ALL = 'a2a-node tasks'

/** Rows of `tasks` unless `--limit` or `--all` says otherwise. */
const ROWS = 50

/** `tasks`: the newest; with `--watch` again at each change. */
export const tasks: Action = async ({ output, api }, _args, options) => {
  const limit = countOption(options, 'limit', [1, MAX_LISTED_TASKS])
  const isAll = isSet(options, 'all')
  if (isAll && limit !== undefined)
    throw new NodeError('USAGE', '--all and --limit exclude each other', { next: ['a2a-node tasks --help'] })
  const query = isAll ? {} : { limit: limit ?? ROWS }
  const lines = async (list: TaskList): Promise<string[]> => await taskLines(output, list)
  if (isSet(options, 'watch'))
    return await showWatch(output, api().watch('tasks.list', query), { schema: 'tasks@1', lines })
  const found = await api().call('tasks.list', query)
  if (output.json) output.object('tasks@1', { ...found, tasks: found.tasks.map((one) => output.hinted(one)) })
  else for (const line of await lines(found)) output.print(line)
  return EXIT.ok
}

async function taskLines(output: Output, { tasks: list, more }: TaskList): Promise<string[]> {
  if (list.length === 0) return ['no tasks']
  const now = Date.now()
  const rows = list.map((task): Cell[] => [
    task.id,
    task.kind === 'swarm' ? 'swarm' : task.role === 'caller' ? 'asked' : 'doing',
    stateCell(task),
    agoText(task.updatedAt, now),
    task.agent,
    task.capability
  ])
  const table = await tableLines(output, ['ID', 'ROLE', 'STATE', 'UPDATED', 'AGENT', 'CAPABILITY'], rows)
  return more === 0 ? table : [...table, `and ${more} older: ${output.hint('a2a-node tasks --all')}`]
}

function stateCell(task: TaskInfo): Cell {
  const { state, waitingFor } = task
  const text = waitingFor === null ? state : WAITING_TEXT[waitingFor]
  const style = STYLES[task.state]
  return style === undefined ? text : { text, style }
}

/** `tasks show <id>`. */
export const showTask: Action = async ({ output, api }, [id = '']) => {
  const task = await api().call('tasks.show', { id })
  if (output.json) {
    const events = task.events.map((event) => (event.type === 'error' ? output.hinted(event) : event))
    output.object('task@1', { ...output.hinted(task), events })
    return EXIT.ok
  }
  output.print(output.paint('bold', shown(task.id)))
  printFacts(output, [
    ['state', stateCell(task)],
    ['agent', task.agent],
    ['capability', task.capability],
    [
      'role',
      task.kind === 'swarm'
        ? 'a swarm of this node'
        : task.role === 'caller'
          ? 'asked by this node'
          : 'done by an agent of this node'
    ],
    ['attempt', String(task.attempt)],
    ['created', timeText(task.createdAt)],
    ['updated', timeText(task.updatedAt)],
    task.error === null ? null : ['error', { text: `${task.error.message}  [${task.error.code}]`, style: 'red' }]
  ])
  for (const step of task.error === null ? [] : output.nextOf(task.error))
    if (step !== output.hint(ALL)) output.print(`  try: ${shown(step, HINT_MAX)}`)
  output.print('what happened')
  for (const event of task.events)
    output.print(
      `  ${output.paint('dim', `${String(event.generation).padStart(3)}  ${timeText(event.at)}`)}  ${eventText(event)}`
    )
  if (task.result !== null && task.result !== undefined) output.print(jsonText(task.result))
  return EXIT.ok
}

function eventText(event: TaskEventInfo): string {
  switch (event.type) {
    case 'state':
      return event.waitingFor === undefined ? event.state : `${event.state}, ${WAITING_TEXT[event.waitingFor]}`
    case 'attempt':
      return `attempt ${event.attempt}`
    case 'progress':
      return `progress: ${shown(jsonLine(event.data), EVENT_MAX)}`
    case 'result':
      return 'completed'
    case 'error':
      return `${event.state ?? 'failed'}: ${shown(event.error.message, EVENT_MAX)}  [${event.error.code}]`
  }
}

/** `tasks cancel <id>`. */
export const cancelTask: Action = async ({ output, api }, [id = '']) => {
  const task = await api().call('tasks.cancel', { id })
  if (output.json) output.object('task@1', output.hinted(task))
  else output.print(`${shown(task.id)} is ${task.state}`)
  return EXIT.ok
}
