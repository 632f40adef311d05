import type { ServerResponse } from 'node:http'
import type { Principal } from '../../ports/node-api.js'
import { facadeCall } from './facade-route.js'
import { A2AFault } from './fault.js'
import { agentPath } from './gateway-route.js'
import { type RpcId, rpcIdIn, rpcJson } from './json-rpc.js'
import type { CallLimit } from './rate-limit.js'
import { pathVersion } from './rest.js'

/** Faces of the gateway that answer in forms of their own. */
export type GatewayFace = 'facade' | 'rpc' | 'rest' | 'rest-old' | 'agui' | 'card'

/** What is needed of a call to count it. */
interface CountedCall {
  readonly path: string
  readonly principal: Principal
  readBody(): Promise<Buffer>
}

type Answers<Request, Call> = (request: Request, response: ServerResponse, call: Call) => unknown

/** Bytes of a body that is read for the id of its request, although the request is refused. */
const MAX_ID_BODY = 65_536

/** Which face a call is for. */
export function faceOf(method: string, path: string): GatewayFace {
  if (facadeCall(method, path) !== null) return 'facade'
  const below = path.startsWith('/agents/') ? (agentPath(path, '/agents/')?.path ?? '/') : path.slice('/a2a'.length)
  if (path === '/agui' || below === '/agui') return 'agui'
  if (path.startsWith('/a2a/') && path.endsWith('/card')) return 'card'
  if (below === '') return 'rpc'
  return pathVersion(below, null) === '0.3' ? 'rest-old' : 'rest'
}

/**
 * The handler of a route, with each call counted first: what is beyond the limit of its token is answered with 429 and Retry-After,
 * in the form of the face it came to. `onCall` is told of each.
 */
export function limited<Request extends { readonly method?: string | undefined }, Call extends CountedCall>(
  handle: Answers<Request, Call>,
  { limit, onCall }: { readonly limit: CallLimit; onCall(face: GatewayFace, isRefused: boolean): void }
): Answers<Request, Call> {
  return async (request, response, call) => {
    const face = faceOf(request.method ?? '', call.path)
    const seconds = limit.take(call.principal)
    onCall(face, seconds > 0)
    if (seconds === 0) return await handle(request, response, call)
    const body = request.method === 'POST' ? await call.readBody() : Buffer.alloc(0)
    const id = face === 'rpc' && body.length <= MAX_ID_BODY ? rpcIdIn(body) : null
    refuse(response, { face, seconds, id })
  }
}

function refuse(
  response: ServerResponse,
  { face, seconds, id }: { readonly face: GatewayFace; readonly seconds: number; readonly id: RpcId }
): void {
  const fault = tooMany(seconds)
  const body = Buffer.from(JSON.stringify(bodyOf(face, fault, id)))
  const headers = {
    'content-type': 'application/json',
    'content-length': body.length,
    'cache-control': 'no-store',
    'retry-after': String(seconds)
  }
  response.writeHead(429, headers).end(body)
}

function bodyOf(face: GatewayFace, fault: A2AFault, id: RpcId): object {
  if (face === 'facade') return { error: 'rate_limited', message: fault.message }
  if (face === 'rpc') return rpcJson(id, { fault })
  return face === 'rest-old' ? fault.toRpc() : fault.toRest()
}

/** The published protocol has no number of its own for it; the gateway's specification has. */
function tooMany(seconds: number): A2AFault {
  return new A2AFault('OVERLOADED', `too many requests: try again in ${seconds} s`, {
    metadata: { code: 'RATE_LIMITED', name: 'RATE_LIMIT_EXCEEDED', number: '-32030', retryAfter: String(seconds) }
  })
}
