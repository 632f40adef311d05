import type { AuditEvent } from '../../ports/audit.js'
import type { AuditChain } from './audit-chains.js'
import { keptEvent } from './audit-line.js'
import type { AuditEntry } from './audit-line.js'

/** Windows open at once; what comes beyond them is counted by what its chain takes in a flood, whoever it is of. */
export const MAX_WINDOWS = 256

interface Window {
  readonly endsAt: number
  /** The first event, without what later ones did not share with it. */
  readonly common: Record<string, string | undefined>
  /** Members that all of them shared so far. */
  shared: readonly (typeof VARYING)[number][]
  lastAt: number
  repeats: number
}

/** What a line may lose when it stands for several events that differ in it. */
const VARYING = ['rule', 'reason', 'peer', 'by', 'sender', 'recipient', 'messageType', 'sourceTier', 'targetTier', 'hops'] as const

/**
 * Turns floods of events into few lines: the first of a key is a line at once, those that follow within the window become one
 * line with `count` when it ends, with those members that all of them share. However keys vary, a window's time makes at most
 * {@link MAX_WINDOWS} times two lines and two for each key of a flood. Times in unix milliseconds are passed in.
 */
export class RepeatWindows {
  readonly #chain: Pick<AuditChain, 'windowMs' | 'repeatKey'>
  // In the order of opening, so also of ending.
  readonly #open = new Map<string, Window>()

  constructor(chain: Pick<AuditChain, 'windowMs' | 'repeatKey'>) {
    this.#chain = chain
  }

  /** Takes an event. Returns the lines to write now: of windows that ended, then the event itself unless it is a repeat. */
  take(event: AuditEvent, now: number): AuditEntry[] {
    const entries = this.ended(now)
    const wanted = this.#chain.repeatKey(event, false)
    if (wanted === null) return [...entries, entryOf(keptEvent(event), now)]
    const isFull = this.#open.size >= MAX_WINDOWS && !this.#open.has(wanted)
    const key = isFull ? (this.#chain.repeatKey(event, true) ?? wanted) : wanted
    const window = this.#open.get(key)
    if (window !== undefined) {
      window.repeats++
      window.lastAt = now
      differ(window, event)
      return entries
    }
    const common = { ...(event as unknown as Record<string, string | undefined>) }
    this.#open.set(key, { common, shared: VARYING, endsAt: now + this.#chain.windowMs, lastAt: now, repeats: 0 })
    return [...entries, entryOf(keptEvent(event), now)]
  }

  /** Closes the windows that ended by `now` (all with Infinity) and returns their lines. */
  ended(now: number): AuditEntry[] {
    const entries: AuditEntry[] = []
    for (const [key, window] of this.#open) {
      // A clock that was set back must not keep a window open for ever.
      if (window.endsAt > now && window.endsAt - now <= this.#chain.windowMs) break
      this.#open.delete(key)
      entries.push(...repeatsOf(window))
    }
    return entries
  }

  /** When the first window ends, or null when none is open. */
  get nextEnd(): number | null {
    const [first] = this.#open.values()
    return first?.endsAt ?? null
  }
}

/** Leaves out what this event does not share with those before it: soon nothing more, however many come. */
function differ(window: Window, event: AuditEvent): void {
  const { common, shared } = window
  if (shared.every((name) => common[name] === event[name])) return
  window.shared = shared.filter((name) => common[name] === event[name])
  for (const name of VARYING) if (!window.shared.includes(name)) common[name] = undefined
}

function repeatsOf({ common, lastAt, repeats }: Window): AuditEntry[] {
  if (repeats === 0) return []
  const entry = entryOf(keptEvent(common as unknown as AuditEvent), lastAt)
  return [repeats === 1 ? entry : { ...entry, count: repeats }]
}

function entryOf(event: AuditEvent, at: number): AuditEntry {
  return { ...event, at: new Date(at).toISOString() }
}
