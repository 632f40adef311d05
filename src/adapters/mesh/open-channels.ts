import c from 'compact-encoding'

/** Channels that a peer may hold open on one stream beside those of replication. */
export const MAX_CHANNELS = 16
/** Channels of replication: one for each core of the log. */
export const MAX_CORES = 128

/** Protocol of a replicated core. */
const CORE_PROTOCOL = 'hypercore/alpha'
/** Channel 0 carries control frames; these are their types (protomux). */
const CONTROL = 0
const BATCH = 0
const OPEN = 1
const CLOSE = 3

interface State {
  buffer: Uint8Array
  start: number
  end: number
}

/**
 * The channels that a peer holds open on a stream, read off the frames it sends: the multiplexer itself knows no limit, and
 * a frame of batches inside batches overflows its stack. A channel number that was refused stays counted until the peer
 * uses it again, as well-behaved peers do.
 */
export class OpenChannels {
  readonly #others = new Set<number>()
  readonly #cores = new Set<number>()

  /** Reads one frame: what is wrong with it, or null. A frame that the multiplexer cannot read either is left to it. */
  read(frame: Uint8Array): string | null {
    const state = { buffer: frame, start: 0, end: frame.byteLength }
    try {
      return c.uint.decode(state) === CONTROL ? this.#control(state, false) : null
    } catch {
      return null
    }
  }

  #control(state: State, isBatched: boolean): string | null {
    const type = c.uint.decode(state)
    if (type === BATCH) return isBatched ? 'a batch inside a batch' : this.#batch(state)
    if (type === OPEN) return this.#open(c.uint.decode(state), c.string.decode(state))
    if (type === CLOSE) this.#forget(c.uint.decode(state))
    return null
  }

  /** A channel number, then messages each with its length; length 0 announces the channel number of the next ones. */
  #batch(state: State): string | null {
    let channel = c.uint.decode(state)
    while (state.start < state.end) {
      const length = c.uint.decode(state)
      if (length === 0) {
        channel = c.uint.decode(state)
        continue
      }
      const end = Math.min(state.start + length, state.end)
      const fault = channel === CONTROL ? this.#control({ buffer: state.buffer, start: state.start, end }, true) : null
      if (fault !== null) return fault
      state.start = end
    }
    return null
  }

  #open(channel: number, protocol: string): string | null {
    this.#forget(channel)
    const isCore = protocol === CORE_PROTOCOL
    const open = isCore ? this.#cores : this.#others
    open.add(channel)
    return open.size > (isCore ? MAX_CORES : MAX_CHANNELS) ? 'too many channels on one stream' : null
  }

  #forget(channel: number): void {
    this.#others.delete(channel)
    this.#cores.delete(channel)
  }
}
