import { isRecord, jsonFault, SIZED_LIMITS } from '../../../kit/json.js'
import type { Unsubscribe } from '../../../kit/events.js'
import type { Gateway } from '../../../ports/gateway.js'
import type { Principal } from '../../../ports/node-api.js'
import { A2AFault, faultOf, rateLimited } from '../server/fault.js'
import { METHODS, type Caller, type Operation } from '../server/operations.js'
import { perform } from '../server/perform.js'
import { type OfferedExtension, requestedVersion } from '../server/service-params.js'
import { type GrpcCall, GrpcEnd } from './grpc-call.js'
import type { GrpcRequest, GrpcServing } from './grpc-listener.js'
import { grpcStatus, plainStatus } from './grpc-status.js'
import { decodeProto, ProtoFault } from './proto-reader.js'
import { type ProtoMethod, SCHEMA } from './proto-schema.js'
import { encodeProto } from './proto-writer.js'

const SERVICE = '/lf.a2a.v1.A2AService/'

/** The methods of the service, by path. */
const RPCS: ReadonlyMap<string, ProtoMethod> = new Map(SCHEMA.methods.map((one) => [`${SERVICE}${one.name}`, one]))

/** The rights of a caller, until they end. */
export interface GrpcGrant {
  readonly principal: Principal
  onEnd(listener: () => void): Unsubscribe
}

/** Dependencies of {@link GrpcService}. */
export interface GrpcServiceDeps {
  readonly gateway: Gateway
  /** The extended card of an agent or of the node. */
  readonly extendedCard: Caller['extendedCard']
  /** The extensions on the card of an agent or of the node. */
  extensions(agent: string | null): readonly OfferedExtension[]
  /** Admits a caller by its headers and address. @throws A2AFault, and errors that `refusal` knows */
  admit(request: GrpcRequest): GrpcGrant | Promise<GrpcGrant>
  /** The status of an error of `admit`; null for other errors. */
  refusal(error: unknown): ReturnType<typeof grpcStatus> | null
  /** Counts a call of a caller: 0 when it is allowed, else the seconds until the next one is. */
  take(by: Principal): number
}

/** The A2A service over gRPC (A2A 1.0, section 10): the same operations, checks and errors as over HTTP. */
export class GrpcService implements GrpcServing {
  readonly #deps: GrpcServiceDeps

  constructor(deps: GrpcServiceDeps) {
    this.#deps = deps
  }

  async serve(call: GrpcCall, request: GrpcRequest): Promise<void> {
    const { admit, take } = this.#deps
    const grant = await admit(request)
    const release = grant.onEnd(() => call.end(plainStatus('UNAUTHENTICATED', 'the token has ended')))
    try {
      const rpc = RPCS.get(request.path)
      if (rpc === undefined) throw new GrpcEnd(plainStatus('UNIMPLEMENTED', 'there is no such method'))
      const seconds = take(grant.principal)
      if (seconds > 0) throw rateLimited(`too many requests: try again in ${seconds} s`, String(seconds))
      await this.#run(call, request, { rpc, principal: grant.principal })
    } finally {
      release()
    }
  }

  failed(error: unknown): ReturnType<GrpcServing['failed']> {
    const status = this.#deps.refusal(error)
    return { status: status ?? grpcStatus(faultOf(error).toRest()), isRefused: status !== null }
  }

  async #run(
    call: GrpcCall,
    { headers }: GrpcRequest,
    { rpc, principal }: { readonly rpc: ProtoMethod; readonly principal: Principal }
  ): Promise<void> {
    const source = { headers, query: '' }
    if (requestedVersion(source) === '0.3')
      throw new A2AFault('VERSION_NOT_SUPPORTED', 'gRPC is served for A2A 1.0', {
        metadata: { supportedVersions: '1.0' }
      })
    const params = paramsIn(rpc, await call.message())
    const { gateway, extendedCard } = this.#deps
    const caller = { gateway, by: principal, agent: null, signal: call.signal, lastEventId: undefined, extendedCard }
    const onActivated = (header: string, uris: string): void => call.setHeader(header, uris)
    const extensions: GrpcServiceDeps['extensions'] = (agent) => this.#deps.extensions(agent)
    const operation = operationOf(rpc)
    const given = await perform({ operation, params, source, extensions, onActivated }, caller)
    if ('value' in given) return await call.send(encodeProto(rpc.response, objectOf(given.value)))
    for await (const { value } of given.items) await call.send(encodeProto(rpc.response, value))
  }
}

function paramsIn({ request }: ProtoMethod, bytes: Buffer): Record<string, unknown> {
  try {
    const params = decodeProto(request, bytes)
    const fault = jsonFault(params, SIZED_LIMITS)
    if (fault !== null) throw new ProtoFault(fault)
    return params
  } catch (error) {
    if (error instanceof ProtoFault) throw new A2AFault('INVALID_PARAMS', `the message is not taken: ${error.message}`)
    throw error
  }
}

/** Methods of gRPC and of JSON-RPC have the same names. */
function operationOf({ name }: ProtoMethod): Operation {
  const operation = METHODS.get(name)
  if (operation === undefined) throw new TypeError(`no operation ${name}`)
  return operation
}

/** The result of a deletion is an empty message. */
function objectOf(value: unknown): object {
  return isRecord(value) ? value : {}
}
