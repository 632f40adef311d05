import { backoffMs } from '../../kit/backoff.js'
import type { NodeId } from '../../kit/ids.js'

/** A link is idle when nothing used it for this long, in milliseconds; so long a fresh one is left alone as well. */
export const IDLE_MS = 10_000
/** Longest time for which a member without a place is left alone by a node that has too few links, in milliseconds. */
const REST_MS = 60_000
/** So often a lost neighbour is dialled although there are others enough: about a minute. */
export const MAX_RETURN_DIALS = 17

/** One open link. Times are of one monotonic clock. */
export interface LinkUse {
  readonly peer: NodeId
  /** When it opened, or was last used for more than keeping it alive. */
  readonly usedAt: number
  /** Is something under way over it, or waiting for it? */
  isBusy(): boolean
}

/**
 * The link to close when another one needs its place: of those that are idle, the one that was used longest ago. Null when
 * none is idle. The only link is never closed: it may be all that holds this node in its mesh.
 */
export function spareLink(links: readonly LinkUse[], now: number): NodeId | null {
  if (links.length < 2) return null
  const unused = links.filter((one) => now - one.usedAt >= IDLE_MS).sort((a, b) => a.usedAt - b.usedAt)
  return unused.find((one) => !one.isBusy())?.peer ?? null
}

/**
 * For how long a member is left alone that had no place, or whose idle link made room, in milliseconds: as long as a fresh
 * link is left alone, twice as long with each further time (`times` counts from 1), a minute at most.
 */
export function restMs(times: number): number {
  return backoffMs({ baseMs: IDLE_MS, maxMs: REST_MS }, times - 1)
}

/** Another member, as the keeper knows it. */
export interface WantedMember {
  readonly nodeId: NodeId
  readonly isLinked: boolean
  /** Until when it is left alone, since one of the two had no place for the other; null: there was always one. */
  readonly restsUntil: number | null
  /** Dials since its link was lost; null when it was not lost, or went for lack of a place. */
  readonly returnDials: number | null
}

/** Who is to be linked, and who need not be. */
export interface NeighbourPlan {
  /** To be dialled, when their time comes. */
  readonly missing: readonly NodeId[]
  /** Without a link by choice. */
  readonly beyond: readonly NodeId[]
  /** Are there places for all, and at all of them? Then everybody who is found is dialled. */
  readonly isOpen: boolean
}

/**
 * Which members to look for. Where there are places for all, everybody. Else links to half of the places: the others stay
 * free for those who come. Who had no place for this node is asked again only when there are fewer links than that.
 */
export function neighbourPlan(members: readonly WantedMember[], places: number, now: number): NeighbourPlan {
  const linked = members.filter((one) => one.isLinked).length
  const unlinked = members.filter((one) => !one.isLinked)
  const isFitting = members.length <= places
  const isShort = linked < Math.ceil(Math.min(places, members.length) / 2)
  const isMissing = ({ restsUntil, returnDials }: WantedMember): boolean => {
    if (linked >= places) return false
    if (restsUntil !== null) return isShort && restsUntil <= now
    return isFitting || isShort || (returnDials !== null && returnDials < MAX_RETURN_DIALS)
  }
  return {
    missing: unlinked.filter(isMissing).map((one) => one.nodeId),
    beyond: unlinked.filter((one) => !isFitting || one.restsUntil !== null).map((one) => one.nodeId),
    isOpen: isFitting && members.every((one) => one.restsUntil === null)
  }
}
