import { NodeError } from '../../../kit/errors.js'
import type { Caller } from './operations.js'

/**
 * Checks that the task is visible at the URL of a request: at the URL or tenant of an agent only tasks of that agent
 * are, at the URL of the node the tasks of all agents. Returns the id.
 * @throws NodeError TASK_NOT_FOUND
 */
export function taskAt({ gateway, by, agent }: Pick<Caller, 'gateway' | 'by' | 'agent'>, id: string): string {
  if (agent !== null && !gateway.isOf(by, id, agent)) throw new NodeError('TASK_NOT_FOUND', 'there is no such task')
  return id
}
