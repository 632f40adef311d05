import type { AuditEvent } from '../../ports/audit.js'
import type { AuditEntry } from './audit-line.js'

/** Milliseconds in which equal events become one line. */
export const REPEAT_WINDOW_MS = 10_000
/** Windows open at once; a peer that varies what it does wrong closes the oldest early. */
const MAX_WINDOWS = 1000

interface Window {
  readonly event: AuditEvent
  readonly endsAt: number
  lastAt: number
  repeats: number
}

/**
 * Turns floods of equal events into few lines: the first is a line at once, those that follow within 10 s become one line
 * with `count` when the window ends. Equal: same kind, code, rule, peer, sender, recipient and message type. Times in unix
 * milliseconds are passed in.
 */
export class RepeatWindows {
  // In the order of opening, so also of ending.
  readonly #open = new Map<string, Window>()

  /** Takes an event. Returns the lines to write now: of windows that ended, then the event itself unless it is a repeat. */
  take(event: AuditEvent, now: number): AuditEntry[] {
    const entries = this.ended(now)
    const key = JSON.stringify([event.kind, event.code, event.rule, event.peer, event.sender, event.recipient, event.messageType])
    const window = this.#open.get(key)
    if (window !== undefined) {
      window.repeats++
      window.lastAt = now
      return entries
    }
    if (this.#open.size >= MAX_WINDOWS) entries.push(...this.#closeOldest())
    this.#open.set(key, { event, endsAt: now + REPEAT_WINDOW_MS, lastAt: now, repeats: 0 })
    return [...entries, entryOf(event, now)]
  }

  /** Closes the windows that ended by `now` (all with Infinity) and returns their lines. */
  ended(now: number): AuditEntry[] {
    const entries: AuditEntry[] = []
    for (const [key, window] of this.#open) {
      // A clock that was set back must not keep a window open for ever.
      if (window.endsAt > now && window.endsAt - now <= REPEAT_WINDOW_MS) break
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

  #closeOldest(): AuditEntry[] {
    const [oldest] = this.#open
    if (oldest === undefined) return []
    this.#open.delete(oldest[0])
    return repeatsOf(oldest[1])
  }
}

function repeatsOf({ event, lastAt, repeats }: Window): AuditEntry[] {
  if (repeats === 0) return []
  return [repeats === 1 ? entryOf(event, lastAt) : { ...entryOf(event, lastAt), count: repeats }]
}

function entryOf(event: AuditEvent, at: number): AuditEntry {
  return { ...event, at: new Date(at).toISOString() }
}
