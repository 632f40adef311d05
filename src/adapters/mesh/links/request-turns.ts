import type { Codec } from 'compact-encoding'
import type { Channel, ChannelOptions, MessageOptions } from 'protomux'
import { isRecord } from '../../../kit/json.js'
import { BlockWindow } from './block-window.js'

/** Requests of one link that wait for their turn: more than a peer needs that keeps to 256 for each core. */
export const MAX_WAITING = 262_144

/** Places of messages in the protocol of a core (hypercore). */
const REQUEST = 1
const CANCEL = 2
const DATA = 3

/** Requests of one core that wait, by the number that the peer gave them. */
interface WaitingTurn {
  readonly handle: (message: unknown) => unknown
  readonly messages: Map<number, unknown>
}

/** Dependencies of {@link RequestTurns}. */
export interface RequestTurnsDeps {
  /** Does the stream take more? */
  isDrained(): boolean
  /**
   * More requests wait than any peer needs: too many, or their answers are not read. The multiplexer then ends the
   * stream.
   */
  onTooMany(reason: string): void
  /** The engine failed at a request, with an error that is the peer's fault. */
  onFailed(error: unknown): void
}

/**
 * A peer's requests for blocks of cores, over one link: few are answered at once, fewer the larger the blocks are, and
 * none while the peer does not read. The engine itself reads all requested blocks into memory at once. Cores take
 * turns.
 */
export class RequestTurns {
  readonly #deps: RequestTurnsDeps
  readonly #window = new BlockWindow()
  readonly #waiting = new Map<Channel, WaitingTurn>()
  #count = 0
  #running = 0

  constructor(deps: RequestTurnsDeps) {
    this.#deps = deps
  }

  /** Requests that wait. */
  get waiting(): number {
    return this.#count
  }

  /** The options of a channel of a core, so that its requests take turns. */
  apply<H>(options: ChannelOptions<H>): ChannelOptions<H> {
    const { messages = [], onclose, ondrain } = options
    return {
      ...options,
      messages: messages.map((message, place) => this.#message(message, place)),
      onclose: (isRemote, channel) => {
        this.#count -= this.#waiting.get(channel)?.messages.size ?? 0
        this.#waiting.delete(channel)
        return onclose?.(isRemote, channel)
      },
      ondrain: (channel) => {
        const done = ondrain?.(channel)
        this.#next()
        return done
      }
    }
  }

  #message(options: MessageOptions<Uint8Array>, place: number): MessageOptions<Uint8Array> {
    const { encoding, onmessage } = options
    if (place === DATA && encoding !== undefined) return { ...options, encoding: this.#counted(encoding) }
    if (onmessage === undefined || (place !== REQUEST && place !== CANCEL)) return options
    return {
      ...options,
      onmessage: (message: unknown, channel) => {
        if (place === REQUEST) return this.#take(channel, message, (one) => onmessage(one as Uint8Array, channel))
        this.#remove(channel, numberOf(message, 'request'))
        return onmessage(message as Uint8Array, channel)
      }
    }
  }

  /** Measures the blocks that are sent. */
  #counted(codec: Codec<Uint8Array>): Codec<Uint8Array> {
    return {
      preencode: (state, value) => {
        this.#window.took(bytesOf(value))
        codec.preencode(state, value)
      },
      encode: (state, value) => codec.encode(state, value),
      decode: (state) => codec.decode(state)
    }
  }

  /** @throws Error when too many wait, which ends the stream */
  #take(channel: Channel, message: unknown, handle: WaitingTurn['handle']): void {
    const request = numberOf(message, 'id')
    this.#remove(channel, request)
    if (this.#count >= MAX_WAITING) {
      const reason = 'too many requests for blocks'
      this.#deps.onTooMany(reason)
      throw new Error(reason)
    }
    const waiting = this.#waiting.get(channel) ?? { handle, messages: new Map<number, unknown>() }
    waiting.messages.set(request, message)
    this.#waiting.set(channel, waiting)
    this.#count++
    this.#next()
  }

  /** Takes a request off the queue; its core is the last one in turn then. */
  #remove(channel: Channel, request: number): void {
    const waiting = this.#waiting.get(channel)
    if (waiting?.messages.delete(request) !== true) return
    this.#count--
    this.#waiting.delete(channel)
    if (waiting.messages.size > 0) this.#waiting.set(channel, waiting)
  }

  #next(): void {
    while (this.#running < this.#window.blocks && this.#deps.isDrained()) {
      const [channel, waiting] = this.#waiting.entries().next().value ?? []
      const [request, message] = waiting?.messages.entries().next().value ?? []
      if (channel === undefined || waiting === undefined || request === undefined) return
      this.#remove(channel, request)
      this.#running++
      void this.#run(waiting, message)
    }
  }

  async #run({ handle }: WaitingTurn, message: unknown): Promise<void> {
    try {
      await handle(message)
    } catch (error) {
      this.#deps.onFailed(error)
    }
    this.#running--
    this.#next()
  }
}

function numberOf(message: unknown, name: 'id' | 'request'): number {
  const value = isRecord(message) ? message[name] : undefined
  return typeof value === 'number' ? value : 0
}

function bytesOf(data: unknown): number {
  const block = isRecord(data) && isRecord(data['block']) ? data['block']['value'] : null
  return block instanceof Uint8Array ? block.byteLength : 0
}
