import type { Clock, Timer } from '../../kit/clock.js'
import type { IdSource, NodeId } from '../../kit/ids.js'
import { RateTable } from '../../kit/rate.js'
import { type ControlBody, MAX_NAMED_LINKS } from '../../domain/channel/control.js'
import { isActive } from '../../domain/membership/view.js'
import type { Links, MemberLog } from '../../ports/mesh.js'
import type { NodeEvents } from '../observe/events.js'
import type { PeerTable } from './peer-table.js'
import { Queries } from './query.js'

/** Interval between probes of members without a link slot, in milliseconds. */
const PROBE_MS = 30_000
/** How long such a member counts as online after a probe found it, in milliseconds. */
const PROOF_MS = 60_000
/** Interval between checks whether a probe is due, in milliseconds; new members without a slot wait no longer. */
const LOOK_MS = 5000
/** Time limit of a neighbour's answer, in milliseconds. */
const ANSWER_MS = 1000
/** Neighbours asked at once; the next ones are asked about members that these do not know. */
const ASKED_AT_ONCE = 8
/** Members without a link to any neighbour that are dialled with one probe. */
const DIALS = 2
/** How often a neighbour may ask; further questions are not answered. */
const QUESTIONS = { perSecond: 1, burst: 10 }

/** Dependencies of {@link Presence}. */
export interface PresenceDeps {
  readonly clock: Clock
  readonly ids: IdSource
  readonly log: MemberLog
  readonly links: Pick<Links, 'beyond'>
  readonly peers: PeerTable
  readonly events: NodeEvents
}

/** When a member was last online: monotonic, and wall-clock time. */
interface Proof {
  readonly at: number
  readonly seenAt: number
}

/**
 * The online members: those with a link, and members without a slot that a neighbour had a link to within a minute.
 * With slots for all members, no neighbour is asked.
 */
export class Presence {
  readonly #deps: PresenceDeps
  readonly #proofs = new Map<NodeId, Proof>()
  /** When unknown members were last dialled. */
  readonly #dialled = new Map<NodeId, number>()
  readonly #questions: Queries<'linked'>
  readonly #questionRate: RateTable
  /** The members of the last probe. */
  #probed: ReadonlySet<NodeId> = new Set()
  #probedAt = Number.NEGATIVE_INFINITY
  #isProbing = false
  /** The number of probes: each one asks the next neighbour first. */
  #turn = 0
  #timer: Timer | null = null

  constructor(deps: PresenceDeps) {
    this.#deps = deps
    this.#questions = new Queries(deps, 'linked')
    this.#questionRate = new RateTable(QUESTIONS, deps.clock)
  }

  /** Starts to probe members without a slot. */
  start(): void {
    this.#timer = this.#deps.clock.every(LOOK_MS, () => this.#look())
  }

  /** Stops all probes. */
  stop(): void {
    this.#deps.clock.clear(this.#timer)
    this.#questions.close()
  }

  /** True with a link, or when found online within a minute. */
  isOnline(node: NodeId): boolean {
    return this.#deps.peers.isOnline(node) || this.#isProven(node)
  }

  /** All online members, see {@link isOnline}. */
  online(): NodeId[] {
    const { peers } = this.#deps
    return [
      ...peers.online(),
      ...[...this.#proofs.keys()].filter((node) => !peers.isOnline(node) && this.#isProven(node))
    ]
  }

  /** When it was last online; null for never since this node started. */
  lastSeenAt(node: NodeId): number | null {
    const [linked, proven] = [this.#deps.peers.lastSeenAt(node), this.#proofs.get(node)?.seenAt ?? null]
    return linked === null || proven === null ? (linked ?? proven) : Math.max(linked, proven)
  }

  /** The last link to a peer closed. `isRest`: it made room for another, and the peer is still online. */
  onOffline(peer: NodeId, isRest: boolean): void {
    if (isRest) this.#prove(peer)
    else this.#proofs.delete(peer)
  }

  /** Answers a neighbour's question for the nodes with a link here. */
  onLinked(peer: NodeId, { id }: ControlBody<'linked'>): void {
    if (!this.#questionRate.take(peer)) return
    const nodes = this.#deps.peers.online().filter((node) => node !== peer)
    this.#questions.answer(peer, 'linked-to', { id, nodes: nodes.slice(0, MAX_NAMED_LINKS) })
  }

  /** Takes a neighbour's list of linked nodes: the sought ones among them are online. */
  onLinkedTo(peer: NodeId, answer: ControlBody<'linked-to'>): void {
    this.#questions.answered(peer, answer)
  }

  #isProven(node: NodeId): boolean {
    const { clock, log } = this.#deps
    const proof = this.#proofs.get(node)
    return proof !== undefined && clock.monotonic() - proof.at <= PROOF_MS && isActive(log.view(), node)
  }

  #prove(node: NodeId): void {
    const { clock, events, peers } = this.#deps
    const isChange = !this.isOnline(node)
    this.#proofs.set(node, { at: clock.monotonic(), seenAt: clock.now() })
    if (isChange && !peers.isOnline(node)) events.add('peer', 'a peer without a link is online', { id: node })
  }

  #look(): void {
    for (const node of [...this.#proofs.keys()]) {
      if (this.#isProven(node)) continue
      this.#proofs.delete(node)
      if (!this.#deps.peers.isOnline(node))
        this.#deps.events.add('peer', 'a peer without a link is offline', { id: node })
    }
    const beyond = this.#deps.links.beyond()
    const isNew = beyond.some((node) => !this.#probed.has(node))
    const isDue = isNew || this.#deps.clock.monotonic() - this.#probedAt >= PROBE_MS
    if (beyond.length > 0 && isDue && !this.#isProbing) void this.#probe(beyond)
  }

  /** Never rejects. */
  async #probe(beyond: readonly NodeId[]): Promise<void> {
    this.#isProbing = true
    this.#probed = new Set(beyond)
    this.#probedAt = this.#deps.clock.monotonic()
    const sought = new Set(beyond)
    const online = this.#deps.peers.online()
    const first = this.#turn++ % Math.max(1, online.length)
    const asked = [...online.slice(first), ...online.slice(0, first)]
    while (sought.size > 0 && asked.length > 0) {
      await this.#questions.ask(asked.splice(0, ASKED_AT_ONCE), {
        patienceMs: ANSWER_MS,
        body: (id) => ({ id }),
        onAnswer: (_peer, { nodes }) => {
          for (const node of nodes) if (sought.delete(node)) this.#prove(node)
        }
      })
    }
    this.#isProbing = false
    this.#dial(sought)
  }

  /**
   * Dials members that no neighbour has a link to, the longest not dialled first: they are offline, or cut off together
   * with others.
   */
  #dial(sought: ReadonlySet<NodeId>): void {
    const { clock, peers } = this.#deps
    for (const node of this.#dialled.keys()) if (!sought.has(node)) this.#dialled.delete(node)
    const since = (node: NodeId): number => this.#dialled.get(node) ?? Number.NEGATIVE_INFINITY
    const chosen = [...sought].sort((a, b) => since(a) - since(b)).slice(0, DIALS)
    for (const node of chosen) {
      this.#dialled.set(node, clock.monotonic())
      peers.reach(node).catch(() => {})
    }
  }
}
