import { sizeOf } from '../../kit/size.js'
import { addToContents, emptyContents, type GatewayContents, type GatewayEvent, type GatewaySnapshot, type GatewayTask } from './task.js'

/** Bytes of a task's events, about, beyond which notifications tell it without its contents. */
export const MAX_TALE_BYTES = 8_388_608
/** What a tale without events takes, about. */
const BARE_BYTES = 1024

/** A task as far as it was told of its events. Changed in place. */
export interface TaskTale {
  /** Of the last event. */
  generation: number
  /** When that was; null before the first. */
  at: number | null
  said: Pick<GatewayTask, 'state' | 'message' | 'since'> | null
  /** null: they are too large. */
  contents: GatewayContents | null
  /** That it takes, about. */
  bytes: number
}

/** A tale before the first event. */
export function emptyTale(): TaskTale {
  return { generation: 0, at: null, said: null, contents: emptyContents(), bytes: BARE_BYTES }
}

/** Adds events, which must be the next ones. */
export function addToTale(tale: TaskTale, events: readonly GatewayEvent[]): void {
  for (const event of events) {
    tale.generation = event.generation
    tale.at = event.at
    if (event.type === 'status') tale.said = { state: event.state, message: event.message ?? null, since: event.at }
    if (tale.contents === null) continue
    tale.bytes += sizeOf(event)
    if (tale.bytes <= MAX_TALE_BYTES) addToContents(tale.contents, event)
    else {
      tale.contents = null
      tale.bytes = BARE_BYTES
    }
  }
}

/** A task as it was after the events of a tale. */
export function toldOf(task: GatewayTask, { generation, at, said, contents }: TaskTale): GatewaySnapshot {
  const updatedAt = at ?? task.createdAt
  const then = { ...task, ...(said ?? { state: 'submitted', message: null, since: task.createdAt }), generation, updatedAt }
  if (contents === null) return { task: { ...then, message: null }, history: [], artifacts: [] }
  return { task: then, history: contents.history, artifacts: contents.artifacts.all() }
}
