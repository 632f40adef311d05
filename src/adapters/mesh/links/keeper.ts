import type { Clock, Timer } from '../../../kit/clock.js'
import type { NodeId } from '../../../kit/ids.js'
import { AWAIT_MS, dialPlan, keeperPlan, type MissingMember, nextDialAt } from '../../../domain/membership/keeper.js'
import { neighbourPlan, type NeighbourPlan, restMs } from '../../../domain/membership/neighbours.js'
import type { StreamTransport } from '../transport/stream-transport.js'

/** Shortest and longest wait between two looks, in milliseconds. */
const MIN_WAIT_MS = 50
const MAX_WAIT_MS = 30_000
/** Milliseconds after which a dial without a result is not awaited. */
const DIAL_MS = 2500

/** Dependencies of {@link Keeper}. */
export interface KeeperDeps {
  readonly transport: Pick<StreamTransport, 'dial' | 'undial' | 'refresh'>
  readonly clock: Clock
  readonly networkKind: 'public' | 'private' | 'local'
  /** 0..1, drawn for each look, so that nodes do not act in step. Default: Math.random. */
  readonly chance?: () => number
  isConnected(peer: NodeId): boolean
  linkCount(): number
  /** Links at most. Without a free slot it looks for no member. */
  readonly places: number
}

/** Record of a dialled or lost member. */
interface Tries {
  readonly attempts: number
  readonly lastTriedAt: number | null
  /** Was there a link that ended without being closed? */
  readonly isLost: boolean
  /** It joined while this node ran: until when its own dial is awaited. */
  readonly awaitedUntil?: number
}

const UNTRIED: Tries = { attempts: 0, lastTriedAt: null, isLost: false }

/**
 * Keeps links to the wanted members: refreshes discovery and dials known keys, fast while a member is missing. Stock
 * Hyperswarm looks up once and is then silent for ten minutes, and forgets a peer after a few failed dials. The policy
 * is in domain/membership/keeper and, where there are more members than slots, in domain/membership/neighbours.
 */
export class Keeper {
  readonly #deps: KeeperDeps
  readonly #chance: () => number
  readonly #tries = new Map<NodeId, Tries>()
  /** Rests of members that had no slot, or gave theirs up: the end of each, and their number. */
  readonly #resting = new Map<NodeId, { readonly until: number; readonly times: number }>()
  #wanted: ReadonlySet<NodeId> = new Set()
  /** Does it know the members of its start? Further ones are newcomers. */
  #isStarted = false
  #lastRefreshAt: number | null = null
  #refreshes = 0
  #timer: Timer | null = null
  #isClosed = false

  constructor(deps: KeeperDeps) {
    this.#deps = deps
    this.#chance = deps.chance ?? Math.random
    this.#look()
  }

