import type { IncomingMessage } from 'node:http'
import { AguiRoute } from '../adapters/a2a/agui/agui-route.js'
import type { CardService } from '../adapters/a2a/cards/card-routes.js'
import { FacadeRoute } from '../adapters/a2a/facade/facade-route.js'
import { limited, type LimitAnswer, MAX_REFUSED_BODY } from '../adapters/a2a/limits/limited-routes.js'
import { CallLimit } from '../adapters/a2a/limits/rate-limit.js'
import { GatewayRoute, MAX_GATEWAY_BODY } from '../adapters/a2a/server/gateway-route.js'
import { gatewayFault, isRpcRequest, type RouteTarget, gatewayTarget } from '../adapters/a2a/server/gateway-target.js'
import { HttpError } from '../adapters/http/http-error.js'
import { metricsRoute } from '../adapters/http/metrics-route.js'
import type { HttpRoute, RoutePlace, TokenCall, TokenRoute } from '../adapters/http/route.js'
import type { NodeDeps } from '../node/dependencies.js'
import type { NodeApi, Principal } from '../ports/node-api.js'
import type { StartDeps } from './open-home.js'
import type { OpenedTasks } from './open-tasks.js'

/** Dependencies shared by the parts of the gateway. */
export interface GatewayDeps extends StartDeps {
  /** Dependencies of the node itself. */
  readonly own: NodeDeps
  /** Public URL of the HTTP listener; null: none. */
  readonly base: string | null
  /** `host:port` by which clients reach the gRPC listener; null: none. */
  readonly grpc: string | null
  /** Counts the calls of a token at all URLs of the gateway together. */
  readonly limit: CallLimit
  apiFor(principal: Principal): NodeApi
}

/** The services behind the URLs of the gateway. */
interface GatewayParts {
  readonly cards: Pick<CardService, 'extended' | 'extensions' | 'routes'>
  readonly tasks: Pick<OpenedTasks, 'gateway' | 'guarded' | 'guardrails'>
  readonly mcp: HttpRoute
  /** Called at each call with a token. */
  onUse(): void
}

/** Routes of the gateway. `gatewayTarget` selects the protocol. */
const PLACES: readonly (RoutePlace & Partial<Pick<TokenRoute, 'methods'>>)[] = [
  { path: '/agents', methods: ['GET', 'POST'] },
  { path: '/v1/agents', methods: ['GET', 'POST'] },
  { prefix: '/v1/agents/', methods: ['GET', 'POST'] },
  { path: '/agui', methods: ['POST'] },
  { prefix: '/agents/' },
  { path: '/a2a' },
  { prefix: '/a2a/' }
]
const NOWHERE: RouteTarget = { face: 'rest', agent: null, path: '/nothing', asked: null }

/** Makes the rate limit of the config. */
export function openLimit({ options, clock }: StartDeps): CallLimit {
  return new CallLimit(options.config.a2a.rateLimit, clock)
}

/** Makes the HTTP routes of the gateway: A2A, facade, AG-UI, MCP and cards behind one limit, and metrics. */
export function openGateway(deps: GatewayDeps, parts: GatewayParts): readonly HttpRoute[] {
  const handle = gatewayHandler(deps, parts)
  const errors: Pick<HttpRoute, 'errorBody' | 'refusedBodyBytes'> = {
    errorBody: gatewayFault,
    refusedBodyBytes: (request) => (isRpcRequest(request) ? MAX_REFUSED_BODY : 0)
  }
  const shape = { methods: ['GET', 'POST', 'DELETE'], maxBodyBytes: MAX_GATEWAY_BODY, ...errors, handle }
  const routes: readonly HttpRoute[] = [
    { ...parts.mcp, ...errors },
    ...parts.cards.routes,
    ...PLACES.map((place) => ({ ...shape, ...place }))
  ]
  const how = {
    limit: deps.limit,
    onCall: (face: string, isRefused: boolean): void => {
      parts.onUse()
      deps.telemetry.count(isRefused ? 'gateway_limited' : 'gateway_calls', face)
    },
    refusal: limitRefusal
  }
  // Public routes have no caller to count.
  const counted = routes.map((route) =>
    route.isPublic === true ? route : { ...route, handle: limited<IncomingMessage, TokenCall>(route.handle, how) }
  )
  return [...counted, metricsRoute(deps)]
}

function gatewayHandler(
  { clock, own, telemetry, apiFor }: GatewayDeps,
  { cards, tasks }: GatewayParts
): TokenRoute['handle'] {
  const { gateway, guarded, guardrails } = tasks
  const route = new GatewayRoute({
    gateway: guarded,
    clock,
    extensions: (agent) => cards.extensions(agent),
    extendedCard: (principal, agent, version) =>
      cards.extended(agent, { form: version === '1.0' ? 'one' : 'hybrid', principal })
  })
  const facade = new FacadeRoute({
    gateway,
    guardrails,
    clock,
    ids: own.ids,
    apiFor,
    onUnexpected: ({ message }) => telemetry.log('error', 'a request to an agent over HTTP failed', { reason: message })
  })
  const agui = new AguiRoute({ gateway: guarded, clock })
  return (request, response, call) => {
    const target = gatewayTarget(request.method ?? '', call.path) ?? NOWHERE
    if (target.asked !== null) return facade.handle({ request, response }, call, target.asked)
    return target.face === 'agui'
      ? agui.handle({ request, response }, call, target.agent)
      : route.handle({ request, response }, call, target)
  }
}

/** Makes the error 429 with `Retry-After`. */
export function limitRefusal({ message, body, retryAfterSeconds }: LimitAnswer): HttpError {
  return new HttpError(429, {
    code: 'RATE_LIMITED',
    message,
    headers: { 'retry-after': String(retryAfterSeconds) },
    shape: body
  })
}
