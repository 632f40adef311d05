import { isClaimed, type RpcMessage, paramsOf } from '../../kit/mcp/rpc-message.js'

/** Versions of the protocol with a handshake, the newest first. A node serves the same. */
export const HANDSHAKE_VERSIONS: readonly unknown[] = [
  '2025-11-25',
  '2025-06-18',
  '2025-03-26',
  '2024-11-05',
  '2024-10-07'
]
const CAPABILITIES = {
  tools: { listChanged: true },
  logging: {},
  completions: {},
  resources: { listChanged: true, subscribe: true },
  prompts: { listChanged: true }
}
const INSTRUCTIONS =
  'This server is a node of an a2a-node mesh. The node has not answered yet: its tools appear in the list as soon as it does.'
/** Members of empty lists, by method. */
const EMPTY: Readonly<Record<string, string>> = {
  'tools/list': 'tools',
  'prompts/list': 'prompts',
  'resources/list': 'resources',
  'resources/templates/list': 'resourceTemplates'
}

/** The answer to a request that needs no node, while none runs; null for all other requests. */
export function atOnce({ method }: RpcMessage): RpcMessage | null {
  return method === 'ping' || method === 'logging/setLevel' ? {} : null
}

/**
 * The answer to a handshake or a list of which no earlier answer is known: a list is empty until the node tells its
 * client that it changed. null for all other requests.
 */
export function withoutKnowledge(request: RpcMessage, version: string): RpcMessage | null {
  const { method } = request
  if (method === 'initialize') {
    const { protocolVersion: asked } = paramsOf(request)
    const protocolVersion = HANDSHAKE_VERSIONS.includes(asked) ? asked : HANDSHAKE_VERSIONS[0]
    return {
      protocolVersion,
      capabilities: CAPABILITIES,
      serverInfo: { name: 'a2a-node', version },
      instructions: INSTRUCTIONS
    }
  }
  const member = typeof method === 'string' && Object.hasOwn(EMPTY, method) ? EMPTY[method] : undefined
  if (member === undefined) return null
  return { [member]: [], ...(isClaimed(request) ? { resultType: 'complete', ttlMs: 0, cacheScope: 'private' } : {}) }
}
