import type { AuditEvent } from '../../ports/audit.js'
import type { AuditChain, RepeatRules } from './audit-chains.js'
import { keptEvent } from './audit-line.js'
import type { AuditEntry } from './audit-line.js'

/** Windows open at once; what comes beyond them is counted by what its chain takes in a flood, whoever it is of. */
export const MAX_WINDOWS = 256

interface Window {
  /** Those that it is found among: of its peer, or of anybody in a flood. */
  readonly group: Window[]
  readonly endsAt: number
  /** The first event, without what later ones did not share with it. */
  common: AuditEvent
  /** Members that are there and that all of them shared so far. */
  shared: readonly (typeof VARYING)[number][]
  lastAt: number
  repeats: number
}

/** What a line may lose when it stands for several events that differ in it. */
const VARYING = ['rule', 'reason', 'peer', 'by', 'sender', 'recipient', 'messageType', 'sourceTier', 'targetTier', 'hops'] as const

const NONE: readonly AuditEntry[] = []
const NO_WINDOWS: readonly Window[] = []

/**
 * Turns floods of events into few lines: the first of a key is a line at once, those that follow within the window become one
 * line with `count` when it ends, with those members that all of them share. However keys vary, a window's time makes at most
 * {@link MAX_WINDOWS} times two lines and two for each key of a flood. Times in unix milliseconds are passed in.
 */
export class RepeatWindows {
  readonly #chain: Pick<AuditChain, 'windowMs' | 'repeats'>
  // In the order of opening, so also of ending.
  readonly #open = new Set<Window>()
  /** The one of them that ends first. */
  #first: Window | null = null
  readonly #ofPeer = new Map<string | undefined, Window[]>()
  readonly #ofFlood: Window[] = []

  constructor(chain: Pick<AuditChain, 'windowMs' | 'repeats'>) {
    this.#chain = chain
  }

  /** Takes an event. Returns the lines to write now: of windows that ended, then the event itself unless it is a repeat. */
  take(event: AuditEvent, now: number): readonly AuditEntry[] {
    const entries = this.ended(now)
    const { repeats } = this.#chain
    if (repeats !== null) {
      const { group, window } = this.#find(event, repeats)
      if (window === null) this.#begin(event, group, now)
      else {
        add(window, event, now)
        return entries
      }
    }
    return [...entries, entryOf(keptEvent(event), now)]
  }

  /** Closes the windows that ended by `now` (all with Infinity) and returns their lines. */
  ended(now: number): readonly AuditEntry[] {
    if (this.#first === null || this.#staysOpen(this.#first, now)) return NONE
    const entries: AuditEntry[] = []
    for (const window of this.#open) {
      if (this.#staysOpen(window, now)) break
      this.#close(window)
      entries.push(...repeatsOf(window))
    }
    ;[this.#first = null] = this.#open
    return entries
  }

  /** When the first window ends, or null when none is open. */
  get nextEnd(): number | null {
    return this.#first?.endsAt ?? null
  }

  /** The window that the event falls into, or null and the group in which one may be opened. */
  #find(event: AuditEvent, { isRepeat, isRepeatInFlood }: RepeatRules): { group: Window[]; window: Window | null } {
    const ofPeer = this.#ofPeer.get(event.peer)
    for (const window of ofPeer ?? NO_WINDOWS) if (isRepeat(window.common, event)) return { group: window.group, window }
    if (this.#open.size < MAX_WINDOWS) return { group: ofPeer ?? [], window: null }
    for (const window of this.#ofFlood) if (isRepeatInFlood(window.common, event)) return { group: window.group, window }
    return { group: this.#ofFlood, window: null }
  }

  #begin(event: AuditEvent, group: Window[], now: number): void {
    const shared = VARYING.filter((name) => event[name] !== undefined)
    const window: Window = { group, common: { ...event }, shared, endsAt: now + this.#chain.windowMs, lastAt: now, repeats: 0 }
    this.#open.add(window)
    this.#first ??= window
    group.push(window)
    if (group !== this.#ofFlood) this.#ofPeer.set(event.peer, group)
  }

  #close(window: Window): void {
    const { group, common } = window
    this.#open.delete(window)
    group.splice(group.indexOf(window), 1)
    if (group.length === 0 && group !== this.#ofFlood) this.#ofPeer.delete(common.peer)
  }

  #staysOpen({ endsAt }: Window, now: number): boolean {
    // A clock that was set back must not keep a window open for ever.
    return endsAt > now && endsAt - now <= this.#chain.windowMs
  }
}

function add(window: Window, event: AuditEvent, now: number): void {
  window.repeats++
  window.lastAt = now
  const { common, shared } = window
  for (const name of shared) if (common[name] !== event[name]) return differ(window, event)
}

/** Leaves out what this event does not share with those before it: soon nothing more, however many come. */
function differ(window: Window, event: AuditEvent): void {
  const { common, shared } = window
  const lost = new Set<string>(shared.filter((name) => common[name] !== event[name]))
  window.shared = shared.filter((name) => !lost.has(name))
  window.common = Object.fromEntries(Object.entries(common).filter(([name]) => !lost.has(name))) as unknown as AuditEvent
}

function repeatsOf({ common, lastAt, repeats }: Window): AuditEntry[] {
  if (repeats === 0) return []
  const entry = entryOf(keptEvent(common), lastAt)
  return [repeats === 1 ? entry : { ...entry, count: repeats }]
}

function entryOf(event: AuditEvent, at: number): AuditEntry {
  return { ...event, at: new Date(at).toISOString() }
}
