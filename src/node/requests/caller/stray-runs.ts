import type { Clock } from '../../../kit/clock.js'
import { messageOf } from '../../../kit/errors.js'
import type { NodeId } from '../../../kit/ids.js'
import type { Telemetry } from '../../../ports/telemetry.js'
import { parseAddress } from '../../../domain/card/card.js'
import type { RequestStore } from '../store.js'

/** Runs that are looked up at once for one peer: a peer names what it likes, and each costs a question to the ledger. */
const MAX_LOOKED_UP = 32

/** What looking up runs needs. */
export interface StrayRunsDeps {
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly requestStore: Pick<RequestStore, 'asked'>
  readonly limits: { readonly heartbeatMs: number }
  /** Tells a peer to stop a run. */
  cancel(peer: NodeId, key: string): void
}

/** Runs that peers name though nobody here waits for them: those that were canceled are canceled again, since the first word was lost. */
export class StrayRuns {
  readonly #deps: StrayRunsDeps
  /** Monotonic milliseconds of the last look for each peer; there are no more of them than members. */
  readonly #lookedAt = new Map<NodeId, number>()

  constructor(deps: StrayRunsDeps) {
    this.#deps = deps
  }

  /** Looks up runs that a peer named, at most once a heartbeat. Never rejects. */
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
