import type { Clock } from '../../kit/clock.js'
import type { IdSource, NodeId } from '../../kit/ids.js'
import { RateTable, TokenBucket } from '../../kit/rate.js'
import type { ControlBody } from '../../domain/channel/control.js'
import { ENVELOPE_LIMITS } from '../../domain/envelope/limits.js'
import { isActive } from '../../domain/membership/view.js'
import { chooseRoute } from '../../domain/routing/hops.js'
import type { RouteOffer } from '../../domain/routing/hops.js'
import { NegativeRouteCache } from '../../domain/routing/negative-route-cache.js'
import { RouteTable } from '../../domain/routing/route-table.js'
import type { Route } from '../../domain/routing/route-table.js'
import type { MemberLog } from '../../ports/mesh.js'
import type { Directory } from '../cards/directory.js'
import type { PeerTable } from '../peers/peer-table.js'
import { Queries } from '../peers/query.js'

/** How long a neighbour that had a route but relayed nothing ranks after others, in milliseconds. */
const DOUBT_MS = 60_000
/** How long the neighbours may take to answer, in milliseconds. */
const SEARCH_MS = 1000
/** The same for searches on behalf of another node. */
const FURTHER_SEARCH_MS = 400
/**
 * Rates of questions from a neighbour, of searches on its behalf, and of all such searches. They are lower than the
 * rate that neighbours answer, to leave room for own questions. Once in 30 s each neighbour gets a search, whatever the
 * others use.
 */
const QUESTIONS = { perSecond: 10, burst: 50 }
const FURTHER_SEARCHES = { perSecond: 2, burst: 10 }
const ALL_SEARCHES = { perSecond: 5, burst: 25 }
const ASSURED_SEARCHES = { perSecond: 1 / 30, burst: 1 }

/** Dependencies of route discovery. */
export interface RouteDiscoveryDeps {
  readonly clock: Clock
  readonly ids: IdSource
  readonly self: NodeId
  readonly log: MemberLog
  readonly peers: PeerTable
  readonly directory: Directory
  /** Does this node relay messages of others? */
  readonly settings: { readonly forward: boolean }
}

/** A question to the neighbours for a route. */
interface RouteSearch {
  /** May the neighbours ask their own neighbours in turn? */
  readonly isFurther: boolean
  /** The node that wants the route; it is not asked. */
  readonly except: NodeId
  readonly patienceMs: number
  /** Called before any neighbour is asked; false: none is asked. */
  mayAsk?(): boolean
}

/** Routes to members without a link: asks the neighbours for them, and remembers them for a while. */
export class RouteDiscovery {
  readonly #deps: RouteDiscoveryDeps
  readonly #table = new RouteTable()
  /** The neighbour that last relayed frames of a node: replies may take the same route. */
  readonly #back = new RouteTable()
  readonly #negativeRoutes = new NegativeRouteCache()
  readonly #doubts = new NegativeRouteCache(DOUBT_MS)
  readonly #finding = new Map<NodeId, Promise<boolean>>()
  /** The latest searches on behalf of other nodes. */
  readonly #searching = new Map<NodeId, Promise<boolean>>()
  readonly #questions: Queries<'way'>
  readonly #questionRate: RateTable
  readonly #searches: RateTable
  readonly #allSearches: TokenBucket
  readonly #assured: RateTable

  constructor(deps: RouteDiscoveryDeps) {
    this.#deps = deps
    this.#questions = new Queries(deps, 'way')
    this.#questionRate = new RateTable(QUESTIONS, deps.clock)
    this.#searches = new RateTable(FURTHER_SEARCHES, deps.clock)
    this.#allSearches = new TokenBucket(ALL_SEARCHES, deps.clock)
    this.#assured = new RateTable(ASSURED_SEARCHES, deps.clock)
  }

  /** The neighbour that relays messages to a node; null when no route is known. */
  next(target: NodeId): NodeId | null {
    return this.#linked(this.#table, target)
  }

  /** The same for messages whose rights do not depend on their relays: replies, acknowledgements, control messages. */
  back(target: NodeId): NodeId | null {
    return this.next(target) ?? this.#linked(this.#back, target)
  }

  /** A frame of a node came through this neighbour. */
  onAnswer(origin: NodeId, { via, hops }: Route): void {
    this.#back.set(origin, { via, hops }, this.#deps.clock.monotonic())
  }

  #linked(table: RouteTable, target: NodeId): NodeId | null {
    const via = table.get(target, this.#deps.clock.monotonic())?.via ?? null
    return via !== null && this.#deps.peers.isOnline(via) ? via : null
  }

