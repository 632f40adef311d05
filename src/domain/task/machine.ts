import type { ErrorBody } from '../../kit/errors.js'
import { FINAL_STATES, type Task, type TaskEvent, type TaskState, type WaitingFor } from './task.js'

/** Inputs of a task: a {@link TaskEvent} without number and time. */
export type TaskInput =
  | { readonly type: 'state'; readonly state: TaskState; readonly waitingFor?: WaitingFor }
  /** A further try begins; numbers rise. */
  | { readonly type: 'attempt'; readonly attempt: number }
  /** A report of work under way. */
  | { readonly type: 'progress'; readonly data: unknown }
  | { readonly type: 'result'; readonly result: unknown }
  /** Ends the task without a result; `failed` unless `state` says otherwise. */
  | {
      readonly type: 'error'
      readonly error: ErrorBody
      readonly state?: 'failed' | 'rejected' | 'canceled' | 'unknown'
    }

/** Fields of a new task. */
export type TaskParts = Pick<Task, 'id' | 'kind' | 'role' | 'agent' | 'capability' | 'description'> & {
  readonly waitingFor?: WaitingFor
  /** `working`: its agent begins in the moment in which it is asked. Default `submitted`. */
  readonly state?: 'submitted' | 'working'
}

/** The task after an input with the event for its log, or why the input does not fit (the task stays as it was). */
export type TaskStep =
  | { readonly ok: true; readonly task: Task; readonly event: TaskEvent }
  | { readonly ok: false; readonly reason: string }

/**
 * Transitions of states. `working` goes back to `submitted` when its worker is lost, and to `rejected` when its
 * agent finds that it will not do the work. A task never leaves a final state. `unknown` ends only
 * by a late outcome; its reason may become known later.
 */
const NEXT: Readonly<Record<TaskState, ReadonlySet<TaskState>>> = {
  submitted: new Set(['working', 'rejected', 'canceled', 'failed', 'unknown']),
  working: new Set([
    'submitted',
    'input-required',
    'auth-required',
    'completed',
    'failed',
    'canceled',
    'rejected',
    'unknown'
  ]),
  'input-required': new Set(['working', 'failed', 'canceled', 'unknown']),
  'auth-required': new Set(['working', 'failed', 'canceled', 'rejected', 'unknown']),
  unknown: new Set(['completed', 'failed', 'unknown']),
  completed: new Set(),
  failed: new Set(),
  canceled: new Set(),
  rejected: new Set()
}

/** May a task go from one state to another one? */
export function leadsTo(from: TaskState, to: TaskState): boolean {
  return NEXT[from].has(to)
}

/** A task just asked for, and the first event of its log (generation 1). Times are unix milliseconds. */
export function createTask(parts: TaskParts, now: number): { readonly task: Task; readonly event: TaskEvent } {
  const { id, kind, role, agent, capability, description, waitingFor, state = 'submitted' } = parts
  const task: Task = {
    id,
    kind,
    role,
    agent,
    capability,
    description,
    state,
    waitingFor: waitingFor ?? null,
    attempt: 1,
    createdAt: now,
    updatedAt: now,
    result: null,
    error: null,
    generation: 1
  }
  const begun: TaskEvent = { generation: 1, at: now, type: 'state', state }
  return { task, event: waitingFor === undefined ? begun : { ...begun, waitingFor } }
}

/** Applies an input. Each one that fits raises the generation by one and gives the event to append. */
export function applyTask(task: Task, input: TaskInput, now: number): TaskStep {
  const reason = faultOf(task, input)
  if (reason !== null) return { ok: false, reason }
  const event = eventOf(input, task.generation + 1, now)
  return { ok: true, task: foldTask(task, event), event }
}

/** Literal members: each task has several events, and object spread costs many times as much. */
function eventOf(input: TaskInput, generation: number, at: number): TaskEvent {
  switch (input.type) {
    case 'state': {
      const { type, state, waitingFor } = input
      return waitingFor === undefined ? { generation, at, type, state } : { generation, at, type, state, waitingFor }
    }
    case 'attempt':
      return { generation, at, type: input.type, attempt: input.attempt }
    case 'progress':
      return { generation, at, type: input.type, data: input.data }
    case 'result':
      return { generation, at, type: input.type, result: input.result }
    case 'error': {
      const { type, error, state } = input
      return state === undefined ? { generation, at, type, error } : { generation, at, type, error, state }
    }
  }
}

/** The task after an event of its log: folding the log again gives the same task. */
export function foldTask(task: Task, event: TaskEvent): Task {
  const { generation, at: updatedAt } = event
  switch (event.type) {
    case 'state':
      return { ...task, generation, updatedAt, state: event.state, waitingFor: event.waitingFor ?? null }
    case 'attempt':
      return { ...task, generation, updatedAt, attempt: event.attempt }
    case 'progress':
      return { ...task, generation, updatedAt }
    case 'result':
      return { ...task, generation, updatedAt, state: 'completed', waitingFor: null, result: event.result, error: null }
    case 'error':
      return { ...task, generation, updatedAt, state: event.state ?? 'failed', waitingFor: null, error: event.error }
  }
}

function faultOf(task: Task, input: TaskInput): string | null {
  if (FINAL_STATES.has(task.state)) return `the task is ${task.state} already`
  switch (input.type) {
    case 'state':
      return stateFault(task, input.state, input.waitingFor ?? null)
    case 'attempt':
      if (task.state !== 'submitted' && task.state !== 'working') return `no further attempt while ${task.state}`
      return Number.isSafeInteger(input.attempt) && input.attempt > task.attempt
        ? null
        : `attempt ${task.attempt} is not followed by ${input.attempt}`
    case 'progress':
      return task.state === 'working' ? null : `no progress while ${task.state}`
    case 'result':
      return moveFault(task.state, 'completed')
    case 'error':
      return moveFault(task.state, input.state ?? 'failed')
  }
}

function stateFault(task: Task, state: TaskState, waitingFor: WaitingFor | null): string | null {
  if (state === 'completed') return 'a task is completed by its result'
  if (state !== task.state) return moveFault(task.state, state)
  return waitingFor === task.waitingFor ? `the task is ${state} already` : null
}

function moveFault(from: TaskState, to: TaskState): string | null {
  return leadsTo(from, to) ? null : `a task does not go from ${from} to ${to}`
}
