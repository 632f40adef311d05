import { type GatewayNode, gatewayNode } from './a2a.js'
import { type LocalNode, type TestMesh, untilAgent, untilOnline } from './nodes.js'

/** Options of a test with two nodes. */
export const TIMEOUT = { timeout: 180_000 }

/** The node `a` with the agent `talk`, and a member `b` of its mesh that has a link to it. */
export async function pair<N extends LocalNode>(
  mesh: TestMesh<N>
): Promise<{ readonly a: GatewayNode<N>; readonly b: N }> {
  const a = await gatewayNode(mesh, 'a')
  const { code } = await a.node.api.call('invite.create', { trust: 'mine' })
  const b = await mesh.start('b', { join: code })
  await untilOnline(b, 1)
  await untilAgent(b, 'talk@a')
  return { a, b }
}
