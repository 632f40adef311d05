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
 * The link to close when another one needs its slot: the least recently used idle one. Null when none is idle. The only
 * link is never closed: it may be this node's last path to its mesh.
 */
export function spareLink(links: readonly LinkUse[], now: number): NodeId | null {
  if (links.length < 2) return null
  const unused = links.filter((one) => now - one.usedAt >= IDLE_MS).sort((a, b) => a.usedAt - b.usedAt)
  return unused.find((one) => !one.isBusy())?.peer ?? null
}

/**
 * Pause in milliseconds for a member that had no slot, or whose idle link was closed. It starts with that of a fresh
 * link and doubles with each time (`times` counts from 1), up to a minute.
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

/** The members to link. */
export interface NeighbourPlan {
  /** To be dialled, when their time comes. */
  readonly missing: readonly NodeId[]
  /** Without a link by choice. */
  readonly beyond: readonly NodeId[]
  /** Are there slots for all, here and there? Then every found member is dialled. */
  readonly isOpen: boolean
}

/**
 * Chooses the members to look for. With slots for all, it is every member. Else half of the slots are used, and the
 * others stay free for incoming links. A member without a slot for this node is asked again only below that number of
 * links.
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
