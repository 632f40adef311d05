import type { AbortSignalLike } from '../../../kit/clock.js'
import { isRecord } from '../../../kit/json.js'
import { cursorText, readCursor } from '../../../domain/gateway/task-order.js'
import { ENDED_STATES, type GatewayState } from '../../../domain/gateway/task.js'
import type { Gateway, GatewayReply, GatewaySend, GatewaySnapshot } from '../../../ports/gateway.js'
import type { Principal } from '../../../ports/node-api.js'
import { pathIdFrom } from '../cards/card-interfaces.js'
import { A2AFault, faultOf } from './fault.js'
import { historyLength, invalid, lastEventIdOf, optionalText, readList, recordOf, textOf } from './read-params.js'
import { type PushOperations, pushOperationsOf, pushRequestOf } from '../push/push-operations.js'
import { PUSH_V03, PUSH_V03_REST, PUSH_V1, type PushWire } from '../push/push-wire.js'
import { taskAt } from './task-place.js'
import type { SendParams, Wire } from './wire.js'
import { stateOfV1, WIRE_V1 } from './wire-v1.js'
import { WIRE_V03_REST } from './wire-v03-rest.js'
import { stateOfV03, WIRE_V03 } from './wire-v03.js'

/** One item of a stream. */
export interface StreamItem {
  /** Generation of the task's event, for `Last-Event-ID`; null: none. */
  readonly id: number | null
  /** Name of the event; absent: none. */
  readonly event?: string
  readonly value: object
}

/** Result of an operation: a value, or a successfully begun stream. */
export type OperationInput = { readonly value: unknown } | { readonly items: AsyncIterable<StreamItem> }

/** The caller of an operation, with its gateway and agent. */
export interface Caller {
  readonly gateway: Gateway
  readonly by: Principal
  /** The agent of the URL; null at the URL of the node. */
  readonly agent: string | null
  readonly signal: AbortSignalLike
  /** The received `Last-Event-ID` of a reconnecting client. */
  readonly lastEventId: string | readonly string[] | undefined
  extendedCard(by: Principal, agent: string | null, version: Wire['version']): Promise<object>
}

/** One operation of the protocol. @throws A2AFault, NodeError */
export type Operation = (params: unknown, caller: Caller) => Promise<OperationInput>

/** The operations of one version. */
export interface Operations {
  readonly send: Operation
  readonly stream: Operation
  readonly get: Operation
  readonly list: Operation
  readonly cancel: Operation
  readonly subscribe: Operation
  readonly card: Operation
  readonly push: PushOperations
}

/** Makes the operations in the JSON form of a version. */
export function operationsOf(wire: Wire, push: PushWire): Operations {
  return {
    send: async (params, caller) => {
      const sent = readSent(wire, params, caller)
      const reply = await beginTask(caller, sent, { wait: sent.wait, mayAnswer: true })
      return { value: wire.reply(shownReply(wire, reply, sent.historyLength)) }
    },
    stream: async (params, caller) => {
      const sent = readSent(wire, params, caller)
      // A client that does not wait wants a task at once.
      const reply = await beginTask(caller, sent, { wait: false, mayAnswer: sent.wait })
      if (reply.kind === 'message') return { items: only(wire.reply(shownReply(wire, reply, null))) }
      // A Last-Event-ID belongs to another stream: this one begins with its task.
      return {
        items: streamOf(wire, reply, { caller, length: sent.historyLength, lastEventId: null, untilRest: true })
      }
    },
    get: async (given, caller) => {
      const params = recordOf(given)
      const length = historyLength(params)
      const snapshot = await caller.gateway.get(caller.by, taskAt(caller, textOf(params, 'id')))
      return { value: wire.task(snapshot, { historyLength: length }) }
    },
    list: async (given, caller) => ({ value: await listOf(wire, recordOf(given), caller) }),
    cancel: async (given, caller) => ({
      value: wire.task(await canceled(recordOf(given), caller), { historyLength: null })
    }),
    subscribe: async (given, caller) => ({ items: await subscribed(wire, given, caller) }),
    card: async (_params, { by, agent, extendedCard }) => ({ value: await extendedCard(by, agent, wire.version) }),
    push: pushOperationsOf(push)
  }
}

