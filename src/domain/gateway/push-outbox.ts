import { MAX_RETRY_AFTER_MS } from './push-verdict.js'

/** Hooks that are served at once. */
export const MAX_SENDING = 64
/** The same of one caller's. */
export const MAX_SENDING_OF_ONE = 16
/** Least milliseconds between two looks at due notifications. */
const LOOK_MS = 100

/** One hook with pending notifications. Their content and order are in the ledger alone. */
interface HookQueue {
  readonly owner: string
  /** `gone`: it was removed while a notification was being sent to it. */
  phase: 'ready' | 'busy' | 'resting' | 'gone'
  /** Of one that rests. */
  dueAt: number
  /** Something was queued since it became busy. */
  isChanged: boolean
  /** A person does not want to wait until it is due. */
  isHurried: boolean
}

/** The hooks with pending notifications. Changed in place. */
export interface PushOutbox {
  readonly lines: Map<string, HookQueue>
  /** Hooks that wait for their turn, by owner; owners take turns. */
  readonly ready: Map<string, Set<string>>
  /** Number of hooks with a notification being sent, by owner. */
  readonly busy: Map<string, number>
  /** Time of the next look for due hooks; Infinity for never. */
  wakeAt: number
}

/** Inputs about hooks. */
export type PushInput =
  /** Something waits for it, durably. */
  | { readonly type: 'queued'; readonly hook: string; readonly owner: string }
  /** A `serve` has ended: nothing is left (null), or the oldest remaining notification is due then. */
  | { readonly type: 'served'; readonly hook: string; readonly dueAt: number | null }
  /** It gets nothing any more. */
  | { readonly type: 'removed'; readonly hook: string }
  /** A person wants it tried now. */
  | { readonly type: 'hurry'; readonly hook: string }
  | { readonly type: 'time' }

/** Effects for the owner of the outbox. */
export type PushEffect =
  /** Look for the oldest notification of the hook, and send it when it is due or `isHurried`; then say `served`. */
  | { readonly type: 'serve'; readonly hook: string; readonly isHurried: boolean }
  /** End the delivery that `serve` began, and reply with `served`. */
  | { readonly type: 'stop'; readonly hook: string }
  /** Give `time` as input then; earlier wake times no longer count. */
  | { readonly type: 'wake'; readonly at: number }

/** An outbox with nothing in it. */
export function emptyOutbox(): PushOutbox {
  return { lines: new Map(), ready: new Map(), busy: new Map(), wakeAt: Number.POSITIVE_INFINITY }
}

/** May a time be waited for? One that is further away was made by another clock. */
export function isFuture(dueAt: number, now: number): boolean {
  return dueAt > now && dueAt <= now + MAX_RETRY_AFTER_MS
}

/**
 * Moves the outbox by one input, and returns the effects in order. A hook is served by one worker at a time, so its
 * notifications are in order. A slow or resting hook occupies only its own slot.
 */
export function stepPush(outbox: PushOutbox, input: PushInput, now: number): PushEffect[] {
  const effects: PushEffect[] = []
  if (input.type === 'time') wakeUp(outbox, now, effects)
  else if (input.type === 'queued') queue(outbox, input)
  else {
    const line = outbox.lines.get(input.hook)
    if (line === undefined) return effects
    if (input.type === 'served') served(outbox, { ...input, line, now }, effects)
    else if (input.type === 'removed') remove(outbox, { hook: input.hook, line }, effects)
    else hurry(outbox, { hook: input.hook, line })
  }
  fill(outbox, effects)
  return effects
}

interface NamedNotice {
  readonly hook: string
  readonly line: HookQueue
}

function queue(outbox: PushOutbox, { hook, owner }: { readonly hook: string; readonly owner: string }): void {
  const line = outbox.lines.get(hook)
  if (line !== undefined) {
    line.isChanged = true
    return
  }
  const fresh: HookQueue = { owner, phase: 'ready', dueAt: 0, isChanged: false, isHurried: false }
  outbox.lines.set(hook, fresh)
  makeReady(outbox, { hook, line: fresh })
}

