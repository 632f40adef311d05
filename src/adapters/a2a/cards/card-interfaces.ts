import { flat } from '../../../kit/ids.js'
import type { AgentInfo } from '../../../ports/node-api.js'
import { MESH_BINDING, meshUrl } from '../mesh-binding/mesh-uri.js'

/** An interface of an agent on a card. */
export interface CardInterface {
  readonly protocolBinding: 'JSONRPC' | 'HTTP+JSON' | 'GRPC' | typeof MESH_BINDING
  readonly protocolVersion: '1.0' | '0.3'
  /** Of gRPC `host:port`. */
  readonly url: string
  /** The agent, where the URL does not name it. */
  readonly tenant?: string
}

/** Bindings and versions of the protocol in order of preference. */
const SPOKEN: readonly Omit<CardInterface, 'url'>[] = [
  { protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
  { protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
  { protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
  { protocolBinding: 'HTTP+JSON', protocolVersion: '0.3' }
]

/** Addresses of a node. */
export interface Reached {
  /** URL of its listener (`http://127.0.0.1:7420`); null: none. */
  readonly base: string | null
  /** `host:port` of its gRPC listener; absent or null: none. */
  readonly grpc?: string | null
  /** Its key, when it serves calls of members over their links; absent: it does not. */
  readonly meshNode?: string
}

/**
 * The interfaces of an agent; null: of the whole node. The HTTP bindings share a URL: JSON-RPC is recognized by its
 * method name, REST by the path below the URL (in 0.3 it begins with `/v1/`). gRPC has no paths: its tenant is the
 * agent. The mesh carries the same JSON-RPC.
 */
export function interfacesOf(
  { base, grpc = null, meshNode }: Reached,
  pathId: string | null
): readonly CardInterface[] {
  const path = pathId === null ? '/a2a' : `/agents/${segmentOf(pathId)}`
  const overHttp = base === null ? [] : SPOKEN.map((spoken) => ({ ...spoken, url: `${base}${path}` }))
  const direct = grpc === null ? overHttp : [...overHttp, grpcInterface(grpc, pathId)]
  if (meshNode === undefined) return direct
  const overMesh = (['1.0', '0.3'] as const).map(
    (protocolVersion): CardInterface => ({
      protocolBinding: MESH_BINDING,
      protocolVersion,
      url: meshUrl(meshNode, path)
    })
  )
  return [...direct, ...overMesh]
}

function grpcInterface(url: string, pathId: string | null): CardInterface {
  return { protocolBinding: 'GRPC', protocolVersion: '1.0', url, ...(pathId === null ? {} : { tenant: pathId }) }
}

/** The name of an agent in paths: its id on its own node, `id@node name` on others. */
export function pathIdOf({ id, address, origin }: Pick<AgentInfo, 'id' | 'address' | 'origin'>): string {
  // URL parsers resolve a segment of dots alone.
  return origin === 'local' && !/^\.+$/.test(id) ? id : address
}

/** Does `name` equal {@link pathIdOf} or the address of the agent by name or key of its node? Prefixes do not match. */
export function isNamed(agent: Pick<AgentInfo, 'id' | 'address' | 'origin' | 'node'>, name: string): boolean {
  return name === pathIdOf(agent) || name === agent.address || name === `${agent.id}@${agent.node.id}`
}

/** Encodes a path id as one segment of a path; distinct ids give distinct segments. */
export function segmentOf(pathId: string): string {
  return encodeURIComponent(flat(pathId)).replaceAll('%40', '@')
}

/** Decodes a segment of a path; null when its encoding is invalid. */
export function pathIdFrom(segment: string): string | null {
  try {
    // decodeURIComponent is slow, and most segments have no escapes.
    return segment.includes('%') ? decodeURIComponent(segment) : segment
  } catch {
    return null
  }
}
