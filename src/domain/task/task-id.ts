import { keyToText, utf8 } from '../../kit/ids.js'
import type { Hash } from '../../kit/sign.js'

/** Characters after `task_`: 80 bits, as in random ids. */
const CHARACTERS = 16

/** A request by all that names it at its callee; `source` and `target` are addresses (`agentId@nodeId`). */
export interface TaskOrigin {
  readonly source: string
  readonly target: string
  readonly requestId: string
  readonly attempt: number
}

/**
 * The id of the task of a request. Caller and callee both derive it, so it is the same at both ends. The address of the
 * caller is part of it: no other node can make a request of this id.
 */
export function taskIdOf(hash: Hash, { source, target, requestId, attempt }: TaskOrigin): string {
  const name = utf8(JSON.stringify(['task', source, target, requestId, attempt]))
  return `task_${keyToText(hash(name)).slice(0, CHARACTERS)}`
}
