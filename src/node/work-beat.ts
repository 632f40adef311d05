import type { Clock } from '../kit/clock.js'
import { messageOf } from '../kit/errors.js'
import type { NodeId } from '../kit/ids.js'
import { MAX_HEARTBEAT_KEYS } from '../domain/channel/control.js'
import type { ControlBody } from '../domain/channel/control.js'
import type { Telemetry } from '../ports/telemetry.js'
import { giveUp, type InFlight, nameOf } from './in-flight.js'
import type { Peers } from './peers.js'

/** What telling of work under way needs. */
export interface WorkBeatParts {
  readonly self: NodeId
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly peers: Pick<Peers, 'isOnline' | 'send'>
  readonly limits: { readonly leaseMs: number }
  /** Heartbeats of work for this very node. */
  onHeartbeatHere(body: ControlBody<'heartbeat'>): void
}

/** Tells every caller which of its requests live here, and ends leases whose launcher is gone. */
export function beat(parts: WorkBeatParts, inFlight: InFlight): void {
  const now = parts.clock.monotonic()
  for (const piece of inFlight.all()) {
    // What may not be repeated is done to its end: nobody else will be given it.
    const isLease = piece.payload.swarm !== null && piece.record?.isRepeatable !== false
    if (isLease && piece.lostAt !== null && now - piece.lostAt > parts.limits.leaseMs) giveUp(piece)
  }
  for (const [node, pieces] of inFlight.byListener()) {
    const live = pieces.filter((piece) => piece.isAwaited).slice(0, MAX_HEARTBEAT_KEYS)
    const waiting = live.filter((piece) => !piece.isRunning)
    heartbeat(parts, node, { requests: live.map(nameOf), waiting: waiting.map(nameOf) })
  }
}

function heartbeat({ peers, self, onHeartbeatHere, telemetry }: WorkBeatParts, peer: NodeId, body: ControlBody<'heartbeat'>): void {
  if (body.requests.length === 0) return
  if (peer === self) return onHeartbeatHere(body)
  if (!peers.isOnline(peer)) return
  try {
    peers.send(peer, { kind: 'control', name: 'heartbeat', body })
  } catch (error) {
    telemetry.log('debug', 'a heartbeat could not be sent', { peer, reason: messageOf(error) })
  }
}