  /** Replaces the list of members that should be linked. */
  want(peers: readonly NodeId[]): void {
    const wanted = new Set(peers)
    const isSame = wanted.size === this.#wanted.size && peers.every((peer) => this.#wanted.has(peer))
    for (const peer of this.#wanted) if (!wanted.has(peer)) this.#forget(peer)
    if (this.#isStarted) for (const peer of peers) if (!this.#wanted.has(peer)) this.#await(peer)
    this.#isStarted = true
    // A member that came or went may have freed a slot.
    if (!isSame) this.#resting.clear()
    // Not in the order of the log: else all nodes had the same neighbours.
    if (!isSame) this.#wanted = new Set(shuffled(peers, this.#chance))
    this.#look()
  }

  /** Should there be a link to the peer now? */
  wants(peer: NodeId): boolean {
    return this.#wanted.has(peer) && (this.#deps.isConnected(peer) || this.#plan().missing.includes(peer))
  }

  /** May the swarm dial the peer that it found? Without slots for all, only a missing one. */
  welcomes(peer: NodeId): boolean {
    const { isOpen, missing } = this.#plan()
    return isOpen || missing.includes(peer)
  }

  /** Wanted members without a link by choice: a slot is missing here or there. */
  beyond(): readonly NodeId[] {
    return this.#plan().beyond
  }

  /** A link to the peer opened. */
  connected(peer: NodeId): void {
    this.#tries.delete(peer)
    this.#resting.delete(peer)
    this.#look()
  }

  /** The link to the peer is gone. */
  lost(peer: NodeId): void {
    if (this.#wanted.has(peer) && !this.#resting.has(peer))
      this.#tries.set(peer, { attempts: 0, lastTriedAt: this.#deps.clock.monotonic(), isLost: true })
    this.#look()
  }

  /** One of the two has no slot for the other, or closed the idle link: the peer is left alone for a while. */
  rest(peer: NodeId): void {
    const times = (this.#resting.get(peer)?.times ?? 0) + 1
    this.#resting.set(peer, { until: this.#deps.clock.monotonic() + restMs(times), times })
    this.#forget(peer)
    this.#look()
  }

  /** Announces and looks up now, e.g. because the bootstrap node is a new one with empty records. */
  refreshNow(): void {
    this.#refresh(this.#deps.clock.monotonic())
  }

  /** Stops it. */
  close(): void {
    this.#isClosed = true
    this.#deps.clock.clear(this.#timer)
  }

  #await(peer: NodeId): void {
    const awaitedUntil = this.#deps.clock.monotonic() + AWAIT_MS * (1 + this.#chance())
    this.#tries.set(peer, { ...UNTRIED, awaitedUntil })
  }

  #forget(peer: NodeId): void {
    this.#tries.delete(peer)
    this.#deps.transport.undial(peer)
  }

  #look(): void {
    const { clock } = this.#deps
    clock.clear(this.#timer)
    if (this.#isClosed) return
    const now = clock.monotonic()
    const plan = this.#plan()
    const missing = this.#missing(plan)
    const dialing = plan.isOpen
      ? 0
      : missing.filter((one) => one.lastTriedAt !== null && now - one.lastTriedAt < DIAL_MS).length
    for (const peer of dialPlan(missing, now, { chance: this.#chance(), dialing })) this.#dial(peer, now)
    const sought = missing.filter(({ awaitedUntil = now }) => awaitedUntil <= now)
    const plannedAt = this.#refreshPlan(sought.length, now)
    const next = Math.min(plannedAt, nextDialAt(missing) ?? Number.POSITIVE_INFINITY) - now
    this.#timer = clock.after(Math.min(MAX_WAIT_MS, Math.max(MIN_WAIT_MS, next)), () => this.#look())
  }

  #plan(): NeighbourPlan {
    const { clock, isConnected, places } = this.#deps
    const members = [...this.#wanted].map((nodeId) => {
      const tries = this.#tries.get(nodeId) ?? UNTRIED
      const returnDials = tries.isLost ? tries.attempts : null
      return {
        nodeId,
        isLinked: isConnected(nodeId),
        restsUntil: this.#resting.get(nodeId)?.until ?? null,
        returnDials
      }
    })
    return neighbourPlan(members, places, clock.monotonic())
  }

  #missing({ missing }: NeighbourPlan): MissingMember[] {
    const sought = new Set(missing)
    for (const peer of [...this.#tries.keys()])
      if (!sought.has(peer) && !this.#deps.isConnected(peer)) this.#forget(peer)
    return missing.map((nodeId) => ({ nodeId, ...(this.#tries.get(nodeId) ?? UNTRIED) }))
  }

  /** Refreshes discovery when it is due. Returns the latest time of the next call. */
  #refreshPlan(missing: number, now: number): number {
    const plan = keeperPlan({
      now,
      network: this.#deps.networkKind,
      missing,
      connected: this.#deps.linkCount(),
      lastRefreshAt: this.#lastRefreshAt,
      attempt: this.#refreshes,
      chance: this.#chance()
    })
    if (plan.refreshNow) this.#refresh(now)
    // A node alone in its mesh must slow down too.
    if (missing === 0 && this.#deps.linkCount() > 0) this.#refreshes = 0
    return plan.nextAt
  }

  #dial(peer: NodeId, now: number): void {
    const { attempts, isLost } = this.#tries.get(peer) ?? UNTRIED
    this.#tries.set(peer, { attempts: attempts + 1, lastTriedAt: now, isLost })
    this.#deps.transport.dial(peer)
  }

  #refresh(now: number): void {
    this.#lastRefreshAt = now
    this.#refreshes++
    this.#deps.transport.refresh()
  }
}

/** The same in another order, each as likely as the others. */
function shuffled<T>(items: readonly T[], chance: () => number): T[] {
  const order = [...items]
  for (let last = order.length - 1; last > 0; last--) {
    const other = Math.min(last, Math.floor(chance() * (last + 1)))
    const [a, b] = [order[last] as T, order[other] as T]
    order[last] = b
    order[other] = a
  }
  return order
}
