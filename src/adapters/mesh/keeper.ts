import b4a from 'b4a'
import type Hyperswarm from 'hyperswarm'
import type { Clock, Timer } from '../../kit/clock.js'
import { keyFromText } from '../../kit/ids.js'
import type { NodeId } from '../../kit/ids.js'
import { dialPlan, keeperPlan, nextDialAt } from '../../domain/membership/keeper.js'

/** Shortest and longest wait between two looks, in milliseconds. */
const MIN_WAIT_MS = 50
const MAX_WAIT_MS = 30_000

/** What the keeper watches. */
export interface KeeperParts {
  readonly swarm: Hyperswarm
  readonly clock: Clock
  readonly networkKind: 'public' | 'private' | 'local'
  isConnected(peer: NodeId): boolean
  linkCount(): number
}

/** Keeps links to the wanted members: refreshes discovery and dials known keys, fast while somebody is missing. */
export interface Keeper {
  want(peers: readonly NodeId[]): void
  connected(peer: NodeId): void
  lost(peer: NodeId): void
  /** Announces and looks up now, e.g. because the bootstrap node is a new one with empty records. */
  refreshNow(): void
  close(): void
}

/**
 * Starts the keeper. Stock Hyperswarm looks up once and is then silent for ten minutes, and forgets a peer after a few
 * failed dials; the policy is in domain/membership/keeper.
 */
export function startKeeper(parts: KeeperParts): Keeper {
  const { swarm, clock } = parts
  let wanted: readonly NodeId[] = []
  const tries = new Map<NodeId, { attempts: number; lastTriedAt: number | null }>()
  let lastRefreshAt: number | null = null
  let refreshes = 0
  let timer: Timer | null = null
  let closed = false
  look()

  function look(): void {
    clock.clear(timer)
    if (closed) return
    const now = clock.monotonic()
    const missing = wanted
      .filter((peer) => !parts.isConnected(peer))
      .map((nodeId) => ({ nodeId, ...(tries.get(nodeId) ?? { attempts: 0, lastTriedAt: null }) }))
    for (const peer of dialPlan(missing, now, { chance: Math.random() })) dial(peer, now)
    const plan = keeperPlan({
      now,
      network: parts.networkKind,
      missing: missing.length,
      connected: parts.linkCount(),
      lastRefreshAt,
      attempt: refreshes,
      chance: Math.random()
    })
    if (plan.refreshNow) refresh(now)
    if (missing.length === 0) refreshes = 0
    const next = Math.min(plan.nextAt, nextDialAt(missing) ?? Number.POSITIVE_INFINITY) - now
    timer = clock.after(Math.min(MAX_WAIT_MS, Math.max(MIN_WAIT_MS, next)), look)
  }

  function dial(peer: NodeId, now: number): void {
    const before = tries.get(peer)
    tries.set(peer, { attempts: (before?.attempts ?? 0) + 1, lastTriedAt: now })
    const key = keyFromText(peer)
    // Without this a peer that failed a few times is never dialled again.
    const info = swarm.peers.get(b4a.toString(key, 'hex'))
    if (info !== undefined) {
      info.ban(false)
      info.attempts = 0
    }
    swarm.joinPeer(key)
  }

  function refresh(now: number): void {
    lastRefreshAt = now
    refreshes++
    // After an outage the announcer can be left without relays while it seems online.
    swarm.server.refresh()
    for (const discovery of swarm.topics()) discovery.refresh().catch(() => {})
  }

  return {
    want: (peers) => {
      for (const peer of wanted) if (!peers.includes(peer)) swarm.leavePeer(keyFromText(peer))
      wanted = peers
      look()
    },
    connected: (peer) => {
      tries.delete(peer)
      look()
    },
    lost: (peer) => {
      if (wanted.includes(peer)) tries.set(peer, { attempts: 0, lastTriedAt: clock.monotonic() })
      look()
    },
    refreshNow: () => refresh(clock.monotonic()),
    close: () => {
      closed = true
      clock.clear(timer)
    }
  }
}
