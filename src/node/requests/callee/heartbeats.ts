import type { Clock } from '../../../kit/clock.js'
import { messageOf } from '../../../kit/errors.js'
import type { NodeId } from '../../../kit/ids.js'
import { MAX_HEARTBEAT_KEYS } from '../../../domain/channel/control.js'
import type { ControlBody } from '../../../domain/channel/control.js'
import type { Telemetry } from '../../../ports/telemetry.js'
import { abandon, type InFlight, nameOf } from './in-flight.js'
import type { NextHop } from '../../relay/next-hop.js'

/** What telling of work under way needs. */
export interface HeartbeatDeps {
  readonly self: NodeId
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly nextHop: Pick<NextHop, 'isReachable' | 'seek' | 'sendControl'>
  readonly limits: { readonly leaseMs: number }
  /** Runs that programs answer in person, by the node that asked. */
  inPerson(): ReadonlyMap<NodeId, readonly string[]>
  /** Heartbeats of work for this very node. */
  onHeartbeatHere(body: ControlBody<'heartbeat'>): void
}

/** Tells every caller which of its requests live here, and ends leases whose launcher is gone. */
export function sendHeartbeats(deps: HeartbeatDeps, inFlight: InFlight): void {
  const now = deps.clock.monotonic()
  for (const piece of inFlight.all()) {
    // What may not be repeated is done to its end: nobody else will be given it.
    const isLease = piece.payload.swarm !== null && piece.record?.isRepeatable !== false
    const isGone = piece.lostAt !== null && now - piece.lostAt > deps.limits.leaseMs && !deps.nextHop.isReachable(piece.peer)
    if (isLease && isGone) abandon(piece)
  }
  const inPerson = deps.inPerson()
  const ofNode = inFlight.byListener()
  for (const node of new Set([...ofNode.keys(), ...inPerson.keys()])) {
    const live = (ofNode.get(node) ?? []).filter((piece) => piece.isAwaited)
    const waiting = live.filter((piece) => !piece.isRunning)
    const requests = [...live.map(nameOf), ...(inPerson.get(node) ?? [])].slice(0, MAX_HEARTBEAT_KEYS)
    heartbeat(deps, node, { requests, waiting: waiting.map(nameOf).slice(0, MAX_HEARTBEAT_KEYS) })
  }
}

function heartbeat({ nextHop, self, onHeartbeatHere, telemetry }: HeartbeatDeps, peer: NodeId, body: ControlBody<'heartbeat'>): void {
  if (body.requests.length === 0) return
  if (peer === self) return onHeartbeatHere(body)
  if (!nextHop.isReachable(peer)) return nextHop.seek(peer)
  try {
    nextHop.sendControl(peer, 'heartbeat', body)
  } catch (error) {
    telemetry.log('debug', 'a heartbeat could not be sent', { peer, reason: messageOf(error) })
  }
}
