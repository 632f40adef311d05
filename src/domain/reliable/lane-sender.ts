import { jitteredBackoffMs } from '../../kit/backoff.js'

/** Messages of one lane under way at once. */
export const WINDOW = 256
/** Bytes of them, beyond the first. */
export const WINDOW_BYTES = 4 * 1024 * 1024
/**
 * Largest number of a message that is taken from a receiver; a hundred thousand a second for a thousand years are
 * fewer.
 */
export const MAX_SEQ = 2 ** 52

/** Numbers of one lane for each millisecond of the wall clock: more than it can send. */
const NUMBERS_PER_MS = 512

/**
 * Number of the first message of a lane without a record, or with one of an older ledger. It is above the numbers
 * before the loss, which relays may still carry. If the clock was put back since, {@link isOfAnother} detects it over
 * links. A relayed message may then be taken for a new one of its number.
 * @param wall unix milliseconds
 */
export function firstNumber(wall: number): number {
  // Below half of all numbers, until the year 2109, for a lane never to run out of them.
  return Math.min(Math.max(0, Math.floor(wall)) * NUMBERS_PER_MS, MAX_SEQ / 2) + 1
}

/** A message of a lane that its receiver has not acknowledged. */
export interface Unacked {
  readonly seq: number
  readonly messageId: string
  /** Of the message as it is sent. */
  readonly bytes: number
  /** Unix milliseconds; then it is given up. */
  readonly expiresAt: number
  /** It was given up, but others before it were not: its number is sent without it. */
  readonly isVoid: boolean
  /** Of the request that it belongs to; null or absent for none. */
  readonly requestId?: string | null
}

/** Requests of one lane of which it is found out whether they got there, at most. */
export const MAX_DOUBTFUL = 1024

/** The sending end of a lane: the ordered messages of one agent to another. Owned by its caller. */
export interface LaneSender {
  /** Number of the next new message; see {@link firstNumber}. */
  next: number
  /** Every number up to this one is acknowledged or given up. */
  acked: number
  /** The messages behind it in the ledger, in order. */
  live: Unacked[]
  /** `greeting`: the receiver has not yet sent its position. */
  link: 'down' | 'greeting' | 'up'
  /**
   * Monotonic milliseconds: until then messages with these numbers may be under way, and the numbers are not changed.
   */
  keepsNumbersUntil: number
  /**
   * Was there no other path when this one came, and none over relays? A message that went over another one may arrive
   * at any time.
   */
  isOnly: boolean
  /** Highest number that was sent over this link. */
  sent: number
  /** The receiver's name of its ledger: another name shows that it lost its state. null: unknown yet. */
  ledger: string | null
  /** Higher numbers are certainly not with the receiver. */
  reached: number
  /**
   * Abandoned messages that the receiver may have: its next position tells. Beyond {@link MAX_DOUBTFUL} the oldest stay
   * unknown.
   */
  doubtful: Unacked[]
  /** When the receiver is asked for its position; null while nothing is under way. */
  askAt: number | null
  /** Times in a row that nothing came back. */
  retries: number
}

/** Inputs of the sending end. */
export type SenderInput =
  /** Messages are in the ledger, in order, behind those that are. */
  | { readonly type: 'recorded'; readonly messages: readonly Unacked[] }
  /** Messages that had a number could not be recorded. `pending`: the highest number that still may be; 0 for none. */
  | { readonly type: 'unrecorded'; readonly pending: number }
  /** The receiver is reachable. `mayLinger`: messages that were sent before may still arrive, over relays. */
  | { readonly type: 'up'; readonly mayLinger?: boolean }
  | { readonly type: 'down' }
  /**
   * The receiver's last number, and the message that bore it (null: not given). `ledger`: the name of its ledger,
   * unless it is about to receive more. `isAnswer`: false when no greeting asked for it; absent: true.
   */
  | {
      readonly type: 'ack'
      readonly ack: number
      readonly messageId: string | null
      readonly ledger?: string | undefined
      readonly isAnswer?: boolean | undefined
    }
  /** The numbers were changed in the ledger. */
  | { readonly type: 'renumbered'; readonly first: number }
  /** These are no longer needed. */
  | { readonly type: 'give-up'; readonly messageIds: ReadonlySet<string> }
  /** The channel has no room for this number and those behind it. */
  | { readonly type: 'full'; readonly seq: number }
  /** Time passed, or the window has room again. `chance` in [0, 1); `wall`: unix milliseconds. */
  | { readonly type: 'tick'; readonly chance: number; readonly wall: number }

