import { fromUtf8 } from '../../kit/ids.js'
import type { Artifact, Message } from './message.js'
import type { GatewayEvent, GatewayRun, GatewayState, GatewayTask } from './task.js'

/**
 * Tasks and their logs as ledger records: JSON with members by position instead of name. Times are milliseconds since
 * the task was created. Values of the task itself are not repeated in events. Half the bytes of plain JSON, in half the
 * time.
 */

/** A task as it was recorded, with its log where that is in the same record. */
export interface TaskRecord {
  readonly task: GatewayTask
  readonly log: readonly GatewayEvent[] | null
}

/** Common values of the records of a task and of its events, stored once. */
type TaskOwner = Pick<GatewayTask, 'id' | 'contextId' | 'createdAt'>

/** The record of a task, without the id in its key; `log`: the record of its events, for a task that includes them. */
export function encodeTask(task: GatewayTask, log: string | null = null): string {
  const {
    contextId,
    owner,
    messageId,
    agent,
    capability,
    by,
    state,
    message,
    since,
    createdAt,
    updatedAt,
    generation,
    run
  } = task
  const head = JSON.stringify([
    contextId,
    owner,
    messageId,
    agent,
    capability,
    by,
    state,
    message === null ? null : packMessage(task, message),
    createdAt,
    since - createdAt,
    updatedAt - createdAt,
    generation,
    run
  ])
  return log === null ? head : `${head.slice(0, -1)},${log}]`
}

/** The record of events of a task, which follow each other. */
export function encodeLog(task: TaskOwner, events: readonly GatewayEvent[]): string {
  const packed: unknown[] = [events[0]?.generation ?? 1]
  for (const event of events) packed.push(packEvent(task, event))
  return JSON.stringify(packed)
}

/** Decodes a task record of this node; null for an invalid one. */
export function decodeTask(id: string, bytes: Uint8Array): TaskRecord | null {
  return decoded<PackedTask, TaskRecord>(bytes, (packed) => unpackTask(id, packed))
}

/** Decodes an event record of this node; null for an invalid one. */
export function decodeLog(task: TaskOwner, bytes: Uint8Array): readonly GatewayEvent[] | null {
  return decoded<PackedLog, readonly GatewayEvent[]>(bytes, (packed) => unpackLog(task, packed))
}

function decoded<Packed, T>(bytes: Uint8Array, unpack: (packed: Packed) => T): T | null {
  try {
    return unpack(JSON.parse(fromUtf8(bytes)) as Packed)
  } catch {
    return null
  }
}

type Maybe<T> = T | null
type Uris = readonly string[]
/** Stands for an id that equals the task's. */
const OWN = 1
type PackedId = Maybe<string> | typeof OWN
/** The last members may be absent. */
type PackedMessage = readonly [
  messageId: string,
  role: Message['role'],
  parts: Message['parts'],
  contextId: PackedId,
  taskId: PackedId,
  metadata?: Maybe<NonNullable<Message['metadata']>>,
  extensions?: Maybe<Uris>,
  referenceTaskIds?: Maybe<Uris>
]
type PackedEvent =
  | readonly ['m', at: number, message: PackedMessage, run?: Maybe<GatewayRun>]
  | readonly ['s', at: number, state: GatewayState, message?: PackedMessage]
  | readonly ['a', at: number, artifact: Artifact, append: boolean, lastChunk: boolean]
/** `first`: the generation of the first event. */
type PackedLog = readonly [first: number, ...events: readonly PackedEvent[]]
type PackedTask = readonly [
  contextId: string,
  owner: string,
  messageId: string,
  agent: string,
  capability: string,
  by: GatewayTask['by'],
  state: GatewayState,
  message: Maybe<PackedMessage>,
  createdAt: number,
  since: number,
  updatedAt: number,
  generation: number,
  run: Maybe<GatewayRun>,
  log?: PackedLog
]

function unpackTask(id: string, packed: PackedTask): TaskRecord {
  const [
    contextId,
    owner,
    messageId,
    agent,
    capability,
    by,
    state,
    stated,
    createdAt,
    since,
    updatedAt,
    generation,
    run,
    log = null
  ] = packed
  if (typeof contextId !== 'string') throw new TypeError('not a record of a task')
  const head = { id, contextId, createdAt }
  const message = stated === null ? null : unpackMessage(head, stated)
  const times = { since: createdAt + since, updatedAt: createdAt + updatedAt }
  const task = { ...head, owner, messageId, agent, capability, by, state, message, ...times, generation, run }
  return { task, log: log === null ? null : unpackLog(head, log) }
}

/** Absent members become null in JSON, and most are absent. */
function packMessage(task: TaskOwner, message: Message): readonly unknown[] {
  const { messageId, role, parts, metadata, extensions, referenceTaskIds } = message
  const contextId = message.contextId === task.contextId ? OWN : message.contextId
  const taskId = message.taskId === task.id ? OWN : message.taskId
  if (extensions !== undefined || referenceTaskIds !== undefined)
    return [messageId, role, parts, contextId, taskId, metadata, extensions, referenceTaskIds]
  return metadata === undefined
    ? [messageId, role, parts, contextId, taskId]
    : [messageId, role, parts, contextId, taskId, metadata]
}

function unpackMessage(task: TaskOwner, packed: PackedMessage): Message {
  const [messageId, role, parts, context, place, metadata = null, extensions = null, referenceTaskIds = null] = packed
  const contextId = context === OWN ? task.contextId : context
  const taskId = place === OWN ? task.id : place
  return {
    messageId,
    ...(contextId === null ? {} : { contextId }),
    ...(taskId === null ? {} : { taskId }),
    role,
    parts,
    ...(metadata === null ? {} : { metadata }),
    ...(extensions === null ? {} : { extensions }),
    ...(referenceTaskIds === null ? {} : { referenceTaskIds })
  }
}

function packEvent(task: TaskOwner, event: GatewayEvent): readonly unknown[] {
  const at = event.at - task.createdAt
  switch (event.type) {
    case 'message': {
      const message = packMessage(task, event.message)
      return event.run === undefined ? ['m', at, message] : ['m', at, message, event.run]
    }
    case 'status':
      return event.message === undefined
        ? ['s', at, event.state]
        : ['s', at, event.state, packMessage(task, event.message)]
    case 'artifact':
      return ['a', at, event.artifact, event.append, event.lastChunk]
  }
}

function unpackLog(task: TaskOwner, [first, ...events]: PackedLog): GatewayEvent[] {
  if (typeof first !== 'number') throw new TypeError('not a record of events')
  return events.map((event, at) => unpackEvent(task, event, first + at))
}

function unpackEvent(task: TaskOwner, event: PackedEvent, generation: number): GatewayEvent {
  const at = event[1] + task.createdAt
  switch (event[0]) {
    case 'm': {
      const [, , message, run = null] = event
      return {
        type: 'message',
        message: unpackMessage(task, message),
        ...(run === null ? {} : { run }),
        generation,
        at
      }
    }
    case 's': {
      const [, , state, message] = event
      return {
        type: 'status',
        state,
        ...(message === undefined ? {} : { message: unpackMessage(task, message) }),
        generation,
        at
      }
    }
    case 'a': {
      const [, , artifact, append, lastChunk] = event
      return { type: 'artifact', artifact, append, lastChunk, generation, at }
    }
    default:
      throw new TypeError('not a record of an event')
  }
}
