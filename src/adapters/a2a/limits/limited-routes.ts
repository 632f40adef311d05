import type { ServerResponse } from 'node:http'
import type { Principal } from '../../../ports/node-api.js'
import { A2AFault } from '../server/fault.js'
import { type GatewayFace, gatewayTarget } from '../server/gateway-target.js'
import { type RpcId, rpcIdIn, rpcJson } from '../server/json-rpc.js'
import type { CallLimit } from './rate-limit.js'

/** What is needed of a call to count it. */
interface CountedCall {
  readonly path: string
  readonly principal: Principal
  readBody(): Promise<Buffer>
}

type LimitedAnswers<Request, Call> = (request: Request, response: ServerResponse, call: Call) => unknown

/** Bytes of a body that is read although its request is refused: for the id that its answer names, and so that its connection goes on. */
export const MAX_REFUSED_BODY = 65_536

/** What is needed of a request to count it. */
interface CountedRequest {
  readonly method?: string | undefined
  readonly headers: { readonly 'content-length'?: string | undefined; readonly 'transfer-encoding'?: string | undefined }
}

/** The answer to a call beyond the limit. */
export interface LimitAnswer {
  readonly message: string
  /** In the words of the face that it came to. */
  readonly body: object
  readonly retryAfterSeconds: number
}

/** Which face a call is for. */
export function faceOf(method: string, path: string): GatewayFace {
  return gatewayTarget(method, path)?.face ?? 'rest'
}

/**
 * The handler of a route, with each call counted first: what is beyond the limit of its token is refused in the form of the face it
 * came to, before its body is read unless that is small. `onCall` is told of each; what `refusal` makes is thrown.
 */
export function limited<Request extends CountedRequest, Call extends CountedCall>(
  handle: LimitedAnswers<Request, Call>,
  how: { readonly limit: CallLimit; onCall(face: GatewayFace, isRefused: boolean): void; refusal(answer: LimitAnswer): Error }
): LimitedAnswers<Request, Call> {
  const refuse = async (request: Request, call: Call, seconds: number): Promise<never> => {
    const id = isSmall(request) ? rpcIdIn(await call.readBody()) : null
    const fault = tooMany(seconds)
    const body = bodyOf(faceOf(request.method ?? '', call.path), fault, id)
    throw how.refusal({ message: fault.message, body, retryAfterSeconds: seconds })
  }
  return (request, response, call) => {
    const seconds = how.limit.take(call.principal)
    how.onCall(faceOf(request.method ?? '', call.path), seconds > 0)
    return seconds === 0 ? handle(request, response, call) : refuse(request, call, seconds)
  }
}

/** A size that no number holds is not small. */
function isSmall({ headers }: CountedRequest): boolean {
  return headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) <= MAX_REFUSED_BODY
}

function bodyOf(face: GatewayFace, fault: A2AFault, id: RpcId): object {
  if (face === 'facade') return { error: 'rate_limited', message: fault.message }
  if (face === 'rpc' || face === 'mcp') return rpcJson(id, { fault })
  return face === 'rest-old' ? fault.toRpc() : fault.toRest()
}

/** The published protocol has no number of its own for it; the gateway's specification has. */
function tooMany(seconds: number): A2AFault {
  return new A2AFault('OVERLOADED', `too many requests: try again in ${seconds} s`, {
    metadata: { code: 'RATE_LIMITED', name: 'RATE_LIMIT_EXCEEDED', number: '-32030', retryAfter: String(seconds) }
  })
}
