import b4a from 'b4a'
import type Hyperswarm from 'hyperswarm'
import type { Clock, Timer } from '../../kit/clock.js'
import { keyFromText } from '../../kit/ids.js'
import type { NodeId } from '../../kit/ids.js'
import { dialPlan, keeperPlan, type MissingMember, nextDialAt } from '../../domain/membership/keeper.js'

/** Shortest and longest wait between two looks, in milliseconds. */
const MIN_WAIT_MS = 50
const MAX_WAIT_MS = 30_000

/** What the keeper does with the swarm; the rest of Hyperswarm is not its business. */
export type KeptSwarm = Pick<Hyperswarm, 'peers' | 'joinPeer' | 'leavePeer' | 'topics'> & {
  readonly server: Pick<Hyperswarm['server'], 'refresh'>
}

/** What the keeper watches. */
export interface KeeperParts {
  readonly swarm: KeptSwarm
  readonly clock: Clock
  readonly networkKind: 'public' | 'private' | 'local'
  /** 0..1, drawn for each look, so that nodes do not act in step. Default: Math.random. */
  readonly chance?: () => number
  isConnected(peer: NodeId): boolean
  linkCount(): number
  /** Is there a place for another link? Without one nobody is looked for. */
  hasRoom(): boolean
}

/**
 * Keeps links to the wanted members: refreshes discovery and dials known keys, fast while somebody is missing. Stock
 * Hyperswarm looks up once and is then silent for ten minutes, and forgets a peer after a few failed dials; the policy is
 * in domain/membership/keeper.
 */
export class Keeper {
  readonly #parts: KeeperParts
  readonly #chance: () => number
  readonly #tries = new Map<NodeId, { attempts: number; lastTriedAt: number | null }>()
  #wanted: ReadonlySet<NodeId> = new Set()
  #lastRefreshAt: number | null = null
  #refreshes = 0
  #timer: Timer | null = null
  #isClosed = false

  constructor(parts: KeeperParts) {
    this.#parts = parts
    this.#chance = parts.chance ?? Math.random
    this.#look()
  }

  /** Replaces the list of members that should be linked. */
  want(peers: readonly NodeId[]): void {
    const wanted = new Set(peers)
    for (const peer of this.#wanted) if (!wanted.has(peer)) this.#forget(peer)
    this.#wanted = wanted
    this.#look()
  }

  /** Should there be a link to the peer? */
  wants(peer: NodeId): boolean {
    return this.#wanted.has(peer)
  }

  /** A link to the peer opened. */
  connected(peer: NodeId): void {
    this.#tries.delete(peer)
    // Else the swarm itself would go on to dial those for whom there is no place.
    if (!this.#parts.hasRoom()) for (const one of this.#wanted) if (!this.#parts.isConnected(one)) this.#forget(one)
    this.#look()
  }

  /** The link to the peer is gone. */
  lost(peer: NodeId): void {
    if (this.#wanted.has(peer)) this.#tries.set(peer, { attempts: 0, lastTriedAt: this.#parts.clock.monotonic() })
    this.#look()
  }

  /** Announces and looks up now, e.g. because the bootstrap node is a new one with empty records. */
  refreshNow(): void {
    this.#refresh(this.#parts.clock.monotonic())
  }

  /** Does nothing any more. */
  close(): void {
    this.#isClosed = true
    this.#parts.clock.clear(this.#timer)
  }

  #forget(peer: NodeId): void {
    this.#tries.delete(peer)
    this.#parts.swarm.leavePeer(keyFromText(peer))
  }

  #look(): void {
    const { clock } = this.#parts
    clock.clear(this.#timer)
    if (this.#isClosed) return
    const now = clock.monotonic()
    const missing = this.#missing()
    for (const peer of dialPlan(missing, now, { chance: this.#chance() })) this.#dial(peer, now)
    const plannedAt = this.#refreshPlan(missing.length, now)
    const next = Math.min(plannedAt, nextDialAt(missing) ?? Number.POSITIVE_INFINITY) - now
    this.#timer = clock.after(Math.min(MAX_WAIT_MS, Math.max(MIN_WAIT_MS, next)), () => this.#look())
  }

  #missing(): MissingMember[] {
    if (!this.#parts.hasRoom()) return []
    return [...this.#wanted]
      .filter((peer) => !this.#parts.isConnected(peer))
      .map((nodeId) => ({ nodeId, ...(this.#tries.get(nodeId) ?? { attempts: 0, lastTriedAt: null }) }))
  }

  /** Refreshes discovery when it is due. When to ask again at the latest. */
  #refreshPlan(missing: number, now: number): number {
    const plan = keeperPlan({
      now,
      network: this.#parts.networkKind,
      missing,
      connected: this.#parts.linkCount(),
      lastRefreshAt: this.#lastRefreshAt,
      attempt: this.#refreshes,
      chance: this.#chance()
    })
    if (plan.refreshNow) this.#refresh(now)
    // A node alone in its mesh must slow down too.
    if (missing === 0 && this.#parts.linkCount() > 0) this.#refreshes = 0
    return plan.nextAt
  }

  #dial(peer: NodeId, now: number): void {
    const { swarm } = this.#parts
    this.#tries.set(peer, { attempts: (this.#tries.get(peer)?.attempts ?? 0) + 1, lastTriedAt: now })
    const key = keyFromText(peer)
    // Without this a peer that failed a few times is never dialled again.
    const info = swarm.peers.get(b4a.toString(key, 'hex'))
    if (info !== undefined) {
      info.ban(false)
      info.attempts = 0
    }
    swarm.joinPeer(key)
  }

  #refresh(now: number): void {
    const { swarm } = this.#parts
    this.#lastRefreshAt = now
    this.#refreshes++
    // After an outage the announcer can be left without relays while it seems online.
    swarm.server.refresh()
    for (const discovery of swarm.topics()) discovery.refresh().catch(() => {})
  }
}
