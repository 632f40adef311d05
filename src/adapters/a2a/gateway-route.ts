import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '../../kit/clock.js'
import { isRecord } from '../../kit/json.js'
import type { Gateway } from '../../ports/gateway.js'
import type { Principal } from '../../ports/node-api.js'
import { pathIdFrom } from './card-interfaces.js'
import { answerStream } from './event-stream.js'
import { A2AFault, faultOf } from './fault.js'
import { callRpc, parsedBody, rpcJson } from './json-rpc.js'
import type { Caller, Given } from './operations.js'
import { isOldPath, restCall } from './rest.js'

/** Largest body of a request, in bytes. One text in it has 1 MiB at most: a file of 768 KiB, as base64. */
export const MAX_GATEWAY_BODY = 10_485_760
const VERSIONS: ReadonlySet<string> = new Set(['1.0', '0.3'])
const JSON_TYPES: ReadonlySet<string> = new Set(['application/json', 'application/a2a+json'])

/** What answering A2A clients needs. */
export interface GatewayRouteParts {
  readonly gateway: Gateway
  readonly clock: Clock
  /** The extended card of an agent, or of the node, as a version has it. */
  extendedCard(by: Principal, agent: string | null, version: '1.0' | '0.3'): Promise<object>
}

/** One request whose token was good. */
export interface GatewayCall {
  readonly principal: Principal
  readonly signal: AbortSignal
  readonly query: string
  readBody(): Promise<Buffer>
}

/** Answers a request to the URL of an agent or of the node. `path`: what follows that URL, '' for the URL itself. */
export class GatewayRoute {
  readonly #parts: GatewayRouteParts

  constructor(parts: GatewayRouteParts) {
    this.#parts = parts
  }

  /** @throws HttpError for a body that is too large or breaks off; all else is answered here. */
  async handle(
    { request, response }: { readonly request: IncomingMessage; readonly response: ServerResponse },
    call: GatewayCall,
    { agent, path }: { readonly agent: string | null; readonly path: string }
  ): Promise<void> {
    const isRpc = path === '' && request.method === 'POST'
    const body = request.method === 'POST' ? await call.readBody() : null
    try {
      checkVersion(request)
      if (body !== null && body.length > 0) checkType(request)
      const caller = this.#caller(request, call, agent)
      if (isRpc) return await this.#rpc(response, body ?? Buffer.alloc(0), caller)
      const { operation, params, hasBody } = restCall(request.method ?? '', path, call.query)
      const given = await operation(hasBody ? { ...bodyOf(body), ...params } : params, caller)
      await this.#answerRest(response, given, isOldPath(path))
    } catch (error) {
      const fault = faultOf(error)
      if (isRpc) answerJson(response, fault.kind === 'CONTENT_TYPE_NOT_SUPPORTED' ? 415 : 200, rpcJson(null, { fault }))
      else answerJson(response, fault.status, restFault(fault, isOldPath(path)))
    }
  }

  async #rpc(response: ServerResponse, body: Buffer, caller: Caller): Promise<void> {
    const { id, given } = await callRpc(body, caller)
    if (!('items' in given)) return answerJson(response, 200, rpcJson(id, given))
    await answerStream(response, given.items, {
      clock: this.#parts.clock,
      encode: (value) => rpcJson(id, { value }),
      encodeFault: (error) => rpcJson(id, { fault: faultOf(error) })
    })
  }

  async #answerRest(response: ServerResponse, given: Given, isOld: boolean): Promise<void> {
    if ('value' in given) return answerJson(response, 200, given.value)
    await answerStream(response, given.items, {
      clock: this.#parts.clock,
      encode: (value) => value,
      encodeFault: (error) => restFault(faultOf(error), isOld)
    })
  }

  #caller(request: IncomingMessage, { principal, signal }: GatewayCall, agent: string | null): Caller {
    const { gateway, extendedCard } = this.#parts
    return {
      gateway,
      by: principal,
      agent,
      signal,
      lastEventId: lastEventId(request),
      extendedCard: (version) => extendedCard(principal, agent, version)
    }
  }
}

/** The agent and the rest of a path below a prefix: `/agents/text/tasks` is `text` and `/tasks`. Null for no agent's. */
export function agentPath(path: string, prefix: string): { readonly agent: string; readonly path: string } | null {
  const rest = path.slice(prefix.length)
  const at = rest.indexOf('/')
  const agent = pathIdFrom(at === -1 ? rest : rest.slice(0, at)) ?? ''
  return agent === '' || agent.length > 256 ? null : { agent, path: at === -1 ? '' : rest.slice(at) }
}

/** Answers with JSON. */
export function answerJson(response: ServerResponse, status: number, value: unknown): void {
  if (response.headersSent || response.destroyed) return void response.destroy()
  const body = Buffer.from(JSON.stringify(value))
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': body.length, 'cache-control': 'no-store' }).end(body)
}

/** Errors of REST in 0.3 are those of its JSON-RPC, bare. */
function restFault(fault: A2AFault, isOld: boolean): object {
  return isOld ? fault.toRpc() : fault.toRest()
}

function bodyOf(body: Buffer | null): Record<string, unknown> {
  const value = parsedBody(body ?? Buffer.alloc(0))
  if (!isRecord(value)) throw new A2AFault('INVALID_REQUEST', 'the body must be an object')
  return value
}

function checkVersion({ headers }: IncomingMessage): void {
  const version = headers['a2a-version']
  if (version === undefined || version === '' || (typeof version === 'string' && VERSIONS.has(version))) return
  throw new A2AFault('VERSION_NOT_SUPPORTED', `this node speaks A2A ${[...VERSIONS].join(' and ')}`)
}

/** Is the body JSON, as its client says? @throws A2AFault CONTENT_TYPE_NOT_SUPPORTED */
export function checkType({ headers }: IncomingMessage): void {
  const type = headers['content-type']?.split(';')[0]?.trim().toLowerCase() ?? ''
  if (!JSON_TYPES.has(type)) throw new A2AFault('CONTENT_TYPE_NOT_SUPPORTED', 'the body must be application/json')
}

function lastEventId({ headers }: IncomingMessage): number | null {
  const text = headers['last-event-id']
  return typeof text === 'string' && /^\d{1,8}$/.test(text) ? Number(text) : null
}
