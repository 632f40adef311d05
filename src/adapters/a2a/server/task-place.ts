import { NodeError } from '../../../kit/errors.js'
import type { Caller } from './operations.js'

/**
 * The task that a request names, where it was asked for: below the URL of one agent, or for one as a tenant, the tasks of others
 * are as good as absent; at the URL of the node those of all agents are there.
 * @throws NodeError TASK_NOT_FOUND
 */
export function taskAt({ gateway, by, agent }: Pick<Caller, 'gateway' | 'by' | 'agent'>, id: string): string {
  if (agent !== null && !gateway.isOf(by, id, agent)) throw new NodeError('TASK_NOT_FOUND', 'there is no such task')
  return id
}
