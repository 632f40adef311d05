import { type Clock, wait } from '../../../kit/clock.js'
import { messageOf, NodeError } from '../../../kit/errors.js'
import type { NodeId } from '../../../kit/ids.js'
import { type CallEnd, type CallPart, MAX_CALL_ANSWER_BYTES } from '../../../domain/channel/call.js'
import type { AnswerItem, CallAnswer, CallHandler } from '../../../ports/member-calls.js'
import type { Telemetry } from '../../../ports/telemetry.js'
import { Abort } from '../../../kit/abort.js'
import { CALL_WINDOW_BYTES, MAX_CALLS } from './outbound-calls.js'
import { BusyShare } from '../../peers/busy-share.js'

/** How long a caller that does not read is waited for, in milliseconds; then its stream is cut. */
export const CALL_STALL_MS = 60_000
/** Wait before an item for which there was no room on the link is tried again, in milliseconds. */
const AGAIN_MS = 50
/** Wait before an answer is made anew for which there was no room beside those that wait, in milliseconds. */
const REMAKE_MS = 1000
/** Bytes of answers that wait for room on their links, of all members together; further ones are let go of, and made anew later. */
const MAX_WAITING_BYTES = 67_108_864

/** What answering calls needs. */
export interface InboundCallsDeps {
  readonly clock: Clock
  readonly telemetry: Telemetry
  /** @throws NodeError PEER_OFFLINE, CHANNEL_CLOSED, OVERLOADED */
  send(peer: NodeId, part: CallPart): void
  /** Did nobody but the member want something of this node in the last second? */
  isAlone(peer: NodeId): boolean
}

type InboundRequest = Extract<CallPart, { type: 'request' }>

/** The calls of members at this node. */
export class InboundCalls {
  readonly #deps: InboundCallsDeps
  readonly #open = new Map<NodeId, Map<number, InboundCall>>()
  readonly #turns: AnswerTurns
  #waitingBytes = 0
  /** Calls that come while the node starts wait for it. */
  #handler: Promise<CallHandler | null>
  #tell: (handler: CallHandler | null) => void = () => {}

