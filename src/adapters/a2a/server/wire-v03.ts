import { isRecord } from '../../../kit/json.js'
import { type Artifact, type Message, ONE_CONTENT, type Part } from '../../../domain/gateway/message.js'
import { GATEWAY_STATES, type GatewayState, type GatewayTask, RESTING_STATES } from '../../../domain/gateway/task.js'
import { pushTargetV03 } from '../push/push-wire.js'
import {
  historyLength,
  invalid,
  messageOf,
  type MessageWords,
  optionalFlag,
  recordOf,
  ROLES,
  skillOf
} from './read-params.js'
import { lastOf, present, statusJson, type Wire } from './wire.js'

/** Members of a part in 0.3. */
const PART_NAMES: Readonly<Record<string, string>> = {
  raw: 'file.bytes',
  url: 'file.uri',
  filename: 'file.name',
  mediaType: 'file.mimeType'
}

const WORDS: MessageWords = {
  roles: ROLES,
  part: ({ path, message }) => {
    if (message === ONE_CONTENT)
      return {
        path,
        message: 'must be of kind text, file or data and have the text, one of bytes and uri of the file, or the data'
      }
    return { path: path.replace(/(?<=^message\.parts\[\d+\]\.)\w+$/, (name) => PART_NAMES[name] ?? name), message }
  }
}

/** The JSON of protocol 0.3. */
export const WIRE_V03: Wire = {
  version: '0.3',
  readSend: (given) => {
    const params = recordOf(given)
    const configuration = recordOf(params['configuration'] ?? {}, 'configuration')
    const push = configuration['pushNotificationConfig'] ?? null
    const message = messageOf(readMessage(params['message']), WORDS)
    return {
      message,
      skill: skillOf(params, message),
      wait: optionalFlag(configuration, 'blocking', 'configuration.') !== false,
      historyLength: historyLength(configuration),
      push: push === null ? null : pushTargetV03(push, 'configuration.pushNotificationConfig')
    }
  },
  task: taskJson,
  message: messageJson,
  reply: (value) => ('task' in value ? value.task : value.message),
  event: (event, { id: taskId, contextId }) => {
    if (event.type === 'message') return null
    if (event.type === 'artifact') {
      const { artifact, append, lastChunk } = event
      return { kind: 'artifact-update', taskId, contextId, artifact: artifactJson(artifact), append, lastChunk }
    }
    const { state, message = null, at: since } = event
    // A task that waits for its client ends the stream as well.
    const final = RESTING_STATES.has(state)
    return { kind: 'status-update', taskId, contextId, status: statusOf({ state, message, since }), final }
  }
}

/** The state of the node for a name (the gateway's specification writes `_` for `-`); null for an unknown name. */
export function stateOfV03(text: string): GatewayState | null {
  const state = text.replace('_', '-')
  return GATEWAY_STATES.find((one) => one === state) ?? null
}

function taskJson(
  { task, history, artifacts }: Parameters<Wire['task']>[0],
  { historyLength: length, hasArtifacts = true }: Parameters<Wire['task']>[1]
): object {
  return {
    kind: 'task',
    id: task.id,
    contextId: task.contextId,
    status: statusOf(task),
    ...(hasArtifacts ? { artifacts: artifacts.map(artifactJson) } : {}),
    history: lastOf(history, length).map(messageJson)
  }
}

function statusOf(task: Pick<GatewayTask, 'state' | 'message' | 'since'>): object {
  return statusJson(task, { state: (state) => state, message: messageJson })
}

function messageJson({ parts, ...message }: Message): object {
  return { kind: 'message', ...message, parts: parts.map(partJson) }
}

function artifactJson({ parts, ...artifact }: Artifact): object {
  return { ...artifact, parts: parts.map(partJson) }
}

function partJson({ text, raw, url, data, filename: name, mediaType: mimeType, metadata }: Part): object {
  if (text !== undefined) return present({ kind: 'text', text, metadata })
  if (raw !== undefined || url !== undefined) {
    return present({ kind: 'file', file: present({ name, mimeType, bytes: raw, uri: url }), metadata })
  }
  // In 0.3 data is always an object.
  return present({ kind: 'data', data: isRecord(data) ? data : { value: data }, metadata })
}

function readMessage(value: unknown): unknown {
  if (!isRecord(value)) throw invalid('message', 'must be an object')
  const { messageId, contextId, taskId, role, parts, metadata, extensions, referenceTaskIds } = value
  const all = { messageId, contextId, taskId, role, metadata, extensions, referenceTaskIds }
  return present({ ...all, parts: Array.isArray(parts) ? parts.map(readPart) : parts })
}

function readPart(value: unknown): unknown {
  if (!isRecord(value)) return value
  const { text, data, file, metadata } = value
  // Clients leave the kind out where a member tells it.
  const kind = value['kind'] ?? (text !== undefined ? 'text' : data !== undefined ? 'data' : 'file')
  if (kind === 'text') return present({ text, metadata })
  if (kind === 'data') return present({ data, metadata })
  if (kind !== 'file' || !isRecord(file)) return {}
  return present({
    raw: file['bytes'],
    url: file['uri'],
    filename: file['name'],
    mediaType: file['mimeType'],
    metadata
  })
}
