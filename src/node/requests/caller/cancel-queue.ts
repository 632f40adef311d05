import { BoundedSet } from '../../../kit/bounded.js'
import { messageOf } from '../../../kit/errors.js'
import type { NodeId } from '../../../kit/ids.js'
import type { Telemetry } from '../../../ports/telemetry.js'
import type { NextHop } from '../../relay/next-hop.js'
import type { Clock } from '../../../kit/clock.js'
import { parseAddress } from '../../../domain/card/card.js'
import type { RequestStore } from '../store.js'

/** Cancellations kept for one peer. */
const MAX_WAITING = 1000

/** Dependencies of the cancel queue. */
interface CancelQueueDeps {
  readonly telemetry: Telemetry
  readonly nextHop: Pick<NextHop, 'isReachable' | 'sendControl'>
  readonly self: NodeId
  /** Cancels work on this very node. */
  cancelHere(key: string): void
}

/**
 * Sends cancellations to peers, now or when they are reachable. A lost one is sent again when the peer's heartbeat
 * names the run (see PeerReports.onHeartbeat).
 */
export class CancelQueue {
  readonly #deps: CancelQueueDeps
  readonly #waiting = new Map<NodeId, BoundedSet<string>>()

  constructor(deps: CancelQueueDeps) {
    this.#deps = deps
  }

  /** Cancels a run, given by its name in heartbeats. Never throws. */
  cancel(peer: NodeId, key: string): void {
    const { self, cancelHere } = this.#deps
    if (peer === self) cancelHere(key)
    else if (!this.#send(peer, key)) this.#keep(peer, key)
  }

  /** A peer is back: its runs may have continued meanwhile. */
  onReachable(peer: NodeId): void {
    const keys = this.#waiting.get(peer) ?? []
    this.#waiting.delete(peer)
    for (const key of keys) this.cancel(peer, key)
  }

  /** A peer will not come back. */
  forget(peer: NodeId): void {
    this.#waiting.delete(peer)
  }

  #send(peer: NodeId, key: string): boolean {
    const { nextHop, telemetry } = this.#deps
    if (!nextHop.isReachable(peer)) return false
    try {
      nextHop.sendControl(peer, 'cancel', { requestId: key })
      return true
    } catch (error) {
      telemetry.log('debug', 'a cancellation could not be sent', { peer, reason: messageOf(error) })
      return false
    }
  }

  #keep(peer: NodeId, key: string): void {
    const keys = this.#waiting.get(peer) ?? new BoundedSet(MAX_WAITING)
    this.#waiting.set(peer, keys.add(key))
  }
}

/** Runs looked up at once for one peer: the peer chooses the names, and each costs a ledger read. */
const MAX_LOOKED_UP = 32

/** Dependencies of the stray runs. */
interface StrayRunsDeps {
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly requestStore: Pick<RequestStore, 'asked'>
  readonly limits: { readonly heartbeatMs: number }
  /** Tells a peer to stop a run. */
  cancel(peer: NodeId, key: string): void
}

/**
 * Runs that peers report without a waiting caller here: canceled ones are canceled again, since the first message was
 * lost.
 */
export class StrayRuns {
  readonly #deps: StrayRunsDeps
  /** Monotonic milliseconds of the last lookup for each peer; there are no more peers than members. */
  readonly #lookedAt = new Map<NodeId, number>()

  constructor(deps: StrayRunsDeps) {
    this.#deps = deps
  }

  /** Looks up runs that a peer reported, at most once a heartbeat. Never rejects. */
  async look(peer: NodeId, keys: ReadonlySet<string>): Promise<void> {
    const { clock, limits, telemetry, cancel } = this.#deps
    const now = clock.monotonic()
    if (now - (this.#lookedAt.get(peer) ?? Number.NEGATIVE_INFINITY) < limits.heartbeatMs / 2) return
    this.#lookedAt.set(peer, now)
    try {
      for (const key of [...keys].slice(0, MAX_LOOKED_UP)) if (await this.#isCanceled(peer, key)) cancel(peer, key)
    } catch (error) {
      telemetry.log('warn', 'a run that a peer names could not be looked up', { peer, reason: messageOf(error) })
    }
  }

  async #isCanceled(peer: NodeId, key: string): Promise<boolean> {
    const record = await this.#deps.requestStore.asked(key.slice(0, key.lastIndexOf('#')))
    if (record?.status !== 'failed' || record.error?.code !== 'CANCELED') return false
    return parseAddress(record.target)?.nodeId === peer && key.endsWith(`#${record.attempt}`)
  }
}
