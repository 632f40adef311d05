import type { NoiseStream } from 'hyperswarm'
import type { NodeId } from '../../../kit/ids.js'
import type { LinkPath } from '../../../ports/mesh.js'

/** Which end opens a stream: the peer (`in`) or this node (`out`). */
export type StreamDirection = 'in' | 'out'

/** The rank of a path; 0: the best. A stream over TCP costs the least, a WebSocket may lead through a proxy. */
export function rankOf(path: LinkPath): number {
  return path === 'tcp' ? 0 : path === 'websocket' ? 2 : 1
}

/**
 * Opens Noise streams between nodes, each authenticated by the static keys of both. At most one stream to a peer is
 * open at a time. Hyperswarm is one implementation; `test/contracts/stream-transport.ts` states what each of them
 * keeps.
 */
export interface StreamTransport {
  /**
   * Announces this node below a topic (32 bytes), dials the nodes found there, and accepts streams. Call it once.
   * @throws Error when announcing fails; the transport works all the same, and `refresh` announces again.
   */
  listen(topic: Uint8Array): Promise<void>
  /** Announces and looks up now. Does nothing before `listen`. */
  refresh(): void
  /**
   * Dials a peer until a stream is open, and again when that stream ends, until `undial`. A repeated call resets the
   * back-off.
   */
  dial(peer: NodeId): void
  /** Stops dialling. An open stream stays. */
  undial(peer: NodeId): void
  /** The one handler of open streams, set before `listen`. It must add an `error` listener before it returns. */
  onStream(handler: (stream: NoiseStream) => void): void
  /** The one rule that admits peers, asked before each handshake. Default: everybody. */
  firewall(admits: (peer: NodeId, direction: StreamDirection) => boolean): void
  /** Ends every stream, and stops listening and dialling. */
  close(): Promise<void>
}
