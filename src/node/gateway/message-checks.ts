import { NodeError } from '../../kit/errors.js'
import { inputOf } from '../../domain/gateway/content.js'
import { type Message, saysTheSame } from '../../domain/gateway/message.js'
import { ASKING_STATES, type GatewayTask } from '../../domain/gateway/task.js'
import type { Principal } from '../../ports/node-api.js'
import { parseAddress } from '../../domain/card/card.js'
import type { TaskLog } from './task-log.js'
import { MAX_TASK_BYTES, MAX_TASK_EVENTS } from './turn-runner.js'
import { checkMember, memberBehind } from './mesh/member-principal.js'
import type { NodeCore } from '../node.js'

/** A message of a client to a task. */
export interface DuplicateMessage {
  readonly task: GatewayTask
  readonly message: Message
  /** Is it for the same agent and skill as before? Default: yes. */
  readonly isSame?: boolean
}

/** Was a message said in a task already? @throws NodeError CONFLICT for another one of the same id, and for a further one where there is no room */
export async function isDuplicate(
  log: Pick<TaskLog, 'recordMessage'>,
  { task, message, isSame = true }: DuplicateMessage
): Promise<boolean> {
  const { message: kept, bytes } = await log.recordMessage(task, message.messageId)
  if (kept === null && (bytes > MAX_TASK_BYTES || task.generation >= MAX_TASK_EVENTS))
    throw new NodeError('CONFLICT', 'the task holds as much as one may: begin another one', { data: { state: task.state } })
  if (kept === null || (isSame && saysTheSame(kept, message))) return kept !== null
  throw new NodeError('CONFLICT', 'another message had this messageId: give each its own', { data: { reason: 'MESSAGE_ID_REUSED' } })
}

/** May a message to a task name that skill? null: it names none. @throws NodeError INVALID_INPUT */
export function checkSkill({ capability }: Pick<GatewayTask, 'capability'>, skill: string | null): void {
  if (skill === null || skill === capability) return
  throw new NodeError('INVALID_INPUT', `metadata.skillId: the task is of the skill ${capability}; leave it out, or begin another task`)
}

/**
 * May a client say that to a task, and does it fit its agent, as far as that is known here? An answer that does not leaves the task as
 * it waits. @throws NodeError INVALID_INPUT, and what a member may not do
 */
export function checkAnswer(node: NodeCore, by: Principal, { task, message }: Pick<DuplicateMessage, 'task' | 'message'>): void {
  const { capability, state } = task
  const address = parseAddress(task.agent)
  if (address === null) return
  checkMember(node, by, { address, capability })
  if (!ASKING_STATES.has(state) || address.nodeId !== node.self || !node.agents.has(address.agentId)) return
  const input = node.deps.toAgentJson(inputOf(message.parts))
  const fault = node.checkShare.within(memberBehind(by) ?? node.self, () => node.agents.inputFault(address.agentId, capability, input))
  if (fault !== null) throw fault
}

/** @throws NodeError TASK_NOT_FOUND, for a task that was let go of while it was looked at */
export function pastItsTime(): never {
  throw new NodeError('TASK_NOT_FOUND', 'the task is past its time')
}
