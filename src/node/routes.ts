import type { Clock } from '../kit/clock.js'
import type { IdSource, NodeId } from '../kit/ids.js'
import { RateTable, TokenBucket } from '../kit/rate.js'
import type { ControlBody } from '../domain/channel/control.js'
import { ENVELOPE_LIMITS } from '../domain/envelope/limits.js'
import { isActive } from '../domain/membership/view.js'
import { chooseWay } from '../domain/routing/hops.js'
import type { WayOffer } from '../domain/routing/hops.js'
import { RouteTable } from '../domain/routing/route-table.js'
import type { MemberLog } from '../ports/mesh.js'
import type { Directory } from './directory.js'
import type { Peers } from './peers.js'
import { Questions } from './questions.js'

/** How long the neighbours may take to answer, in milliseconds. */
const SEARCH_MS = 1000
/** The same for those who are asked on behalf of another. */
const FURTHER_SEARCH_MS = 400
/** A node to which no way was found is not looked for again so soon, in milliseconds. */
const NO_WAY_MS = 5000
/** Nodes to which no way was found that are remembered. */
const MAX_NO_WAY = 1024
/** How often a neighbour may ask; how often this node asks its own neighbours for it, and for all. */
const QUESTIONS = { perSecond: 10, burst: 50 }
const FURTHER_SEARCHES = { perSecond: 2, burst: 10 }
const ALL_SEARCHES = { perSecond: 10, burst: 50 }

/** What finding ways needs. */
export interface RoutesParts {
  readonly clock: Clock
  readonly ids: IdSource
  readonly self: NodeId
  readonly log: MemberLog
  readonly peers: Peers
  readonly directory: Directory
  /** Does this node carry messages of others? */
  readonly settings: { readonly forward: boolean }
}

/** Whom to ask for a way. */
interface Search {
  /** Those who are asked may ask their neighbours in turn. */
  readonly isFurther: boolean
  /** Who wants to know. */
  readonly except: NodeId
  readonly patienceMs: number
}

/** Ways to members without a link: asks the neighbours who has one, and remembers for a while. */
export class Routes {
  readonly #parts: RoutesParts
  readonly #table = new RouteTable()
  readonly #noWay = new Map<NodeId, number>()
  readonly #finding = new Map<NodeId, Promise<boolean>>()
  readonly #questions: Questions<'way'>
  readonly #questionRate: RateTable
  readonly #searches: RateTable
  readonly #allSearches: TokenBucket

  constructor(parts: RoutesParts) {
    this.#parts = parts
    this.#questions = new Questions(parts, 'way')
    this.#questionRate = new RateTable(QUESTIONS, parts.clock)
    this.#searches = new RateTable(FURTHER_SEARCHES, parts.clock)
    this.#allSearches = new TokenBucket(ALL_SEARCHES, parts.clock)
  }

  /** The neighbour that takes messages for a node; null when no way is known. */
  next(target: NodeId): NodeId | null {
    const via = this.#table.get(target, this.#parts.clock.monotonic())?.via ?? null
    return via !== null && this.#parts.peers.isOnline(via) ? via : null
  }

  /** A message of that node, which it signed, came by this neighbour. */
  learn(target: NodeId, via: NodeId, hops: number): void {
    if (target !== via) this.#table.set(target, { via, hops }, this.#parts.clock.monotonic())
  }

  /** The neighbour cannot reach the node. */
  drop(target: NodeId, via: NodeId): void {
    this.#table.drop(target, via)
  }

  /** Looks for a way: first one neighbour long, then two. Resolves whether one is known; searches for the same node are one. */
  find(target: NodeId): Promise<boolean> {
    if (this.next(target) !== null) return Promise.resolve(true)
    if (this.#isInVain(target)) return Promise.resolve(false)
    const finding = this.#finding.get(target) ?? this.#find(target).finally(() => this.#finding.delete(target))
    this.#finding.set(target, finding)
    return finding
  }

  /** A neighbour asks for a way. */
  onWay(peer: NodeId, question: ControlBody<'way'>): void {
    this.#answer(peer, question).then(
      (further) => this.#questions.answer(peer, 'way-found', { id: question.id, further }),
      () => {}
    )
  }

  /** A neighbour answers. */
  onWayFound(peer: NodeId, answer: ControlBody<'way-found'>): void {
    this.#questions.answered(peer, answer)
  }

  /** A peer has a link now: what was not to be found may be. */
  onOnline(peer: NodeId): void {
    this.#table.dropNode(peer)
    this.#noWay.clear()
  }

  /** A peer is gone, and with it every way through it. */
  onOffline(peer: NodeId): void {
    this.#table.dropNode(peer)
  }

  async #find(target: NodeId): Promise<boolean> {
    const { self } = this.#parts
    for (const isFurther of [false, true]) {
      if (await this.#search(target, { isFurther, except: self, patienceMs: SEARCH_MS })) return true
    }
    this.#noWay.delete(target)
    this.#noWay.set(target, this.#parts.clock.monotonic() + NO_WAY_MS)
    for (const oldest of this.#noWay.keys()) {
      if (this.#noWay.size <= MAX_NO_WAY) break
      this.#noWay.delete(oldest)
    }
    return false
  }

  /** How many nodes lie between this one and the target, for a neighbour that asks; null for no way. */
  async #answer(peer: NodeId, { to, isFurther }: ControlBody<'way'>): Promise<number | null> {
    const { peers, log, settings } = this.#parts
    const isMember = isActive(log.view(), to)
    if (!settings.forward || !isMember || to === peer || !this.#questionRate.take(peer)) return null
    if (peers.isOnline(to)) return 0
    const known = this.#further(to, peer)
    if (known !== null || !isFurther || this.#isInVain(to)) return known
    if (!this.#searches.take(peer) || !this.#allSearches.take()) return known
    await this.#search(to, { isFurther: false, except: peer, patienceMs: FURTHER_SEARCH_MS })
    return this.#further(to, peer)
  }

  /** No way leads through who asks. */
  #further(to: NodeId, except: NodeId): number | null {
    const route = this.next(to) === null ? null : this.#table.get(to, this.#parts.clock.monotonic())
    return route === null || route.via === except || route.hops >= ENVELOPE_LIMITS.maxHops ? null : route.hops
  }

  async #search(to: NodeId, { isFurther, except, patienceMs }: Search): Promise<boolean> {
    const { peers, self, directory } = this.#parts
    const own = directory.certificate(self)
    if (own === null) return false
    const offers: WayOffer[] = []
    const asked = peers.online().filter((peer) => peer !== except && peer !== to)
    await this.#questions.ask(asked, {
      patienceMs,
      body: (id) => ({ id, to, isFurther }),
      onAnswer: (via, { further }) => {
        const power = directory.certificate(via)
        if (further !== null && power !== null) offers.push({ via, further, power })
      }
    })
    const best = chooseWay(own, offers)
    if (best !== null) this.learn(to, best.via, best.further + 1)
    return best !== null
  }

  #isInVain(target: NodeId): boolean {
    return (this.#noWay.get(target) ?? 0) > this.#parts.clock.monotonic()
  }
}
