import type { CardService } from '../adapters/a2a/cards/card-routes.js'
import type { CallLimit } from '../adapters/a2a/limits/rate-limit.js'
import type { HttpRoute, TokenCall } from '../adapters/http/route.js'
import { facadeCall, FacadeRoute } from '../adapters/a2a/facade/facade-route.js'
import { AguiRoute } from '../adapters/a2a/agui/agui-route.js'
import { agentPath, GatewayRoute, MAX_GATEWAY_BODY, nodePath } from '../adapters/a2a/server/gateway-route.js'
import { facadeListenerFault, listenerFault } from '../adapters/a2a/server/listener-fault.js'
import { metricsRoute } from '../adapters/http/metrics-route.js'
import { limitedRoutes } from './gateway-limits.js'
import type { NodeCore } from '../node/node.js'
import type { NodeApi, Principal } from '../ports/node-api.js'
import type { StartDeps } from './open-home.js'
import type { OpenedTasks } from './open-tasks.js'

/** What the gateway of a node needs of it. */
export interface GatewayOpening {
  readonly node: NodeCore
  readonly cards: Pick<CardService, 'extended' | 'extensions' | 'routes'>
  /** Of all calls of a token, whichever face of the gateway they come to. */
  readonly limit: CallLimit
  readonly tasks: OpenedTasks
  apiFor(principal: Principal): NodeApi
}

/** The A2A gateway of a node over HTTP. */
export function openGateway(deps: StartDeps, opening: GatewayOpening): readonly HttpRoute[] {
  const { clock } = deps
  const { cards, tasks } = opening
  const { guarded } = tasks
  const route = new GatewayRoute({
    gateway: guarded,
    clock,
    extensions: (agent) => cards.extensions(agent),
    extendedCard: (principal, agent, version) => cards.extended(agent, { form: version === '1.0' ? 'one' : 'hybrid', principal })
  })
  const facade = openFacade(deps, opening)
  const routes = routesOf({ route, facade, agui: new AguiRoute({ gateway: guarded, clock }) })
  return [...limitedRoutes([...cards.routes, ...routes], opening, deps), metricsRoute(opening)]
}

interface Faces {
  readonly route: GatewayRoute
  readonly facade: ReturnType<typeof openFacade>
  readonly agui: AguiRoute
}

function routesOf({ route, facade, agui }: Faces): readonly HttpRoute[] {
  const methods = ['GET', 'POST', 'DELETE'] as const
  return [
    ...facade.routes,
    {
      prefix: '/agents/',
      methods,
      maxBodyBytes: MAX_GATEWAY_BODY,
      errorBody: agentError,
      handle: (request, response, call) => {
        const target = agentPath(call.path, '/agents/')
        if (target?.path === '/agui') return agui.handle({ request, response }, call, target.agent)
        return (
          facade.handle(request, response, call) ?? route.handle({ request, response }, call, target ?? { agent: null, path: '/nothing' })
        )
      }
    },
    {
      path: '/agui',
      methods: ['POST'],
      maxBodyBytes: MAX_GATEWAY_BODY,
      errorBody: listenerFault,
      handle: (request, response, call) => agui.handle({ request, response }, call, null)
    },
    {
      path: '/a2a',
      methods,
      maxBodyBytes: MAX_GATEWAY_BODY,
      errorBody: (error, { method }) => listenerFault(error, { method, path: '' }),
      handle: (request, response, call) => route.handle({ request, response }, call, { agent: null, path: '' })
    },
    {
      prefix: '/a2a/',
      methods,
      maxBodyBytes: MAX_GATEWAY_BODY,
      errorBody: (error, { method, path }) => listenerFault(error, { method, path: nodePath(path).path }),
      handle: (request, response, call) => route.handle({ request, response }, call, nodePath(call.path))
    }
  ]
}

const agentError: NonNullable<HttpRoute['errorBody']> = (error, { method, path }) => {
  if (facadeCall(method, path) !== null) return facadeListenerFault(error)
  const target = agentPath(path, '/agents/')
  return target === null ? null : listenerFault(error, { method, path: target.path })
}

interface Facade {
  /** Null for a path that is not the facade's. */
  handle(...[request, response, call]: Parameters<Extract<HttpRoute, { isPublic?: false }>['handle']>): Promise<void> | null
  /** Places that are the facade's alone. */
  readonly routes: readonly HttpRoute[]
}

function openFacade(
  { clock, telemetry }: StartDeps,
  { node, apiFor, tasks: { gateway, guardrails } }: Omit<GatewayOpening, 'cards' | 'limit'>
): Facade {
  const route = new FacadeRoute({
    gateway,
    guardrails,
    clock,
    ids: node.deps.ids,
    apiFor,
    onUnexpected: ({ message }) => telemetry.log('error', 'a request to an agent over HTTP failed', { reason: message })
  })
  const handle: Facade['handle'] = (request, response, call: TokenCall) => {
    const asked = facadeCall(request.method ?? '', call.path)
    return asked === null ? null : route.handle({ request, response }, call, asked)
  }
  const shape = { methods: ['GET', 'POST'], maxBodyBytes: MAX_GATEWAY_BODY, errorBody: facadeListenerFault, handle }
  return {
    handle,
    routes: [
      { path: '/agents', ...shape },
      { path: '/v1/agents', ...shape },
      { prefix: '/v1/agents/', ...shape }
    ]
  }
}
