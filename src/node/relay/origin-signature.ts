import type { Clock } from '../../kit/clock.js'
import type { MeshId, NodeId } from '../../kit/ids.js'
import { RateTable } from '../../kit/rate.js'
import type { Hash, Verify } from '../../kit/sign.js'
import { formatDuration } from '../../kit/units.js'
import { FRAME } from '../../domain/channel/frames.js'
import { isSignedByOrigin, relayedId } from '../../domain/channel/relayed.js'
import type { RelayedFrame } from '../../domain/channel/relayed.js'
import { skewText } from '../../domain/membership/clock-skew.js'
import { pathFault } from '../../domain/routing/hops.js'
import { MAX_AGE_MS, Replays } from '../../domain/routing/replays.js'
import type { Freshness } from '../../domain/routing/replays.js'
import type { Links } from '../../ports/mesh.js'
import type { Directory } from '../cards/directory.js'
import type { Refusal } from '../policy/access-control.js'

/** Limit of relayed frames per neighbour: each costs a signature check. An honest neighbour sends fewer. */
const PER_NEIGHBOUR = { perSecond: 2000, burst: 4000 }

/** Dependencies of the signature check. */
export interface OriginSignatureDeps {
  readonly clock: Clock
  readonly self: NodeId
  readonly membership: { readonly meshId: MeshId }
  readonly verify: Verify
  readonly hash: Hash
  readonly directory: Directory
  readonly links: Pick<Links, 'isKeptOut'>
}

/**
 * Is a relayed frame accepted? If not: the reason, whether the neighbour that sent it is at fault, and whether its
 * origin is told.
 */
export type OriginVerdict =
  | { readonly ok: true }
  | { readonly ok: false; readonly refusal: Refusal; readonly isForged: boolean; readonly isReported: boolean }

const REFUSALS = {
  unsigned: {
    code: 'FORBIDDEN',
    rule: 'origin: signed by its node',
    reason: 'the signature is not of the node that the frame is from'
  },
  unknown: {
    code: 'FORBIDDEN',
    rule: 'hops: members',
    reason: 'a node at an end or on the way is no member, was put out, or is kept out for its strikes'
  },
  flood: { code: 'OVERLOADED', rule: 'hops: a rate for each neighbour', reason: 'too many relayed frames at once' }
} as const satisfies Record<string, Refusal>

const STALE: Readonly<Record<Exclude<Freshness, 'new'>, Refusal>> = {
  repeated: { code: 'FORBIDDEN', rule: 'hops: once', reason: 'the message came before' },
  untimely: { code: 'FORBIDDEN', rule: 'hops: in time', reason: 'it was signed before this node started' },
  full: { code: 'OVERLOADED', rule: 'hops: remembered', reason: 'too many messages of that node came over relays' }
}

/**
 * Checks relayed frames: signed by their origin, for this mesh and this first hop, in time. An envelope outside of a
 * lane is accepted once. Frames of lanes and control messages may repeat without harm, so they are not remembered. A
 * frame that no honest neighbour relays is forged.
 */
export class OriginSignature {
  readonly #deps: OriginSignatureDeps
  readonly #replays: Replays
  readonly #rate: RateTable

  constructor(deps: OriginSignatureDeps) {
    this.#deps = deps
    this.#replays = new Replays(deps.clock.now())
    this.#rate = new RateTable(PER_NEIGHBOUR, deps.clock)
  }

  /** Checks a relayed frame from a neighbour. */
  accept(peer: NodeId, frame: RelayedFrame): OriginVerdict {
    const { self, clock, membership, hash, verify } = this.#deps
    const { origin, target, hops } = frame
    const fault = pathFault({ origin, target, hops, peer, self })
    if (fault !== null) return forged({ code: 'FORBIDDEN', rule: 'hops: the way it came', reason: fault })
    if (!this.#rate.take(peer)) return refused(REFUSALS.flood)
    if ([origin, target, ...hops].some((node) => !this.#isTaken(node))) return refused(REFUSALS.unknown)
    const message = { origin, id: relayedId(frame), timestamp: frame.timestamp }
    const isOnce = frame.content[0] === FRAME.envelope
    const freshness = isOnce
      ? this.#replays.judge(message, clock.now())
      : Replays.isTimely(frame.timestamp, clock.now())
        ? 'new'
        : 'untimely'
    if (freshness !== 'new') return refused(staleRefusal(freshness, clock.now() - frame.timestamp))
    if (!isSignedByOrigin(frame, { verify, mesh: membership.meshId, firstHop: hops[0] ?? self, hash }))
      return forged(REFUSALS.unsigned)
    if (isOnce) this.#replays.add(message)
    return { ok: true }
  }

  /** Every node of a relayed frame must be one that a gate would admit now, as for a stream of its own. */
  #isTaken(node: NodeId): boolean {
    const { clock, directory, links } = this.#deps
    const certificate = directory.certificate(node)
    if (certificate === null || links.isKeptOut(node)) return false
    return certificate.expiresAt === undefined || clock.now() <= certificate.expiresAt
  }
}

/** `aheadMs`: milliseconds by which the clock of this node is ahead of the time of the message. */
function staleRefusal(freshness: Exclude<Freshness, 'new'>, aheadMs: number): Refusal {
  const refusal = STALE[freshness]
  if (freshness !== 'untimely' || Math.abs(aheadMs) <= MAX_AGE_MS) return refusal
  const limit = `at most ${formatDuration(MAX_AGE_MS)} are allowed`
  return {
    ...refusal,
    reason: `the clock of this node is ${skewText({ aheadMs }, 'the message')}, and ${limit}: it is late, or one of both clocks is wrong`
  }
}

function refused(refusal: Refusal): OriginVerdict {
  // The sender of a repeated frame still waits for the answer to the first one.
  return { ok: false, refusal, isForged: false, isReported: refusal !== STALE.repeated }
}

function forged(refusal: Refusal): OriginVerdict {
  return { ok: false, refusal, isForged: true, isReported: false }
}
