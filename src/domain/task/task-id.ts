import { keyToText, utf8 } from '../../kit/ids.js'
import type { Hash } from '../../kit/sign.js'

/** Characters after `task_`: 80 bits, as in random ids. */
const CHARACTERS = 16

/** A request by its caller's address (`agentId@nodeId`) and its id. */
export interface TaskOrigin {
  readonly source: string
  readonly requestId: string
}

/**
 * The id of the task of a request. Caller and callee both derive it, so it is the same at both ends. The address of the
 * caller is part of it: no other node can make a request of this id.
 */
export function taskIdOf(hash: Hash, { source, requestId }: TaskOrigin): string {
  return `task_${keyToText(hash(utf8(`task/${source}/${requestId}`))).slice(0, CHARACTERS)}`
}
