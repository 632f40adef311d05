import type { AbortSignalLike } from '../../../kit/clock.js'
import { NodeError } from '../../../kit/errors.js'
import type { NodeId } from '../../../kit/ids.js'
import type { CallEnd, CallPart } from '../../../domain/channel/call.js'
import type { CallPiece, CallRequest } from '../../../ports/member-calls.js'

/** The most open calls of this node at one member. */
export const MAX_CALLS = 64
/** Bytes of unread items at which the callee stops sending. */
export const CALL_WINDOW_BYTES = 1_048_576
/** Bytes read before the caller sends credit. */
const CREDIT_BYTES = CALL_WINDOW_BYTES / 4

/** Dependencies of {@link OutboundCalls}. */
export interface OutboundCallsDeps {
  /** Opens a link if needed. @throws NodeError PEER_OFFLINE */
  reach(peer: NodeId): Promise<void>
  /** @throws NodeError PEER_OFFLINE, CHANNEL_CLOSED, OVERLOADED */
  send(peer: NodeId, part: CallPart): void
}

type OutboundAnswer = Extract<CallPart, { type: 'answer' | 'item' | 'end' }>

/** The calls of this node at other members. */
export class OutboundCalls {
  readonly #deps: OutboundCallsDeps
  readonly #open = new Map<NodeId, Map<number, OutboundCall>>()
  #last = 0

  constructor(deps: OutboundCallsDeps) {
    this.#deps = deps
  }

  /** True while a call at the member is open. */
  has(peer: NodeId): boolean {
    return this.#open.has(peer)
  }

  /** See {@link MemberCalls.open}. */
  async *open(peer: NodeId, request: CallRequest, signal?: AbortSignalLike): AsyncIterable<CallPiece> {
    await this.#deps.reach(peer)
    if (signal?.aborted === true) return
    const id = ++this.#last
    const call = new OutboundCall((bytes) => this.#tell(peer, { type: 'credit', id, bytes }))
    const onAbort = (): void => call.end(null)
    this.#add(peer, id, call)
    signal?.addEventListener('abort', onAbort)
    try {
      this.#deps.send(peer, { type: 'request', id, ...request })
      yield* call.pieces()
    } finally {
      signal?.removeEventListener('abort', onAbort)
      this.#remove(peer, id)
      if (!call.isAnswered) this.#tell(peer, { type: 'hangup', id })
    }
  }

  /**
   * Takes a part from a callee. Returns its fault, or null. A callee may still send parts of a call that has ended
   * here.
   */
  onAnswer(peer: NodeId, part: OutboundAnswer): string | null {
    return this.#open.get(peer)?.get(part.id)?.take(part) ?? null
  }

  /** Parts in transit over a link may be lost: ends its calls. */
  onLinks(peer: NodeId): void {
    for (const call of this.#open.get(peer)?.values() ?? []) call.end(cutOff())
  }

  /** Ends all calls. */
  stop(): void {
    for (const peer of this.#open.keys()) this.onLinks(peer)
  }

  #add(peer: NodeId, id: number, call: OutboundCall): void {
    const calls = this.#open.get(peer) ?? new Map<number, OutboundCall>()
    if (calls.size >= MAX_CALLS)
      throw new NodeError('OVERLOADED', `${MAX_CALLS} calls at this member are open`, { retryable: true })
    this.#open.set(peer, calls.set(id, call))
  }

  #remove(peer: NodeId, id: number): void {
    const calls = this.#open.get(peer)
    calls?.delete(id)
    if (calls?.size === 0) this.#open.delete(peer)
  }

  /** Does nothing without a link. */
  #tell(peer: NodeId, part: CallPart): void {
    try {
      this.#deps.send(peer, part)
    } catch {
      // The callee notices by the closed link, or by missing credit.
    }
  }
}

/** One call, and its unread pieces. */
class OutboundCall {
  readonly #credit: (bytes: number) => void
  readonly #pieces: CallPiece[] = []
  #unread = 0
  #read = 0
  #isOver = false
  #error: NodeError | null = null
  #wake: () => void = () => {}
  /** True once the callee sent its last part. */
  isAnswered = false

  constructor(credit: (bytes: number) => void) {
    this.#credit = credit
  }

  async *pieces(): AsyncIterable<CallPiece> {
    for (;;) {
      const piece = this.#pieces.shift()
      if (piece !== undefined) {
        yield piece
        if (piece.type === 'item') this.#wasRead(piece.body.byteLength)
      } else if (!this.#isOver) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
      } else if (this.#error !== null) throw this.#error
      else return
    }
  }

  take(part: OutboundAnswer): string | null {
    if (this.#isOver) return null
    if (part.type === 'end') {
      this.isAnswered = true
      this.end(failureOf(part.how))
      return null
    }
    if (part.type === 'item') {
      if (this.#unread >= CALL_WINDOW_BYTES) return 'more of a stream than was asked for'
      this.#unread += part.body.byteLength
    }
    this.#pieces.push(part)
    this.isAnswered ||= part.type === 'answer'
    if (part.type === 'answer') this.#isOver = true
    this.#wake()
    return null
  }

  end(error: NodeError | null): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#error = error
    this.#wake()
  }

  #wasRead(bytes: number): void {
    this.#unread -= bytes
    this.#read += bytes
    if (this.#read < CREDIT_BYTES || this.#isOver) return
    this.#credit(this.#read)
    this.#read = 0
  }
}

function cutOff(): NodeError {
  return new NodeError('CHANNEL_CLOSED', 'the link was cut while the call was under way', { retryable: true })
}

function failureOf(how: CallEnd): NodeError | null {
  if (how === 'done') return null
  if (how === 'cut') return cutOff()
  if (how === 'busy')
    return new NodeError('OVERLOADED', 'that node has too many calls of this one open', { retryable: true })
  return new NodeError('CAPABILITY_NOT_FOUND', 'that node takes no A2A calls over the mesh: a2a.mesh is off there')
}
