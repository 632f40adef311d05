import { backoffMs } from '../../../kit/backoff.js'
import type { AuditEvent } from '../../../ports/audit.js'
import type { AuditChain, RepeatRules } from './audit-chains.js'
import { keptEvent } from './audit-line.js'
import type { AuditEntry } from './audit-line.js'

/** Open windows; further events are folded by the flood fields of their chain, across peers. */
export const MAX_WINDOWS = 256
/** Distinct real repeats of one peer; further variants are folded by the peer fields of the chain. */
export const MAX_OF_PEER = 16

/**
 * Milliseconds until the count of a window is written again, at first and at most: each wait is twice the one before.
 */
const FIRST_WAIT_MS = 1000
const MAX_WAIT_MS = 8000

interface Window {
  readonly group: Window[]
  /** The windows of its peer; null for one of a flood. */
  readonly peer: PeerWindows | null
  readonly isFolded: boolean
  readonly endsAt: number
  readonly first: AuditEvent
  /** Fields in which later events differed from the first: one bit for each position of {@link VARYING}. */
  differing: number
  /** When the first of the repeats came that have no line yet. */
  firstAt: number
  /** Repeats without a line so far. */
  repeats: number
  /** When they get one. */
  dueAt: number
  lines: number
}

interface PeerWindows {
  /** Windows of events that agree in every field but the recipient, by recipient. */
  readonly exact: Map<string | undefined, Window[]>
  /** Of those beyond {@link MAX_OF_PEER}. */
  readonly folded: Window[]
  open: number
}

/** Fields that a line of several differing events drops: few for real repeats, all for folded ones. */
const LOOSE = ['reason', 'by', 'hops'] as const
const VARYING = [...LOOSE, 'rule', 'peer', 'sender', 'recipient', 'messageType', 'sourceTier', 'targetTier'] as const

const NONE: readonly AuditEntry[] = []
const NO_WINDOWS: readonly Window[] = []

/**
 * Reduces floods of events to few lines. The first event of a key is a line at once. Repeats within the window become
 * lines with `count`: one soon, others after waits that double up to eight seconds, one at the end. Real repeats keep
 * every distinguishing field. Events that vary too much are folded, and `several` names the fields in which they
 * differ. Ten seconds make at most {@link MAX_WINDOWS} times six lines plus six for each key of a flood; a minute makes
 * twelve. Times are unix milliseconds, passed in.
 */
export class RepeatWindows {
  readonly #chain: Pick<AuditChain, 'windowMs' | 'repeats'>
  // In the order of opening, so also of ending.
  readonly #open = new Set<Window>()
  #first: Window | null = null
  readonly #peers = new Map<string | undefined, PeerWindows>()
  readonly #ofFlood: Window[] = []
  #hasCounts = false

  constructor(chain: Pick<AuditChain, 'windowMs' | 'repeats'>) {
    this.#chain = chain
  }