/** The events of a task from an earlier one on. */
async function subscribed(wire: Wire, given: unknown, caller: Caller): Promise<ReturnType<typeof streamOf>> {
  const snapshot = await caller.gateway.get(caller.by, taskAt(caller, textOf(recordOf(given), 'id')))
  const { state, generation } = snapshot.task
  const lastEventId = lastEventIdOf(caller.lastEventId)
  const isEnded = ENDED_STATES.has(state)
  if (lastEventId !== null && lastEventId > generation)
    throw invalid('Last-Event-ID', 'is of an event that there has not been')
  if (isEnded && lastEventId === null && wire.version === '1.0')
    throw new A2AFault('UNSUPPORTED_OPERATION', `the task is ${state}: nothing more will happen to it`)
  // In 1.0 a subscription lasts until the task has ended (3.1.6); in 0.3 a final update ends it as well.
  const untilRest = wire.version === '0.3'
  return streamOf(wire, { kind: 'task', snapshot }, { caller, length: null, lastEventId, untilRest })
}

/**
 * The caller with the agent of the request: a `tenant` at the URL of the node is the path name of an agent.
 * @throws A2AFault INVALID_PARAMS for another tenant than the agent of the URL
 */
export function atTenant(caller: Caller, params: unknown): Caller {
  const tenant = isRecord(params) ? optionalText(params, 'tenant') : undefined
  if (tenant === undefined || tenant === caller.agent) return caller
  if (caller.agent !== null) throw invalid('tenant', 'is not the agent of this URL')
  return { ...caller, agent: tenant }
}

function readSent(wire: Wire, params: unknown, caller: Caller): Sent & Omit<SendParams, 'push'> {
  const { message, skill, wait, historyLength: length, push: target } = wire.readSend(params)
  const sent = { message, skill, wait, historyLength: length }
  return target === null ? sent : { ...sent, push: pushRequestOf(caller, { target, version: wire.version }) }
}

type Sent = Pick<GatewaySend, 'message' | 'skill' | 'push'>

async function canceled(params: Record<string, unknown>, caller: Caller): Promise<GatewaySnapshot> {
  const id = taskAt(caller, textOf(params, 'id'))
  return await caller.gateway.cancel(caller.by, id, { signal: caller.signal }).catch((error: unknown) => {
    throw faultOf(error, { isCancel: true })
  })
}

/** Sends a message of a client. @throws A2AFault, NodeError, synchronously or by rejection */
export function beginTask(
  { gateway, by, agent, signal }: Pick<Caller, 'gateway' | 'by' | 'agent' | 'signal'>,
  { message, skill, push }: Sent,
  { wait, mayAnswer }: Pick<GatewaySend, 'wait' | 'mayAnswer'>
): Promise<GatewayReply> {
  // At the URL of the node a skill may name its agent: `agent/skill`, as on the card of the node.
  const named = agent === null ? (/^([^/]+)\/(.+)$/.exec(skill ?? '') ?? null) : null
  const to = named === null ? { agent, skill } : { agent: pathIdFrom(named[1] ?? ''), skill: named[2] ?? null }
  const request = { message, agent: to.agent, skill: to.skill, wait, mayAnswer, signal }
  if (message.taskId !== undefined) {
    taskAt({ gateway, by, agent }, message.taskId)
    if (named !== null && to.agent !== null && !gateway.isOf(by, message.taskId, to.agent))
      throw invalid('metadata.skillId', 'is of another agent than the task')
  }
  const sending = gateway.send(by, push === undefined ? request : { ...request, push })
  if (to.agent !== null) return sending
  return sending.catch((error: unknown) => {
    throw faultOf(error, { skill: to.skill })
  })
}

function shownReply(
  wire: Wire,
  reply: GatewayReply,
  length: number | null
): { readonly task: object } | { readonly message: object } {
  return reply.kind === 'message'
    ? { message: wire.message(reply.message) }
    : { task: wire.task(reply.snapshot, { historyLength: length }) }
}

/** A stream of one message. */
async function* only(value: object): AsyncIterable<StreamItem> {
  yield { id: null, value }
}

