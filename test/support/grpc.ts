import { Role, type SendMessageRequest } from '@a2a-js/sdk'
import { type Client, ClientFactory, ClientFactoryOptions, DefaultAgentCardResolver } from '@a2a-js/sdk/client'
import { GrpcTransportFactory } from '@a2a-js/sdk/client/grpc'
import { InterceptingCall, type Interceptor } from '@grpc/grpc-js'
import { type GatewayNode, gatewayNode } from './a2a.js'
import type { LocalNode, TestMesh } from './nodes.js'

/** A gateway node that serves gRPC too. */
export interface GrpcNode<N extends LocalNode = LocalNode> extends GatewayNode<N> {
  /** `127.0.0.1:port`. */
  readonly address: string
}

/** Starts it, on a free port. */
export async function grpcNode<N extends LocalNode>(
  mesh: TestMesh<N>,
  name: string,
  env: NodeJS.ProcessEnv = {}
): Promise<GrpcNode<N>> {
  const node = await gatewayNode(mesh, name, { env: { A2A_NODE_A2A_GRPC: '0', ...env } })
  return { ...node, address: node.node.info.grpc ?? '' }
}

/** Adds metadata to every call of a client. */
export function withMetadata(values: Readonly<Record<string, string>>): Interceptor {
  return (options, nextCall) =>
    new InterceptingCall(nextCall(options), {
      start: (metadata, listener, next) => {
        for (const [name, value] of Object.entries(values)) metadata.set(name, value)
        next(metadata, listener)
      }
    })
}

/** The official client for an agent, as its card says, over gRPC alone. */
export async function grpcClient({ url, token }: GatewayNode, agent: string): Promise<Client> {
  const authorization = `Bearer ${token}`
  const transports = [
    new GrpcTransportFactory({ grpcCallOptions: { interceptors: [withMetadata({ authorization })] } })
  ]
  const factory = new ClientFactory(
    ClientFactoryOptions.createFrom(ClientFactoryOptions.default, { transports, preferredTransports: ['GRPC'] })
  )
  const card = await new DefaultAgentCardResolver({}).resolve(`${url}/agents/${agent}/`, '.well-known/agent-card.json')
  return await factory.createFromAgentCard(card)
}

let said = 0

/** A message of the official client with data, or with text. */
export function grpcRequest(
  input: unknown,
  more: { readonly taskId?: string; readonly contextId?: string; readonly wait?: false; readonly skill?: string } = {}
): SendMessageRequest {
  const content =
    typeof input === 'string'
      ? { $case: 'text' as const, value: input }
      : { $case: 'data' as const, value: input as object }
  return {
    tenant: '',
    message: {
      messageId: `g${++said}`,
      contextId: more.contextId ?? '',
      taskId: more.taskId ?? '',
      role: Role.ROLE_USER,
      parts: [{ content, metadata: undefined, filename: '', mediaType: '' }],
      metadata: undefined,
      extensions: [],
      referenceTaskIds: []
    },
    configuration:
      more.wait === false
        ? { acceptedOutputModes: [], taskPushNotificationConfig: undefined, returnImmediately: true }
        : undefined,
    metadata: more.skill === undefined ? undefined : { skillId: more.skill }
  }
}