  /**
   * Takes an event. Returns the lines to write now: of windows that ended, then the event itself unless it is a repeat.
   */
  take(event: AuditEvent, now: number): readonly AuditEntry[] {
    const entries = this.ended(now)
    const { repeats } = this.#chain
    if (repeats !== null) {
      const window = this.#find(event, repeats)
      if (window !== null) {
        add(window, event, now)
        this.#hasCounts = true
        return entries
      }
      this.#begin(event, now)
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

  /** May there be repeats that have no line yet? */
  get hasCounts(): boolean {
    return this.#hasCounts
  }

  /** The lines of the repeats whose time has come by `now`, of windows that stay open. */
  grown(now: number): readonly AuditEntry[] {
    const entries: AuditEntry[] = []
    this.#hasCounts = false
    for (const window of this.#open) {
      if (window.repeats === 0) continue
      // A clock that was set back must not hold them up.
      const isDue = window.dueAt <= now || window.dueAt - now > MAX_WAIT_MS
      if (isDue) entries.push(...counted(window, now))
      else this.#hasCounts = true
    }
    return entries
  }

  /** When the first window ends, or null when none is open. */
  get nextEnd(): number | null {
    return this.#first?.endsAt ?? null
  }

  /** The window that the event falls into; null when one is to be opened for it. */
  #find(event: AuditEvent, { isRepeat, isRepeatInFlood }: RepeatRules): Window | null {
    const peer = this.#peers.get(event.peer)
    for (const window of peer?.exact.get(event.recipient) ?? NO_WINDOWS)
      if (isSame(window.first, event) && isRepeat(window.first, event)) return window
    const hasCapacity = this.#open.size < MAX_WINDOWS
    if (hasCapacity && (peer === undefined || peer.open < MAX_OF_PEER)) return null
    for (const window of peer?.folded ?? NO_WINDOWS) if (isRepeat(window.first, event)) return window
    if (hasCapacity) return null
    for (const window of this.#ofFlood) if (isRepeatInFlood(window.first, event)) return window
    return null
  }

  #begin(event: AuditEvent, now: number): void {
    const { group, peer, isFolded } = this.#place(event)
    const endsAt = now + this.#chain.windowMs
    const counts = { differing: 0, firstAt: now, repeats: 0, dueAt: now, lines: 0 }
    const window: Window = { group, peer, isFolded, endsAt, first: { ...event }, ...counts }
    this.#open.add(window)
    this.#first ??= window
    group.push(window)
    if (peer !== null) peer.open++
  }

  /** Where a window for the event is opened. */
  #place({ peer: key, recipient }: AuditEvent): Pick<Window, 'group' | 'peer' | 'isFolded'> {
    if (this.#open.size >= MAX_WINDOWS) return { group: this.#ofFlood, peer: null, isFolded: true }
    const peer = this.#peers.get(key) ?? { exact: new Map<string | undefined, Window[]>(), folded: [], open: 0 }
    this.#peers.set(key, peer)
    if (peer.open >= MAX_OF_PEER) return { group: peer.folded, peer, isFolded: true }
    const group = peer.exact.get(recipient) ?? []
    peer.exact.set(recipient, group)
    return { group, peer, isFolded: false }
  }

  #close(window: Window): void {
    const { group, peer, first, isFolded } = window
    this.#open.delete(window)
    group.splice(group.indexOf(window), 1)
    if (peer === null) return
    if (!isFolded && group.length === 0) peer.exact.delete(first.recipient)
    if (--peer.open === 0) this.#peers.delete(first.peer)
  }

  #staysOpen({ endsAt }: Window, now: number): boolean {
    // A clock that was set back must not keep a window open for ever.
    return endsAt > now && endsAt - now <= this.#chain.windowMs
  }
}

/** Do two events of one peer and one recipient agree in every field that no rule of a chain compares? */
function isSame(one: AuditEvent, other: AuditEvent): boolean {
  if (one.sender !== other.sender || one.messageType !== other.messageType) return false
  return one.sourceTier === other.sourceTier && one.targetTier === other.targetTier
}

function add(window: Window, event: AuditEvent, now: number): void {
  if (window.repeats++ === 0) window.firstAt = now
  window.differing |= differing(window, event)
}

/** The line of the repeats so far; the window counts on from none. */
function counted(window: Window, now: number): AuditEntry[] {
  const entries = repeatsOf(window)
  window.repeats = 0
  window.differing = 0
  window.dueAt = now + backoffMs({ baseMs: FIRST_WAIT_MS, maxMs: MAX_WAIT_MS }, window.lines++)
  return entries
}

/**
 * Fields in which an event differs from the first, as bits. A flood runs this code: it compares name by name, and
 * senders only until two differ.
 */
function differing({ first, differing: known, isFolded }: Window, event: AuditEvent): number {
  const loose =
    (first.reason === event.reason ? 0 : 1) | (first.by === event.by ? 0 : 2) | (first.hops === event.hops ? 0 : 4)
  if (!isFolded) return loose
  let bits = loose | (first.rule === event.rule ? 0 : 8) | (first.messageType === event.messageType ? 0 : 128)
  if (first.sourceTier !== event.sourceTier) bits |= 256
  if (first.targetTier !== event.targetTier) bits |= 512
  if ((known & 16) === 0 && first.peer !== event.peer) bits |= 16
  if ((known & 32) === 0 && first.sender !== event.sender) bits |= 32
  if ((known & 64) === 0 && first.recipient !== event.recipient) bits |= 64
  return bits
}

/** The line of the repeats, without what they do not share. */
function repeatsOf({ first, differing: bits, firstAt, repeats }: Window): AuditEntry[] {
  if (repeats === 0) return []
  const several = VARYING.filter((_, place) => (bits & (1 << place)) !== 0)
  const left = new Set<string>(several)
  const common = Object.fromEntries(Object.entries(first).filter(([name]) => !left.has(name))) as unknown as AuditEvent
  const entry = { ...entryOf(keptEvent(common), firstAt), ...(several.length === 0 ? {} : { several }) }
  return [repeats === 1 ? entry : { ...entry, count: repeats }]
}

function entryOf(event: AuditEvent, at: number): AuditEntry {
  return { ...event, at: new Date(at).toISOString() }
}