/** Effects for the owner of a sending end. */
export type SenderEffect =
  /** Tell the receiver {@link baseOf} the lane and ask for its position. */
  | { readonly type: 'greet' }
  | { readonly type: 'send'; readonly messages: readonly Unacked[] }
  /** These were given up: tell their senders. */
  | { readonly type: 'expired'; readonly messages: readonly Unacked[] }
  /**
   * These were given up, and certainly never were, nor will be, with the receiver. Tell it once all removals before are
   * durable.
   */
  | { readonly type: 'undelivered'; readonly messages: readonly Unacked[] }
  /** Remove these from the ledger: they are acknowledged or given up. */
  | { readonly type: 'forget'; readonly messages: readonly Unacked[] }
  /** Remove the content of these from the ledger, not their numbers. */
  | { readonly type: 'blank'; readonly messages: readonly Unacked[] }
  /**
   * The receiver has other messages under these numbers: this end lost its memory. Number all from `first` on, then say
   * so.
   */
  | { readonly type: 'renumber'; readonly first: number }

/** How long a sender waits for a sign before it asks: 2 s, then up to 2 s, 4 s, ... 60 s more, without end. */
export const ASK_BACKOFF = { baseMs: 2000, maxMs: 60_000 }

/** A sending end as the ledger has it, without a link. */
export function openSender(next: number, live: readonly Unacked[]): LaneSender {
  const acked = (live[0]?.seq ?? next) - 1
  const fresh = {
    link: 'down',
    keepsNumbersUntil: 0,
    isOnly: true,
    sent: 0,
    ledger: null,
    reached: next - 1,
    askAt: null,
    retries: 0
  } as const
  return { next, acked, live: [...live], doubtful: [], ...fresh }
}

/** The lowest number that the receiver can still get. */
export function baseOf({ live, acked }: LaneSender): number {
  return live[0]?.seq ?? acked + 1
}

/** Moves a sending end: changes the lane and returns the effects. `now`: monotonic milliseconds, for the waits. */
export function stepSender(lane: LaneSender, input: SenderInput, now: number): SenderEffect[] {
  switch (input.type) {
    case 'recorded':
      lane.live.push(...input.messages)
      // A lane without anything under way has not asked yet; its first message does.
      return lane.link === 'greeting' && lane.askAt === null ? ask(lane, now) : send(lane, now)
    case 'unrecorded':
      lane.next = Math.max(lane.acked, lane.live.at(-1)?.seq ?? 0, input.pending) + 1
      return []
    case 'up':
      Object.assign(lane, {
        isOnly: lane.link === 'down' && input.mayLinger !== true,
        link: 'greeting',
        sent: 0,
        retries: 0,
        askAt: null
      })
      return ask(lane, now)
    case 'down':
      Object.assign(lane, { link: 'down', sent: 0, askAt: null })
      return []
    case 'ack':
      return acknowledged(lane, input, now)
    case 'renumbered':
      return renumbered(lane, input.first, now)
    case 'full':
      lane.sent = Math.min(lane.sent, input.seq - 1)
      return []
    case 'give-up':
      return expire(lane, ({ messageId }) => input.messageIds.has(messageId))
    case 'tick':
      return [...expire(lane, ({ expiresAt }) => expiresAt <= input.wall), ...again(lane, input.chance, now)]
  }
}

function ask(lane: LaneSender, now: number): SenderEffect[] {
  if (isIdle(lane)) return []
  lane.askAt = now + ASK_BACKOFF.baseMs
  return [{ type: 'greet' }]
}

function isIdle({ live, doubtful }: LaneSender): boolean {
  return live.length === 0 && doubtful.length === 0
}

function acknowledged(lane: LaneSender, input: Extract<SenderInput, { type: 'ack' }>, now: number): SenderEffect[] {
  const { ack, messageId } = input
  if (lane.link === 'down' || !Number.isSafeInteger(ack) || ack < 0 || ack > MAX_SEQ) return []
  if (ack > lane.sent && lane.link === 'up') return []
  // Until the greeting is answered, the receiver may hold messages from before, of numbers that mean others by now.
  if (lane.link === 'greeting' && input.isAnswer === false) return []
  if (isOfAnother(lane, ack, messageId)) return foreign(lane, ack, now)
  if (lane.link === 'greeting') {
    // Only missing messages are sent.
    const messages = lane.sent === 0 ? undelivered(lane, input) : []
    Object.assign(lane, { link: 'up', sent: ack, retries: 0, askAt: null })
    // The listener may give up the others.
    if (messages.length > 0) return [...settle(lane, ack), { type: 'undelivered', messages }]
  }
  return [...settle(lane, ack), ...send(lane, now)]
}

/**
 * Abandoned messages that the receiver does not have, if its ledger is unchanged. Only its position before the first
 * message over this link proves that: later the message and an older position may be under way.
 */
function undelivered(lane: LaneSender, { ack, ledger }: Extract<SenderInput, { type: 'ack' }>): readonly Unacked[] {
  if (ledger === undefined || !lane.isOnly) return []
  const isSame = ledger === lane.ledger
  const messages = isSame ? lane.doubtful.filter(({ seq }) => seq > ack) : []
  Object.assign(lane, { ledger, doubtful: [], reached: isSame ? ack : lane.reached })
  return messages
}