function served(
  outbox: PushOutbox,
  { hook, line, dueAt, now }: NamedNotice & { readonly dueAt: number | null; readonly now: number },
  effects: PushEffect[]
): void {
  if (line.phase !== 'busy' && line.phase !== 'gone') return
  free(outbox, line.owner)
  if (line.phase === 'gone' || (dueAt === null && !line.isChanged)) outbox.lines.delete(hook)
  else if (dueAt === null || !isFuture(dueAt, now)) makeReady(outbox, { hook, line })
  else {
    line.phase = 'resting'
    line.dueAt = dueAt
    if (dueAt < outbox.wakeAt) wakeAt(outbox, Math.max(dueAt, now + LOOK_MS), effects)
  }
}

function hurry(outbox: PushOutbox, { hook, line }: NamedNotice): void {
  line.isHurried = true
  if (line.phase === 'resting') makeReady(outbox, { hook, line })
}

function remove(outbox: PushOutbox, { hook, line }: NamedNotice, effects: PushEffect[]): void {
  if (line.phase === 'gone') return
  if (line.phase === 'busy') {
    line.phase = 'gone'
    effects.push({ type: 'stop', hook })
    return
  }
  if (line.phase === 'ready') unready(outbox, { hook, line })
  outbox.lines.delete(hook)
}

function wakeUp(outbox: PushOutbox, now: number, effects: PushEffect[]): void {
  let next = Number.POSITIVE_INFINITY
  for (const [hook, line] of outbox.lines) {
    if (line.phase !== 'resting') continue
    if (isFuture(line.dueAt, now)) next = Math.min(next, line.dueAt)
    else makeReady(outbox, { hook, line })
  }
  outbox.wakeAt = Number.POSITIVE_INFINITY
  if (next !== Number.POSITIVE_INFINITY) wakeAt(outbox, Math.max(next, now + LOOK_MS), effects)
}

function wakeAt(outbox: PushOutbox, at: number, effects: PushEffect[]): void {
  outbox.wakeAt = at
  effects.push({ type: 'wake', at })
}

/** Gives the free places away: to each owner in turn, as long as it has not its share. */
function fill(outbox: PushOutbox, effects: PushEffect[]): void {
  for (;;) {
    const owner = totalOf(outbox) < MAX_SENDING ? nextOwner(outbox) : undefined
    const hook = owner === undefined ? undefined : outbox.ready.get(owner)?.values().next().value
    const line = hook === undefined ? undefined : outbox.lines.get(hook)
    if (hook === undefined || line === undefined) return
    unready(outbox, { hook, line })
    const others = outbox.ready.get(line.owner)
    if (others !== undefined) {
      outbox.ready.delete(line.owner)
      outbox.ready.set(line.owner, others)
    }
    begin(outbox, { hook, line }, effects)
  }
}

function nextOwner({ ready, busy }: PushOutbox): string | undefined {
  for (const owner of ready.keys()) if ((busy.get(owner) ?? 0) < MAX_SENDING_OF_ONE) return owner
  return undefined
}

function begin({ busy }: PushOutbox, { hook, line }: NamedNotice, effects: PushEffect[]): void {
  effects.push({ type: 'serve', hook, isHurried: line.isHurried })
  line.phase = 'busy'
  line.isChanged = false
  line.isHurried = false
  busy.set(line.owner, (busy.get(line.owner) ?? 0) + 1)
}

function makeReady({ ready }: PushOutbox, { hook, line }: NamedNotice): void {
  line.phase = 'ready'
  ready.set(line.owner, (ready.get(line.owner) ?? new Set<string>()).add(hook))
}

function unready({ ready }: PushOutbox, { hook, line }: NamedNotice): void {
  const hooks = ready.get(line.owner)
  hooks?.delete(hook)
  if (hooks?.size === 0) ready.delete(line.owner)
}

function free({ busy }: PushOutbox, owner: string): void {
  const left = (busy.get(owner) ?? 1) - 1
  if (left === 0) busy.delete(owner)
  else busy.set(owner, left)
}

function totalOf({ busy }: PushOutbox): number {
  let total = 0
  for (const count of busy.values()) total += count
  return total
}
