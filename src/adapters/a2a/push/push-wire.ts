import { isRecord } from '../../../kit/json.js'
import type { MessageFault, MessageRead } from '../../../domain/gateway/message.js'
import { type PushHook, type PushTarget, readPushTarget } from '../../../domain/gateway/push.js'
import type { A2AFault } from '../server/fault.js'
import { faultyAt, optionalText, recordOf, textOf } from '../server/read-params.js'
import { present } from '../server/wire.js'

/** The push config that a request names. JSON-RPC requests of 0.3 without an id mean the id of the task. */
export interface ConfigName {
  readonly task: string
  readonly id: string
}

/** Push configs in the JSON form of a version. The `read` functions throw A2AFault INVALID_PARAMS. */
export interface PushWire {
  readonly version: '1.0' | '0.3'
  readSet(params: unknown): { readonly task: string; readonly target: PushTarget }
  readName(params: unknown): ConfigName
  readTask(params: unknown): string
  config(hook: PushHook): object
  list(hooks: readonly PushHook[]): unknown
  /** Result of a deletion. */
  readonly deleted: unknown
}

/**
 * Reads a config of 1.0. `name`: the member that holds it, for errors; absent: the parameters themselves.
 * @throws A2AFault
 */
export function pushTargetV1(value: unknown, name?: string): PushTarget {
  const given = recordOf(value, name)
  const { authentication } = given
  const scheme = isRecord(authentication) ? filled(authentication['scheme']) : undefined
  const read = targetOf(given, scheme === undefined ? undefined : [scheme])
  if (read.ok) return read.value
  // The node has a list of schemes, this version a single scheme.
  throw faultsIn(
    name,
    read.faults.map(({ path, message }) => ({ path: path.replace('.schemes[0]', '.scheme'), message }))
  )
}

/** Reads a config of 0.3, from JSON-RPC or REST. @throws A2AFault */
export function pushTargetV03(value: unknown, name: string): PushTarget {
  const given = recordOf(value, name)
  const { authentication } = given
  const schemes = isRecord(authentication) ? authentication['schemes'] : undefined
  const read = targetOf(given, Array.isArray(schemes) && schemes.length === 0 ? undefined : schemes)
  if (read.ok) return read.value
  throw faultsIn(name, read.faults)
}

function faultsIn(name: string | undefined, faults: readonly MessageFault[]): A2AFault {
  return faultyAt(name === undefined ? '' : `${name}.`, faults)
}

/** JSON-RPC and REST of 1.0. */
export const PUSH_V1: PushWire = {
  version: '1.0',
  readSet: (params) => ({ task: textOf(recordOf(params), 'taskId'), target: pushTargetV1(params) }),
  readName: (params) => ({ task: textOf(recordOf(params), 'taskId'), id: textOf(recordOf(params), 'id') }),
  readTask: (params) => textOf(recordOf(params), 'taskId'),
  config: configV1,
  list: (hooks) => ({ configs: hooks.map(configV1), nextPageToken: '' }),
  deleted: {}
}

/** JSON-RPC of 0.3. */
export const PUSH_V03: PushWire = {
  version: '0.3',
  readSet: (params) => {
    const given = recordOf(params)
    return {
      task: textOf(given, 'taskId'),
      target: pushTargetV03(given['pushNotificationConfig'], 'pushNotificationConfig')
    }
  },
  readName: (params) => {
    const task = textOf(recordOf(params), 'id')
    return { task, id: optionalText(recordOf(params), 'pushNotificationConfigId') ?? task }
  },
  readTask: (params) => textOf(recordOf(params), 'id'),
  config: (hook) => ({ taskId: hook.task, pushNotificationConfig: configV03(hook) }),
  list: (hooks) => hooks.map(PUSH_V03.config),
  deleted: null
}

/** REST of 0.3, in the JSON of its protocol buffers: a config has a name, `tasks/{id}/pushNotificationConfigs/{id}`. */
export const PUSH_V03_REST: PushWire = {
  version: '0.3',
  readSet: (params) => {
    const given = recordOf(params)
    // Some clients send the config itself, others a request around it.
    const inner = isRecord(given['config']) ? given['config'] : given
    const target = pushTargetV03(inner['pushNotificationConfig'], 'pushNotificationConfig')
    const name =
      typeof inner['name'] === 'string' ? /\/pushNotificationConfigs\/([^/]+)$/.exec(inner['name'])?.[1] : undefined
    const id = optionalText(given, 'configId') ?? name
    return {
      task: textOf(given, 'taskId'),
      target: target.id === undefined && id !== undefined ? { ...target, id } : target
    }
  },
  readName: PUSH_V1.readName,
  readTask: PUSH_V1.readTask,
  config: configV03Rest,
  list: (hooks) => ({ configs: hooks.map(configV03Rest), nextPageToken: '' }),
  deleted: {}
}

function targetOf(given: Record<string, unknown>, schemes: unknown): MessageRead<PushTarget> {
  const { authentication } = given
  const credentials = isRecord(authentication) ? filled(authentication['credentials']) : undefined
  if (schemes === undefined && credentials !== undefined)
    return { ok: false, faults: [{ path: 'authentication', message: 'must say of which scheme its credentials are' }] }
  return readPushTarget(
    present({
      id: filled(given['id']),
      url: given['url'],
      token: filled(given['token']),
      authentication: schemes === undefined ? undefined : present({ schemes, credentials }),
      events: filled(given['events'])
    })
  )
}

// Credentials are never returned: a reader of configs may be another client than their author (A2A issue 1681).

function configV1({ id, task, url, token, authentication, events }: PushHook): object {
  const auth = authentication === undefined ? undefined : { scheme: authentication.schemes[0] }
  return present({ id, taskId: task, url, token, authentication: auth, events })
}

function configV03({ id, url, token, authentication, events }: PushHook): object {
  const auth = authentication === undefined ? undefined : { schemes: authentication.schemes }
  return present({ id, url, token, authentication: auth, events })
}

function configV03Rest(hook: PushHook): object {
  return { name: `tasks/${hook.task}/pushNotificationConfigs/${hook.id}`, pushNotificationConfig: configV03(hook) }
}

/** Clients send absent members as an empty text or list. */
function filled(value: unknown): unknown {
  return value === '' || value === null || (Array.isArray(value) && value.length === 0) ? undefined : value
}