/** Options of the stream of a task. */
interface FollowedTask {
  readonly caller: Caller
  readonly length: number | null
  readonly lastEventId: number | null
  /** Does it end when the task waits for its client? */
  readonly untilRest: boolean
}

/** The current task, unless the client reconnects; then its events until it has ended or rests. */
async function* streamOf(
  wire: Wire,
  reply: Extract<GatewayReply, { kind: 'task' }>,
  { caller, length, lastEventId, untilRest }: FollowedTask
): AsyncIterable<StreamItem> {
  const { gateway, by, signal } = caller
  const { id, contextId, generation } = reply.snapshot.task
  if (lastEventId === null) yield { id: generation, value: wire.reply(shownReply(wire, reply, length)) }
  for await (const event of gateway.follow(by, id, { after: lastEventId ?? generation, untilRest, signal })) {
    const value = wire.event(event, { id, contextId })
    if (value !== null) yield { id: event.generation, value }
  }
}

async function listOf(wire: Wire, params: Record<string, unknown>, { gateway, by, agent }: Caller): Promise<object> {
  const {
    contextId,
    state: stateText,
    since,
    pageSize,
    pageToken,
    historyLength: length,
    includeArtifacts
  } = readList(params)
  const after = pageToken === '' ? null : readCursor(pageToken)
  if (pageToken !== '' && after === null) throw invalid('pageToken', 'is none that this node gave')
  const state = stateText === undefined || stateText === 'TASK_STATE_UNSPECIFIED' ? undefined : readState(stateText)
  const filter = {
    ...(contextId === undefined ? {} : { contextId }),
    ...(state === undefined ? {} : { state }),
    ...(since === undefined ? {} : { since }),
    ...(agent === null ? {} : { agentName: agent })
  }
  const { tasks, next, total } = await gateway.list(by, filter, {
    after,
    limit: pageSize,
    isWhole: length > 0 || includeArtifacts
  })
  return {
    tasks: tasks.map((one) => wire.task(one, { historyLength: length, hasArtifacts: includeArtifacts })),
    nextPageToken: next === null ? '' : cursorText(next),
    pageSize,
    totalSize: total
  }
}

function readState(text: string): GatewayState {
  const state = stateOfV1(text) ?? stateOfV03(text)
  if (state === null) throw invalid('status', 'is no state of a task')
  return state
}

const V1 = operationsOf(WIRE_V1, PUSH_V1)
const V03 = operationsOf(WIRE_V03, PUSH_V03)

/** Operations by method name: of 1.0, of 0.3, and of the gateway's own specification. */
export const METHODS: ReadonlyMap<string, Operation> = new Map([
  ['SendMessage', V1.send],
  ['SendStreamingMessage', V1.stream],
  ['GetTask', V1.get],
  ['ListTasks', V1.list],
  ['CancelTask', V1.cancel],
  ['SubscribeToTask', V1.subscribe],
  ['GetExtendedAgentCard', V1.card],
  ['CreateTaskPushNotificationConfig', V1.push.set],
  ['GetTaskPushNotificationConfig', V1.push.get],
  ['ListTaskPushNotificationConfigs', V1.push.list],
  ['DeleteTaskPushNotificationConfig', V1.push.remove],
  ['message/send', V03.send],
  ['message/stream', V03.stream],
  ['tasks/get', V03.get],
  ['tasks/list', V03.list],
  ['tasks/cancel', V03.cancel],
  ['tasks/resubscribe', V03.subscribe],
  ['tasks/subscribe', V03.subscribe],
  ['agent/getAuthenticatedExtendedCard', V03.card],
  ['agent/card', V03.card],
  ['tasks/pushNotificationConfig/set', V03.push.set],
  ['tasks/pushNotificationConfig/get', V03.push.get],
  ['tasks/pushNotificationConfig/list', V03.push.list],
  ['tasks/pushNotificationConfig/delete', V03.push.remove]
])

/** The operations of REST, by version. */
export const REST = { '1.0': V1, '0.3': operationsOf(WIRE_V03_REST, PUSH_V03_REST) } as const
