import type { Message } from './message.js'
import { type GatewayEvent, RESTING_STATES } from './task.js'

/**
 * The message that is the whole answer of an agent, without the id of its task. `null`: it sent something else first.
 * `undefined`: it has sent nothing yet.
 */
export function wholeAnswer(events: readonly GatewayEvent[]): Message | null | undefined {
  for (const event of events) {
    if (event.type === 'message') continue
    if (event.type === 'artifact') return null
    const { state, message } = event
    if (message === undefined && !RESTING_STATES.has(state)) continue
    if (message === undefined || state !== 'completed') return null
    const { taskId: _taskId, ...answer } = message
    return answer
  }
  return undefined
}
