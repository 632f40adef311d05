import { isRecord } from '../../kit/json.js'
import type { Artifact, Message, Part } from '../../domain/gateway/message.js'
import { ENDED_STATES, type GatewayState } from '../../domain/gateway/task.js'
import { A2AFault } from './fault.js'
import { historyLength, invalid, messageOf, recordOf, skillOf } from './read-params.js'
import { lastOf, partsFor, present, timeText, type Wire } from './wire.js'

const STATES: ReadonlySet<string> = new Set<GatewayState>([
  'submitted',
  'working',
  'input-required',
  'auth-required',
  'completed',
  'failed',
  'canceled',
  'rejected'
])

/** The JSON of protocol 0.3. */
export const WIRE_V03: Wire = {
  version: '0.3',
  readSend: (given) => {
    const params = recordOf(given)
    const configuration = params['configuration'] === undefined ? {} : recordOf(params['configuration'])
    if (isRecord(configuration['pushNotificationConfig']))
      throw new A2AFault('PUSH_NOTIFICATION_NOT_SUPPORTED', 'this node sends no push notifications')
    const message = messageOf(readMessage(params['message']))
    return {
      message,
      skill: skillOf(params, message),
      wait: configuration['blocking'] !== false,
      historyLength: historyLength(configuration)
    }
  },
  task: taskJson,
  message: messageJson,
  sent: bare,
  begun: bare,
  event: (event, { id: taskId, contextId }) => {
    if (event.type === 'message') return null
    if (event.type === 'artifact') {
      const { artifact, append, lastChunk } = event
      return { kind: 'artifact-update', taskId, contextId, artifact: artifactJson(artifact), append, lastChunk }
    }
    const { state, message = null, at: since } = event
    // What waits for its client ends the stream as well.
    const final = ENDED_STATES.has(state) || state === 'input-required' || state === 'auth-required'
    return { kind: 'status-update', taskId, contextId, status: statusOf({ state, message, since }), final }
  }
}

/** A state as the node calls it (the gateway's specification writes them with `_`); null for a text that names none. */
export function stateOfV03(text: string): GatewayState | null {
  const state = text.replace('_', '-')
  return STATES.has(state) ? (state as GatewayState) : null
}

function bare(value: { readonly task: object } | { readonly message: object }): object {
  return 'task' in value ? value.task : value.message
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

function statusOf(task: { readonly state: GatewayState; readonly message: Message | null; readonly since: number }): object {
  const { state, message, since } = task
  return { state, ...(message === null ? {} : { message: messageJson(message) }), timestamp: timeText(since) }
}

function messageJson({ parts, ...message }: Message): object {
  return { kind: 'message', ...message, parts: partsFor({ parts }, partJson) }
}

function artifactJson({ parts, ...artifact }: Artifact): object {
  return { ...artifact, parts: partsFor({ parts }, partJson) }
}

function partJson({ text, raw, url, data, filename: name, mediaType: mimeType, metadata }: Part): object {
  if (text !== undefined) return present({ kind: 'text', text, metadata })
  if (raw !== undefined || url !== undefined) {
    return present({ kind: 'file', file: present({ name, mimeType, bytes: raw, uri: url }), metadata })
  }
  // Its data is always an object.
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
  const { kind, text, data, file, metadata } = value
  if (kind === 'text') return present({ text, metadata })
  if (kind === 'data') return present({ data, metadata })
  if (kind !== 'file' || !isRecord(file)) return {}
  return present({ raw: file['bytes'], url: file['uri'], filename: file['name'], mediaType: file['mimeType'], metadata })
}
