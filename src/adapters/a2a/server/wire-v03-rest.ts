import { isRecord } from '../../../kit/json.js'
import type { Artifact, Message, Part } from '../../../domain/gateway/message.js'
import { type GatewayTask, RESTING_STATES } from '../../../domain/gateway/task.js'
import { recordOf } from './read-params.js'
import { lastOf, present, statusJson, type Wire } from './wire.js'
import { WIRE_V03 } from './wire-v03.js'
import { STATES_V1 } from './wire-v1.js'

/** States in the protocol buffers of 0.3. */
const STATES: typeof STATES_V1 = { ...STATES_V1, canceled: 'TASK_STATE_CANCELLED' }
const ROLES: Readonly<Record<string, string>> = { ROLE_USER: 'user', ROLE_AGENT: 'agent' }

/**
 * The JSON of REST in protocol 0.3: the form of its protocol buffers, not of its JSON-RPC. Requests may have either
 * form.
 */
export const WIRE_V03_REST: Wire = {
  version: '0.3',
  readSend: (given) => {
    const params = recordOf(given)
    // Protocol buffers omit false members: an absent `blocking` means false.
    const stated = isRecord(params['configuration']) ? { blocking: false, ...params['configuration'] } : {}
    const { pushNotification, ...configuration }: Readonly<Record<string, unknown>> = stated
    return WIRE_V03.readSend({
      ...params,
      message: readMessage(params['message'] ?? params['request']),
      configuration: present({
        ...configuration,
        pushNotificationConfig: pushNotification ?? configuration['pushNotificationConfig']
      })
    })
  },
  task: ({ task, history, artifacts }, { historyLength, hasArtifacts = true }) => ({
    id: task.id,
    contextId: task.contextId,
    status: statusOf(task),
    ...(hasArtifacts ? { artifacts: artifacts.map(artifactJson) } : {}),
    history: lastOf(history, historyLength).map(messageJson)
  }),
  message: messageJson,
  reply: (value) => value,
  event: (event, { id: taskId, contextId }) => {
    if (event.type === 'message') return null
    if (event.type === 'artifact') {
      const { artifact, append, lastChunk } = event
      return { artifactUpdate: { taskId, contextId, artifact: artifactJson(artifact), append, lastChunk } }
    }
    const { state, message = null, at: since } = event
    return {
      statusUpdate: { taskId, contextId, status: statusOf({ state, message, since }), final: RESTING_STATES.has(state) }
    }
  }
}

function statusOf(task: Pick<GatewayTask, 'state' | 'message' | 'since'>): object {
  return statusJson(task, { state: (state) => STATES[state], message: messageJson })
}

function messageJson({ role, parts, ...message }: Message): object {
  return { ...message, role: role === 'user' ? 'ROLE_USER' : 'ROLE_AGENT', content: parts.map(partJson) }
}

function artifactJson({ parts, ...artifact }: Artifact): object {
  return { ...artifact, parts: parts.map(partJson) }
}

function partJson({ text, raw, url, data, filename: name, mediaType: mimeType, metadata }: Part): object {
  if (text !== undefined) return present({ text, metadata })
  if (data !== undefined) return present({ data: { data: isRecord(data) ? data : { value: data } }, metadata })
  return present({ file: present({ fileWithBytes: raw, fileWithUri: url, name, mimeType }), metadata })
}

/** The message in the form of JSON-RPC of 0.3. */
function readMessage(value: unknown): unknown {
  if (!isRecord(value) || !Array.isArray(value['content'])) return value
  const { role, content, contextId, taskId, extensions, ...message } = value
  return present({
    ...message,
    role: typeof role === 'string' ? (ROLES[role] ?? role) : role,
    contextId: contextId === '' ? undefined : contextId,
    taskId: taskId === '' ? undefined : taskId,
    extensions: Array.isArray(extensions) && extensions.length === 0 ? undefined : extensions,
    parts: (content as unknown[]).map(readPart)
  })
}

function readPart(value: unknown): unknown {
  if (!isRecord(value)) return value
  const { text, data, file, metadata } = value
  if (text !== undefined) return present({ kind: 'text', text, metadata })
  if (isRecord(data)) return present({ kind: 'data', data: data['data'], metadata })
  if (!isRecord(file)) return {}
  const { fileWithBytes: bytes, fileWithUri: uri, name, mimeType } = file
  return present({
    kind: 'file',
    file: present({ bytes, uri, name: name === '' ? undefined : name, mimeType }),
    metadata
  })
}
