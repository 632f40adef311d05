import type { NoiseStream } from 'hyperswarm'
import { OpenChannels } from './open-channels.js'

/** Bytes a stranger may send before it is through the gate. */
export const STRANGER_BYTES = 256 * 1024
/** Frames a stranger may send: 20 for each second that it may stand there. */
export const STRANGER_FRAMES = 200

/**
 * Sees every frame of a stream before the multiplexer does, and keeps from it what could exhaust or kill the process.
 * Make it before the stream's Protomux: listeners are called in their order.
 */
export class FrameGuard {
  readonly #onFault: (reason: string) => void
  readonly #channels = new OpenChannels()
  #isTrusted = false
  #bytes = 0
  #frames = 0

  /** `onFault`: the stream is to be destroyed, and why. */
  constructor(stream: Pick<NoiseStream, 'on'>, onFault: (reason: string) => void) {
    this.#onFault = onFault
    stream.on('data', (frame) => this.#check(frame))
  }

  /** The peer is through the gate: its frames are no longer counted. */
  trust(): void {
    this.#isTrusted = true
  }

  #check(frame: Uint8Array): void {
    const fault = this.#isTooMuch(frame.byteLength) ? 'a stranger sent too much' : this.#channels.read(frame)
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
