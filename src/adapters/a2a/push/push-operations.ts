import type { PushConfigs, PushRequest } from '../../../ports/gateway.js'
import { A2AFault } from '../server/fault.js'
import type { Caller, Operation } from '../server/operations.js'
import type { PushWire } from './push-wire.js'
import { taskAt } from '../server/task-place.js'

/** The operations on push configs of one version. */
export interface PushOperations {
  readonly set: Operation
  readonly get: Operation
  readonly list: Operation
  readonly remove: Operation
}

/** Makes the operations on push configs in the JSON form of a version. */
export function pushOperationsOf(wire: PushWire): PushOperations {
  return {
    set: async (params, caller) => {
      const push = configsOf(caller)
      const { task, target } = wire.readSet(params)
      return { value: wire.config(await push.set(caller.by, taskAt(caller, task), { target, version: wire.version })) }
    },
    get: async (params, caller) => {
      const push = configsOf(caller)
      const { task, id } = wire.readName(params)
      return { value: wire.config(await push.get(caller.by, taskAt(caller, task), id)) }
    },
    list: async (params, caller) => {
      const push = configsOf(caller)
      return { value: wire.list(await push.list(caller.by, taskAt(caller, wire.readTask(params)))) }
    },
    remove: async (params, caller) => {
      const push = configsOf(caller)
      const { task, id } = wire.readName(params)
      await push.remove(caller.by, taskAt(caller, task), id)
      return { value: wire.deleted }
    }
  }
}

/** The push config that comes with a message. @throws A2AFault PUSH_NOTIFICATION_NOT_SUPPORTED */
export function pushRequestOf({ gateway }: Pick<Caller, 'gateway'>, request: PushRequest): PushRequest {
  configsOf({ gateway })
  return request
}

function configsOf({ gateway }: Pick<Caller, 'gateway'>): PushConfigs {
  if (gateway.push === null)
    throw new A2AFault('PUSH_NOTIFICATION_NOT_SUPPORTED', 'this node sends no push notifications')
  return gateway.push
}