  constructor(deps: InboundCallsDeps) {
    this.#deps = deps
    this.#turns = new AnswerTurns(deps)
    this.#handler = new Promise((resolve) => {
      this.#tell = resolve
    })
  }

  /** See {@link MemberCalls.serve}. */
  serve(handler: CallHandler | null): () => void {
    this.#tell(handler)
    this.#handler = Promise.resolve(handler)
    return () => {
      this.#handler = Promise.resolve(null)
      this.stop()
    }
  }

  /** Is a call of the member open? */
  has(peer: NodeId): boolean {
    return this.#open.has(peer)
  }

  /** Takes what a caller says; what is wrong with it, or null. Of a call that has ended here it may still speak. */
  onCall(peer: NodeId, part: Extract<CallPart, { type: 'request' | 'credit' | 'hangup' }>): string | null {
    if (part.type === 'request') return this.#begin(peer, part)
    const call = this.#open.get(peer)?.get(part.id)
    if (part.type === 'hangup') call?.signal.abort()
    else call?.credit(part.bytes)
    return null
  }

  /** What was on its way over a link may be lost: its calls are over, and are to be taken up again. */
  onLinks(peer: NodeId): void {
    for (const [id, { signal }] of this.#open.get(peer) ?? []) {
      signal.abort()
      void this.#send(peer, { type: 'end', id, how: 'cut' }, signal)
    }
  }

  /** Ends all calls. */
  stop(): void {
    for (const peer of this.#open.keys()) this.onLinks(peer)
  }

  #begin(peer: NodeId, request: InboundRequest): string | null {
    const calls = this.#open.get(peer) ?? new Map<number, InboundCall>()
    const { id } = request
    if (calls.has(id)) return 'two calls of one number'
    const call = new InboundCall(this.#deps.clock, (signal) => this.#turns.take(peer, signal))
    if (calls.size >= MAX_CALLS) {
      // Where there is no room even for that its caller has more than enough to read.
      this.#trySend(peer, { type: 'end', id, how: 'busy' })
      return null
    }
    this.#open.set(peer, calls.set(id, call))
    void this.#run(peer, request, call).finally(() => {
      call.signal.abort()
      call.endTurn(0)
      if (calls.get(id) === call) calls.delete(id)
      if (calls.size === 0 && this.#open.get(peer) === calls) this.#open.delete(peer)
    })
    return null
  }

  /** Never rejects. */
  async #run(peer: NodeId, { id, path, parameters, body }: InboundRequest, call: InboundCall): Promise<void> {
    const { signal } = call
    try {
      const handler = await this.#handler
      if (handler === null) return void (await this.#send(peer, { type: 'end', id, how: 'unserved' }, signal))
      if (signal.aborted) return
      const answer = await handler({ peer, path, parameters, body, signal, turn: () => call.turn() })
      if (signal.aborted) return
      const isStream = 'items' in answer
      const how = isStream ? await this.#stream(peer, id, { answer, call }) : await this.#inTurn(peer, call, answerPart(id, answer))
      if (!signal.aborted && (isStream || how !== 'done')) await this.#send(peer, { type: 'end', id, how }, signal)
    } catch (error) {
      this.#deps.telemetry.log('warn', 'a call of a member failed', { peer, reason: messageOf(error) })
      await this.#send(peer, { type: 'end', id, how: 'cut' }, signal)
    }
  }

  /** Sends items as the caller reads them. Resolves with how it ended; a failure of the items is the last answer. */
  async #stream(
    peer: NodeId,
    id: number,
    { answer: { items, faultBody }, call }: { readonly answer: Extract<CallAnswer, { items: unknown }>; readonly call: InboundCall }
  ): Promise<CallEnd> {
    // What was read so far is the beginning; what comes may take long to come.
    call.endTurn(0)
    try {
      for await (const item of items) {
        if (call.signal.aborted || !(await call.hasCapacity())) return 'cut'
        const how = await this.#inTurn(peer, call, itemPart(id, item))
        if (how !== 'done') return how
      }
      return 'done'
    } catch (error) {
      await this.#inTurn(peer, call, answerPart(id, { body: () => faultBody(error) }))
      call.signal.abort()
      return 'cut'
    }
  }

  /** Makes a part of an answer when it is the turn of its call, and sends it. */
  async #inTurn(peer: NodeId, call: InboundCall, make: () => AnswerPart): Promise<CallEnd> {
    await call.turn()
    if (call.signal.aborted) return 'cut'
    const { clock } = this.#deps
    const until = clock.monotonic() + CALL_STALL_MS
    let bytes = 0
    let isFirst = true
    try {
      for (;;) {
        const part = make()
        bytes = part.body.byteLength
        if (part.type === 'item' && isFirst) call.sent(bytes)
        isFirst = false
        const how = await this.#send(peer, part, call.signal)
        if (how !== 'busy') return how
        // It is let go of, and made anew once less waits.
        await wait(clock, REMAKE_MS, call.signal)
        if (call.signal.aborted || clock.monotonic() > until) return 'cut'
      }
    } finally {
      call.endTurn(bytes)
    }
  }

  /** Waits while the link has no room. `cut`: it is gone, or nobody wants it any more; `busy`: too much waits already. Never rejects. */
  async #send(peer: NodeId, part: CallPart, signal: Abort): Promise<CallEnd> {
    const { clock } = this.#deps
    const until = clock.monotonic() + CALL_STALL_MS
    const bytes = 'body' in part ? part.body.byteLength : 0
    let how = this.#trySend(peer, part)
    if (how !== null) return how
    if (this.#waitingBytes + bytes > MAX_WAITING_BYTES) return 'busy'
    this.#waitingBytes += bytes
    while (how === null && !signal.aborted && clock.monotonic() < until) {
      await wait(clock, AGAIN_MS, signal)
      how = this.#trySend(peer, part)
    }
    this.#waitingBytes -= bytes
    return how ?? 'cut'
  }

  /** null: the link has no room now. */
  #trySend(peer: NodeId, part: CallPart): CallEnd | null {
    try {
      this.#deps.send(peer, part)
      return 'done'
    } catch (error) {
      return error instanceof NodeError && error.code === 'OVERLOADED' ? null : 'cut'
    }
  }
}

type AnswerPart = Extract<CallPart, { type: 'answer' | 'item' }>

function answerPart(id: number, { body: make }: Pick<AnswerItem, 'body'>): () => AnswerPart {
  return () => ({ type: 'answer', id, body: boundedBody(make(), 'an answer') })
}

function itemPart(id: number, { generation, body: make }: AnswerItem): () => AnswerPart {
  return () => ({ type: 'item', id, generation, body: boundedBody(make(), 'an event') })
}

