import type { ServerResponse } from 'node:http'
import type { Principal } from '../../../ports/node-api.js'
import { type A2AFault, rateLimited } from '../server/fault.js'
import { facadeListenerFault } from '../server/listener-fault.js'
import { type GatewayFace, gatewayTarget } from '../server/gateway-target.js'
import { type RpcId, rpcIdIn, rpcJson } from '../server/json-rpc.js'
import type { CallLimit } from './rate-limit.js'

/** The counted part of a call. */
interface CountedCall {
  readonly path: string
  readonly principal: Principal
  readBody(): Promise<Buffer>
}

type LimitedAnswers<Request, Call> = (request: Request, response: ServerResponse, call: Call) => unknown

/** Most bytes of the body of a refused request that are read, for the id of the answer and to keep the connection. */
export const MAX_REFUSED_BODY = 65_536

/** The counted part of a request. */
interface CountedRequest {
  readonly method?: string | undefined
  readonly headers: {
    readonly 'content-length'?: string | undefined
    readonly 'transfer-encoding'?: string | undefined
  }
}

/** The answer to a call beyond the limit. */
export interface LimitAnswer {
  readonly message: string
  /** In the form of its face. */
  readonly body: object
  readonly retryAfterSeconds: number
}

/** The face of a call. */
export function faceOf(method: string, path: string): GatewayFace {
  return gatewayTarget(method, path)?.face ?? 'rest'
}

/**
 * Wraps the handler of a route with a rate limit. A call beyond the limit of its token is refused in the form of its
 * face; its body is read only when small. `onCall` is called for each call; the error from `refusal` is thrown.
 */
export function limited<Request extends CountedRequest, Call extends CountedCall>(
  handle: LimitedAnswers<Request, Call>,
  how: {
    readonly limit: CallLimit
    onCall(face: GatewayFace, isRefused: boolean): void
    refusal(answer: LimitAnswer): Error
  }
): LimitedAnswers<Request, Call> {
  const refuse = async (request: Request, call: Call, seconds: number): Promise<never> => {
    const id = isSmall(request) ? rpcIdIn(await call.readBody()) : null
    const fault = rateLimited(`too many requests: try again in ${seconds} s`, String(seconds))
    const body = bodyOf(faceOf(request.method ?? '', call.path), fault, id)
    throw how.refusal({ message: fault.message, body, retryAfterSeconds: seconds })
  }
  return (request, response, call) => {
    const seconds = how.limit.take(call.principal)
    how.onCall(faceOf(request.method ?? '', call.path), seconds > 0)
    return seconds === 0 ? handle(request, response, call) : refuse(request, call, seconds)
  }
}

/** An invalid size is not small. */
function isSmall({ headers }: CountedRequest): boolean {
  return headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) <= MAX_REFUSED_BODY
}

function bodyOf(face: GatewayFace, fault: A2AFault, id: RpcId): object {
  if (face === 'facade') return facadeListenerFault({ status: 429, code: 'RATE_LIMITED', message: fault.message })
  if (face === 'rpc' || face === 'mcp') return rpcJson(id, { fault })
  return face === 'rest-old' ? fault.toOldRpc() : fault.toRest()
}
