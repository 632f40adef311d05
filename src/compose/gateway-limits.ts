import type { IncomingMessage } from 'node:http'
import { type GatewayFace, limited, type LimitAnswer } from '../adapters/a2a/limits/limited-routes.js'
import { CallLimit } from '../adapters/a2a/limits/rate-limit.js'
import { HttpError } from '../adapters/http/http-error.js'
import type { HttpRoute, TokenCall } from '../adapters/http/route.js'
import type { NodeCore } from '../node/node.js'
import type { StartDeps } from './open-home.js'

/** Counts the calls of each token, as the config has it. */
export function openLimit({ options, clock }: StartDeps): CallLimit {
  return new CallLimit(options.config.a2a.rateLimit, clock)
}

/** Routes of the gateway with their calls counted; what anybody may read is not: there is nobody to count it for. */
export function limitedRoutes(
  routes: readonly HttpRoute[],
  { limit, node }: { readonly limit: CallLimit; readonly node: Pick<NodeCore, 'peers'> },
  { telemetry }: StartDeps
): readonly HttpRoute[] {
  const onCall = (face: GatewayFace, isRefused: boolean): void => {
    node.peers.usedHere()
    telemetry.count(isRefused ? 'gateway_limited' : 'gateway_calls', face)
  }
  return routes.map((route) =>
    route.isPublic === true
      ? route
      : { ...route, handle: limited<IncomingMessage, TokenCall>(route.handle, { limit, onCall, refusal: limitRefusal }) }
  )
}

/** 429, with the seconds after which the next call may come. */
export function limitRefusal({ message, body, retryAfterSeconds }: LimitAnswer): HttpError {
  return new HttpError(429, { code: 'RATE_LIMITED', message, headers: { 'retry-after': String(retryAfterSeconds) }, shape: body })
}
