import { type Clock, wait } from '../../../kit/clock.js'
import { messageOf, NodeError } from '../../../kit/errors.js'
import type { NodeId } from '../../../kit/ids.js'
import { type CallEnd, type CallPart, MAX_CALL_ANSWER_BYTES } from '../../../domain/channel/call.js'
import type { ContentsTurn } from '../../../ports/gateway.js'
import type { AnswerItem, CallAnswer, CallHandler } from '../../../ports/member-calls.js'
import type { Telemetry } from '../../../ports/telemetry.js'
import { Abort } from '../../../kit/abort.js'
import { CALL_WINDOW_BYTES, MAX_CALLS } from './outbound-calls.js'
import { BusyShare } from '../../peers/busy-share.js'

/** How long the node waits for a caller that does not read, in milliseconds; then its stream is cut. */
export const CALL_STALL_MS = 60_000
/** Delay before an item is sent again that the link had no room for, in milliseconds. */
const AGAIN_MS = 50
/** Delay before an answer is made anew that the waiting answers left no room for, in milliseconds. */
const REMAKE_MS = 1000
/**
 * Bytes of answers that wait for their links, of all members together; further ones are dropped and made anew later.
 */
const MAX_WAITING_BYTES = 67_108_864

/** Dependencies of {@link InboundCalls}. */
export interface InboundCallsDeps {
  readonly clock: Clock
  readonly telemetry: Telemetry
  /** @throws NodeError PEER_OFFLINE, CHANNEL_CLOSED, OVERLOADED */
  send(peer: NodeId, part: CallPart): void
  /** True when only this member used the node in the last second. */
  isAlone(peer: NodeId): boolean
}

type InboundRequest = Extract<CallPart, { type: 'request' }>

/** The calls of members at this node. */
export class InboundCalls {
  readonly #deps: InboundCallsDeps
  readonly #open = new Map<NodeId, Map<number, InboundCall>>()
  readonly #turns: AnswerTurns
  #waitingBytes = 0
  readonly #ofPaths = new Map<string, CallHandler>()
  /** Calls during the node's start wait for it. */
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

  /** Answers calls of one path, whatever {@link InboundCalls.serve} answers. */
  serveAt(path: string, handler: CallHandler): void {
    this.#ofPaths.set(path, handler)
  }

  /** True while a call of the member is open. */
  has(peer: NodeId): boolean {
    return this.#open.has(peer)
  }

  /**
   * Takes a part from a caller. Returns its fault, or null. A caller may still send parts of a call that has ended
   * here.
   */
  onCall(peer: NodeId, part: Extract<CallPart, { type: 'request' | 'credit' | 'hangup' }>): string | null {
    if (part.type === 'request') return this.#begin(peer, part)
    const call = this.#open.get(peer)?.get(part.id)
    if (part.type === 'hangup') call?.signal.abort()
    else call?.credit(part.bytes)
    return null
  }

  /** Parts in transit over a link may be lost: ends its calls, which the caller must make again. */
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
      // If even this part has no room, its caller has more than enough to read.
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
      const handler = this.#ofPaths.get(path) ?? (await this.#handler)
      if (handler === null) return void (await this.#send(peer, { type: 'end', id, how: 'unserved' }, signal))
      if (signal.aborted) return
      const answer = await handler({ peer, path, parameters, body, signal, turn: call })
      if (signal.aborted) return
      const isStream = 'items' in answer
      const how = isStream
        ? await this.#stream(peer, id, { answer, call })
        : await this.#inTurn(peer, call, answerPart(id, answer))
      if (!signal.aborted && (isStream || how !== 'done')) await this.#send(peer, { type: 'end', id, how }, signal)
    } catch (error) {
      if (signal.aborted) return
      this.#deps.telemetry.log('warn', 'a call of a member failed', { peer, reason: messageOf(error) })
      await this.#send(peer, { type: 'end', id, how: 'cut' }, signal)
    }
  }

  /**
   * Sends items as the caller reads them. Resolves with how the call ended; a failure of the items is the last answer.
   */
  async #stream(
    peer: NodeId,
    id: number,
    {
      answer: { items, faultBody },
      call
    }: { readonly answer: Extract<CallAnswer, { items: unknown }>; readonly call: InboundCall }
  ): Promise<CallEnd> {
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

  /** Makes a part of an answer in the turn of its call, and sends it. */
  async #inTurn(peer: NodeId, call: InboundCall, make: () => AnswerPart): Promise<CallEnd> {
    if (!(await call.hasTurn()) || call.signal.aborted) return 'cut'
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
        // Drop the part, and make it anew once fewer bytes wait.
        await wait(clock, REMAKE_MS, call.signal)
        if (call.signal.aborted || clock.monotonic() > until) return 'cut'
      }
    } finally {
      call.endTurn(bytes)
    }
  }

  /**
   * Sends a part, waiting while the link has no room. `cut`: the link or the call is gone; `busy`: too much waits.
   * Never rejects.
   */
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

