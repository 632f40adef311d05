import { flat } from '../../kit/ids.js'
import type { AgentInfo } from '../../ports/node-api.js'

/** One way to reach an agent, as cards name it. */
export interface CardInterface {
  readonly protocolBinding: 'JSONRPC' | 'HTTP+JSON'
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

/**
 * Where an agent, or with null the node as a whole, is reached below `base` (`http://127.0.0.1:7420`). All bindings share a
 * URL: JSON-RPC is told by its method name, REST by the path below it (in 0.3 that begins with `/v1/`).
 */
export function interfacesOf(base: string, pathId: string | null): readonly CardInterface[] {
  const url = pathId === null ? `${base}/a2a` : `${base}/agents/${segmentOf(pathId)}`
  return SPOKEN.map((spoken) => ({ ...spoken, url }))
}

/** What an agent is called in paths: its id on its own node, `id@node name` on others. */
export function pathIdOf({ id, address, origin }: Pick<AgentInfo, 'id' | 'address' | 'origin'>): string {
  // A segment of dots alone means another path.
  return origin === 'local' && !/^\.+$/.test(id) ? id : address
}

/** The segment of a path that says it. No two have the same one. */
export function segmentOf(pathId: string): string {
  return encodeURIComponent(flat(pathId)).replaceAll('%40', '@')
}

/** What a segment of a path says; null for one that is not encoded well. */
export function pathIdFrom(segment: string): string | null {
  try {
    return decodeURIComponent(segment)
  } catch {
    return null
  }
}
