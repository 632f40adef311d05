import { fromUtf8 } from '../../kit/ids.js'
import type { Artifact, Message } from './message.js'
import type { GatewayEvent, GatewayRun, GatewayState, GatewayTask } from './task.js'

/**
 * Tasks and their logs as the ledger keeps them: JSON with members by their place in lists, not by name, which halves its bytes
 * and the time to write it. What has no value is null.
 */

/** A task as it was recorded, with its log where that is in the same record. */
export interface TaskRecord {
  readonly task: GatewayTask
  readonly log: readonly GatewayEvent[] | null
}

/** The record of a task; `log`: the record of all its events, for a task that has them in it. */
export function encodeTask(task: GatewayTask, log: string | null = null): string {
  const { id, contextId, owner, messageId, agent, capability, by, state, message, since, createdAt, updatedAt, generation, run } = task
  const said = message === null ? null : packMessage(message)
  const head = JSON.stringify([
    id,
    contextId,
    owner,
    messageId,
    agent,
    capability,
    by,
    state,
    said,
    since,
    createdAt,
    updatedAt,
    generation,
    run
  ])
  return log === null ? head : `${head.slice(0, -1)},${log}]`
}

/** The record of events, which follow each other. */
export function encodeLog(events: readonly GatewayEvent[]): string {
  return JSON.stringify(packLog(events))
}

/** Reads the record of a task that this node wrote; null for what is none. */
export function decodeTask(bytes: Uint8Array): TaskRecord | null {
  return decoded<PackedTask, TaskRecord>(bytes, unpackTask)
}

/** Reads a record of events that this node wrote; null for what is none. */
export function decodeLog(bytes: Uint8Array): readonly GatewayEvent[] | null {
  return decoded<PackedLog, readonly GatewayEvent[]>(bytes, unpackLog)
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
type PackedMessage = readonly [
  messageId: string,
  role: Message['role'],
  parts: Message['parts'],
  contextId: Maybe<string>,
  taskId: Maybe<string>,
  metadata: Maybe<NonNullable<Message['metadata']>>,
  extensions: Maybe<Uris>,
  referenceTaskIds: Maybe<Uris>
]
type PackedEvent =
  | readonly ['m', at: number, message: PackedMessage, run: Maybe<GatewayRun>]
  | readonly ['s', at: number, state: GatewayState, message: Maybe<PackedMessage>]
  | readonly ['a', at: number, artifact: Artifact, append: boolean, lastChunk: boolean]
/** `first`: the generation of the first event. */
type PackedLog = readonly [first: number, events: readonly PackedEvent[]]
type PackedTask = readonly [
  id: string,
  contextId: string,
  owner: string,
  messageId: string,
  agent: string,
  capability: string,
  by: GatewayTask['by'],
  state: GatewayState,
  message: Maybe<PackedMessage>,
  since: number,
  createdAt: number,
  updatedAt: number,
  generation: number,
  run: Maybe<GatewayRun>,
  log?: PackedLog
]

function unpackTask(packed: PackedTask): TaskRecord {
  const [id, contextId, owner, messageId, agent, capability, by, state, said, since, createdAt, updatedAt, generation, run, log = null] =
    packed
  if (typeof id !== 'string') throw new TypeError('not a record of a task')
  const message = said === null ? null : unpackMessage(said)
  const who = { id, contextId, owner, messageId, agent, capability, by }
  const task = { ...who, state, message, since, createdAt, updatedAt, generation, run }
  return { task, log: log === null ? null : unpackLog(log) }
}

/** What is absent becomes null as it is written. */
function packMessage(message: Message): readonly unknown[] {
  const { messageId, role, parts, contextId, taskId, metadata, extensions, referenceTaskIds } = message
  return [messageId, role, parts, contextId, taskId, metadata, extensions, referenceTaskIds]
}

function unpackMessage([messageId, role, parts, contextId, taskId, metadata, extensions, referenceTaskIds]: PackedMessage): Message {
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

function packLog(events: readonly GatewayEvent[]): readonly unknown[] {
  return [events[0]?.generation ?? 1, events.map(packEvent)]
}

function packEvent(event: GatewayEvent): readonly unknown[] {
  const { at } = event
  switch (event.type) {
    case 'message':
      return ['m', at, packMessage(event.message), event.run]
    case 'status':
      return ['s', at, event.state, event.message === undefined ? null : packMessage(event.message)]
    case 'artifact':
      return ['a', at, event.artifact, event.append, event.lastChunk]
  }
}

function unpackLog([first, events]: PackedLog): GatewayEvent[] {
  return events.map((event, at) => unpackEvent(event, first + at))
}

function unpackEvent(event: PackedEvent, generation: number): GatewayEvent {
  const at = event[1]
  switch (event[0]) {
    case 'm': {
      const [, , message, run] = event
      return { type: 'message', message: unpackMessage(message), ...(run === null ? {} : { run }), generation, at }
    }
    case 's': {
      const [, , state, message] = event
      return { type: 'status', state, ...(message === null ? {} : { message: unpackMessage(message) }), generation, at }
    }
    case 'a': {
      const [, , artifact, append, lastChunk] = event
      return { type: 'artifact', artifact, append, lastChunk, generation, at }
    }
    default:
      throw new TypeError('not a record of an event')
  }
}
