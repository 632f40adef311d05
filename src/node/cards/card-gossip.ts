import type { Clock, Timer } from '../../kit/clock.js'
import { messageOf } from '../../kit/errors.js'
import { utf8 } from '../../kit/ids.js'
import type { NodeId } from '../../kit/ids.js'
import { type ControlBody, MAX_NAMED_AGENTS } from '../../domain/channel/control.js'
import type { SignedCard } from '../../domain/membership/types.js'
import type { Telemetry } from '../../ports/telemetry.js'
import type { AgentHost } from '../agents/agent-host.js'
import type { LocalCards } from './local-cards.js'
import type { PeerTable } from '../peers/peer-table.js'
import type { Visibility } from './visibility.js'

/** Bytes of cards in one control message. */
const CARDS_BYTES = 96 * 1024
/** A connected peer that could not be told of cards is told of all of them again after so long, in milliseconds. */
const RETELL_MS = 2000

/** What telling of cards needs. */
export interface CardGossipDeps {
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly agents: AgentHost
  readonly localCards: LocalCards
  readonly peers: PeerTable
  readonly visibility: Visibility
}

/** Keeps the cards of this node in line with its agents and its certificate, and tells connected peers of them. */
export class CardGossip {
  readonly #deps: CardGossipDeps
  #turn: Promise<unknown> = Promise.resolve()
  #waiting: Promise<void> | null = null
  /** Peers that lack some of what they were to be told, each with the timer of the next try. */
  readonly #untold = new Map<NodeId, Timer>()

  constructor(deps: CardGossipDeps) {
    this.#deps = deps
  }

  /** The agents or the certificate changed: new cards for everybody. @throws NodeError DISK_FULL, NO_PERMISSION. */
  refresh(): Promise<void> {
    // Who asks while one waits for its turn shares it: it looks at the agents when it begins.
    this.#waiting ??= this.#turn.then(() => {
      this.#waiting = null
      const turn = this.#refresh()
      this.#turn = turn.catch(() => {})
      return turn
    })
    return this.#waiting
  }

  /** Nobody is told again. */
  close(): void {
    for (const timer of this.#untold.values()) this.#deps.clock.clear(timer)
    this.#untold.clear()
  }

  async #refresh(): Promise<void> {
    const { localCards, agents, peers } = this.#deps
    const { changed, removed } = await localCards.refresh(agents.definitions())
    for (const peer of peers.online()) {
      // First what makes room: a peer takes no more cards of a node than the log does.
      if (removed.length > 0) this.#send(peer, 'cards-removed', { agents: removed.slice(0, MAX_NAMED_AGENTS) })
      this.#tell(peer, this.#shareWith(peer, changed), null)
    }
  }

  /** The same in the background. */
  refreshSoon(): void {
    this.refresh().catch((error: unknown) => this.#note('the cards could not be made anew', error))
  }

  /** Tells one peer of all cards of this node, but for those of sandboxes that are none of its business. */
  tellAll(peer: NodeId): void {
    const own = this.#shareWith(peer, this.#deps.localCards.own())
    const all = own.slice(0, MAX_NAMED_AGENTS).map((one) => one.body.id)
    this.#tell(peer, own, all)
  }

  #shareWith(peer: NodeId, cards: readonly SignedCard[]): readonly SignedCard[] {
    return cards.filter(({ body }) => this.#deps.visibility.isVisibleTo(body, peer))
  }

  /** In as few frames as fit; a last one of its own says which agents there are in all, since their ids may fill it. */
  #tell(peer: NodeId, signed: readonly SignedCard[], all: readonly string[] | null): void {
    for (const cards of grouped(signed)) this.#send(peer, 'cards', { cards, all: null })
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

  /** What did not get through is in what is told of all; a peer that is away by then is told when it comes back. */
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

function grouped(cards: readonly SignedCard[]): SignedCard[][] {
  const groups: SignedCard[][] = []
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
