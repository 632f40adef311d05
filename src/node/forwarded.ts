import type { Clock } from '../kit/clock.js'
import type { MeshId, NodeId } from '../kit/ids.js'
import { RateTable } from '../kit/rate.js'
import type { Hash, Verify } from '../kit/sign.js'
import { isOfOrigin } from '../domain/envelope/origin.js'
import type { ReadEnvelope } from '../domain/envelope/origin.js'
import { wayFault } from '../domain/routing/hops.js'
import { MAX_AGE_MS, Replays } from '../domain/routing/replays.js'
import type { Freshness } from '../domain/routing/replays.js'
import type { Links } from '../ports/mesh.js'
import { parseAddress } from './directory.js'
import type { Directory } from './directory.js'
import type { Refusal } from './router.js'

/** Messages of others that one neighbour may bring: each costs a signature to check. An honest one brings fewer. */
const PER_NEIGHBOUR = { perSecond: 500, burst: 2500 }

/** What checking forwarded messages needs. */
export interface ForwardedParts {
  readonly clock: Clock
  readonly self: NodeId
  readonly membership: { readonly meshId: MeshId }
  readonly verify: Verify
  readonly hash: Hash
  readonly directory: Directory
  readonly links: Pick<Links, 'isKeptOut'>
}

/** Whose message it is; or why it is not taken, whether that is the fault of the neighbour who brought it, and whether its node is told. */
export type Acceptance =
  | { readonly ok: true; readonly origin: NodeId }
  | { readonly ok: false; readonly refusal: Refusal; readonly isForged: boolean; readonly isTold: boolean }

const REFUSALS = {
  unsigned: { code: 'FORBIDDEN', rule: 'origin: signed by its node', reason: 'the signature is not of the node that the message is from' },
  unknown: {
    code: 'FORBIDDEN',
    rule: 'hops: members',
    reason: 'a node at an end or on the way is no member, was put out, or is kept out for its strikes'
  },
  flood: { code: 'OVERLOADED', rule: 'hops: a rate for each neighbour', reason: 'too many messages of others at once' }
} as const satisfies Record<string, Refusal>

const STALE: Readonly<Record<Exclude<Freshness, 'new'>, Refusal>> = {
  repeated: { code: 'FORBIDDEN', rule: 'hops: once', reason: 'the message came before' },
  untimely: {
    code: 'FORBIDDEN',
    rule: 'hops: in time',
    reason: `it was not signed within ${MAX_AGE_MS / 60_000} minutes of this node's time, or before this node started`
  },
  full: { code: 'OVERLOADED', rule: 'hops: remembered', reason: 'too many messages of that node came by way of others' }
}

/**
 * Says whose a message is that others carried, or are to carry: that of the node which signed it, for this mesh and this way,
 * and never twice. What no honest neighbour passes on is forged.
 */
export class Forwarded {
  readonly #parts: ForwardedParts
  readonly #replays: Replays
  readonly #rate: RateTable

  constructor(parts: ForwardedParts) {
    this.#parts = parts
    this.#replays = new Replays(parts.clock.now())
    this.#rate = new RateTable(PER_NEIGHBOUR, parts.clock)
  }

  /** Judges a message with a signature or hops, as it came from a neighbour. */
  accept(peer: NodeId, read: ReadEnvelope, bytes: Uint8Array): Acceptance {
    const { self, clock, membership, hash, verify } = this.#parts
    const { header } = read
    const hops = header.metadata?.hops ?? []
    const origin = parseAddress(header.sender)?.nodeId ?? ''
    const target = parseAddress(header.recipient)?.nodeId ?? ''
    const fault = wayFault({ origin, target, hops, peer, self })
    if (fault !== null) return forged({ code: 'FORBIDDEN', rule: 'hops: the way it came', reason: fault })
    if (!this.#rate.take(peer)) return refused(REFUSALS.flood)
    if ([origin, target, ...hops].some((node) => !this.#isTaken(node))) return refused(REFUSALS.unknown)
    const message = { origin, id: header.id, timestamp: header.timestamp }
    const freshness = this.#replays.judge(message, clock.now())
    if (freshness !== 'new') return refused(STALE[freshness])
    const firstHop = hops[0] ?? self
    if (!isOfOrigin(read, bytes, { origin, verify, mesh: membership.meshId, firstHop, hash })) return forged(REFUSALS.unsigned)
    this.#replays.add(message)
    return { ok: true, origin }
  }

  /** What no stream may bring no other may bring either: a gate would let this node in now. */
  #isTaken(node: NodeId): boolean {
    const { clock, directory, links } = this.#parts
    const certificate = directory.certificate(node)
    if (certificate === null || links.isKeptOut(node)) return false
    return certificate.expiresAt === undefined || clock.now() <= certificate.expiresAt
  }
}

function refused(refusal: Refusal): Acceptance {
  // Whoever waits for the answer to the first one still does.
  return { ok: false, refusal, isForged: false, isTold: refusal !== STALE.repeated }
}

function forged(refusal: Refusal): Acceptance {
  return { ok: false, refusal, isForged: true, isTold: false }
}
