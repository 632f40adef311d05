import { messageOf } from '../../kit/errors.js'
import type { NodeId } from '../../kit/ids.js'
import { MAX_HEARTBEAT_KEYS } from '../../domain/channel/control.js'
import type { Telemetry } from '../../ports/telemetry.js'
import type { Requests } from '../requests/caller/requests.js'
import type { SwarmTable } from '../swarms/swarm-table.js'
import { runKeyOf } from './pending-approvals.js'
import type { Waiting } from './pending-approvals.js'
import type { NextHop } from '../relay/next-hop.js'

/** What telling senders needs. */
export interface ApprovalNoticesDeps {
  readonly telemetry: Telemetry
  readonly nextHop: Pick<NextHop, 'isReachable' | 'seek' | 'sendControl'>
  readonly self: NodeId
  /** Told when requests of this very node wait for a person of it. */
  readonly requests: Pick<Requests, 'onApproval'>
  readonly swarms: Pick<SwarmTable, 'onApproval'>
}

/** Tells senders, once a heartbeat, which of their requests wait for a person. */
export class ApprovalNotices {
  readonly #deps: ApprovalNoticesDeps

  constructor(deps: ApprovalNoticesDeps) {
    this.#deps = deps
  }

  /** Names the pending requests of one peer to it, if it is reachable. Never throws. */
  tell(peer: NodeId, waiting: readonly Waiting[]): void {
    const { nextHop, self, telemetry, requests, swarms } = this.#deps
    const keys = waiting.flatMap((one) => runKeyOf(one) ?? []).slice(0, MAX_HEARTBEAT_KEYS)
    if (keys.length === 0) return
    if (peer === self) {
      requests.onApproval(self, keys)
      return swarms.onApproval(self, keys)
    }
    if (!nextHop.isReachable(peer)) return nextHop.seek(peer)
    try {
      nextHop.sendControl(peer, 'approval', { requests: keys })
    } catch (error) {
      telemetry.log('debug', 'a sender could not be told that it waits', { peer, reason: messageOf(error) })
    }
  }
}
