import type { NoiseStream } from 'hyperswarm'
import type { Clock } from '../../../kit/clock.js'
import { TokenBucket } from '../../../kit/rate.js'
import { OpenChannels } from './open-channels.js'

/** Bytes a stranger may send before it is through the gate. */
export const STRANGER_BYTES = 256 * 1024
/** Frames a stranger may send: 20 for each second that it may stand there. */
export const STRANGER_FRAMES = 200

const TOO_MUCH = 'a stranger sent too much'

/** Bytes a second of hints about the log that a peer may send: one of a writer has about 40 bytes. */
export const HINT_BYTES = { perSecond: 131_072, burst: 1_048_576 }

/**
 * Sees every frame of a stream before the multiplexer does, and keeps back frames that could exhaust or kill the
 * process. Make it before the stream's Protomux: listeners are called in their order.
 */
export class FrameGuard {
  readonly #onFault: (reason: string) => void
  readonly #channels: OpenChannels
  readonly #endCollecting: () => void
  #isTrusted = false
  #bytes = 0
  #frames = 0

  /** `onFault`: the stream is to be destroyed, and why. */
  constructor(
    stream: Pick<NoiseStream, 'on' | 'rawStream' | '_len'>,
    clock: Pick<Clock, 'monotonic'>,
    onFault: (reason: string) => void
  ) {
    this.#onFault = onFault
    const hints = new TokenBucket(HINT_BYTES, clock)
    this.#channels = new OpenChannels((bytes) => hints.take(bytes))
    stream.on('data', (frame) => this.#check(frame))
    // Below, 16 MiB of one message are collected before it is a frame.
    const collect = (): void => {
      if (this.#bytes + stream._len > STRANGER_BYTES) onFault(TOO_MUCH)
    }
    stream.rawStream.on('data', collect)
    this.#endCollecting = () => stream.rawStream.off('data', collect)
  }

  /** The peer is through the gate: its frames are no longer counted. */
  trust(): void {
    this.#isTrusted = true
    this.#endCollecting()
  }

  #check(frame: Uint8Array): void {
    const fault = this.#isTooMuch(frame.byteLength) ? TOO_MUCH : this.#channels.read(frame)
    if (fault === null) return
    // The multiplexer reads the frame next, whatever happens to the stream; all zeros is a batch of nothing.
    frame.fill(0)
    this.#onFault(fault)
  }

  #isTooMuch(bytes: number): boolean {
    if (this.#isTrusted) return false
    this.#bytes += bytes
    this.#frames++
    return this.#bytes > STRANGER_BYTES || this.#frames > STRANGER_FRAMES
  }
}
