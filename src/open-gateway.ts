import type { HttpRoute } from './adapters/http/route.js'
import { agentPath, GatewayRoute, MAX_GATEWAY_BODY } from './adapters/a2a/gateway-route.js'
import { A2AFault } from './adapters/a2a/fault.js'
import { GatewayTasks } from './node/gateway.js'
import type { NodeCore } from './node/node.js'
import type { StartParts } from './open-home.js'

/** The A2A gateway of a node that serves HTTP: its tasks go on where they were. @throws NodeError STORE_DAMAGED */
export async function openGateway({ unwind, clock }: StartParts, node: NodeCore): Promise<readonly HttpRoute[]> {
  const gateway = new GatewayTasks(node)
  await gateway.start()
  unwind.add('A2A gateway', async () => gateway.stop())
  const route = new GatewayRoute({
    gateway,
    clock,
    extendedCard: () => Promise.reject(new A2AFault('UNSUPPORTED_OPERATION', 'this node has no extended cards'))
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
