import { isRecord } from '../../../kit/json.js'
import type { Artifact, Message, Part } from '../../../domain/gateway/message.js'
import type { GatewayState, GatewayTask } from '../../../domain/gateway/task.js'
import { pushTargetV1 } from '../push/push-wire.js'
import {
  historyLength,
  invalid,
  messageOf,
  type MessageWords,
  optionalFlag,
  recordOf,
  type RoleNames,
  skillOf
} from './read-params.js'
import { lastOf, statusJson, type Wire } from './wire.js'

interface TaskJson {
  readonly id: string
  readonly contextId: string
  readonly status: object
  artifacts?: readonly Artifact[]
  history?: readonly object[]
}

/** States by their names in protocol 1.0. */
export const STATES_V1: Readonly<Record<GatewayState, string>> = {
  submitted: 'TASK_STATE_SUBMITTED',
  working: 'TASK_STATE_WORKING',
  'input-required': 'TASK_STATE_INPUT_REQUIRED',
  'auth-required': 'TASK_STATE_AUTH_REQUIRED',
  completed: 'TASK_STATE_COMPLETED',
  failed: 'TASK_STATE_FAILED',
  canceled: 'TASK_STATE_CANCELED',
  rejected: 'TASK_STATE_REJECTED'
}
const ROLES = { ROLE_USER: 'user', ROLE_AGENT: 'agent' } as const
const ROLE_NAMES: RoleNames = { user: 'ROLE_USER', agent: 'ROLE_AGENT' }
const WORDS: MessageWords = { roles: ROLE_NAMES, part: (fault) => fault }

/** The JSON of protocol 1.0; the node stores artifacts and parts in this form. */
export const WIRE_V1: Wire = {
  version: '1.0',
  readSend: (given) => {
    const params = recordOf(given)
    const configuration = recordOf(params['configuration'] ?? {}, 'configuration')
    const push = configuration['taskPushNotificationConfig'] ?? null
    const message = messageOf(readMessage(params['message']), WORDS)
    return {
      message,
      skill: skillOf(params, message),
      wait: optionalFlag(configuration, 'returnImmediately', 'configuration.') !== true,
      historyLength: historyLength(configuration),
      push: push === null ? null : pushTargetV1(push, 'configuration.taskPushNotificationConfig')
    }
  },
  task: ({ task, history, artifacts }, { historyLength: length, hasArtifacts }) => {
    const last = lastOf(history, length)
    const json: TaskJson = { id: task.id, contextId: task.contextId, status: statusOf(task) }
    // A list with `includeArtifacts` has the member even when empty.
    if (hasArtifacts === true || (hasArtifacts === undefined && artifacts.length > 0)) json.artifacts = artifacts
    if (last.length > 0) json.history = last.map(messageJson)
    return json
  },
  message: messageJson,
  reply: (value) => value,
  event: (event, { id: taskId, contextId }) => {
    if (event.type === 'message') return null
    if (event.type === 'artifact') {
      const { artifact, append, lastChunk } = event
      return { artifactUpdate: { taskId, contextId, artifact, append, lastChunk } }
    }
    const { state, message = null, at: since } = event
    return { statusUpdate: { taskId, contextId, status: statusOf({ state, message, since }) } }
  }
}

/** The state of the node for a name; null for an unknown name. */
export function stateOfV1(text: string): GatewayState | null {
  return (Object.keys(STATES_V1) as GatewayState[]).find((state) => STATES_V1[state] === text) ?? null
}

function statusOf(task: Pick<GatewayTask, 'state' | 'message' | 'since'>): object {
  return statusJson(task, { state: (state) => STATES_V1[state], message: messageJson })
}

function messageJson(message: Message): object {
  return { ...message, role: ROLE_NAMES[message.role] }
}

/** The message in the form of this node; empty members become undefined. */
function readMessage(value: unknown): unknown {
  if (!isRecord(value)) throw invalid('message', 'must be an object')
  const { role, parts, messageId } = value
  const name = typeof role === 'string' && Object.hasOwn(ROLES, role) ? ROLES[role as keyof typeof ROLES] : role
  return {
    messageId,
    contextId: filled(value['contextId']),
    taskId: filled(value['taskId']),
    role: name,
    parts: Array.isArray(parts) ? parts.map(readPart) : parts,
    metadata: value['metadata'] ?? undefined,
    extensions: filled(value['extensions']),
    referenceTaskIds: filled(value['referenceTaskIds'])
  }
}

/** Copies member by member, since `present` is several times slower and each message has parts. */
function readPart(value: unknown): unknown {
  if (!isRecord(value)) return value
  const { text, raw, url, data } = value
  const [filename, mediaType, metadata] = [
    filled(value['filename']),
    filled(value['mediaType']),
    value['metadata'] ?? undefined
  ]
  const part: PartJson = {}
  if (text !== undefined) part.text = text
  if (raw !== undefined) part.raw = raw
  if (url !== undefined) part.url = url
  if (data !== undefined) part.data = data
  if (filename !== undefined) part.filename = filename
  if (mediaType !== undefined) part.mediaType = mediaType
  if (metadata !== undefined) part.metadata = metadata
  return part
}

/** A part before validation. */
type PartJson = { -readonly [Name in keyof Part]: unknown }

/** Clients send absent members as an empty text or list. */
function filled(value: unknown): unknown {
  return value === '' || value === null || (Array.isArray(value) && value.length === 0) ? undefined : value
}
