import { messageOf } from '../kit/errors.js'
import type { Unsubscribe } from '../kit/events.js'
import type { NodeId } from '../kit/ids.js'
import type { ControlBody } from '../domain/channel/control.js'
import type { SignedCard } from '../domain/membership/types.js'
import type { MemberLog, Membership } from '../ports/mesh.js'
import type { Telemetry } from '../ports/telemetry.js'
import type { AgentHost } from './agents.js'
import type { Cards } from './cards.js'
import type { Peers } from './peers.js'

/** Bytes of cards in one control message. */
const CARDS_BYTES = 96 * 1024

/** What telling of cards needs. */
export interface CardNewsParts {
  readonly telemetry: Telemetry
  readonly log: MemberLog
  readonly membership: Membership
  readonly agents: AgentHost
  readonly cards: Cards
  readonly peers: Peers
}

/** Keeps the cards of this node up to date with its agents, its certificate and the log, and tells connected peers of them. */
export class CardNews {
  readonly #parts: CardNewsParts
  #serial = -1
  #stopLog: Unsubscribe = () => {}

  constructor(parts: CardNewsParts) {
    this.#parts = parts
  }

  /** Makes the cards and begins to follow the log. */
  async start(): Promise<void> {
    const { log, membership } = this.#parts
    await this.#refresh()
    this.#serial = membership.certificate().body.serial
    this.#stopLog = log.onChange((view) => {
      this.#parts.cards.fromView(view)
      const { serial } = membership.certificate().body
      if (serial === this.#serial) return
      this.#serial = serial
      this.refreshSoon()
    })
  }

  /** Follows the log no longer. */
  stop(): void {
    this.#stopLog()
  }

  /** The agents or the certificate changed: new cards for everybody. */
  refreshSoon(): void {
    this.#refresh().catch((error: unknown) => this.#note('the cards could not be made anew', error))
  }

  /** Tells one peer of all cards of this node. */
  tellAll(peer: NodeId): void {
    const { cards } = this.#parts
    this.#tell([peer], cards.own(), true)
    cards.publish()
  }

  async #refresh(): Promise<void> {
    const { cards, agents, peers } = this.#parts
    const { changed, removed } = await cards.refresh(agents.definitions())
    const online = peers.online()
    if (changed.length > 0) this.#tell(online, changed, false)
    if (removed.length > 0) for (const peer of online) this.#send(peer, 'cards-removed', { agents: removed })
  }

  /** In as few frames as fit. `full` only holds when one frame carries them all. */
  #tell(to: readonly NodeId[], signed: readonly SignedCard[], full: boolean): void {
    const groups = grouped(signed)
    for (const peer of to) for (const cards of groups) this.#send(peer, 'cards', { cards, full: full && groups.length === 1 })
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
    const size = JSON.stringify(card).length
    if (bytes + size > CARDS_BYTES) {
      groups.push([])
      bytes = 0
    }
    groups.at(-1)?.push(card)
    bytes += size
  }
  return groups
}
