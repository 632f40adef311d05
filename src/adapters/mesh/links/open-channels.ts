import c from 'compact-encoding'
import type { State } from 'compact-encoding'
import { MAX_BLOCKS, readCoreMessage } from '../log/core-messages.js'

/** Channels that a peer may hold open on one stream beside those of replication. */
export const MAX_CHANNELS = 16
/** Cores of documents that one stream carries. */
export const MAX_DOCUMENT_CORES = 896
/** Channels of replication: one for each core of the log, and those of documents. */
export const MAX_CORES = 128 + MAX_DOCUMENT_CORES

/**
 * Largest number of a channel. A peer takes the smallest free one. It needs one for each channel, and some for channels
 * that it closed before this end opened or refused them. These do not count as open, and the multiplexer keeps them
 * until then.
 */
export const MAX_CHANNEL_NUMBER = 2 * (MAX_CORES + MAX_CHANNELS)

/** Blocks of all cores of a stream together that a peer may claim to have: hypercore keeps two bits of each. */
export const MAX_MAPPED_BLOCKS = 4 * MAX_BLOCKS

/** Bytes of the key that a channel of the log's engine or of a core is about. */
const KEY_BYTES = 32

/** Protocol by which the engine of the log announces writers with new blocks, and asks for them. */
const HINTS_PROTOCOL = 'wakeup'
/** Least cost of a message of that protocol, in bytes: a question of a few bytes makes an answer. */
const MIN_HINT_BYTES = 256

/** Protocol of a replicated core, and the other name that the multiplexer takes for it. */
export const CORE_PROTOCOLS: ReadonlySet<string> = new Set(['hypercore/alpha', 'hypercore'])
/** Channel 0 carries control frames; these are their types (protomux). */
const CONTROL = 0
const BATCH = 0
const OPEN = 1
const CLOSE = 3

/**
 * The channels that a peer holds open on a stream, read off the frames it sends: the multiplexer itself knows no limit,
 * and a frame of batches inside batches overflows its stack. A channel number that was refused stays counted until the
 * peer uses it again, as well-behaved peers do.
 */
export class OpenChannels {
  readonly #others = new Set<number>()
  readonly #cores = new Set<number>()
  /** Numbers that are cores to the multiplexer, maybe: it passes over a close that comes before its own end is open. */
  readonly #coreNumbers = new Set<number>()
  readonly #hintNumbers = new Set<number>()
  /**
   * Ends of the blocks that the peer spoke of, by the number of a core, and their sum. A number keeps its own until it
   * is opened again.
   */
  readonly #mapped = new Map<number, number>()
  #mappedInAll = 0
  readonly #takeHints: (bytes: number) => boolean

  /** `takeHints`: spends bytes of the peer's budget for hints; false when it is used up. Default: no budget. */
  constructor(takeHints: (bytes: number) => boolean = () => true) {
    this.#takeHints = takeHints
  }

  /** Reads one frame: its fault, or null. A frame that the multiplexer cannot read either is left to it. */
  read(frame: Uint8Array): string | null {
    const state = { buffer: frame, start: 0, end: frame.byteLength }
    try {
      return this.#message(c.uint.decode(state), state, false)
    } catch {
      return null
    }
  }

  #message(channel: number, state: State, isBatched: boolean): string | null {
    if (channel === CONTROL) return this.#control(state, isBatched)
    if (this.#hintNumbers.has(channel) && !this.#takeHints(Math.max(state.end - state.start, MIN_HINT_BYTES))) {
      return 'too many hints about the log'
    }
    return this.#coreNumbers.has(channel) ? this.#core(channel, state) : null
  }

  #core(channel: number, state: State): string | null {
    const { fault, mapped } = readCoreMessage(state)
    const before = this.#mapped.get(channel) ?? 0
    if (fault !== null || mapped <= before) return fault
    this.#mapped.set(channel, mapped)
    this.#mappedInAll += mapped - before
    return this.#mappedInAll > MAX_MAPPED_BLOCKS ? 'more blocks than all logs have' : null
  }

  #control(state: State, isBatched: boolean): string | null {
    const type = c.uint.decode(state)
    if (type === BATCH) return isBatched ? 'a batch inside a batch' : this.#batch(state)
    if (type === OPEN) return this.#open(c.uint.decode(state), c.string.decode(state), c.uint.decode(state))
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
      const fault = this.#message(channel, { buffer: state.buffer, start: state.start, end }, true)
      if (fault !== null) return fault
      state.start = end
    }
    return null
  }

  #open(channel: number, protocol: string, keyBytes: number): string | null {
    if (channel > MAX_CHANNEL_NUMBER) return 'a number of a channel that no peer needs'
    this.#forget(channel)
    this.#mappedInAll -= this.#mapped.get(channel) ?? 0
    this.#mapped.delete(channel)
    const isCore = CORE_PROTOCOLS.has(protocol)
    const isHints = protocol === HINTS_PROTOCOL
    // The engine looks into the key of a channel that it does not know, and a key that is missing ends the process.
    if ((isCore || isHints) && keyBytes !== KEY_BYTES) return 'a channel without the key that it is about'
    const open = isCore ? this.#cores : this.#others
    mark(this.#coreNumbers, channel, isCore)
    mark(this.#hintNumbers, channel, isHints)
    open.add(channel)
    return open.size > (isCore ? MAX_CORES : MAX_CHANNELS) ? 'too many channels on one stream' : null
  }

  #forget(channel: number): void {
    this.#others.delete(channel)
    this.#cores.delete(channel)
  }
}

function mark(numbers: Set<number>, channel: number, isMarked: boolean): void {
  if (isMarked) numbers.add(channel)
  else numbers.delete(channel)
}
