import { flat } from '../../../kit/ids.js'
import type { AgentInfo } from '../../../ports/node-api.js'
import { MESH_BINDING, meshUrl } from '../mesh-binding/mesh-uri.js'

/** One way to reach an agent, as cards name it. */
export interface CardInterface {
  readonly protocolBinding: 'JSONRPC' | 'HTTP+JSON' | typeof MESH_BINDING
  readonly protocolVersion: '1.0' | '0.3'
  readonly url: string
}

/** Bindings and versions of the protocol, the preferred one first. */
const SPOKEN: readonly Omit<CardInterface, 'url'>[] = [
  { protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
  { protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
  { protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
  { protocolBinding: 'HTTP+JSON', protocolVersion: '0.3' }
]

/** Where a node is reached. */
export interface Reached {
  /** URL of its listener (`http://127.0.0.1:7420`); null: it has none. */
  readonly base: string | null
  /** Its key, when it takes calls of members over their links; absent when it does not. */
  readonly meshNode?: string
}

/**
 * Where an agent, or with null the node as a whole, is reached. The bindings over HTTP share a URL: JSON-RPC is told by its
 * method name, REST by the path below it (in 0.3 that begins with `/v1/`). Over the mesh the same JSON-RPC is spoken.
 */
export function interfacesOf({ base, meshNode }: Reached, pathId: string | null): readonly CardInterface[] {
  const path = pathId === null ? '/a2a' : `/agents/${segmentOf(pathId)}`
  const overHttp = base === null ? [] : SPOKEN.map((spoken) => ({ ...spoken, url: `${base}${path}` }))
  if (meshNode === undefined) return overHttp
  const overMesh = (['1.0', '0.3'] as const).map(
    (protocolVersion): CardInterface => ({
      protocolBinding: MESH_BINDING,
      protocolVersion,
      url: meshUrl(meshNode, path)
    })
  )
  return [...overHttp, ...overMesh]
}

/** What an agent is called in paths: its id on its own node, `id@node name` on others. */
export function pathIdOf({ id, address, origin }: Pick<AgentInfo, 'id' | 'address' | 'origin'>): string {
  // A segment of dots alone means another path.
  return origin === 'local' && !/^\.+$/.test(id) ? id : address
}

/** Is it the name of an agent in paths: {@link pathIdOf}, or its address by name or key of its node? Beginnings are none. */
export function isNamed(agent: Pick<AgentInfo, 'id' | 'address' | 'origin' | 'node'>, name: string): boolean {
  return name === pathIdOf(agent) || name === agent.address || name === `${agent.id}@${agent.node.id}`
}

/** The segment of a path that says it. No two have the same one. */
export function segmentOf(pathId: string): string {
  return encodeURIComponent(flat(pathId)).replaceAll('%40', '@')
}

/** What a segment of a path says; null for one that is not encoded well. */
export function pathIdFrom(segment: string): string | null {
  try {
    // The function of the language is slow, and there is seldom anything to do for it.
    return segment.includes('%') ? decodeURIComponent(segment) : segment
  } catch {
    return null
  }
}
