import { messageOf } from '../kit/errors.js'
import type { NodeId } from '../kit/ids.js'
import { MAX_HEARTBEAT_KEYS } from '../domain/channel/control.js'
import type { WaitingPayload } from '../domain/task/payloads.js'
import type { Telemetry } from '../ports/telemetry.js'
import { voiced } from './answers.js'
import type { Directory } from './directory.js'
import type { Thread } from './incoming.js'
import type { Outbox } from './outbox.js'
import type { Peers } from './peers.js'
import type { Requests } from './requests.js'
import type { Swarms } from './swarms.js'
import { runKeyOf } from './waiting.js'
import type { Waiting } from './waiting.js'

/** What telling senders needs. */
export interface ApprovalWordsParts {
  readonly telemetry: Telemetry
  readonly directory: Directory
  readonly peers: Pick<Peers, 'isOnline' | 'send'>
  readonly outbox: Pick<Outbox, 'send'>
  readonly self: NodeId
  /** Told when requests of this very node wait for a person of it. */
  readonly requests: Pick<Requests, 'onApproval'>
  readonly swarms: Pick<Swarms, 'onApproval'>
}

/** Tells senders that what they asked waits for a person: over a link now and then, over others once, along its thread. */
export class ApprovalWords {
  readonly #parts: ApprovalWordsParts

  constructor(parts: ApprovalWordsParts) {
    this.#parts = parts
  }

  /** What waits of one peer, which may have a link. Never throws. */
  tell(peer: NodeId, waiting: readonly Waiting[]): void {
    const { peers, self, telemetry, requests, swarms } = this.#parts
    const keys = waiting.flatMap((one) => runKeyOf(one) ?? []).slice(0, MAX_HEARTBEAT_KEYS)
    if (keys.length === 0) return
    if (peer === self) {
      requests.onApproval(self, keys)
      return swarms.onApproval(self, keys)
    }
    if (!peers.isOnline(peer)) return
    try {
      peers.send(peer, { kind: 'control', name: 'approval', body: { requests: keys } })
    } catch (error) {
      telemetry.log('debug', 'a sender could not be told that it waits', { peer, reason: messageOf(error) })
    }
  }

  /** A request of a peer without a link waits for a person from now on, or (null) no longer: said along its thread. Never throws. */
  along(thread: Thread, { request }: Waiting, waitingFor: WaitingPayload['waitingFor']): void {
    const { peers, self, telemetry, outbox } = this.#parts
    const peer = thread.recipient.nodeId
    if (request === null || peer === self || peers.isOnline(peer)) return
    const payload: WaitingPayload = { requestId: request.requestId, attempt: request.attempt, waitingFor }
    outbox.send({ type: 'stream-data', payload, ...voiced(thread, this.#parts) }).catch((error: unknown) =>
      telemetry.log('debug', 'a sender over others could not be told that it waits', {
        correlationId: thread.correlationId,
        reason: messageOf(error)
      })
    )
  }
}
