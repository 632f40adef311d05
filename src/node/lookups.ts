import type { Clock, Timer } from '../kit/clock.js'
import type { IdSource, NodeId } from '../kit/ids.js'
import type { ControlBody } from '../domain/channel/control.js'
import type { OwnCards } from './own-cards.js'
import type { PeerCards } from './peer-cards.js'
import type { Peers } from './peers.js'
import type { Visibility } from './visibility.js'

/** How long the members may take to answer, in milliseconds. */
const LOOKUP_MS = 1000

/** What asking for unknown agents needs. */
export interface LookupsParts {
  readonly clock: Clock
  readonly ids: IdSource
  readonly peers: Peers
  readonly ownCards: OwnCards
  readonly peerCards: PeerCards
  readonly visibility: Visibility
}

/** Asks the connected members for an agent that this node does not know, once and bounded. */
export class Lookups {
  readonly #parts: LookupsParts
  readonly #open = new Map<string, { readonly missing: Set<NodeId>; readonly done: () => void }>()

  constructor(parts: LookupsParts) {
    this.#parts = parts
  }

  /** Resolves when every connected member has answered, or after a second; what they know is in the registry then. */
  async ask(agentId: string): Promise<void> {
    const { clock, ids, peers } = this.#parts
    const asked = peers.online()
    if (asked.length === 0 || agentId === '') return
    const id = ids.next('look')
    await new Promise<void>((resolve) => {
      const timer: Timer = clock.after(LOOKUP_MS, done)
      const open = this.#open
      function done(): void {
        clock.clear(timer)
        open.delete(id)
        resolve()
      }
      open.set(id, { missing: new Set(asked), done })
      for (const peer of asked) this.#send(peer, 'lookup', { id, agentId: agentId.slice(0, 64), capability: null })
    })
  }

  /** A member asks: it gets the cards of this node's own agents that fit and that it may find. */
  onLookup(peer: NodeId, { id, agentId }: ControlBody<'lookup'>): void {
    const { ownCards, visibility } = this.#parts
    const cards = ownCards.own().filter((one) => one.body.id === agentId && visibility.toPeer(one.body, peer))
    this.#send(peer, 'found', { id, cards })
  }

  /** A member answers. */
  onFound(peer: NodeId, { id, cards }: ControlBody<'found'>): void {
    const open = this.#open.get(id)
    if (open?.missing.delete(peer) !== true) return
    this.#parts.peerCards.fromPeer(peer, cards, null)
    if (open.missing.size === 0) open.done()
  }

  #send<N extends 'lookup' | 'found'>(peer: NodeId, name: N, body: ControlBody<N>): void {
    try {
      this.#parts.peers.send(peer, { kind: 'control', name, body })
    } catch {
      // The peer went in this moment: as with one that does not answer, the second runs out.
    }
  }
}
