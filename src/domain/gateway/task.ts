import type { AgentThread } from './conversation.js'
import type { TaskState } from '../task/task.js'
import type { CallerAuthority } from '../routing/effective.js'
import { leadsTo } from '../task/machine.js'
import { GrowingArtifacts } from './growing-artifacts.js'
import type { Artifact, Message } from './message.js'

/**
 * States of a task for A2A clients. An unknown outcome is no state of theirs: the task is working until it is known,
 * and failed when it never will be.
 */
export type GatewayState = Exclude<TaskState, 'unknown'>

/** All of them. */
export const GATEWAY_STATES: readonly GatewayState[] = [
  'submitted',
  'working',
  'input-required',
  'auth-required',
  'completed',
  'failed',
  'canceled',
  'rejected'
]

/** States that a task never leaves. */
export const ENDED_STATES: ReadonlySet<GatewayState> = new Set(['completed', 'failed', 'canceled', 'rejected'])
/** States in which a task waits for its client. */
export const ASKING_STATES: ReadonlySet<GatewayState> = new Set(['input-required', 'auth-required'])
/** States in which nothing happens until its client acts, or ever again. */
export const RESTING_STATES: ReadonlySet<GatewayState> = new Set([...ENDED_STATES, ...ASKING_STATES])

/** The request of a node's own task model by which a turn of a task is done. */
export interface GatewayRun {
  readonly requestId: string
  /** Of the node's task. */
  readonly taskId: string
  /** It ends with its client: after a restart it is not resumed. */
  readonly isAttended?: true
  /** The ids that the agent gave with its last question. */
  readonly thread?: AgentThread
}

/** A task of the A2A gateway without its contents, as in lists. Times are unix milliseconds. */
export interface GatewayTask {
  readonly id: string
  readonly contextId: string
  /** The caller that began it, the only one that may see it. */
  readonly owner: string
  /** Id of the message that began it: a repeated message means the same task. */
  readonly messageId: string
  /** `agentId@nodeId` of its agent. */
  readonly agent: string
  readonly capability: string
  readonly by: CallerAuthority
  readonly state: GatewayState
  /** The message with that state. */
  readonly message: Message | null
  /** When it came to that state. */
  readonly since: number
  readonly createdAt: number
  readonly updatedAt: number
  /** Of its newest event; 0 before the first. */
  readonly generation: number
  /** The run of its turn; null once it has ended. */
  readonly run: GatewayRun | null
}

/** Inputs of a task. */
export type GatewayInput =
  /** Its client says more: the next turn, by this run. */
  | { readonly type: 'message'; readonly message: Message; readonly run?: GatewayRun }
  /** The same state with a message is news, without one it is none. */
  | {
      readonly type: 'status'
      readonly state: GatewayState
      readonly message?: Message
      /** Ids of an agent with its question; kept with the run of the task. */
      readonly thread?: AgentThread
    }
  | { readonly type: 'artifact'; readonly artifact: Artifact; readonly append: boolean; readonly lastChunk: boolean }

/** An event of a task's log. Generations rise by one from 1 on. */
export type GatewayEvent = GatewayInput & { readonly generation: number; readonly at: number }

/** The task after an input with the event for its log, or why the input does not fit. */
export type GatewayStep =
  | { readonly ok: true; readonly task: GatewayTask; readonly event: GatewayEvent }
  | { readonly ok: false; readonly reason: string }

/** Applies an input. A task never leaves its final states; every other change of state is one of the task model. */
export function applyGateway(task: GatewayTask, input: GatewayInput, now: number): GatewayStep {
  const reason = faultOf(task, input)
  if (reason !== null) return { ok: false, reason }
  // Clocks jump; a list in the order of changes must not.
  const at = Math.max(now, task.updatedAt)
  const event = eventOf(input, task.generation + 1, at)
  const next = taskAfter(task, event)
  if (input.type !== 'status' || !ASKING_STATES.has(input.state) || next.run === null)
    return { ok: true, task: next, event }
  return { ok: true, task: { ...next, run: askedBy(next.run, input.thread) }, event }
}

/** A run after a question: the ids of an earlier one are no longer those to answer to. */
function askedBy({ requestId, taskId, isAttended }: GatewayRun, thread: AgentThread | undefined): GatewayRun {
  return {
    requestId,
    taskId,
    ...(isAttended === undefined ? {} : { isAttended }),
    ...(thread === undefined ? {} : { thread })
  }
}

/** Literal members: there are several events for each call of a client, and object spread costs many times as much. */
function eventOf(input: GatewayInput, generation: number, at: number): GatewayEvent {
  switch (input.type) {
    case 'message': {
      const { type, message, run } = input
      return run === undefined ? { type, message, generation, at } : { type, message, run, generation, at }
    }
    case 'status': {
      const { type, state, message } = input
      return message === undefined ? { type, state, generation, at } : { type, state, message, generation, at }
    }
    case 'artifact': {
      const { type, artifact, append, lastChunk } = input
      return { type, artifact, append, lastChunk, generation, at }
    }
  }
}

function taskAfter(task: GatewayTask, event: GatewayEvent): GatewayTask {
  const { id, contextId, owner, messageId, agent, capability, by, createdAt } = task
  const isStatus = event.type === 'status'
  return {
    id,
    contextId,
    owner,
    messageId,
    agent,
    capability,
    by,
    state: isStatus ? event.state : task.state,
    message: isStatus ? (event.message ?? null) : task.message,
    since: isStatus ? event.at : task.since,
    createdAt,
    updatedAt: event.at,
    generation: event.generation,
    run:
      event.type === 'message' ? (event.run ?? task.run) : isStatus && ENDED_STATES.has(event.state) ? null : task.run
  }
}

function faultOf({ state, generation }: GatewayTask, input: GatewayInput): string | null {
  if (ENDED_STATES.has(state)) return `it is ${state}`
  if (input.type === 'message')
    return generation === 0 || ASKING_STATES.has(state) ? null : `it is ${state}, and waits for nothing`
  if (input.type !== 'status') return null
  if (input.state === state) return input.message === undefined ? 'no news' : null
  return leadsTo(state, input.state) ? null : `${state} does not lead to ${input.state}`
}

/** A task with its contents. */
export interface GatewaySnapshot {
  readonly task: GatewayTask
  readonly history: readonly Message[]
  readonly artifacts: readonly Artifact[]
}

/** The contents of a task as far as its events were added. Changed in place. */
export interface GatewayContents {
  /** The message with its current state. */
  message: Message | null
  readonly history: Message[]
  readonly artifacts: GrowingArtifacts
}

/** The contents of a task before its first event. */
export function emptyContents(): GatewayContents {
  return { message: null, history: [], artifacts: new GrowingArtifacts() }
}

/** Adds an event, which must be the next one. */
export function addToContents(contents: GatewayContents, event: GatewayEvent): void {
  if (event.type === 'artifact') return contents.artifacts.take(event.artifact, event.append)
  // The message with the former status is part of the history now.
  if (contents.message !== null) contents.history.push(contents.message)
  if (event.type === 'message') contents.history.push(event.message)
  contents.message = event.type === 'status' ? (event.message ?? null) : null
}

/** The contents of a task by its events, oldest first. */
export function snapshotOf(task: GatewayTask, events: Iterable<GatewayEvent>): GatewaySnapshot {
  const contents = emptyContents()
  for (const event of events) addToContents(contents, event)
  return { task, history: contents.history, artifacts: contents.artifacts.all() }
}
