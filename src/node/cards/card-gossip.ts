import type { Clock, Timer } from '../../kit/clock.js'
import { messageOf } from '../../kit/errors.js'
import { utf8 } from '../../kit/ids.js'
import type { NodeId } from '../../kit/ids.js'
import type { AgentProvider } from '../../kit/names/provider.js'
import { type ControlBody, MAX_NAMED_AGENTS } from '../../domain/channel/control.js'
import type { SignedCard } from '../../domain/membership/types.js'
import type { Telemetry } from '../../ports/telemetry.js'
import type { AgentHost } from '../agents/agent-host.js'
import type { LocalCards } from './local-cards.js'
import type { PeerTable } from '../peers/peer-table.js'
import type { Visibility } from './visibility.js'

/** Bytes of cards in one control message. */
const CARDS_BYTES = 96 * 1024
/** Delay before all cards are sent again to a connected peer after a failed send, in milliseconds. */
const RETELL_MS = 2000

/** Delay before peers get the agents that cannot work, so that findings of one round of checks go together, in ms. */
const HEALTH_PACE_MS = 200

/** Dependencies of {@link CardGossip}. */
export interface CardGossipDeps {
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly agents: AgentHost
  readonly localCards: LocalCards
  readonly peers: PeerTable
  readonly visibility: Visibility
}

/** Updates the cards of this node to its agents and its certificate, and sends them to connected peers. */
export class CardGossip {
  readonly #deps: CardGossipDeps
  #turn: Promise<unknown> = Promise.resolve()
  #waiting: Promise<void> | null = null
  /** Peers after a failed send, each with the timer of the next try. */
  readonly #untold = new Map<NodeId, Timer>()
  #healthTimer: Timer | null = null
  /** The agents that cannot work, as the peers last got them. */
  #unable: readonly string[] = []
  /** Peers may have a list. */
  #wasUnable = false

  constructor(deps: CardGossipDeps) {
    this.#deps = deps
  }

  /**
   * Makes new cards after a change of agents or certificate, for all peers.
   * @throws NodeError DISK_FULL, NO_PERMISSION.
   */
  refresh(): Promise<void> {
    // Callers share a waiting refresh: it reads the agents when it begins.
    this.#waiting ??= this.#turn.then(() => {
      this.#waiting = null
      const turn = this.#refresh()
      this.#turn = turn.catch(() => {})
      return turn
    })
    return this.#waiting
  }

  /** Cancels all further tries. */
  close(): void {
    for (const timer of this.#untold.values()) this.#deps.clock.clear(timer)
    this.#untold.clear()
    this.#deps.clock.clear(this.#healthTimer)
  }

  /** Sends the agents that cannot work to all peers, unless they have the same list. */
  healthChanged(): void {
    this.#healthTimer ??= this.#deps.clock.after(HEALTH_PACE_MS, () => {
      this.#healthTimer = null
      const unable = this.#deps.agents.unable()
      if (unable.join() === this.#unable.join()) return
      this.#unable = unable
      this.#wasUnable = true
      for (const peer of this.#deps.peers.online()) this.#tellUnable(peer)
    })
  }

  #tellUnable(peer: NodeId): void {
    const named = new Set(this.#unable)
    const own = this.#shareWith(peer, this.#deps.localCards.own()).map(({ body }) => body.id)
    const unable = own.filter((id) => named.has(id)).slice(0, MAX_NAMED_AGENTS)
    this.#send(peer, 'cards', { cards: [], all: null, unable })
  }

  async #refresh(): Promise<void> {
    const { localCards, agents, peers } = this.#deps
    const { changed, removed } = await localCards.refresh(agents.definitions())
    for (const peer of peers.online()) {
      // Removals make room first: a peer takes no more cards of a node than the log does.
      if (removed.length > 0) this.#send(peer, 'cards-removed', { agents: removed.slice(0, MAX_NAMED_AGENTS) })
      this.#tell(peer, this.#shareWith(peer, changed), null)
    }
    // A new version of an agent, unchecked yet, may take the place of one that cannot work.
    this.healthChanged()
  }

  /** {@link refresh} in the background. Resolves when it has ended; never rejects. */
  refreshSoon(): Promise<void> {
    return this.refresh().catch((error: unknown) => this.#note('the cards could not be made anew', error))
  }

  /** Sends one peer all cards of this node, except those of sandboxes it may not see. */
  tellAll(peer: NodeId): void {
    const own = this.#shareWith(peer, this.#deps.localCards.own())
    const all = own.slice(0, MAX_NAMED_AGENTS).map((one) => one.body.id)
    this.#tell(peer, own, all)
    // On a former link it may have got others.
    if (this.#wasUnable) this.#tellUnable(peer)
  }

  #shareWith(peer: NodeId, cards: readonly SignedCard[]): readonly SignedCard[] {
    return cards.filter(({ body }) => this.#deps.visibility.isVisibleTo(body, peer))
  }

  /** Sends the cards in as few frames as fit. A last frame of its own lists all agents, since their ids may fill it. */
  #tell(peer: NodeId, signed: readonly SignedCard[], all: readonly string[] | null): void {
    const { localCards } = this.#deps
    const notices = signed.map((card) => ({ card, provider: localCards.providerOf(card.body) }))
    for (const group of grouped(notices)) {
      const providers = group.flatMap(({ card: { body }, provider }) =>
        provider === null ? [] : [{ id: body.id, revision: body.revision, provider }]
      )
      this.#send(peer, 'cards', {
        cards: group.map(({ card }) => card),
        all: null,
        ...(providers.length === 0 ? {} : { providers })
      })
    }
    if (all !== null && all.length > 0) this.#send(peer, 'cards', { cards: [], all: [...all] })
  }

  #send<N extends 'cards' | 'cards-removed'>(peer: NodeId, name: N, body: ControlBody<N>): void {
    try {
      this.#deps.peers.send(peer, { kind: 'control', name, body })
    } catch (error) {
      this.#note('a peer could not be told of cards', error)
      this.#tellAgain(peer)
    }
  }

  /**
   * Plans to send all cards, which covers the failed ones. A peer that is offline by then gets them when it comes back.
   */
  #tellAgain(peer: NodeId): void {
    const { clock, peers } = this.#deps
    if (this.#untold.has(peer)) return
    const timer = clock.after(RETELL_MS, () => {
      this.#untold.delete(peer)
      if (peers.isOnline(peer)) this.tellAll(peer)
    })
    this.#untold.set(peer, timer)
  }

  #note(message: string, error: unknown): void {
    this.#deps.telemetry.log('warn', message, { reason: messageOf(error) })
  }
}

/** A card with the provider of its agent. */
interface CardNotice {
  readonly card: SignedCard
  readonly provider: AgentProvider | null
}

function grouped(cards: readonly CardNotice[]): CardNotice[][] {
  const groups: CardNotice[][] = []
  let bytes = CARDS_BYTES
  for (const card of cards) {
    const size = utf8(JSON.stringify(card)).byteLength
    if (bytes + size > CARDS_BYTES) {
      groups.push([])
      bytes = 0
    }
    groups.at(-1)?.push(card)
    bytes += size
  }
  return groups
}
