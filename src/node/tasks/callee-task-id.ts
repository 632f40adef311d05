import type { NodeId } from '../../kit/ids.js'
import type { Hash } from '../../kit/sign.js'
import { taskIdOf, type TaskOrigin } from '../../domain/task/task-id.js'
import type { TaskTable } from './task-table.js'

/** Dependencies of {@link calleeTaskId}. */
export interface CalleeTaskIdDeps {
  readonly self: NodeId
  readonly hash: Hash
  readonly tasks: Pick<TaskTable, 'get'>
}

/**
 * The id that a request of a peer has at its caller too; undefined for a request within this node, whose caller has
 * that id here, and for one whose earlier task is still known.
 */
export function calleeTaskId(
  { self, hash, tasks }: CalleeTaskIdDeps,
  { peer, ...origin }: TaskOrigin & { readonly peer: NodeId }
): string | undefined {
  if (peer === self) return undefined
  const id = taskIdOf(hash, origin)
  return tasks.get(id) === undefined ? id : undefined
}
