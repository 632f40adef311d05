import { type ErrorBody, NodeError } from '../../../kit/errors.js'
import { FINAL_STATES } from '../../../domain/task/task.js'
import type {
  BroadcastTarget,
  CallName,
  Calls,
  NodeApi,
  Reply,
  SwarmEvent,
  SwarmInfo,
  SwarmResults,
  TaskInfo,
  WatchName,
  Watches
} from '../../../ports/node-api.js'
import type { ToolChooser } from '../../../ports/agent-tools.js'
import type { MessageEvent } from '../../../ports/policy-api.js'
import { type Guardrails, violationText } from './guardrails.js'

type InputTable = { readonly [N in CallName]?: (params: Calls[N]['params']) => readonly unknown[] }
type ResultTable = { readonly [N in CallName]?: (result: Calls[N]['result'], rules: Guardrails) => Calls[N]['result'] }
type ItemTable = { readonly [N in WatchName]?: (item: Watches[N]['item'], rules: Guardrails) => Watches[N]['item'] }

/** Contents of calls that reach agents. The text of a message is checked in the form for its agent. */
const INPUTS: InputTable = {
  'message.call': ({ input, justification }) => [input, justification],
  'message.send': ({ justification }) => [justification],
  'message.answer': ({ answer }) => [answer],
  'swarm.start': swarmInputs,
  'swarm.preview': swarmInputs
}

/** Calls whose results hold output of agents. */
const RESULTS: ResultTable = {
  'message.call': guardedReply,
  'message.send': guardedReply,
  'tasks.list': guardedTasks,
  'tasks.show': guardedTaskDetail,
  'tasks.cancel': guardedResult,
  'swarm.list': ({ swarms }, rules) => ({ swarms: swarms.map((swarm) => guardedSwarm(swarm, rules)) }),
  'swarm.show': guardedSwarm,
  'swarm.cancel': guardedSwarm,
  'swarm.results': ({ results, ...swarm }, rules) => ({
    ...guardedJoined(swarm, rules),
    results: results.map((one) => guardedResult(one, rules))
  })
}

/** Watches whose items hold output of agents. */
const ITEMS: ItemTable = {
  'message.call': guardedMessage,
  'message.send': guardedMessage,
  'tasks.list': guardedTasks,
  'swarm.watch': guardedSwarmEvent
}

/**
 * The API of a node with guardrails. Input for agents that breaks a rule is refused with INVALID_INPUT. Output of
 * agents that breaks a rule is replaced by an INVALID_OUTPUT error in results and items. Documents are no output.
 */
export function guardedApi(api: NodeApi, rules: Guardrails): NodeApi {
  return {
    call: async (name, params, options) => {
      refuseInput(name, params, rules)
      const result = await api.call(name, params, options)
      return RESULTS[name]?.(result, rules) ?? result
    },
    watch: (name, params, options) => {
      const guard = ITEMS[name]
      return guard === undefined ? api.watch(name, params, options) : guarded()
      async function* guarded(): AsyncGenerator<Watches[typeof name]['item']> {
        if (name === 'message.call' || name === 'message.send') refuseInput(name, params as never, rules)
        for await (const item of api.watch(name, params, options)) yield guard?.(item, rules) ?? item
      }
    }
  }
}

/** A chooser with guardrails: a prompt that breaks a rule of input reaches no model. */
export function guardedChooser(chooser: ToolChooser, rules: Guardrails): ToolChooser {
  return {
    choose: async (question, signal) => {
      const broken = rules.violation('input', question.prompt)
      if (broken !== null) return { ok: false, reason: violationText(broken), retryAfter: null }
      return await chooser.choose(question, signal)
    }
  }
}

/** @throws NodeError INVALID_INPUT with the broken rule */
function refuseInput<N extends CallName>(name: N, params: Calls[N]['params'], rules: Guardrails): void {
  const { text } = params as { readonly text?: unknown }
  const ofText = name === 'message.send' && typeof text === 'string' ? rules.inputViolation([{ text }]) : null
  const broken = ofText ?? firstOf(INPUTS[name]?.(params) ?? [], (content) => rules.violation('input', content))
  if (broken !== null) throw new NodeError('INVALID_INPUT', violationText(broken), { data: broken })
}

function swarmInputs({
  goal,
  input,
  items,
  plan,
  justification,
  round
}: Calls['swarm.start']['params']): readonly unknown[] {
  return [
    goal,
    input,
    plan,
    justification,
    round?.check,
    ...(items ?? []).flatMap(({ item, input: one }) => [item, one])
  ]
}

function guardedReply(reply: Reply, rules: Guardrails): Reply {
  const refusal = outputRefusal([reply.payload], rules)
  if (refusal !== null) return { ...reply, outcome: 'FAILED', payload: null, error: refusal }
  const targets = reply.targets?.map((target) => guardedTarget(target, rules))
  return { ...reply, error: guardedError(reply.error, rules), ...(targets === undefined ? {} : { targets }) }
}

