import path from 'node:path'
import type { Assert } from 'brittle'
import { type RunningNode, startNode, type StartOptions } from '../../src/compose/compose.js'
import { loadConfig } from '../../src/config/load.js'
import { resolveHome } from '../../src/config/paths.js'
import type { NodeApi } from '../../src/ports/node-api.js'
import { freePort } from './nodes.js'
import { tempDir } from './tmp.js'

/** How a node is started. */
export interface Start {
  readonly name?: string
  readonly join?: string
  readonly settings?: Readonly<Record<string, unknown>>
}

/** Starts nodes in this process, on a loopback network of the test's own. */
export async function localNodes(t: Pick<Assert, 'teardown'>) {
  const root = await tempDir(t)
  const port = await freePort()
  const homeOf = (home: string): StartOptions['home'] => resolveHome({ home: path.join(root, home), env: {} })
  const optionsOf = async (at: string, { name, join, settings = {} }: Start): Promise<StartOptions> => {
    const home = homeOf(at)
    const values = { 'network.kind': 'local', 'network.localPort': port, ...settings }
    const flags = Object.entries(values).map(([flag, value]) => ({ path: flag, flag: `--${flag}`, value }))
    const { config } = await loadConfig({ file: home.configFile, env: {}, flags })
    return { config, home, name: name ?? null, join: join ?? null, extraAgentDirs: [], log: null }
  }
  const start = async (home: string, how: Start = {}): Promise<RunningNode> => {
    const node = await startNode(await optionsOf(home, how))
    t.teardown(() => node.close())
    return node
  }
  return { root, homeOf, optionsOf, start }
}

/** The API of a node for its operator. */
export function apiOf(node: RunningNode): NodeApi {
  return node.apiFor({ kind: 'operator', name: 'test', tier: 0, sandboxId: null, scopes: ['read', 'send', 'admin'] })
}
