import type { Clock } from '../../kit/clock.js'
import type { IdSource, NodeId } from '../../kit/ids.js'
import type { ControlBody } from '../../domain/channel/control.js'
import type { LocalCards } from './local-cards.js'
import type { RemoteCards } from './remote-cards.js'
import type { PeerTable } from '../peers/peer-table.js'
import { Queries } from '../peers/query.js'
import type { Visibility } from './visibility.js'

/** Time limit of the members' answers, in milliseconds. */
const LOOKUP_MS = 1000

/** Dependencies of {@link AgentLookup}. */
export interface AgentLookupDeps {
  readonly clock: Clock
  readonly ids: IdSource
  readonly peers: PeerTable
  readonly localCards: LocalCards
  readonly remoteCards: RemoteCards
  readonly visibility: Visibility
}

/** Asks the connected members for an unknown agent, once and bounded. */
export class AgentLookup {
  readonly #deps: AgentLookupDeps
  readonly #questions: Queries<'lookup'>

  constructor(deps: AgentLookupDeps) {
    this.#deps = deps
    this.#questions = new Queries(deps, 'lookup')
  }

  /** Resolves when every connected member has answered, or after a second; their cards are in the registry then. */
  async ask(agentId: string): Promise<void> {
    const { peers, remoteCards } = this.#deps
    await this.#questions.ask(agentId === '' ? [] : peers.online(), {
      patienceMs: LOOKUP_MS,
      body: (id) => ({ id, agentId: agentId.slice(0, 64), capability: null }),
      onAnswer: (peer, { cards }) => remoteCards.fromPeer(peer, cards, null)
    })
  }

  /** Answers a member with the cards of this node's agents that match and that the member may find. */
  onLookup(peer: NodeId, { id, agentId }: ControlBody<'lookup'>): void {
    const { localCards, visibility } = this.#deps
    const cards = localCards.own().filter((one) => one.body.id === agentId && visibility.toPeer(one.body, peer))
    this.#questions.answer(peer, 'found', { id, cards })
  }

  /** Takes the answer of a member. */
  onFound(peer: NodeId, answer: ControlBody<'found'>): void {
    this.#questions.answered(peer, answer)
  }
}
