import { type ErrorBody, NodeError } from '../../kit/errors.js'
import { FINAL_STATES } from '../../domain/task/task.js'
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
} from '../../ports/node-api.js'
import type { MessageEvent } from '../../ports/policy-api.js'
import { type Guardrails, violationText } from './guardrails.js'

type Sent = { readonly [N in CallName]?: (params: Calls[N]['params']) => readonly unknown[] }
type Given = { readonly [N in CallName]?: (result: Calls[N]['result'], rules: Guardrails) => Calls[N]['result'] }
type Told = { readonly [N in WatchName]?: (item: Watches[N]['item'], rules: Guardrails) => Watches[N]['item'] }

/** What calls send to agents: each element is one content. The text of a message is looked at as its agent gets it. */
const SENT: Sent = {
  'message.call': ({ input, justification }) => [input, justification],
  'message.send': ({ justification }) => [justification],
  'swarm.start': contentsOf,
  'swarm.preview': contentsOf
}

/** What agents said, in the results of calls. */
const GIVEN: Given = {
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

/** What agents said, in the items of watches. */
const TOLD: Told = {
  'message.call': guardedMessage,
  'message.send': guardedMessage,
  'tasks.list': guardedTasks,
  'swarm.watch': guardedSwarmEvent
}

/**
 * The API of a node for a client that the guardrails bind. What it sends to agents is refused when it breaks a rule of the input. What
 * agents said is left out of answers where it breaks a rule of the output: an INVALID_OUTPUT error stands in its place.
 */
export function guardedApi(api: NodeApi, rules: Guardrails): NodeApi {
  return {
    call: async (name, params, options) => {
      refuseInput(name, params, rules)
      const result = await api.call(name, params, options)
      return GIVEN[name]?.(result, rules) ?? result
    },
    watch: (name, params, options) => {
      const guard = TOLD[name]
      return guard === undefined ? api.watch(name, params, options) : guarded()
      async function* guarded(): AsyncGenerator<Watches[typeof name]['item']> {
        if (name === 'message.call' || name === 'message.send') refuseInput(name, params as never, rules)
        for await (const item of api.watch(name, params, options)) yield guard?.(item, rules) ?? item
      }
    }
  }
}

/** @throws NodeError INVALID_INPUT with the rule that is broken */
function refuseInput<N extends CallName>(name: N, params: Calls[N]['params'], rules: Guardrails): void {
  const { text } = params as { readonly text?: unknown }
  const ofText = name === 'message.send' && typeof text === 'string' ? rules.inputViolation([{ text }]) : null
  const broken = ofText ?? firstOf(SENT[name]?.(params) ?? [], (content) => rules.violation('input', content))
  if (broken !== null) throw new NodeError('INVALID_INPUT', violationText(broken), { data: broken })
}

function contentsOf({ goal, input, items, plan, justification, round }: Calls['swarm.start']['params']): readonly unknown[] {
  return [goal, input, plan, justification, round?.check, ...(items ?? []).flatMap(({ item, input: one }) => [item, one])]
}

function guardedReply(reply: Reply, rules: Guardrails): Reply {
  const error = refusalOf([reply.payload, wordsOf(reply.error)], rules)
  if (error !== null) return { ...reply, outcome: 'FAILED', payload: null, error }
  return reply.targets === undefined ? reply : { ...reply, targets: reply.targets.map((target) => guardedTarget(target, rules)) }
}

function guardedTarget(target: BroadcastTarget, rules: Guardrails): BroadcastTarget {
  const error = refusalOf([target.payload, target.reason], rules)
  if (error === null) return target
  const { payload: _payload, ...rest } = target
  return { ...rest, outcome: error.code, reason: error.message }
}

function guardedMessage(event: MessageEvent<Reply>, rules: Guardrails): MessageEvent<Reply> {
  if (event.type === 'reply') return { ...event, reply: guardedReply(event.reply, rules) }
  if (event.type === 'failed') return { ...event, error: refusalOf([wordsOf(event.error)], rules) ?? event.error }
  if (event.type !== 'progress') return event
  // A pattern may be cut into several reports: with patterns none of their words is told.
  const isTold = !rules.holdsOutputBack && refusalOf([event.message], rules) === null
  return isTold ? event : { ...event, message: null }
}

function guardedTasks({ tasks, more }: Calls['tasks.list']['result'], rules: Guardrails): Calls['tasks.list']['result'] {
  return { tasks: tasks.map((task) => guardedResult(task, rules)), more }
}

function guardedTaskDetail(task: Calls['tasks.show']['result'], rules: Guardrails): Calls['tasks.show']['result'] {
  const told = task.events.filter(({ type }) => type !== 'state' && type !== 'attempt')
  const error = refusalOf([task.result, wordsOf(task.error), ...told], rules)
  const isHeldBack = rules.holdsOutputBack && !FINAL_STATES.has(task.state)
  if (error === null && !isHeldBack) return task
  const events = task.events.filter((event) => !told.includes(event))
  return error === null ? { ...task, events } : { ...task, result: null, error, events }
}

/** A task, an item of a swarm: whatever ends with a result or an error. */
function guardedResult<T extends Pick<TaskInfo, 'result' | 'error'>>(value: T, rules: Guardrails): T {
  const error = refusalOf([value.result, wordsOf(value.error)], rules)
  return error === null ? value : { ...value, result: null, error }
}

/** What the results of a swarm make together: it has no error of its own. */
function guardedJoined<T extends Pick<SwarmResults, 'result'>>(value: T, rules: Guardrails): T {
  const error = refusalOf([value.result], rules)
  return error === null ? value : { ...value, result: { error } }
}

function guardedSwarm(swarm: SwarmInfo, rules: Guardrails): SwarmInfo {
  return { ...swarm, error: refusalOf([wordsOf(swarm.error)], rules) ?? swarm.error }
}

function guardedSwarmEvent(event: SwarmEvent, rules: Guardrails): SwarmEvent {
  if (event.type === 'item') return guardedResult(event, rules)
  if (event.type === 'released') return refusalOf([event.reason], rules) === null ? event : { ...event, reason: '' }
  if (event.type !== 'done') return event
  const error = refusalOf([wordsOf(event.error)], rules) ?? event.error
  return { ...guardedJoined(event, rules), error }
}

/** The error in the place of what an agent said: its pieces are looked at together. Null where they may be told. */
function refusalOf(said: readonly unknown[], rules: Guardrails): ErrorBody | null {
  const broken = rules.violation('output', said)
  return broken === null
    ? null
    : new NodeError('INVALID_OUTPUT', violationText(broken), { data: broken, next: ['a2a-node tasks'] }).toBody()
}

function wordsOf(error: ErrorBody | null): unknown {
  return error === null ? null : [error.message, error.data]
}

function firstOf<T, R>(values: readonly T[], find: (value: T) => R | null): R | null {
  for (const value of values) {
    const found = find(value)
    if (found !== null) return found
  }
  return null
}
