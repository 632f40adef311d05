import { type Clock, wait } from '../kit/clock.js'
import { messageOf, NodeError } from '../kit/errors.js'
import type { NodeId } from '../kit/ids.js'
import { type CallPart, MAX_CALL_ANSWER_BYTES } from '../domain/channel/call.js'
import type { CallAnswer, CallHandler, CallItem } from '../ports/member-calls.js'
import type { Telemetry } from '../ports/telemetry.js'
import { Abort } from '../kit/abort.js'
import { CALL_WINDOW_BYTES, MAX_CALLS } from './calls-out.js'

/** How long a caller that does not read is waited for, in milliseconds; then its stream is cut. */
export const CALL_STALL_MS = 60_000
/** Wait before an item for which there was no room on the link is tried again, in milliseconds. */
const AGAIN_MS = 50

/** What answering calls needs. */
export interface InCallsParts {
  readonly clock: Clock
  readonly telemetry: Telemetry
  /** @throws NodeError PEER_OFFLINE, CHANNEL_CLOSED, OVERLOADED */
  send(peer: NodeId, part: CallPart): void
}

type Request = Extract<CallPart, { type: 'request' }>

/** The calls of members at this node. */
export class InCalls {
  readonly #parts: InCallsParts
  readonly #open = new Map<NodeId, Map<number, OneCall>>()
  /** Calls that come while the node starts wait for it. */
  #handler: Promise<CallHandler | null>
  #tell: (handler: CallHandler | null) => void = () => {}

  constructor(parts: InCallsParts) {
    this.#parts = parts
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

  #begin(peer: NodeId, request: Request): string | null {
    const calls = this.#open.get(peer) ?? new Map<number, OneCall>()
    const { id } = request
    if (calls.has(id)) return 'two calls of one number'
    const call = new OneCall(this.#parts.clock)
    if (calls.size >= MAX_CALLS) {
      void this.#send(peer, { type: 'end', id, how: 'busy' }, call.signal)
      return null
    }
    this.#open.set(peer, calls.set(id, call))
    void this.#run(peer, request, call).finally(() => {
      call.signal.abort()
      if (calls.get(id) === call) calls.delete(id)
      if (calls.size === 0 && this.#open.get(peer) === calls) this.#open.delete(peer)
    })
    return null
  }

  /** Never rejects. */
  async #run(peer: NodeId, { id, path, parameters, body }: Request, call: OneCall): Promise<void> {
    const { signal } = call
    try {
      const handler = await this.#handler
      if (handler === null) return void (await this.#send(peer, { type: 'end', id, how: 'unserved' }, signal))
      if (signal.aborted) return
      const answer = await handler({ peer, path, parameters, body, signal })
      if (signal.aborted) return
      if ('body' in answer) return await this.#answer(peer, id, { answer, signal })
      const how = await this.#stream(peer, id, { answer, call })
      if (!signal.aborted) await this.#send(peer, { type: 'end', id, how }, signal)
    } catch (error) {
      this.#parts.telemetry.log('warn', 'a call of a member failed', { peer, reason: messageOf(error) })
      await this.#send(peer, { type: 'end', id, how: 'cut' }, signal)
    }
  }

  async #answer(
    peer: NodeId,
    id: number,
    { answer: { body }, signal }: { readonly answer: { readonly body: Uint8Array } } & Live
  ): Promise<void> {
    if (body.byteLength > MAX_CALL_ANSWER_BYTES)
      throw new NodeError('PAYLOAD_TOO_LARGE', `an answer of ${body.byteLength} bytes is more than a call carries`)
    await this.#send(peer, { type: 'answer', id, body }, signal)
  }

  /** Sends items as the caller reads them. Resolves with how it ended; a failure of the items is the last answer. */
  async #stream(
    peer: NodeId,
    id: number,
    { answer: { items, faultBody }, call }: { readonly answer: Extract<CallAnswer, { items: unknown }>; readonly call: OneCall }
  ): Promise<'done' | 'cut'> {
    const { signal } = call
    try {
      for await (const item of items) {
        if (signal.aborted || !(await call.hasRoom()) || !(await this.#item(peer, id, { item, call }))) return 'cut'
      }
      return 'done'
    } catch (error) {
      await this.#send(peer, { type: 'answer', id, body: faultBody(error) }, signal)
      signal.abort()
      return 'cut'
    }
  }

  #item(peer: NodeId, id: number, { item, call }: { readonly item: CallItem; readonly call: OneCall }): Promise<boolean> {
    const { generation, body } = item
    if (body.byteLength > MAX_CALL_ANSWER_BYTES)
      throw new NodeError('PAYLOAD_TOO_LARGE', `an event of ${body.byteLength} bytes is more than a call carries`)
    call.sent(body.byteLength)
    return this.#send(peer, { type: 'item', id, generation, body }, call.signal)
  }

  /** Waits while the link has no room. False: it is gone, or nobody wants it any more. Never rejects. */
  async #send(peer: NodeId, part: CallPart, signal: Abort): Promise<boolean> {
    const { clock, send } = this.#parts
    const since = clock.monotonic()
    for (;;) {
      try {
        send(peer, part)
        return true
      } catch (error) {
        const isFull = error instanceof NodeError && error.code === 'OVERLOADED'
        if (!isFull || signal.aborted || clock.monotonic() - since > CALL_STALL_MS) return false
        await wait(clock, AGAIN_MS, signal)
      }
    }
  }
}

interface Live {
  readonly signal: Abort
}

/** One call, and how far its caller is behind. */
class OneCall {
  readonly signal = new Abort()
  readonly #clock: Clock
  #unread = 0
  #wake: () => void = () => {}

  constructor(clock: Clock) {
    this.#clock = clock
    this.signal.addEventListener('abort', () => this.#wake())
  }

  sent(bytes: number): void {
    this.#unread += bytes
  }

  credit(bytes: number): void {
    this.#unread = Math.max(0, this.#unread - bytes)
    this.#wake()
  }

  /** Resolves true when the caller has read enough, false when it does not in time, or wants no more. */
  async hasRoom(): Promise<boolean> {
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
