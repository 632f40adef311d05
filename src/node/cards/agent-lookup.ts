import type { Clock } from '../../kit/clock.js'
import type { IdSource, NodeId } from '../../kit/ids.js'
import type { ControlBody } from '../../domain/channel/control.js'
import type { OwnCards } from './local-cards.js'
import type { PeerCards } from './remote-cards.js'
import type { Peers } from '../peers/peer-table.js'
import { Questions } from '../peers/query.js'
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
  readonly #questions: Questions<'lookup'>

  constructor(parts: LookupsParts) {
    this.#parts = parts
    this.#questions = new Questions(parts, 'lookup')
  }

  /** Resolves when every connected member has answered, or after a second; what they know is in the registry then. */
  async ask(agentId: string): Promise<void> {
    const { peers, peerCards } = this.#parts
    await this.#questions.ask(agentId === '' ? [] : peers.online(), {
      patienceMs: LOOKUP_MS,
      body: (id) => ({ id, agentId: agentId.slice(0, 64), capability: null }),
      onAnswer: (peer, { cards }) => peerCards.fromPeer(peer, cards, null)
    })
  }

  /** A member asks: it gets the cards of this node's own agents that fit and that it may find. */
  onLookup(peer: NodeId, { id, agentId }: ControlBody<'lookup'>): void {
    const { ownCards, visibility } = this.#parts
    const cards = ownCards.own().filter((one) => one.body.id === agentId && visibility.toPeer(one.body, peer))
    this.#questions.answer(peer, 'found', { id, cards })
  }

  /** A member answers. */
  onFound(peer: NodeId, answer: ControlBody<'found'>): void {
    this.#questions.answered(peer, answer)
  }
}