/** @throws NodeError PAYLOAD_TOO_LARGE */
function boundedBody(body: Uint8Array, what: string): Uint8Array {
  if (body.byteLength <= MAX_CALL_ANSWER_BYTES) return body
  throw new NodeError('PAYLOAD_TOO_LARGE', `${what} of ${body.byteLength} bytes is more than a call carries`)
}

/** One call, and how far its caller is behind. */
class InboundCall {
  readonly signal = new Abort()
  readonly #clock: Clock
  readonly #take: (signal: Abort) => Promise<EndTurn | null>
  #turn: Promise<EndTurn | null> | null = null
  #unread = 0
  #wake: () => void = () => {}

  /** `take`: waits for a turn, see {@link AnswerTurns.take}. */
  constructor(clock: Clock, take: (signal: Abort) => Promise<EndTurn | null>) {
    this.#clock = clock
    this.#take = take
    this.signal.addEventListener('abort', () => this.#wake())
  }

  /** See {@link MemberCall.turn}. */
  async turn(): Promise<void> {
    this.#turn ??= this.#take(this.signal)
    await this.#turn
  }

  /** Its turn, if it has one or waits for one, is over: so many bytes were sent. */
  endTurn(bytes: number): void {
    void this.#turn?.then((end) => end?.(bytes))
    this.#turn = null
  }

  sent(bytes: number): void {
    this.#unread += bytes
  }

  credit(bytes: number): void {
    this.#unread = Math.max(0, this.#unread - bytes)
    this.#wake()
  }

  /** Resolves true when the caller has read enough, false when it does not in time, or wants no more. */
  async hasCapacity(): Promise<boolean> {
    const until = this.#clock.monotonic() + CALL_STALL_MS
    while (this.#unread >= CALL_WINDOW_BYTES && !this.signal.aborted && this.#clock.monotonic() < until) {
      await new Promise<void>((resolve) => {
        const timer = this.#clock.after(until - this.#clock.monotonic(), resolve)
        this.#wake = () => {
          this.#clock.clear(timer)
          resolve()
        }
      })
    }
    return this.#unread < CALL_WINDOW_BYTES && !this.signal.aborted
  }
}

/** Bytes of answers that a member gets while others are served as well: to read and make 8 MiB takes about half a second. */
const SHARE = { perSecond: 8_388_608, burst: 16_777_216 } as const
/** Bytes that an answer counts for at least: to find out that there is little to say takes time, too. */
const LEAST_BYTES = 4096
/** Wait before it is looked again whether others are served, in milliseconds. */
const LOOK_AGAIN_MS = 100

/** What giving turns needs. */
interface AnswerTurnsDeps {
  readonly clock: Clock
  /** Did nobody but the member want something of this node in the last second? */
  isAlone(peer: NodeId): boolean
}

/** A turn of a call. Its end is told how many bytes the answer had. */
type EndTurn = (bytes: number) => void

/**
 * When an answer is read, made and handed to its link. Of one member it is one answer at a time, in the order of its calls: no more
 * than that of its answers is in memory. A member over its share waits while others are served, and for nothing else.
 */
class AnswerTurns {
  readonly #deps: AnswerTurnsDeps
  readonly #share: BusyShare
  /** The end of the last turn that was asked for, of members with calls. */
  readonly #last = new Map<NodeId, Promise<void>>()

  constructor(deps: AnswerTurnsDeps) {
    this.#deps = deps
    this.#share = new BusyShare({ ...deps, limit: SHARE })
  }

  /** Waits for the turn of a call; null: the call is over before it comes. Who gets one must end it. Never rejects. */
  async take(peer: NodeId, signal: Abort): Promise<EndTurn | null> {
    const before = this.#last.get(peer)
    let finish = (): void => {}
    const turn = new Promise<void>((resolve) => {
      finish = () => {
        if (this.#last.get(peer) === turn) this.#last.delete(peer)
        resolve()
      }
    })
    this.#last.set(peer, turn)
    await before
    await this.#pay(peer, signal)
    if (signal.aborted) {
      finish()
      return null
    }
    return (bytes) => {
      this.#share.charge(peer, Math.max(LEAST_BYTES, bytes))
      finish()
    }
  }

  async #pay(peer: NodeId, signal: Abort): Promise<void> {
    while (!signal.aborted && !this.#share.isWithin(peer)) {
      await wait(this.#deps.clock, Math.min(LOOK_AGAIN_MS, this.#share.waitMs(peer)), signal)
    }
  }
}
