import { sizeOf } from '../../kit/size.js'
import {
  addToContents,
  emptyContents,
  type GatewayContents,
  type GatewayEvent,
  type GatewaySnapshot,
  type GatewayTask
} from './task.js'

/** Bytes of a task's events, about, beyond which notifications tell it without its contents. */
export const MAX_FOLD_BYTES = 8_388_608
/** Approximate bytes of a fold without events. */
const BARE_BYTES = 1024

/** A task as the fold of its events so far. Changed in place. */
export interface TaskFold {
  /** Of the last event. */
  generation: number
  /** When that was; null before the first. */
  at: number | null
  status: Pick<GatewayTask, 'state' | 'message' | 'since'> | null
  /** null: they are too large. */
  contents: GatewayContents | null
  /** That it takes, about. */
  bytes: number
}

/** A fold before the first event. */
export function emptyFold(): TaskFold {
  return { generation: 0, at: null, status: null, contents: emptyContents(), bytes: BARE_BYTES }
}

/** Adds events, which must be the next ones. */
export function addToFold(fold: TaskFold, events: readonly GatewayEvent[]): void {
  for (const event of events) {
    fold.generation = event.generation
    fold.at = event.at
    if (event.type === 'status') fold.status = { state: event.state, message: event.message ?? null, since: event.at }
    if (fold.contents === null) continue
    fold.bytes += sizeOf(event)
    if (fold.bytes <= MAX_FOLD_BYTES) addToContents(fold.contents, event)
    else {
      fold.contents = null
      fold.bytes = BARE_BYTES
    }
  }
}

/** A task as it was after the events of a fold. */
export function foldedSnapshot(task: GatewayTask, { generation, at, status, contents }: TaskFold): GatewaySnapshot {
  const updatedAt = at ?? task.createdAt
  const then = {
    ...task,
    ...(status ?? { state: 'submitted', message: null, since: task.createdAt }),
    generation,
    updatedAt
  }
  if (contents === null) return { task: { ...then, message: null }, history: [], artifacts: [] }
  return { task: then, history: contents.history, artifacts: contents.artifacts.all() }
}
