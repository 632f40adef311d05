/** Messages of one lane that wait for those before them. */
export const MAX_BUFFERED = 256
/** Bytes of them. */
export const MAX_BUFFERED_BYTES = 4 * 1024 * 1024
/** Milliseconds that an acknowledgement may wait for further messages. */
export const ACK_AFTER_MS = 20
/** Messages that one acknowledgement may wait for. */
export const ACK_EVERY = 16

/** A message of a lane on arrival. `T` is whatever its owner keeps of it. */
export interface Arrived<T> {
  readonly seq: number
  /** The lowest number that may still arrive: missing numbers before it never will. */
  readonly base: number
  readonly messageId: string
  readonly bytes: number
  readonly content: T
}

/** The receiving end of a lane. Owned by its caller. */
export interface LaneReceiver<T> {
  /** Every number up to this one is durable here, or will never come. */
  contig: number
  /** Id of the message of that number; null before the first. */
  lastId: string | null
  /** Highest number that was handed on to be made durable. */
  taken: number
  /** Numbers up to here never come: their sender has given them up. */
  dead: number
  /** Messages that came before their turn. */
  readonly waiting: Map<number, Arrived<T>>
  waitingBytes: number
  /** Durable messages that are not acknowledged yet. */
  unacked: number
  /** When they are acknowledged at the latest; null when there are none. */
  ackAt: number | null
  /** The sender waits for the position of this end. */
  isGreeted: boolean
}

/** Inputs of the receiving end. */
export type ReceiverInput<T> =
  | { readonly type: 'arrived'; readonly message: Arrived<T> }
  /** All up to this number is durable. */
  | { readonly type: 'committed'; readonly seq: number; readonly messageId: string }
  /** The commit of taken messages failed: they must come again. */
  | { readonly type: 'failed' }
  /** The sender asks for this end's position. */
  | { readonly type: 'greeted' }
  /** The sender is gone. */
  | { readonly type: 'down' }
  | { readonly type: 'tick' }

/** Effects for the owner of a receiving end. */
export type ReceiverEffect<T> =
  /** Make these durable, together and in this order; then say `committed`. */
  | { readonly type: 'take'; readonly messages: readonly Arrived<T>[] }
  /**
   * Tell the sender `contig` and `lastId`. `isAnswer`: it asked, and nothing that came before it asked is held any
   * more.
   */
  | { readonly type: 'ack'; readonly isAnswer: boolean }

/** A receiving end as the ledger has it; a fresh one begins with 0 and null. */
export function openReceiver<T>({ contig, lastId }: Pick<LaneReceiver<T>, 'contig' | 'lastId'>): LaneReceiver<T> {
  return {
    contig,
    lastId,
    taken: contig,
    dead: 0,
    waiting: new Map(),
    waitingBytes: 0,
    unacked: 0,
    ackAt: null,
    isGreeted: false
  }
}

/** Moves a receiving end: changes the lane and returns the effects. `now`: monotonic milliseconds. */
export function stepReceiver<T>(lane: LaneReceiver<T>, input: ReceiverInput<T>, now: number): ReceiverEffect<T>[] {
  switch (input.type) {
    case 'arrived':
      return arrived(lane, input.message)
    case 'committed':
      return committed(lane, input, now)
    case 'failed':
      lane.taken = lane.contig
      clear(lane)
      return lane.isGreeted ? acknowledge(lane) : []
    case 'greeted':
      return greeted(lane)
    case 'down':
      // It sends all of it again when it is back.
      clear(lane)
      return []
    case 'tick':
      return lane.ackAt !== null && now >= lane.ackAt && !lane.isGreeted ? acknowledge(lane) : []
  }
}

/** Messages of an earlier link may have stale numbers. Messages already taken are committed first. */
function greeted<T>(lane: LaneReceiver<T>): ReceiverEffect<T>[] {
  clear(lane)
  Object.assign(lane, { dead: 0, isGreeted: true })
  return lane.taken === lane.contig ? acknowledge(lane) : []
}

/** Would this message be taken at once? Else it waits for others, or is here already. */
export function isNextOf<T>(lane: LaneReceiver<T>, { seq, base }: Pick<Arrived<T>, 'seq' | 'base'>): boolean {
  return seq === Math.max(nextOf(lane), base)
}

function arrived<T>(lane: LaneReceiver<T>, message: Arrived<T>): ReceiverEffect<T>[] {
  // It came before, and so did its acknowledgement, unless that was lost.
  if (message.seq <= lane.contig) return acknowledge(lane)
  if (message.seq <= lane.taken || lane.waiting.has(message.seq)) return []
  bury(lane, message.base - 1)
  // An old copy of a message that its sender has given up since.
  if (message.seq <= lane.dead) return []
  if (message.seq !== nextOf(lane)) {
    keep(lane, message)
    return []
  }
  const messages = [message]
  lane.taken = message.seq
  for (let next = takeNext(lane); next !== null; next = takeNext(lane)) messages.push(next)
  return [{ type: 'take', messages }]
}

function nextOf<T>({ taken, dead }: LaneReceiver<T>): number {
  return Math.max(taken, dead) + 1
}

/** The next message, when it is here already. */
function takeNext<T>(lane: LaneReceiver<T>): Arrived<T> | null {
  const next = lane.waiting.get(nextOf(lane))
  if (next === undefined) return null
  drop(lane, next)
  lane.taken = next.seq
  return next
}

/** Buffered messages behind abandoned numbers were abandoned by their sender. */
function bury<T>(lane: LaneReceiver<T>, dead: number): void {
  if (dead <= lane.dead) return
  lane.dead = dead
  for (const message of lane.waiting.values()) if (message.seq <= dead) drop(lane, message)
}

/** A message beyond the budget comes again. */
function keep<T>(lane: LaneReceiver<T>, message: Arrived<T>): void {
  const isFull = lane.waiting.size >= MAX_BUFFERED || lane.waitingBytes + message.bytes > MAX_BUFFERED_BYTES
  if (isFull) return
  lane.waiting.set(message.seq, message)
  lane.waitingBytes += message.bytes
}

function clear<T>(lane: LaneReceiver<T>): void {
  lane.waiting.clear()
  lane.waitingBytes = 0
}

function drop<T>(lane: LaneReceiver<T>, message: Arrived<T>): void {
  lane.waiting.delete(message.seq)
  lane.waitingBytes -= message.bytes
}

function committed<T>(
  lane: LaneReceiver<T>,
  { seq, messageId }: { seq: number; messageId: string },
  now: number
): ReceiverEffect<T>[] {
  if (seq <= lane.contig) return []
  lane.unacked += seq - lane.contig
  lane.contig = seq
  lane.lastId = messageId
  // Nothing else is under way here: the sender may be waiting for just this.
  if (lane.taken === lane.contig || (lane.unacked >= ACK_EVERY && !lane.isGreeted)) return acknowledge(lane)
  lane.ackAt ??= now + ACK_AFTER_MS
  return []
}

function acknowledge<T>(lane: LaneReceiver<T>): ReceiverEffect<T>[] {
  const isAnswer = lane.isGreeted && lane.taken === lane.contig
  Object.assign(lane, { unacked: 0, ackAt: null, isGreeted: lane.isGreeted && !isAnswer })
  return [{ type: 'ack', isAnswer }]
}
