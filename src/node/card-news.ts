import { messageOf } from '../kit/errors.js'
import { utf8 } from '../kit/ids.js'
import type { NodeId } from '../kit/ids.js'
import { type ControlBody, MAX_NAMED_AGENTS } from '../domain/channel/control.js'
import type { SignedCard } from '../domain/membership/types.js'
import type { Telemetry } from '../ports/telemetry.js'
import type { AgentHost } from './agents.js'
import type { OwnCards } from './own-cards.js'
import type { Peers } from './peers.js'
import type { Visibility } from './visibility.js'

/** Bytes of cards in one control message. */
const CARDS_BYTES = 96 * 1024

/** What telling of cards needs. */
export interface CardNewsParts {
  readonly telemetry: Telemetry
  readonly agents: AgentHost
  readonly ownCards: OwnCards
  readonly peers: Peers
  readonly visibility: Visibility
}

/** Keeps the cards of this node in line with its agents and its certificate, and tells connected peers of them. */
export class CardNews {
  readonly #parts: CardNewsParts
  #turn: Promise<unknown> = Promise.resolve()
  #waiting: Promise<void> | null = null

  constructor(parts: CardNewsParts) {
    this.#parts = parts
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

  async #refresh(): Promise<void> {
    const { ownCards, agents, peers } = this.#parts
    const { changed, removed } = await ownCards.refresh(agents.definitions())
    for (const peer of peers.online()) {
      this.#tell(peer, this.#toldTo(peer, changed), null)
      if (removed.length > 0) this.#send(peer, 'cards-removed', { agents: removed.slice(0, MAX_NAMED_AGENTS) })
    }
  }

  /** The same in the background. */
  refreshSoon(): void {
    this.refresh().catch((error: unknown) => this.#note('the cards could not be made anew', error))
  }

  /** Tells one peer of all cards of this node, but for those of sandboxes that are none of its business. */
  tellAll(peer: NodeId): void {
    const own = this.#toldTo(peer, this.#parts.ownCards.own())
    const all = own.slice(0, MAX_NAMED_AGENTS).map((one) => one.body.id)
    this.#tell(peer, own, all)
  }

  #toldTo(peer: NodeId, cards: readonly SignedCard[]): readonly SignedCard[] {
    return cards.filter(({ body }) => this.#parts.visibility.isToldTo(body, peer))
  }

  /** In as few frames as fit; the last one says which agents there are in all. */
  #tell(peer: NodeId, signed: readonly SignedCard[], all: readonly string[] | null): void {
    const groups = grouped(signed)
    for (const [index, cards] of groups.entries()) {
      const isLast = index === groups.length - 1
      this.#send(peer, 'cards', { cards, all: isLast && all !== null ? [...all] : null })
    }
  }

  #send<N extends 'cards' | 'cards-removed'>(peer: NodeId, name: N, body: ControlBody<N>): void {
    try {
      this.#parts.peers.send(peer, { kind: 'control', name, body })
    } catch (error) {
      this.#note('a peer could not be told of cards', error)
    }
  }

  #note(message: string, error: unknown): void {
    this.#parts.telemetry.log('warn', message, { reason: messageOf(error) })
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
