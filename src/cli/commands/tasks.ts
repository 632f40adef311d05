import { MAX_LISTED_TASKS } from '../../adapters/control/terms.js'
import { NodeError } from '../../kit/errors.js'
import { shown } from '../../kit/text.js'
import type { TaskInfo, TaskList } from '../../ports/task-api.js'
import type { Action, CommandContext } from '../context.js'
import { EXIT } from '../exit-codes.js'
import { showWatch } from '../terminal/live.js'
import { countOption, durationOption, isSet, type Options, textOption } from '../options.js'
import { jsonLine, jsonText, type Output, plainText, type Style } from '../terminal/output.js'
import { type Cell, printFacts, tableLines } from '../terminal/render.js'
import { eventJson, eventLine } from '../task/events.js'
import { followTask, type TaskDetail, taskExit, type TaskFollow } from '../task/follow.js'
import { agoText, timeText, WAITING_TEXT } from '../words.js'

const STYLES: Readonly<Record<string, Style>> = {
  completed: 'green',
  failed: 'red',
  rejected: 'red',
  working: 'cyan',
  canceled: 'dim',
  unknown: 'yellow'
}

const HINT_MAX = 1000
/** The default next step of task errors; the command has just printed this task. */
const ALL = 'a2a-node tasks'

/** Rows of `tasks` unless `--limit` or `--all` says otherwise. */
const ROWS = 50

/** `tasks`: the newest; with `--watch` again at each change; with `--context` one conversation. */
export const tasks: Action = async (context, _args, options) => {
  const { output, api } = context
  const contextId = textOption(options, 'context')
  if (contextId !== undefined) return await showContext(context, contextId, options)
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

/** `tasks --context`: each message with its time, sender, task and state, then its text. */
async function showContext({ output, api }: CommandContext, text: string, options: Options): Promise<number> {
  if (['watch', 'all', 'limit'].some((name) => options[name] !== undefined))
    throw new NodeError('USAGE', '--context takes neither --watch, --all nor --limit', {
      next: ['a2a-node tasks --help']
    })
  const found = await api().call('context.show', { id: text })
  if (output.json) {
    output.object('context@1', found)
    return EXIT.ok
  }
  output.print(output.paint('bold', `context ${shown(found.id)}`))
  if (found.more) output.print('older messages, or some in between, are left out')
  for (const { at, role, caller, agent, taskId, state, text: words } of found.turns) {
    const from = role === 'user' ? `${shown(caller)} to ${shown(agent)}` : shown(agent)
    const task = taskId === null ? '' : `  ${shown(taskId)}${state === null ? '' : ` ${state}`}`
    output.print(output.paint('dim', `${timeText(at)}  ${from}${task}`))
    output.print(plainText(words).replace(/^/gm, '  '))
  }
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
    printTaskJson(output, task)
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
  for (const event of task.events) output.print(eventLine(output, event))
  if (task.result !== null && task.result !== undefined) output.print(jsonText(task.result))
  return EXIT.ok
}

function printTaskJson(output: Output, task: TaskDetail): void {
  output.object('task@1', { ...output.hinted(task), events: task.events.map((event) => eventJson(output, event)) })
}

/** `tasks watch <id>`: its events as they come, then its result or error; exits as `tasks wait`. */
export const watchTask: Action = async (context, [id = ''], options) => {
  const { output } = context
  let seen = 0
  const onChange = (task: TaskDetail): void => {
    for (const event of task.events) {
      if (event.generation <= seen) continue
      seen = event.generation
      output.print(output.json ? jsonLine(eventJson(output, event)) : eventLine(output, event))
    }
  }
  return await conclude(context, id, { timeoutMs: durationOption(options, 'timeout'), onChange })
}

/** `tasks wait <id>`: prints its result; exits by its outcome, as `call` does. */
export const waitTask: Action = async (context, [id = ''], options) =>
  await conclude(context, id, { timeoutMs: durationOption(options, 'timeout') })

/** Follows a task and prints its end as `call` prints a reply. */
async function conclude(context: CommandContext, id: string, follow: TaskFollow): Promise<number> {
  const { output } = context
  const task = await followTask(context, id, follow)
  if (task === null) return EXIT.interrupted
  const { state, result, error } = task
  if (output.json) printTaskJson(output, task)
  else if (state !== 'completed') output.error((error === null ? noReason(task) : NodeError.fromBody(error)).toBody())
  else if (typeof result === 'string') output.print(plainText(result))
  else if (result !== null && result !== undefined) output.print(jsonText(result))
  return taskExit(task)
}

function noReason({ id, state }: TaskDetail): NodeError {
  return new NodeError('TASK_FAILED', `the task is ${state}`, { next: [`a2a-node tasks show ${id}`] })
}

/** `tasks cancel <id>`. */
export const cancelTask: Action = async ({ output, api }, [id = '']) => {
  const task = await api().call('tasks.cancel', { id })
  if (output.json) output.object('task@1', output.hinted(task))
  else output.print(`${shown(task.id)} is ${task.state}`)
  return EXIT.ok
}
