import type { CardService } from './adapters/a2a/card-routes.js'
import type { HttpRoute } from './adapters/http/route.js'
import { agentPath, GatewayRoute, MAX_GATEWAY_BODY } from './adapters/a2a/gateway-route.js'
import { GatewayTasks } from './node/gateway.js'
import type { NodeCore } from './node/node.js'
import type { StartParts } from './open-home.js'

/** The A2A gateway of a node that serves HTTP: its tasks go on where they were. @throws NodeError STORE_DAMAGED */
export async function openGateway(
  { unwind, clock }: StartParts,
  { node, cards }: { readonly node: NodeCore; readonly cards: Pick<CardService, 'extended'> }
): Promise<readonly HttpRoute[]> {
  const gateway = new GatewayTasks(node)
  await gateway.start()
  unwind.add('A2A gateway', async () => gateway.stop())
  const route = new GatewayRoute({
    gateway,
    clock,
    extendedCard: (principal, agent, version) => cards.extended(agent, { form: version === '1.0' ? 'one' : 'hybrid', principal })
  })
  const methods = ['GET', 'POST', 'DELETE'] as const
  return [
    {
      prefix: '/agents/',
      methods,
      maxBodyBytes: MAX_GATEWAY_BODY,
      handle: (request, response, call) =>
        route.handle({ request, response }, call, agentPath(call.path, '/agents/') ?? { agent: null, path: '/nothing' })
    },
    {
      path: '/a2a',
      methods,
      maxBodyBytes: MAX_GATEWAY_BODY,
      handle: (request, response, call) => route.handle({ request, response }, call, { agent: null, path: '' })
    },
    {
      prefix: '/a2a/',
      methods,
      maxBodyBytes: MAX_GATEWAY_BODY,
      handle: (request, response, call) => route.handle({ request, response }, call, { agent: null, path: call.path.slice('/a2a'.length) })
    }
  ]
}
