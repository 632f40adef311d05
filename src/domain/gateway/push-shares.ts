/** Bounds of push configs and their pending notifications. */
export const PUSH_BOUNDS = {
  /** Configs of unfinished tasks, and configs with waiting notifications. */
  hooks: 20_000,
  /** The same of one caller. */
  hooksOfOne: 2000,
  /** Pending notifications of one config; beyond it the newest one covers later events. */
  waitingOfHook: 1000,
  /** The same of all configs of one caller. */
  waitingOfOne: 20_000,
  /** Each config may have this many. The oldest may be under way and is not changed any more. */
  least: 3
} as const

/** The same in small, for tests too. */
export type PushBounds = { readonly [Name in keyof typeof PUSH_BOUNDS]: number }

/** A notification that is on record, or about to be. */
export interface Placed {
  readonly generation: number
  /** Earlier events that it reports as well. */
  readonly folded: number
}

/** Where a notification goes: in the place of another one that waits, or (null) behind all. */
export interface Placement extends Placed {
  readonly over: number | null
}

interface HookShare {
  readonly owner: string
  isLive: boolean
  waiting: number
  /** The newest of them; null for none. */
  last: Placed | null
  /** The uncommitted part. */
  draft: { readonly added: number; readonly last: Placed } | null
}

/** Shares of owners in the space for push notifications. Changed in place. */
export interface PushShares {
  readonly bounds: PushBounds
  readonly hooks: Map<string, HookShare>
  readonly owners: Map<string, { hooks: number; waiting: number }>
}

/** A config by its internal id, and its owner. */
export interface OwnedHook {
  readonly hook: string
  readonly owner: string
}

/** Empty shares. */
export function emptyShares(bounds: PushBounds = PUSH_BOUNDS): PushShares {
  return { bounds, hooks: new Map(), owners: new Map() }
}

/** Why a caller gets no further config; null: it may. */
export function shareFault({ bounds, hooks, owners }: PushShares, owner: string): string | null {
  if ((owners.get(owner)?.hooks ?? 0) >= bounds.hooksOfOne)
    return `you have ${bounds.hooksOfOne} push configs of running tasks or with pending notifications: delete some of them`
  if (hooks.size >= bounds.hooks)
    return `this node has ${bounds.hooks} push configs of tasks that go on: try again later`
  return null
}

/** How many wait for a config. */
export function waitingOf({ hooks }: PushShares, hook: string): number {
  return hooks.get(hook)?.waiting ?? 0
}

/** Counts a config of an unfinished task. */
export function openHook(shares: PushShares, named: OwnedHook): void {
  shareOf(shares, named).isLive = true
}

/** Its task has ended, or did not begin: it counts as long as something waits. */
export function endHook(shares: PushShares, hook: string): void {
  undoPlaced(shares, hook)
  const share = shares.hooks.get(hook)
  if (share === undefined) return
  share.isLive = false
  forgetIdle(shares, hook)
}

/** Deletes a config with its pending notifications. */
export function dropHook(shares: PushShares, hook: string): void {
  const share = shares.hooks.get(hook)
  if (share === undefined) return
  countWaiting(shares, share, -share.waiting - (share.draft?.added ?? 0))
  share.waiting = 0
  share.draft = null
  share.isLive = false
  forgetIdle(shares, hook)
}

/**
 * Where a notification of an event goes, in a commit that is being made: it counts from here on, see
 * {@link keepPlaced}.
 */
export function placeNotice(shares: PushShares, hook: string, generation: number): Placement {
  const share = shares.hooks.get(hook)
  if (share === undefined) return { generation, folded: 0, over: null }
  const before = share.draft?.last ?? share.last
  const added = share.draft?.added ?? 0
  if (before !== null && isFull(shares, share)) {
    const last = { generation, folded: before.folded + 1 }
    share.draft = { added, last }
    return { ...last, over: before.generation }
  }
  const last = { generation, folded: 0 }
  share.draft = { added: added + 1, last }
  countWaiting(shares, share, 1)
  return { ...last, over: null }
}

/** The draft is committed. */
export function keepPlaced(shares: PushShares, hook: string): void {
  const share = shares.hooks.get(hook)
  if (share === undefined || share.draft === null) return
  share.waiting += share.draft.added
  share.last = share.draft.last
  share.draft = null
}

/** The draft is dropped. */
export function undoPlaced(shares: PushShares, hook: string): void {
  const share = shares.hooks.get(hook)
  if (share === undefined || share.draft === null) return
  countWaiting(shares, share, -share.draft.added)
  share.draft = null
}

/** One is on record that was not placed: it was there before a start. */
export function restoreNotice(shares: PushShares, named: OwnedHook, placed: Placed): void {
  const share = shareOf(shares, named)
  share.waiting++
  if (share.last === null || share.last.generation < placed.generation) share.last = placed
  countWaiting(shares, share, 1)
}

/** May a notification that was given up wait again? */
export function mayRevive(shares: PushShares, { hook, owner }: OwnedHook): boolean {
  const share = shares.hooks.get(hook)
  return share === undefined ? shareFault(shares, owner) === null : !isFull(shares, share)
}

/** One that waited was taken, or given up. */
export function settleNotice(shares: PushShares, hook: string): void {
  const share = shares.hooks.get(hook)
  if (share === undefined || share.waiting === 0) return
  share.waiting--
  countWaiting(shares, share, -1)
  if (share.waiting > 0) return
  share.last = null
  forgetIdle(shares, hook)
}

function isFull({ bounds, owners }: PushShares, { owner, waiting, draft }: HookShare): boolean {
  const own = waiting + (draft?.added ?? 0)
  if (own < bounds.least) return false
  return own >= bounds.waitingOfHook || (owners.get(owner)?.waiting ?? 0) >= bounds.waitingOfOne
}

function shareOf({ hooks, owners }: PushShares, { hook, owner }: OwnedHook): HookShare {
  const known = hooks.get(hook)
  if (known !== undefined) return known
  const fresh: HookShare = { owner, isLive: false, waiting: 0, last: null, draft: null }
  hooks.set(hook, fresh)
  const all = owners.get(owner) ?? { hooks: 0, waiting: 0 }
  all.hooks++
  owners.set(owner, all)
  return fresh
}

function countWaiting({ owners }: PushShares, { owner }: HookShare, change: number): void {
  const all = owners.get(owner)
  if (all !== undefined) all.waiting += change
}

function forgetIdle({ hooks, owners }: PushShares, hook: string): void {
  const share = hooks.get(hook)
  if (share === undefined || share.isLive || share.waiting > 0 || share.draft !== null) return
  hooks.delete(hook)
  const all = owners.get(share.owner)
  if (all === undefined) return
  all.hooks--
  if (all.hooks === 0) owners.delete(share.owner)
}
