import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AbortSignalLike, Clock } from '../../../kit/clock.js'
import { isRecord } from '../../../kit/json.js'
import type { Gateway } from '../../../ports/gateway.js'
import type { Principal } from '../../../ports/node-api.js'
import { answerStream } from './event-stream.js'
import { A2AFault, faultOf } from './fault.js'
import { callRpc, isOldStream, parsedBody, rpcIdIn, rpcJson, rpcOperation, rpcVersion } from './json-rpc.js'
import type { Caller, OperationInput, Operation } from './operations.js'
import { perform } from './perform.js'
import { pathVersion, restCall } from './rest.js'
import { type OfferedExtension, type ProtocolVersion, requestedVersion, type ServiceSource } from './service-params.js'

/** Largest body of a request, in bytes. */
export const MAX_GATEWAY_BODY = 10_485_760
const JSON_TYPES: ReadonlySet<string> = new Set(['application/json', 'application/a2a+json'])

/** Dependencies of {@link GatewayRoute}. */
export interface GatewayRouteDeps {
  readonly gateway: Gateway
  readonly clock: Clock
  /** The extended card of an agent or of the node, in the form of a version. */
  readonly extendedCard: Caller['extendedCard']
  /** The extensions on the card of an agent or of the node. */
  extensions(agent: string | null): readonly OfferedExtension[]
}

/** An authenticated request. */
export interface GatewayCall {
  readonly principal: Principal
  readonly signal: AbortSignalLike
  readonly query: string
  readBody(): Promise<Buffer>
}

/** Answers requests to the URL of an agent or of the node. `path`: the rest below that URL, '' for the URL itself. */
export class GatewayRoute {
  readonly #deps: GatewayRouteDeps

  constructor(deps: GatewayRouteDeps) {
    this.#deps = deps
  }

  /** @throws HttpError for a body that is too large or breaks off; other errors are answered. */
  handle(
    { request, response }: { readonly request: IncomingMessage; readonly response: ServerResponse },
    call: GatewayCall,
    { agent, path }: { readonly agent: string | null; readonly path: string }
  ): Promise<void> {
    const { method = '', headers } = request
    const answer = (body: Buffer | null): Promise<void> => {
      const asking = {
        response,
        body,
        source: { headers, query: call.query },
        caller: this.#caller(request, call, agent)
      }
      return body !== null && path === '' ? this.#rpc(asking) : this.#rest(asking, method, path)
    }
    return method === 'POST' ? call.readBody().then(answer) : answer(null)
  }

  async #rpc({ response, body, source, caller }: GatewayExchange): Promise<void> {
    try {
      checkBodyType(source, body)
    } catch (error) {
      const fault = faultOf(error)
      return answerJson(response, fault.status, rpcJson(body === null ? null : rpcIdIn(body), { fault }))
    }
    let isStream = false
    let version: ProtocolVersion = '1.0'
    const { id, given } = await callRpc(body ?? Buffer.alloc(0), (method, params) => {
      isStream = isOldStream(method)
      version = rpcVersion(method)
      const asked = requestedVersion(source)
      version = asked ?? version
      const operation = rpcOperation(method, asked)
      return this.#perform({ operation, params, response, source }, caller)
    })
    if (!('items' in given) && !(isStream && 'fault' in given))
      return answerJson(response, 200, rpcJson(id, given, version))
    await answerStream(response, 'items' in given ? given.items : failing(given.fault), {
      clock: this.#deps.clock,
      encode: (value) => rpcJson(id, { value }),
      encodeFault: (error) => rpcJson(id, { fault: faultOf(error) }, version)
    })
  }

  async #rest({ response, body, source, caller }: GatewayExchange, method: string, path: string): Promise<void> {
    let version = pathVersion(path, null)
    try {
      checkBodyType(source, body)
      const asked = requestedVersion(source)
      version = pathVersion(path, asked)
      const { operation, params, hasBody } = restCall({ method, path, query: source.query, asked })
      const all = hasBody ? { ...bodyOf(body), ...params } : params
      const given = await this.#perform({ operation, params: all, response, source }, caller)
      if ('value' in given) return answerJson(response, 200, given.value, REST_TYPES[version])
      await answerStream(response, given.items, {
        clock: this.#deps.clock,
        encode: (value) => value,
        encodeFault: (error) => restFault(faultOf(error), version)
      })
    } catch (error) {
      const fault = faultOf(error)
      answerJson(response, fault.status, restFault(fault, version))
    }
  }

  #perform({ operation, params, source, response }: Performance, caller: Caller): Promise<OperationInput> {
    const onActivated = (header: string, uris: string): void => void response.setHeader(header, uris)
    const extensions = (agent: string | null): readonly OfferedExtension[] => this.#deps.extensions(agent)
    return perform({ operation, params, source, extensions, onActivated }, caller)
  }

  #caller(request: IncomingMessage, { principal, signal }: GatewayCall, agent: string | null): Caller {
    const { gateway, extendedCard } = this.#deps
    return { gateway, by: principal, agent, signal, lastEventId: request.headers['last-event-id'], extendedCard }
  }
}

/** A stream that fails at once. */
function failing(fault: A2AFault): AsyncIterable<never> {
  return { [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(fault) }) }
}

/** A received request. */
interface GatewayExchange {
  readonly response: ServerResponse
  /** null: no body. */
  readonly body: Buffer | null
  readonly source: ServiceSource
  readonly caller: Caller
}

interface Performance extends Pick<GatewayExchange, 'response' | 'source'> {
  readonly operation: Operation
  readonly params: unknown
}

/** Media types of REST answers. */
const REST_TYPES: Readonly<Record<ProtocolVersion, string>> = {
  '1.0': 'application/a2a+json',
  '0.3': 'application/json'
}

/** Answers with JSON. */
export function answerJson(...[response, status, value, type = 'application/json']: JsonAnswer): void {
  if (response.headersSent || response.destroyed) return void response.destroy()
  // A string is sent in one write with the head.
  const text = JSON.stringify(value)
  response
    .writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(text), 'cache-control': 'no-store' })
    .end(text)
}

type JsonAnswer = readonly [response: ServerResponse, status: number, value: unknown, type?: string]

/** Errors of REST in 0.3 are the bare error objects of its JSON-RPC. */
function restFault(fault: A2AFault, version: ProtocolVersion): object {
  return version === '0.3' ? fault.toOldRpc() : fault.toRest()
}

function bodyOf(body: Buffer | null): Record<string, unknown> {
  const value = parsedBody(body ?? Buffer.alloc(0))
  if (!isRecord(value)) throw new A2AFault('INVALID_REQUEST', 'the body must be an object')
  return value
}

function checkBodyType(source: Pick<IncomingMessage, 'headers'>, body: Buffer | null): void {
  if (body !== null && body.length > 0) checkType(source)
}

/** Checks that the content type is JSON. @throws A2AFault MEDIA_TYPE */
export function checkType({ headers }: Pick<IncomingMessage, 'headers'>): void {
  const text = headers['content-type'] ?? ''
  if (JSON_TYPES.has(text) || JSON_TYPES.has(text.split(';')[0]?.trim().toLowerCase() ?? '')) return
  throw new A2AFault('MEDIA_TYPE', 'the body must be application/json')
}