/** One call, and the bytes that its caller has not read. */
class InboundCall implements ContentsTurn {
  readonly signal = new Abort()
  readonly #clock: Clock
  readonly #take: (signal: Abort) => Promise<EndTurn | null>
  #turn: Promise<EndTurn | null> | null = null
  #unread = 0
  /** Bytes that were read in this turn. */
  #readBytes = 0
  #wake: () => void = () => {}

  /** `take`: waits for a turn, see {@link AnswerTurns.take}. */
  constructor(clock: Clock, take: (signal: Abort) => Promise<EndTurn | null>) {
    this.#clock = clock
    this.#take = take
    this.signal.addEventListener('abort', () => this.#wake())
  }

  /** Waits for its turn; false: the call is over. */
  async hasTurn(): Promise<boolean> {
    this.#turn ??= this.#take(this.signal)
    return (await this.#turn) !== null
  }

  async take(): Promise<void> {
    if (!(await this.hasTurn())) throw new NodeError('CHANNEL_CLOSED', 'the call is over')
  }

  read(bytes: number): void {
    this.#readBytes += bytes
  }

  rest(): void {
    this.endTurn(0)
  }

  /** Ends the turn of the call, if it has one or waits for one, after `sentBytes`. */
  endTurn(sentBytes: number): void {
    const bytes = Math.max(sentBytes, this.#readBytes)
    this.#readBytes = 0
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

  /**
   * Resolves true when the caller has read enough; false after {@link CALL_STALL_MS}, or once the call is over. A wait
   * ends its turn.
   */
  async hasCapacity(): Promise<boolean> {
    if (this.#unread >= CALL_WINDOW_BYTES) this.rest()
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

/**
 * Bytes of answers for a member while others are served as well. To read and make 2 MiB takes about an eighth of a
 * second.
 */
const SHARE = { perSecond: 2_097_152, burst: 1_048_576 } as const
/** The least bytes that an answer counts for: even an empty answer takes time. */
const LEAST_BYTES = 4096
/** Delay before the next check whether others are served, in milliseconds. */
const LOOK_AGAIN_MS = 100

/** Dependencies of {@link AnswerTurns}. */
interface AnswerTurnsDeps {
  readonly clock: Clock
  /** True when only this member used the node in the last second. */
  isAlone(peer: NodeId): boolean
}

/** Ends a turn of a call, with the bytes of its answer. */
type EndTurn = (bytes: number) => void

/**
 * Turns to read, make and send answers. A member has one answer at a time, in the order of its calls, so that no more
 * of its answers is in memory. A member over its share waits only while others are served.
 */
class AnswerTurns {
  readonly #deps: AnswerTurnsDeps
  readonly #share: BusyShare
  /** The end of the last requested turn of each member with calls. */
  readonly #last = new Map<NodeId, Promise<void>>()

  constructor(deps: AnswerTurnsDeps) {
    this.#deps = deps
    this.#share = new BusyShare({ ...deps, limit: SHARE })
  }

  /** Waits for the turn of a call; null when the call ends first. The caller must end the turn. Never rejects. */
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