/** Does the receiver have a number that this end never sent? Then this end lost its memory, and uses numbers again. */
function isOfAnother(lane: LaneSender, ack: number, messageId: string | null): boolean {
  if (ack >= lane.next) return true
  const mine = lane.live.find(({ seq }) => seq === ack)
  return mine !== undefined && messageId !== null && mine.messageId !== messageId
}

/**
 * Renumbers the messages, but not while old numbers may be under way: the receiver would take those for the messages
 * with the same new numbers. Several changes may be needed while relays carry messages from before the loss.
 */
function foreign(lane: LaneSender, ack: number, now: number): SenderEffect[] {
  const isTooSoon = lane.link === 'up' || now < lane.keepsNumbersUntil
  Object.assign(lane, { link: 'greeting', askAt: now + ASK_BACKOFF.baseMs })
  return isTooSoon ? [] : [{ type: 'renumber', first: ack + 1 }]
}

function renumbered(lane: LaneSender, first: number, now: number): SenderEffect[] {
  lane.live = lane.live.map((message, at) => ({ ...message, seq: first + at }))
  Object.assign(lane, { acked: first - 1, next: first + lane.live.length, sent: 0, doubtful: [] })
  lane.keepsNumbersUntil = now + ASK_BACKOFF.baseMs
  lane.reached = lane.next - 1
  return lane.link === 'greeting' ? ask(lane, now) : []
}

function settle(lane: LaneSender, ack: number): SenderEffect[] {
  const kept = lane.live.findIndex(({ seq }) => seq > ack)
  const messages = lane.live.splice(0, kept === -1 ? lane.live.length : kept)
  if (lane.doubtful.length > 0) lane.doubtful = lane.doubtful.filter(({ seq }) => seq > ack)
  if (messages.length === 0) return []
  Object.assign(lane, { acked: Math.max(lane.acked, ack), retries: 0, askAt: null })
  return [{ type: 'forget', messages }]
}

/** Sends messages while the window has room. */
function send(lane: LaneSender, now: number): SenderEffect[] {
  if (lane.link !== 'up' || lane.live.length === 0) return []
  lane.askAt ??= now + ASK_BACKOFF.baseMs
  const messages: Unacked[] = []
  let bytes = 0
  for (const message of lane.live.slice(0, WINDOW)) {
    bytes += message.bytes
    if (bytes > WINDOW_BYTES && bytes > message.bytes) break
    if (message.seq > lane.sent) messages.push(message)
  }
  const last = messages.at(-1)
  if (last === undefined) return []
  lane.sent = last.seq
  lane.reached = Math.max(lane.reached, last.seq)
  lane.keepsNumbersUntil = now + ASK_BACKOFF.baseMs
  return [{ type: 'send', messages }]
}

/** No answer for too long: asks for the receiver's position, so that only missing messages are sent once more. */
function again(lane: LaneSender, chance: number, now: number): SenderEffect[] {
  if (isIdle(lane)) lane.askAt = null
  if (lane.link === 'down' || lane.askAt === null || now < lane.askAt) return send(lane, now)
  lane.link = 'greeting'
  lane.askAt = now + ASK_BACKOFF.baseMs + jitteredBackoffMs(ASK_BACKOFF, lane.retries++, chance)
  return [{ type: 'greet' }]
}

/**
 * Gives up expired and unwanted messages: from the front without a trace, further behind as a number without content.
 */
function expire(lane: LaneSender, isUnwanted: (message: Unacked) => boolean): SenderEffect[] {
  const isOver = (message: Unacked): boolean => message.isVoid || isUnwanted(message)
  const firstLive = lane.live.findIndex((message) => !isOver(message))
  const front = lane.live.splice(0, firstLive === -1 ? lane.live.length : firstLive)
  lane.acked = Math.max(lane.acked, front.at(-1)?.seq ?? 0)
  const blank = lane.live.filter((message) => !message.isVoid && isOver(message))
  if (blank.length > 0)
    lane.live = lane.live.map((message) => (isOver(message) ? { ...message, isVoid: true, bytes: 0 } : message))
  const expired = [...front.filter(({ isVoid }) => !isVoid), ...blank]
  const effects: SenderEffect[] = []
  const never = expired.filter(({ seq }) => seq > lane.reached)
  const doubtful = expired.filter(({ seq, requestId = null }) => seq <= lane.reached && requestId !== null)
  if (doubtful.length > 0) lane.doubtful = [...lane.doubtful, ...doubtful].slice(-MAX_DOUBTFUL)
  if (expired.length > 0) effects.push({ type: 'expired', messages: expired })
  if (front.length > 0) effects.push({ type: 'forget', messages: front })
  if (blank.length > 0) effects.push({ type: 'blank', messages: blank })
  if (never.length > 0) effects.push({ type: 'undelivered', messages: never })
  return effects
}
