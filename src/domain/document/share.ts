import type { NodeId } from '../../kit/ids.js'
import type { StreamKey } from './client-ids.js'

/** Storage that one member may take at another node for documents unused there. */
export const DOCUMENT_SHARE_LIMITS = {
  /** Bytes of streams; the same again of snapshots in documents that the member created. */
  maxBytes: 268_435_456,
  /** Streams: one for each document, further ones after the member's home was restored. The same again of snapshots. */
  maxStreams: 256,
  /** Bytes are counted in steps of this size, at least one for each stream. */
  stepBytes: 65_536
}

/** Streams and snapshots that a node keeps beside those of used documents. */
export const MAX_FOLLOWED = 896
/** Number of them with a slot, however many used streams there are. */
export const MIN_UNUSED = 448

/** The payer of a stream: the share of its writer, or the share for snapshots of a document's creator. */
export interface Payer {
  readonly node: NodeId
  readonly kind: 'stream' | 'snapshot'
}

/** A stream that a node may keep. One that several members announced has one claim for each of them. */
export interface StreamClaim {
  readonly stream: StreamKey
  readonly payer: Payer
  /** Is the document used on this node, and is it open now? */
  readonly use: 'open' | 'used' | 'none'
  /** Is a part of it stored? Then it goes before streams that are not. */
  readonly isStored: boolean
  readonly since: number
}

/** Why a stream is not kept: the member has too many streams, or too many bytes, or the node has no place left. */
export type LeftReason = 'streams' | 'bytes' | 'places'

/** Which streams are kept, in the order in which links carry them, and why each other one is not. */
export interface StreamChoice {
  readonly kept: readonly StreamKey[]
  readonly left: ReadonlyMap<StreamKey, LeftReason>
}

/** Bounds of a choice. */
export interface ChoiceLimits {
  readonly maxStreams: number
  readonly maxFollowed: number
  readonly minUnused: number
}

/** As shipped. */
export const AS_SHIPPED: ChoiceLimits = {
  maxStreams: DOCUMENT_SHARE_LIMITS.maxStreams,
  maxFollowed: MAX_FOLLOWED,
  minUnused: MIN_UNUSED
}

/** One text for each payer. */
export function payerKey({ node, kind }: Payer): string {
  return `${kind}/${node}`
}

/**
 * Chooses the streams that a node keeps. All streams of used documents are kept. Of the others each payer has at most
 * `maxStreams`, and slots go round among payers. A payer with at most `minUnused / payers` streams keeps all of them,
 * whatever others announce. Depends neither on names nor on the order of claims.
 */
export function chooseStreams(claims: readonly StreamClaim[], limits: ChoiceLimits = AS_SHIPPED): StreamChoice {
  const used = inTurns(claims.filter(({ use }) => use !== 'none'))
  const isUsed = new Set(used)
  const unused = claims.filter(({ stream }) => !isUsed.has(stream))
  const within = inTurns(unused, limits.maxStreams)
  const places = Math.max(limits.maxFollowed - used.length, limits.minUnused)
  const chosen = within.slice(0, places)
  const first = Math.max(limits.maxFollowed - limits.minUnused, limits.maxFollowed - chosen.length)
  const left = new Map<StreamKey, LeftReason>()
  for (const { stream } of unused) left.set(stream, 'streams')
  for (const stream of within) left.set(stream, 'places')
  for (const stream of chosen) left.delete(stream)
  return { kept: [...used.slice(0, first), ...chosen, ...used.slice(first)], left }
}

/** Streams of all payers, the first of each, then the second of each; at most `limit` of one payer. */
function inTurns(claims: readonly StreamClaim[], limit = Number.POSITIVE_INFINITY): StreamKey[] {
  const byPayer = new Map<string, StreamClaim[]>()
  for (const claim of claims) {
    const key = payerKey(claim.payer)
    const known = byPayer.get(key)
    if (known === undefined) byPayer.set(key, [claim])
    else known.push(claim)
  }
  const turns = [...byPayer].flatMap(([payer, all]) =>
    all
      .sort(byRank)
      .slice(0, limit)
      .map(({ stream }, turn) => ({ stream, turn, payer }))
  )
  turns.sort((a, b) => a.turn - b.turn || compareText(a.payer, b.payer))
  return [...new Set(turns.map(({ stream }) => stream))]
}

const USES = { open: 0, used: 1, none: 2 }

function byRank(a: StreamClaim, b: StreamClaim): number {
  const isStored = Number(b.isStored) - Number(a.isStored)
  return USES[a.use] - USES[b.use] || isStored || a.since - b.since || compareText(a.stream, b.stream)
}

function compareText(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}
