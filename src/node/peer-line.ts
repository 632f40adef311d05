import type { Clock } from '../kit/clock.js'
import { NodeError } from '../kit/errors.js'
import { TokenBucket } from '../kit/rate.js'
import { SENDER_RATE } from '../domain/channel/cost.js'
import type { ChannelMessage } from '../domain/channel/frames.js'
import type { ChannelState } from '../domain/channel/machine.js'
import type { Link } from '../ports/mesh.js'
import type { Telemetry } from '../ports/telemetry.js'
import { PeerChannel } from './channel.js'
import { ChannelLife } from './channel-life.js'

/** Bytes of unsent messages that are kept from one link to the next. */
const MAX_KEPT_BYTES = 32 * 1024 * 1024

/** What a line needs. */
export interface PeerLineParts {
  readonly clock: Clock
  readonly telemetry: Telemetry
  /** How long it may be without a link, in milliseconds. */
  readonly giveUpMs: number
  /** It was without a link for too long: so many messages are lost with it. */
  onClosed(lost: number): void
}

/**
 * The channel to one peer over all the links that carry it one after another. What a link could not send any more goes
 * first over the next one, in the same order; a line that finds no next link in time closes.
 */
export class PeerLine {
  readonly #parts: PeerLineParts
  #channels: readonly PeerChannel[] = []
  #unsent: ChannelMessage[] = []
  readonly #pace: TokenBucket
  readonly #life: ChannelLife

  constructor(parts: PeerLineParts) {
    this.#parts = parts
    this.#pace = new TokenBucket(SENDER_RATE, parts.clock)
    this.#life = new ChannelLife({
      clock: parts.clock,
      giveUpMs: parts.giveUpMs,
      onMove: ({ type }) => type === 'closed' && parts.onClosed(this.#unsent.splice(0).length)
    })
  }

  /** Where it stands. Times are of the monotonic clock. */
  get state(): ChannelState {
    return this.#life.state
  }

  /** The channel over the newest link; null without one. */
  get newest(): PeerChannel | null {
    return this.#channels.at(-1) ?? null
  }

  /** The channel over this link. */
  over(link: Link): PeerChannel | undefined {
    return this.#channels.find((one) => one.link.id === link.id)
  }

  /** A new link. Returns whether it is the only one. */
  opened(link: Link): boolean {
    this.#channels = [...this.#channels, new PeerChannel(link, { ...this.#parts, pace: this.#pace })]
    if (this.#channels.length > 1) return false
    this.#life.step({ type: 'acknowledged' })
    this.#carry(this.#unsent.splice(0))
    return true
  }

  /** A link is gone. Returns whether it was the last one; null for one that was none of its own. */
  closed(link: Link): boolean | null {
    const gone = this.over(link)
    if (gone === undefined) return null
    this.#channels = this.#channels.filter((one) => one !== gone)
    const unsent = gone.takeUnsent().filter(isWorthKeeping)
    if (this.#channels.length > 0) {
      this.#carry(unsent)
      return false
    }
    this.#unsent = bounded(unsent)
    this.#life.step({ type: 'disconnected' })
    return true
  }

  /** Ends it, with what waits. */
  close(reason: string): void {
    this.#life.step({ type: 'close', reason })
  }

  #carry(messages: readonly ChannelMessage[]): void {
    for (const message of messages) {
      try {
        this.newest?.send(message)
      } catch (error) {
        const reason = error instanceof NodeError ? error.code : 'INTERNAL'
        this.#parts.telemetry.count('errors', 'carry')
        this.#parts.telemetry.log('warn', 'a message did not fit on the new link to its peer', { reason })
      }
    }
  }
}

/** Cards are told anew and heartbeats are stale on another link; pings belong to theirs. */
function isWorthKeeping(message: ChannelMessage): boolean {
  return message.kind === 'envelope' || (message.kind === 'control' && message.name === 'cancel')
}

function bounded(messages: readonly ChannelMessage[]): ChannelMessage[] {
  let bytes = 0
  return messages.filter((one) => {
    bytes += one.kind === 'envelope' ? one.bytes.byteLength : 0
    return bytes <= MAX_KEPT_BYTES
  })
}