function guardedTarget(target: BroadcastTarget, rules: Guardrails): BroadcastTarget {
  // A truncated large answer is JSON text: patterns are also matched against it without escapes.
  const plain =
    typeof target.payload === 'string' ? target.payload.replaceAll('\\n', '\n').replace(/\\(["\\/])/g, '$1') : null
  const refusal = outputRefusal([target.payload], rules) ?? patternRefusal([plain], rules)
  const { payload: _payload, ...rest } = target
  if (refusal !== null) return { ...rest, outcome: refusal.code, reason: refusal.message }
  const reason = patternRefusal([target.reason], rules)?.message
  return reason === undefined ? target : { ...target, reason }
}

function guardedMessage(event: MessageEvent<Reply>, rules: Guardrails): MessageEvent<Reply> {
  if (event.type === 'reply') return { ...event, reply: guardedReply(event.reply, rules) }
  if (event.type === 'failed') return { ...event, error: guardedError(event.error, rules) }
  if (event.type === 'question') {
    const refusal = outputRefusal([event.question.params], rules)
    return refusal === null ? event : { type: 'failed', error: refusal }
  }
  if (event.type === 'log') {
    return outputRefusal([event.line.data, event.line.logger], rules) === null
      ? event
      : { ...event, line: { level: event.line.level, data: 'withheld by a guardrail' } }
  }
  if (event.type !== 'progress') return event
  // A pattern may be split over several reports, so with patterns no text of them is passed on.
  const { text, ...rest } = event
  const isAllowed = !rules.holdsOutputBack && outputRefusal([event.message, text], rules) === null
  return isAllowed ? event : { ...rest, message: null }
}

function guardedTasks(
  { tasks, more }: Calls['tasks.list']['result'],
  rules: Guardrails
): Calls['tasks.list']['result'] {
  return { tasks: tasks.map((task) => guardedResult(task, rules)), more }
}

function guardedTaskDetail(task: Calls['tasks.show']['result'], rules: Guardrails): Calls['tasks.show']['result'] {
  const contents = task.events.filter(({ type }) => type !== 'state' && type !== 'attempt')
  const errors = contents.filter((event) => 'error' in event)
  const refusal = outputRefusal([task.result, ...contents.filter((event) => !('error' in event))], rules)
  const isBuffered = rules.holdsOutputBack && !FINAL_STATES.has(task.state)
  const error = guardedError(task.error, rules)
  if (refusal === null && !isBuffered && error === task.error && patternRefusal(errors, rules) === null) return task
  const events = task.events.filter((event) => !contents.includes(event))
  return refusal === null ? { ...task, error, events } : { ...task, result: null, error: refusal, events }
}

/** Guards a task or an item of a swarm, which ends with a result or an error. */
function guardedResult<T extends Pick<TaskInfo, 'result' | 'error'>>(value: T, rules: Guardrails): T {
  const refusal = outputRefusal([value.result], rules)
  return refusal === null
    ? { ...value, error: guardedError(value.error, rules) }
    : { ...value, result: null, error: refusal }
}

/** Guards the joined result of a swarm, which has no error member. */
function guardedJoined<T extends Pick<SwarmResults, 'result'>>(value: T, rules: Guardrails): T {
  const error = outputRefusal([value.result], rules)
  return error === null ? value : { ...value, result: { error } }
}

function guardedSwarm(swarm: SwarmInfo, rules: Guardrails): SwarmInfo {
  return { ...swarm, error: guardedError(swarm.error, rules) }
}

function guardedSwarmEvent(event: SwarmEvent, rules: Guardrails): SwarmEvent {
  if (event.type === 'item') return guardedResult(event, rules)
  if (event.type === 'released')
    return patternRefusal([event.reason], rules) === null ? event : { ...event, reason: '' }
  if (event.type !== 'done') return event
  return { ...guardedJoined(event, rules), error: guardedError(event.error, rules) }
}

/**
 * Replaces the message and drops the data of an error that breaks a pattern. The code stays, since it may be of the
 * node.
 */
function guardedError<T extends ErrorBody | null>(error: T, rules: Guardrails): T {
  const refusal = error === null ? null : patternRefusal([error.message, error.data], rules)
  if (error === null || refusal === null) return error
  const { data: _data, ...rest } = error
  return { ...(rest as T), message: refusal.message }
}

/** Checks patterns only: error texts may exceed the length of output. */
function patternRefusal(contents: readonly unknown[], rules: Guardrails): ErrorBody | null {
  return rules.output.denied(contents) === null ? null : outputRefusal(contents, rules)
}

/** The error that replaces output of an agent; contents are checked together. Null when no rule is broken. */
function outputRefusal(contents: readonly unknown[], rules: Guardrails): ErrorBody | null {
  const broken = rules.violation('output', contents)
  return broken === null
    ? null
    : new NodeError('INVALID_OUTPUT', violationText(broken), { data: broken, next: ['a2a-node tasks'] }).toBody()
}

function firstOf<T, R>(values: readonly T[], find: (value: T) => R | null): R | null {
  for (const value of values) {
    const found = find(value)
    if (found !== null) return found
  }
  return null
}