  /** The neighbour cannot reach the node, whatever it reports: others with a route come first for a while. */
  drop(target: NodeId, via: NodeId): void {
    for (const table of [this.#table, this.#back]) table.drop(target, via)
    this.#doubts.add({ neighbour: via, target, isFurther: false }, this.#deps.clock.monotonic())
  }

  /**
   * Looks for a route: first through one neighbour, then two. Resolves to whether one is known. Searches for one node
   * are shared.
   */
  find(target: NodeId): Promise<boolean> {
    return this.next(target) === null ? this.#sought(target) : Promise.resolve(true)
  }

  /** Looks for a route again; forgets the known one when no neighbour confirms it. Resolves to whether there is one. */
  async confirm(target: NodeId): Promise<boolean> {
    const via = this.next(target)
    const isFound = await this.#sought(target)
    if (!isFound && via !== null) this.#table.drop(target, via)
    return isFound
  }

  /** A neighbour asks for a route. */
  onRouteRequest(peer: NodeId, question: ControlBody<'way'>): void {
    this.#answer(peer, question).then(
      (further) => this.#questions.answer(peer, 'way-found', { id: question.id, further }),
      () => {}
    )
  }

  /** A neighbour answers a question. */
  onRouteFound(peer: NodeId, answer: ControlBody<'way-found'>): void {
    this.#questions.answered(peer, answer)
  }

  /** A peer has a link now: it may be asked. */
  onOnline(peer: NodeId): void {
    this.#dropNode(peer)
  }

  /** A peer is gone, and with it every route through it. */
  onOffline(peer: NodeId): void {
    this.#dropNode(peer)
  }

  #dropNode(peer: NodeId): void {
    for (const table of [this.#table, this.#back]) table.dropNode(peer)
    this.#negativeRoutes.drop(peer)
  }

  #sought(target: NodeId): Promise<boolean> {
    const finding = this.#finding.get(target) ?? this.#find(target).finally(() => this.#finding.delete(target))
    this.#finding.set(target, finding)
    return finding
  }

  async #find(target: NodeId): Promise<boolean> {
    const { self } = this.#deps
    for (const isFurther of [false, true]) {
      if (await this.#search(target, { isFurther, except: self, patienceMs: SEARCH_MS })) return true
    }
    return false
  }

  /** Nodes between this one and the target, for a neighbour that asks; null when there is no route. */
  async #answer(peer: NodeId, { to, isFurther }: ControlBody<'way'>): Promise<number | null> {
    const { peers, log, settings } = this.#deps
    const isMember = isActive(log.view(), to)
    if (!settings.forward || !isMember || to === peer || !this.#questionRate.take(peer)) return null
    if (peers.isOnline(to)) return 0
    const known = this.#further(to, peer)
    if (known !== null || !isFurther) return known
    // A search under way for another node answers this question too.
    await this.#searching.get(to)
    const mayAsk = (): boolean => this.#searches.take(peer) && (this.#allSearches.take() || this.#assured.take(peer))
    const search = this.#search(to, { isFurther: false, except: peer, patienceMs: FURTHER_SEARCH_MS, mayAsk })
    this.#searching.set(to, search)
    await search.finally(() => this.#searching.get(to) === search && this.#searching.delete(to))
    return this.#further(to, peer)
  }

  /** A route back through the asking neighbour does not count. */
  #further(to: NodeId, except: NodeId): number | null {
    const route = this.next(to) === null ? null : this.#table.get(to, this.#deps.clock.monotonic())
    return route === null || route.via === except || route.hops >= ENVELOPE_LIMITS.maxHops ? null : route.hops
  }

  /** Asks the neighbours that may have a route, and remembers the neighbours without one. */
  async #search(to: NodeId, { isFurther, except, patienceMs, mayAsk = () => true }: RouteSearch): Promise<boolean> {
    const { peers, self, directory, clock } = this.#deps
    const own = directory.certificate(self)
    const isVain = (neighbour: NodeId): boolean =>
      this.#negativeRoutes.has({ neighbour, target: to, isFurther }, clock.monotonic())
    const asked = peers.online().filter((peer) => peer !== except && peer !== to && !isVain(peer))
    if (own === null || asked.length === 0 || !mayAsk()) return false
    const offers: RouteOffer[] = []
    const silent = new Set(asked)
    const noRoute = (neighbour: NodeId): void =>
      this.#negativeRoutes.add({ neighbour, target: to, isFurther }, clock.monotonic())
    await this.#questions.ask(asked, {
      patienceMs,
      body: (id) => ({ id, to, isFurther }),
      onAnswer: (via, { further }) => {
        silent.delete(via)
        const power = directory.certificate(via)
        const isDoubted = this.#doubts.has({ neighbour: via, target: to, isFurther: false }, clock.monotonic())
        if (further !== null && power !== null) offers.push({ via, further, power, isDoubted })
        else noRoute(via)
      }
    })
    // A slow neighbour may still have a route for a node that waits longer.
    if (except === self) for (const one of silent) noRoute(one)
    const best = chooseRoute(own, offers)
    if (best !== null) this.#table.set(to, { via: best.via, hops: best.further + 1 }, clock.monotonic())
    return best !== null
  }
}
