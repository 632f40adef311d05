import type { AbortSignalLike, Clock } from '../kit/clock.js'
import { NodeError } from '../kit/errors.js'
import { isKeyText, type NodeId } from '../kit/ids.js'
import type { MeshReach } from '../adapters/a2a/mesh-binding/mesh-client.js'
import type { NodeCore } from '../node/node.js'
import type { CallPiece, CallRequest } from '../ports/member-calls.js'

type Core = Pick<NodeCore, 'memberCalls' | 'directory' | 'self'>

/** The way to A2A agents of other members, for agents that are made before the node is. */
export class LateMesh implements MeshReach {
  readonly clock: Clock
  readonly calls: MeshReach['calls']
  #node: Core | null = null

  constructor(clock: Clock) {
    this.clock = clock
    this.calls = {
      open: (peer: NodeId, request: CallRequest, signal?: AbortSignalLike): AsyncIterable<CallPiece> =>
        this.#core().memberCalls.open(peer, request, signal)
    }
  }

  /** The node is up. */
  serve(node: Core): void {
    this.#node = node
  }

  peer(text: string): NodeId {
    const { directory, self } = this.#core()
    const peer = isKeyText(text) ? text : directory.node(text)
    if (peer === self) throw new NodeError('USAGE', 'this is the node itself: name its agent instead of a URL')
    if (directory.certificate(peer) === null) throw new NodeError('PEER_NOT_FOUND', 'the node of the URL is no member of this mesh')
    return peer
  }

  #core(): Core {
    if (this.#node === null) throw new NodeError('PEER_OFFLINE', 'the node is not up yet', { retryable: true })
    return this.#node
  }
}
