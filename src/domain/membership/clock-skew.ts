import { MAX_SKEW_MS } from '../../kit/clock.js'
import type { NodeId } from '../../kit/ids.js'
import { formatDuration } from '../../kit/units.js'

/** The clock of this machine compared with that of a peer. */
export interface PeerClock {
  readonly peer: NodeId
  /** Milliseconds by which this machine's clock is ahead of the peer's; negative: behind. */
  readonly aheadMs: number
}

/** Does the difference matter? */
export function isSkewed({ aheadMs }: Pick<PeerClock, 'aheadMs'>): boolean {
  return Math.abs(aheadMs) > MAX_SKEW_MS
}

/**
 * The comparison in the middle of all, so that one wrong clock of several decides nothing: of two in the middle the
 * smaller one. Null when it is within the bound, or there is none.
 */
export function ownSkew(clocks: readonly PeerClock[]): PeerClock | null {
  const sorted = clocks.toSorted((a, b) => a.aheadMs - b.aheadMs)
  const middle = sorted.slice(Math.floor((sorted.length - 1) / 2), Math.floor(sorted.length / 2) + 1)
  const [own] = middle.toSorted((a, b) => Math.abs(a.aheadMs) - Math.abs(b.aheadMs))
  return own !== undefined && isSkewed(own) ? own : null
}

/** Compares in words: `20 min ahead of that of alpha`. */
export function skewText({ aheadMs }: Pick<PeerClock, 'aheadMs'>, other: string): string {
  const minutes = Math.round(Math.abs(aheadMs) / 60_000)
  return `${formatDuration(minutes * 60_000)} ${aheadMs > 0 ? 'ahead of' : 'behind'} that of ${other}`
}
