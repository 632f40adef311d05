import { Role, type SendMessageRequest } from '@a2a-js/sdk'
import {
  type Client,
  ClientFactory,
  ClientFactoryOptions,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory
} from '@a2a-js/sdk/client'
import type { Message as OldMessage } from 'a2a03'
import * as old from 'a2a03/client'

/** What fetch of a client sends, with the token. */
function withToken(token: string): typeof fetch {
  return (input, init = {}) => {
    const headers = new Headers(init.headers)
    headers.set('authorization', `Bearer ${token}`)
    return fetch(input, { ...init, headers })
  }
}

let said = 0
/** A message of 1.0, of a task if that has an id. */
export function request(text: string, taskId = ''): SendMessageRequest {
  const part = { content: { $case: 'text' as const, value: text }, metadata: undefined, filename: '', mediaType: '' }
  return {
    tenant: '',
    message: {
      messageId: `c${++said}`,
      contextId: '',
      taskId,
      role: Role.ROLE_USER,
      parts: [part],
      metadata: undefined,
      extensions: [],
      referenceTaskIds: []
    },
    configuration: undefined,
    metadata: undefined
  }
}

/** The same of 0.3. */
export function oldRequest(text: string, taskId?: string): { message: OldMessage } {
  const more = taskId === undefined ? {} : { taskId }
  return {
    message: { kind: 'message', messageId: `c${++said}`, role: 'user', parts: [{ kind: 'text', text }], ...more }
  }
}

/** A binding as cards name it. */
export type SdkTransport = 'JSONRPC' | 'HTTP+JSON'

/** URL of an agent, and the token for it. */
export interface SdkTarget {
  readonly url: string
  readonly token: string
}

const CARD = '.well-known/agent-card.json'

/** The client of 1.0 for an agent, as its card says, by one of the transports alone. */
export async function sdkClient({ url, token }: SdkTarget, transport: SdkTransport): Promise<Client> {
  const fetchImpl = withToken(token)
  const transports = [
    transport === 'JSONRPC' ? new JsonRpcTransportFactory({ fetchImpl }) : new RestTransportFactory({ fetchImpl })
  ]
  const factory = new ClientFactory(
    ClientFactoryOptions.createFrom(ClientFactoryOptions.default, { transports, preferredTransports: [transport] })
  )
  const card = await new DefaultAgentCardResolver({ fetchImpl }).resolve(`${url}/`, CARD)
  return await factory.createFromAgentCard(card)
}

/** The same of 0.3. */
export async function oldSdkClient({ url, token }: SdkTarget, transport: SdkTransport): Promise<old.Client> {
  const fetchImpl = withToken(token)
  const transports = [new old.JsonRpcTransportFactory({ fetchImpl }), new old.RestTransportFactory({ fetchImpl })]
  const factory = new old.ClientFactory(
    old.ClientFactoryOptions.createFrom(old.ClientFactoryOptions.default, { transports })
  )
  const card = await new old.DefaultAgentCardResolver({ fetchImpl }).resolve(`${url}/`, CARD)
  return await factory.createFromAgentCard({ ...card, preferredTransport: transport })
}
