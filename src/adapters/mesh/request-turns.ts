import type { Codec } from 'compact-encoding'
import type { Channel, ChannelOptions, MessageOptions } from 'protomux'
import { isRecord } from '../../kit/json.js'
import { BlockWindow } from './block-window.js'

/** Requests of one link that wait for their turn. */
export const MAX_WAITING = 65_536

/** Places of messages in the protocol of a core (hypercore). */
const REQUEST = 1
const CANCEL = 2
const DATA = 3

/** A request that waits. */
interface Waiting {
  run(): unknown
  /** It is over, or is not answered. */
  over(failure?: unknown): void
}

/** What {@link RequestTurns} needs. */
export interface RequestTurnsParts {
  /** Does the stream take more? */
  isDrained(): boolean
  /** More requests wait than any peer needs: they are many, or their answers are not read. The multiplexer ends the stream then. */
  onTooMany(reason: string): void
}

/**
 * Requests of a peer for blocks of cores, over one link: few are answered at once, the fewer the larger the blocks are, and none while
 * the peer does not read. The engine itself reads all that is asked for at once into memory. Cores take turns.
 */
export class RequestTurns {
  readonly #parts: RequestTurnsParts
  readonly #window = new BlockWindow()
  /** By channel, and the number that the peer gave the request. */
  readonly #waiting = new Map<Channel, Map<number, Waiting>>()
  #count = 0
  #running = 0

  constructor(parts: RequestTurnsParts) {
    this.#parts = parts
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
        for (const request of [...(this.#waiting.get(channel)?.keys() ?? [])]) this.#drop(channel, request)
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
        if (place === REQUEST) return this.#take(channel, numberOf(message, 'id'), () => onmessage(message as Uint8Array, channel))
        this.#drop(channel, numberOf(message, 'request'))
        return onmessage(message as Uint8Array, channel)
      }
    }
  }

  /** Sees how large the blocks are that go out. */
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

  /** Resolves when the request was handed to the engine and answered, or was dropped; rejects when too many wait. */
  #take(channel: Channel, request: number, run: () => unknown): Promise<void> {
    this.#drop(channel, request)
    if (this.#count >= MAX_WAITING) {
      const reason = 'too many requests for blocks'
      this.#parts.onTooMany(reason)
      return Promise.reject(new Error(reason))
    }
    return new Promise((resolve, reject) => {
      const over = (failure?: unknown): void => (failure === undefined ? resolve() : reject(failure))
      const ofChannel = this.#waiting.get(channel) ?? new Map<number, Waiting>()
      this.#waiting.set(channel, ofChannel.set(request, { run, over }))
      this.#count++
      this.#next()
    })
  }

  #drop(channel: Channel, request: number): void {
    const waiting = this.#waiting.get(channel)?.get(request)
    if (waiting === undefined) return
    this.#remove(channel, request)
    waiting.over()
  }

  #remove(channel: Channel, request: number): void {
    const ofChannel = this.#waiting.get(channel)
    if (ofChannel?.delete(request) !== true) return
    this.#count--
    this.#waiting.delete(channel)
    // Behind those of other cores.
    if (ofChannel.size > 0) this.#waiting.set(channel, ofChannel)
  }

  #next(): void {
    while (this.#running < this.#window.blocks && this.#parts.isDrained()) {
      const [channel, ofChannel] = this.#waiting.entries().next().value ?? []
      const [request, waiting] = ofChannel?.entries().next().value ?? []
      if (channel === undefined || request === undefined || waiting === undefined) return
      this.#remove(channel, request)
      this.#running++
      void this.#run(waiting)
    }
  }

  async #run({ run, over }: Waiting): Promise<void> {
    try {
      await run()
      over()
    } catch (error) {
      over(error)
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
