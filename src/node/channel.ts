import { type Clock, wait } from '../kit/clock.js'
import { NodeError } from '../kit/errors.js'
import type { TokenBucket } from '../kit/rate.js'
import { frameCost } from '../domain/channel/cost.js'
import { encodeMessage, FRESH_READER, readFrame } from '../domain/channel/frames.js'
import type { ChannelMessage } from '../domain/channel/frames.js'
import type { Link } from '../ports/mesh.js'
import type { Telemetry } from '../ports/telemetry.js'
import type { PeerRoom } from './send-room.js'

/** Messages that may wait for one peer. */
const MAX_QUEUED = 1000

/** A message that waits for its turn, as frames. */
interface Queued extends Unsent {
  readonly frames: readonly Uint8Array[]
}

/** A message that a link could not send, and the bytes for which it holds room. */
export interface Unsent {
  readonly message: ChannelMessage
  readonly bytes: number
}

/** What a channel needs besides its link. */
export interface PeerChannelParts {
  readonly clock: Clock
  readonly telemetry: Telemetry
  /** What may be sent to the peer in a time, over this link and those before it. */
  readonly pace: TokenBucket
  /** Where what waits for the peer is counted. */
  readonly room: PeerRoom
}

/** Messages over one link: cuts and reassembles large ones, waits for the stream to drain, keeps to the rate that the peer takes, and the order. */
export class PeerChannel {
  readonly link: Link
  readonly #clock: Clock
  readonly #telemetry: Telemetry
  readonly #pace: TokenBucket
  readonly #room: PeerRoom
  #reader = FRESH_READER
  #nextStreamId = 1
  #queue: Queued[] = []
  #pumping = false
  /** The stream's buffer is full: the peer reads more slowly than this node sends. */
  #isBehind = false

  constructor(link: Link, { clock, telemetry, pace, room }: PeerChannelParts) {
    this.link = link
    this.#clock = clock
    this.#telemetry = telemetry
    this.#pace = pace
    this.#room = room
  }

  /**
   * Queues one message behind those before it.
   * @throws NodeError CHANNEL_CLOSED when the link is closed; OVERLOADED when too much waits already.
   */
  send(message: ChannelMessage): void {
    if (this.link.closed) throw new NodeError('CHANNEL_CLOSED', 'the channel to the peer is closed')
    const frames = encodeMessage(message, () => this.#nextStreamId++)
    const [frame] = frames
    if (!this.#pumping && frames.length === 1 && frame !== undefined && this.#pace.take(frameCost(frame))) {
      this.#put(frame)
      if (this.#isBehind) this.#pump()
      return
    }
    const bytes = sizeOf(frames)
    if (this.#queue.length >= MAX_QUEUED || !this.#room.take(bytes)) {
      throw new NodeError('OVERLOADED', 'too much waits for this peer; it reads more slowly than this node sends')
    }
    this.#queue.push({ message, frames, bytes })
    this.#pump()
  }

  /** Does something wait here, or in the stream's buffer? */
  get isBusy(): boolean {
    return this.#queue.length > 0 || this.#pumping || this.#isBehind
  }

  /** Queues what another link could not send, with the room it holds. */
  resume({ message, bytes }: Unsent): void {
    this.#queue.push({ message, frames: encodeMessage(message, () => this.#nextStreamId++), bytes })
    this.#pump()
  }

  /** Sends at once, before what waits: for pings, whose frames stand alone. To a peer that does not read, nothing is sent. */
  sendNow(message: ChannelMessage): void {
    if (this.#isBehind) return
    for (const frame of encodeMessage(message, () => this.#nextStreamId++)) {
      this.#pace.take(frameCost(frame))
      this.#put(frame)
    }
    if (this.#isBehind) this.#pump()
  }

  #put(frame: Uint8Array): void {
    if (!this.link.send(frame)) this.#isBehind = true
  }

  async #caughtUp(): Promise<void> {
    await this.link.drained()
    this.#isBehind = false
  }

  /** What waits still once the link has closed, in order; no part of it will be sent any more. It keeps its room. */
  takeUnsent(): Unsent[] {
    return this.#queue.splice(0).map(({ message, bytes }) => ({ message, bytes }))
  }

  /** Takes one frame of the peer; the message it completes, or null. A fault leaves a hole in the order, so it cuts the link. */
  receive(frame: Uint8Array): ChannelMessage | null {
    const step = readFrame(this.#reader, frame)
    this.#reader = step.state
    if (step.fault !== null) this.link.fault(step.fault)
    return step.message
  }

  #pump(): void {
    if (this.#pumping) return
    this.#pumping = true
    this.#drain().catch((error: unknown) => {
      this.#telemetry.log('error', 'a channel stopped', { peer: this.link.peer, reason: String(error) })
    })
  }

  async #drain(): Promise<void> {
    await this.#caughtUp()
    for (let next = this.#queue[0]; next !== undefined && !this.link.closed; next = this.#queue[0]) {
      for (const [place, frame] of next.frames.entries()) {
        const cost = frameCost(frame)
        // A peer that is sent more than this in a time cuts the link.
        while (!this.#pace.take(cost)) await wait(this.#clock, this.#pace.waitMs(cost))
        // The link may have closed with a part of it unsent: then it stays, for the next link.
        if (this.link.closed) break
        this.#put(frame)
        if (place === next.frames.length - 1) this.#sent(next)
        if (this.#isBehind) await this.#caughtUp()
      }
    }
    this.#pumping = false
  }

  /** All of a message is on its way: whatever becomes of the link, it is not sent again. */
  #sent({ bytes }: Queued): void {
    this.#queue.shift()
    this.#room.leave(bytes)
  }
}

function sizeOf(frames: readonly Uint8Array[]): number {
  return frames.reduce((sum, frame) => sum + frame.byteLength, 0)
}
