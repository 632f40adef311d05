// Child process of one `module` agent: loads the module once, runs its tasks, and ends when its channel closes.
import { fileURLToPath, pathToFileURL } from 'node:url'
import { messageOf } from '../../../kit/errors.js'
import type { QuestionAnswer } from '../../../domain/task/question.js'
import type { AgentTask } from '../../../ports/agent-runtime.js'
import { agentJsonText } from '../schemas/agent-json.js'
import { outputTooLarge } from '../files/hosted-agent.js'
import type { Agent, AgentContext } from './module-agent.js'
import {
  type ChildOutcome,
  type FromChild,
  MAX_FAILURE_MESSAGE,
  MAX_LOG_LINE,
  MAX_PROGRESS_JSON,
  type ToChild
} from './module-messages.js'

const channel = process.send?.bind(process)
if (channel === undefined) throw new Error('this program is started by a node, not by hand')
// The channel belongs to this file: libraries that look for it would believe that they are managed by another program.
delete process.send

const aborts = new Map<number, AbortController>()
/** Questions that wait, by their ids. */
const answers = new Map<number, { readonly run: number; readonly resolve: (answer: QuestionAnswer) => void }>()
let lastQuestion = 0
let maxOutputBytes = 0
let loaded: (agent: Agent) => void = () => {}
/** Never settles when the module cannot be loaded: the process ends. */
const agent = new Promise<Agent>((resolve) => {
  loaded = resolve
})

process.once('disconnect', () => {
  // The node is gone: end the whole process group of the module.
  try {
    process.kill(-process.pid, 'SIGKILL')
  } catch {
    process.exit(1)
  }
})

process.on('message', (message: ToChild) => {
  if (message.type === 'load') void load(message.path, message.maxOutputBytes)
  else if (message.type === 'run') void run(message.run, message.task)
  else if (message.type === 'answer') answered(message.id, message.answer)
  else aborts.get(message.run)?.abort()
})

function tell(message: FromChild): void {
  // Errors of a closed channel are met by 'disconnect'.
  channel?.(message, undefined, undefined, () => {})
}

async function load(path: string, maxBytes: number): Promise<void> {
  maxOutputBytes = maxBytes
  try {
    const namespace = (await import(pathToFileURL(path).href)) as { default?: unknown }
    const exported = namespace.default
    if (!isAgent(exported)) throw new Error('its default export is no object with a run(task, ctx) function')
    loaded(exported)
    tell({ type: 'ready' })
  } catch (error) {
    const place = placeOf(error)
    const message = `${place === null ? '' : `${place}: `}${failureText(error)}`
    channel?.({ type: 'load-failed', message }, undefined, undefined, () => {
      if (place !== null || !(error instanceof SyntaxError)) process.exit(1)
      // Only Node's own report of an uncaught error gives the line of a syntax error.
      setImmediate(() => {
        throw error
      })
    })
  }
}

/** The first file and line of an error's stack that is not of this program. */
function placeOf(error: unknown): string | null {
  const stack = error instanceof Error ? String(error.stack) : ''
  for (const [, url = '', line = ''] of stack.matchAll(/(file:\/\/\/[^\s()]+?):(\d+)/g))
    if (url !== import.meta.url) return `${fileURLToPath(url)}:${line}`
  return null
}

function isAgent(value: unknown): value is Agent {
  return typeof value === 'object' && value !== null && 'run' in value && typeof value.run === 'function'
}

async function run(id: number, task: AgentTask): Promise<void> {
  const abort = new AbortController()
  aborts.set(id, abort)
  const outcome = await outcomeOf(task, contextOf(id, task, abort.signal))
  aborts.delete(id)
  for (const [question, { run: of }] of answers)
    if (of === id) answered(question, { ok: false, message: 'the task has ended' })
  tell({ type: 'done', run: id, outcome })
}

async function outcomeOf(task: AgentTask, context: AgentContext): Promise<ChildOutcome> {
  let result: unknown
  try {
    result = await (await agent).run(task, context)
  } catch (error) {
    return { ok: false, code: 'TASK_FAILED', message: failureText(error) }
  }
  return jsonOf(result)
}

function failureText(error: unknown): string {
  try {
    return (messageOf(error) || 'failed without a message').slice(0, MAX_FAILURE_MESSAGE)
  } catch {
    return 'failed with something that is no error'
  }
}

function jsonOf(result: unknown): ChildOutcome {
  let json: string | undefined
  try {
    json = agentJsonText(result === undefined ? null : result)
  } catch (error) {
    return { ok: false, code: 'INVALID_OUTPUT', message: `the agent's result is no JSON value: ${messageOf(error)}` }
  }
  if (json === undefined)
    return { ok: false, code: 'INVALID_OUTPUT', message: `the agent's result is no JSON value but a ${typeof result}` }
  if (Buffer.byteLength(json) <= maxOutputBytes) return { ok: true, json }
  return { ok: false, code: 'PAYLOAD_TOO_LARGE', message: outputTooLarge(maxOutputBytes).message }
}

function contextOf(id: number, { conversation }: AgentTask, signal: AbortSignal): AgentContext {
  return {
    signal,
    conversation: conversation ?? null,
    progress: (data) => {
      const json = progressJson(data)
      if (json !== null && aborts.has(id)) tell({ type: 'progress', run: id, data: JSON.parse(json) as unknown })
    },
    log: (message: unknown) => tell({ type: 'log', run: id, message: String(message).slice(0, MAX_LOG_LINE) }),
    ask: async (message, schema) => await asked(id, { mode: 'form', message, requestedSchema: schema })
  }
}

async function asked(task: number, params: unknown): Promise<Readonly<Record<string, unknown>> | null> {
  if (!aborts.has(task)) throw new Error('the task has ended')
  const id = ++lastQuestion
  const json = agentJsonText(params)
  const answer = await new Promise<QuestionAnswer>((resolve) => {
    answers.set(id, { run: task, resolve })
    tell({ type: 'ask', run: task, id, params: json === undefined ? null : (JSON.parse(json) as unknown) })
  })
  if (!answer.ok) throw new Error(answer.message)
  const { action, content } = answer.result
  return action === 'accept' ? ((content ?? {}) as Readonly<Record<string, unknown>>) : null
}

function answered(id: number, answer: QuestionAnswer): void {
  answers.get(id)?.resolve(answer)
  answers.delete(id)
}

function progressJson(data: unknown): string | null {
  try {
    const json = agentJsonText(data === undefined ? null : data)
    return json !== undefined && json.length <= MAX_PROGRESS_JSON ? json : null
  } catch {
    return null
  }
}
