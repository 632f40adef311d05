import { messageOf, NodeError } from '../../kit/errors.js'
import type { CardService } from '../../adapters/a2a/cards/card-routes.js'
import { GrpcListener, type GrpcRequest } from '../../adapters/a2a/grpc/grpc-listener.js'
import { GrpcService } from '../../adapters/a2a/grpc/grpc-service.js'
import { grpcStatus } from '../../adapters/a2a/grpc/grpc-status.js'
import { A2AFault } from '../../adapters/a2a/server/fault.js'
import { MAX_GATEWAY_BODY } from '../../adapters/a2a/server/gateway-route.js'
import { restError } from '../../adapters/a2a/server/listener-fault.js'
import type { AddressLimit } from '../../adapters/http/address-limit.js'
import { Authority, bracketed } from '../../adapters/http/authority.js'
import { isLoopback, listen } from '../../adapters/http/bind.js'
import { CallerGate } from '../../adapters/http/caller-gate.js'
import { HttpError } from '../../adapters/http/http-error.js'
import { listenAddress } from '../../config/public-url.js'
import type { Tokens } from '../../node/access/tokens.js'
import type { Principal, Problem } from '../../ports/node-api.js'
import type { GatewayDeps } from '../open-gateway.js'
import type { StartDeps } from '../open-home.js'
import type { OpenedOAuth } from '../open-oauth.js'
import type { OpenedTasks } from '../open-tasks.js'

/** The services behind the gRPC listener. */
interface GrpcParts {
  readonly tasks: OpenedTasks
  readonly cards: Pick<CardService, 'extended' | 'extensions'>
  readonly tokens: Pick<Tokens, 'admit'>
  readonly oauth: OpenedOAuth | null
  /** Called at each call with a token. */
  onUse(): void
}

/** A bound gRPC listener. Until `open` every call ends with UNAVAILABLE. */
export interface OpenedGrpc {
  /** `host:port` for clients, as cards name it; of a wildcard the loopback address. */
  readonly address: string
  /** The same with the bound address, for people. */
  readonly boundAddress: string
  /** Why it may be unsafe or unreachable, for `status`. */
  readonly problems: readonly Problem[]
  open(gateway: GatewayDeps, parts: GrpcParts): void
}

const WORDS = { protocol: 'gRPC', next: ['a2a-node config path   # a2a: { grpc: 0 }'] }

/**
 * Binds the gRPC listener of the config, which has one.
 * @throws NodeError PORT_IN_USE, NO_PERMISSION, CONFIG_INVALID
 */
export async function bindGrpc(deps: StartDeps, addressLimit: AddressLimit): Promise<OpenedGrpc> {
  const { clock, unwind, options } = deps
  const { a2a, http } = options.config
  const asked = listenAddress(a2a.grpc ?? '') ?? { host: '127.0.0.1', port: 0 }
  const { maxConnections } = http
  const listener = new GrpcListener({ clock, maxConnections, maxMessageBytes: MAX_GATEWAY_BODY })
  const { address: host, port } = await listen(listener.server, asked, WORDS)
  unwind.add('gRPC listener', () => listener.close())
  const boundAddress = `${bracketed(host)}:${port}`
  const isWildcard = host === '0.0.0.0' || host === '::'
  const authority = new Authority({
    port,
    bound: [asked.host, host],
    hosts: [...http.hosts, ...(a2a.grpcPublic === null ? [] : [a2a.grpcPublic])],
    origins: http.origins
  })
  return {
    address: a2a.grpcPublic ?? (isWildcard ? `127.0.0.1:${port}` : boundAddress),
    boundAddress,
    problems: isLoopback(host) || a2a.grpcPublic !== null ? [] : [exposed(boundAddress, isWildcard)],
    open: (gateway, parts) => {
      // It closes first, since its calls use the node.
      unwind.add('gRPC listener', () => listener.close())
      listener.open(serviceOf(gateway, parts, { authority, addressLimit }))
    }
  }
}

function exposed(place: string, isWildcard: boolean): Problem {
  const cards = isWildcard ? '; agent cards name 127.0.0.1, which is another machine there' : ''
  return {
    code: 'GRPC_EXPOSED',
    message: `other machines reach gRPC at ${place}, unencrypted (each call needs a token)${cards}: serve this machine alone, or set a2a.grpcPublic to the address by which they reach it`,
    next: 'a2a-node config path   # a2a: { grpc: <port> }'
  }
}

function serviceOf(
  { limit, telemetry, own }: GatewayDeps,
  { tasks, cards, tokens, oauth, onUse }: GrpcParts,
  rules: { readonly authority: Authority; readonly addressLimit: AddressLimit }
): GrpcService {
  const gate = new CallerGate({
    ...rules,
    admit: (token) => tokens.admit(token) ?? oauth?.admit(token) ?? null,
    onRefusal: ({ rule, reason }) => own.audit.append({ kind: 'control', code: 'FORBIDDEN', rule, reason })
  })
  return new GrpcService({
    gateway: tasks.guarded,
    extendedCard: (principal, agent) => cards.extended(agent, { form: 'one', principal }),
    extensions: (agent) => cards.extensions(agent),
    admit: (request) => gate.admit(callerHeaders(request), request),
    refusal: (error) => {
      if (error instanceof HttpError) return grpcStatus(restError(error))
      if (!(error instanceof A2AFault) && !(error instanceof NodeError))
        telemetry.log('error', 'a gRPC call failed', { reason: messageOf(error) })
      return null
    },
    take: (principal: Principal) => {
      const seconds = limit.take(principal)
      onUse()
      telemetry.count(seconds > 0 ? 'gateway_limited' : 'gateway_calls', 'grpc')
      return seconds
    }
  })
}

/** HTTP/2 has the host as a pseudo header, and of several tokens the first one counts. */
function callerHeaders({ headers }: GrpcRequest): Parameters<CallerGate['admit']>[0] {
  const { origin, authorization, ':authority': authority, host } = headers
  return {
    hosts: listOf(authority ?? host),
    origins: listOf(origin),
    authorizations: listOf(authorization)
  }
}

function listOf(value: string | undefined): readonly string[] {
  return value === undefined ? [] : [value]
}
