import { NodeError } from '../kit/errors.js'
import { type Message, saysTheSame } from '../domain/gateway/message.js'
import type { GatewayTask } from '../domain/gateway/task.js'
import type { GatewayLog } from './gateway-log.js'
import { MAX_TASK_BYTES, MAX_TASK_EVENTS } from './gateway-runs.js'

/** A message of a client to a task. */
export interface SaidAgain {
  readonly task: GatewayTask
  readonly message: Message
  /** Is it for the same agent and skill as before? Default: yes. */
  readonly isSame?: boolean
}

/** Was a message said in a task already? @throws NodeError CONFLICT for another one of the same id, and for a further one where there is no room */
export async function isSaid(log: Pick<GatewayLog, 'said'>, { task, message, isSame = true }: SaidAgain): Promise<boolean> {
  const { message: kept, bytes } = await log.said(task, message.messageId)
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

/** @throws NodeError TASK_NOT_FOUND, for a task that was let go of while it was looked at */
export function pastItsTime(): never {
  throw new NodeError('TASK_NOT_FOUND', 'the task is past its time')
}
