import type {
  AgentCard,
  Artifact as SdkArtifact,
  Message as SdkMessage,
  StreamResponse,
  Task as SdkTask,
  TaskStatus
} from '@a2a-js/sdk'
import type { Client } from '@a2a-js/sdk/client'
import type { Artifact, Part } from '../../../domain/gateway/message.js'
import { chosenInterface, type RemoteCard } from './remote-card.js'
import { RemoteFault } from './remote-fault.js'
import { nullFreeFetch } from './remote-nulls.js'
import { fromSdkPart, type RemoteInput, toSdkPart } from './remote-parts.js'
import type { RemoteEvent, RemoteState, RemoteReply } from './remote-task.js'
import type { GuardedFetch } from '../net/ssrf-fetch.js'

/** A message for a remote agent. */
export interface RemoteMessage extends RemoteInput {
  /** The same for each repetition of the message. */
  readonly messageId: string
  /** Id of the skill on the card; null: the agent chooses. */
  readonly skill: string | null
  /** Why a more powerful agent is asked. */
  readonly justification?: string
}

/** A client of one remote agent. Fails with errors of the client library or RemoteFault. */
export interface RemoteLink {
  /** Sends it once. Yields an answer, or a task with its events; the end of the stream is no outcome. */
  send(message: RemoteMessage, signal: AbortSignal): AsyncIterable<RemoteEvent>
  /** The current task, then its events; null: the agent has no streams. */
  readonly follow: ((taskId: string, signal: AbortSignal) => AsyncIterable<RemoteEvent>) | null
  get(taskId: string, signal: AbortSignal): Promise<RemoteEvent>
  cancel(taskId: string, signal: AbortSignal): Promise<void>
}

/** Indexed by the enum numbers of the protocol. */
const STATES: readonly RemoteState[] = [
  'unknown',
  'submitted',
  'working',
  'completed',
  'failed',
  'canceled',
  'input-required',
  'rejected',
  'auth-required'
]

/** Makes a client for a card, in the version of its interface. Loads the client library at first use. */
export async function remoteLink(card: RemoteCard, fetchImpl: GuardedFetch): Promise<RemoteLink> {
  const { ClientFactory, JsonRpcTransportFactory, RestTransportFactory } = await import('@a2a-js/sdk/client')
  const options = { fetchImpl: nullFreeFetch(fetchImpl), legacyCompat: { enabled: true } }
  const factory = new ClientFactory({
    transports: [new JsonRpcTransportFactory(options), new RestTransportFactory(options)]
  })
  return linkOf(await factory.createFromAgentCard(sdkCard(card)), card.isStreaming)
}

function linkOf(client: Client, isStreaming: boolean): RemoteLink {
  return {
    async *send(message, signal) {
      const request = {
        tenant: '',
        message: sdkMessage(message),
        configuration: CONFIGURATION,
        metadata: aboutSkill(message)
      }
      if (!isStreaming) {
        const given = await client.sendMessage(request, { signal })
        yield 'messageId' in given ? answerOf(given) : taskEvent(given)
        return
      }
      for await (const one of client.sendMessageStream(request, { signal })) yield* eventsOf(one)
    },
    follow: isStreaming
      ? async function* (id, signal) {
          for await (const one of client.resubscribeTask({ tenant: '', id }, { signal })) yield* eventsOf(one)
        }
      : null,
    get: async (id, signal) => taskEvent(await client.getTask({ tenant: '', id, historyLength: 0 }, { signal })),
    cancel: async (id, signal) => void (await client.cancelTask({ tenant: '', id, metadata: undefined }, { signal }))
  }
}

/** The card in the form of the client library. */
function sdkCard(card: RemoteCard): AgentCard {
  const { url, binding, version, tenant } = chosenInterface(card)
  return {
    name: card.name,
    description: card.description,
    version: card.version,
    supportedInterfaces: [{ url, protocolBinding: binding, protocolVersion: version, tenant }],
    provider: undefined,
    documentationUrl: undefined,
    capabilities: {
      streaming: card.isStreaming,
      pushNotifications: undefined,
      extensions: [],
      extendedAgentCard: undefined
    },
    securitySchemes: {},
    securityRequirements: [],
    defaultInputModes: [],
    defaultOutputModes: [],
    skills: [],
    signatures: [],
    iconUrl: undefined
  }
}

function sdkMessage(message: RemoteMessage): SdkMessage {
  return {
    messageId: message.messageId,
    contextId: message.contextId ?? '',
    taskId: message.taskId ?? '',
    role: 1,
    parts: message.parts.map(toSdkPart),
    metadata: aboutMessage(message),
    extensions: [],
    referenceTaskIds: []
  }
}

function aboutMessage(message: RemoteMessage): Record<string, unknown> | undefined {
  const { justification, metadata } = message
  if (justification === undefined && metadata === undefined) return aboutSkill(message)
  return { ...metadata, ...aboutSkill(message), ...(justification === undefined ? {} : { justification }) }
}

function aboutSkill({ skill }: RemoteMessage): { skillId: string } | undefined {
  return skill === null ? undefined : { skillId: skill }
}

/** The agent returns its task at once: without streams it is polled, and a cancellation needs its id. */
const CONFIGURATION = {
  acceptedOutputModes: [],
  taskPushNotificationConfig: undefined,
  historyLength: 0,
  returnImmediately: true
}

function* eventsOf({ payload }: StreamResponse): Generator<RemoteEvent> {
  if (payload?.$case === 'message') yield answerOf(payload.value)
  else if (payload?.$case === 'task') yield taskEvent(payload.value)
  else if (payload?.$case === 'statusUpdate') {
    const { taskId, contextId, status } = payload.value
    yield { type: 'status', taskId, contextId, ...statusOf(status) }
  } else if (payload?.$case === 'artifactUpdate') {
    const { taskId, artifact, append, lastChunk } = payload.value
    const read = artifact === undefined ? null : artifactOf(artifact)
    if (read !== null) yield { type: 'artifact', taskId, artifact: read, append, lastChunk }
  }
}

function answerOf(message: SdkMessage): RemoteEvent {
  return { type: 'answer', message: messageOf(message), contextId: message.contextId }
}

function taskEvent({ id, contextId, status, artifacts }: SdkTask): RemoteEvent {
  if (id === '') throw new RemoteFault('answered', 'its answer is neither a task nor a message')
  return {
    type: 'task',
    taskId: id,
    contextId,
    ...statusOf(status),
    artifacts: artifacts.flatMap((one) => artifactOf(one) ?? [])
  }
}

function statusOf(status: TaskStatus | undefined): {
  readonly state: RemoteState
  readonly message: RemoteReply | null
} {
  return {
    state: STATES[status?.state ?? 0] ?? 'unknown',
    message: status?.message === undefined ? null : messageOf(status.message)
  }
}

function messageOf({ messageId, parts }: SdkMessage): RemoteReply {
  return { id: messageId, parts: partsOf(parts) }
}

/** null: it has no id. */
function artifactOf({ artifactId, name, description, parts }: SdkArtifact): Artifact | null {
  if (artifactId === '') return null
  const about = { ...(name === '' ? {} : { name }), ...(description === '' ? {} : { description }) }
  return { artifactId, ...about, parts: partsOf(parts) }
}

function partsOf(parts: SdkMessage['parts']): Part[] {
  return parts.flatMap((one) => fromSdkPart(one) ?? [])
}
