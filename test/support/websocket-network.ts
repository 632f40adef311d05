import { freePort, localMesh, type LocalNode, type TestMesh } from './nodes.js'

/** A private network whose one bootstrap node does not answer. */
export interface CutNetwork {
  readonly mesh: TestMesh<LocalNode>
  readonly bootstrap: { readonly host: string; readonly port: number }
  /** Words of a node in it. */
  readonly dark: readonly string[]
  /** Words of a node that serves WebSockets. */
  readonly serving: readonly string[]
  /** Words of a node that dials it. */
  readonly dialling: readonly string[]
  start(name: string, args: readonly string[], join?: string, urls?: string): Promise<LocalNode>
}

/** Opens such a network. */
export async function cutNetwork(t: Parameters<typeof localMesh>[0]): Promise<CutNetwork> {
  const mesh = await localMesh(t)
  const [host, port, served] = ['127.0.0.1', await freePort(), await freePort()]
  const network = ['--network', 'private', '--bootstrap', `${host}:${port}`]
  return {
    mesh,
    bootstrap: { host, port },
    dark: network,
    serving: [...network, '--websocket', `${host}:${served}`],
    dialling: ['--via', `ws://${host}:${served}`],
    start: (name, args, join, urls) =>
      mesh.start(name, {
        args,
        env: { A2A_NODE_NETWORK_KIND: undefined, A2A_NODE_WEBSOCKET_URLS: urls },
        ...(join === undefined ? {} : { join })
      })
  }
}

/** The path of the link to a peer; null for none. */
export async function pathTo(node: LocalNode, name: string): Promise<string | null> {
  const { peers } = await node.api.call('peers.list', {})
  return peers.find((one) => one.name === name)?.path ?? null
}

/** The outcome of a call of an agent `text`. */
export async function stats(node: LocalNode, agent: string): Promise<string> {
  return (await node.api.call('message.call', { agent, capability: 'text.stats', input: { text: 'a b' } })).outcome
}
