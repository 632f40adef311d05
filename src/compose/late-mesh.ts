import type { Clock } from '../kit/clock.js'
import { NodeError } from '../kit/errors.js'
import { isKeyText, type NodeId } from '../kit/ids.js'
import type { MeshReach } from '../adapters/a2a/mesh-binding/mesh-client.js'
import type { Directory } from '../node/cards/directory.js'

/** The parts of a node that reach its members. */
interface ReachableMesh {
  readonly self: NodeId
  readonly directory: Pick<Directory, 'node' | 'certificate'>
  readonly memberCalls: MeshReach['calls']
}

/** Access to A2A agents of other members, for agents that are made before the node. */
export class LateMesh implements MeshReach {
  readonly clock: Clock
  readonly calls: MeshReach['calls']
  #node: ReachableMesh | null = null

  constructor(clock: Clock) {
    this.clock = clock
    this.calls = { open: (...call) => this.#core().memberCalls.open(...call) }
  }

  /** Call once the node is up. */
  serve(node: ReachableMesh): void {
    this.#node = node
  }

  peer(text: string): NodeId {
    const { directory, self } = this.#core()
    const peer = isKeyText(text) ? text : directory.node(text)
    if (peer === self) throw new NodeError('USAGE', 'this is the node itself: name its agent instead of a URL')
    if (directory.certificate(peer) === null)
      throw new NodeError('PEER_NOT_FOUND', 'the node of the URL is no member of this mesh')
    return peer
  }

  #core(): ReachableMesh {
    if (this.#node === null) throw new NodeError('PEER_OFFLINE', 'the node is not up yet', { retryable: true })
    return this.#node
  }
}
