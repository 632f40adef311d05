import type { Clock, Timer } from '../../kit/clock.js'
import { TokenBucket } from '../../kit/rate.js'
import { MEMBER_RATE, SENDER_RATE } from '../../domain/channel/cost.js'
import { FRAME } from '../../domain/channel/frames.js'
import { type ChannelState, createChannel, stepChannel, type ChannelEffect, type ChannelInput } from '../../domain/channel/machine.js'
import type { Link } from '../../ports/mesh.js'
import type { Telemetry } from '../../ports/telemetry.js'
import { LinkChannel } from './link-channel.js'
import type { LinkChannelDeps, UnsentFrame } from './link-channel.js'
import type { PeerBudget } from './send-budget.js'

/** What a line needs. */
export interface PeerSessionDeps {
  readonly clock: Clock
  readonly telemetry: Telemetry
  /** Where what waits for the peer is counted. */
  readonly budget: PeerBudget
  /** As a channel asks for it. */
  readonly isBusy: LinkChannelDeps['isBusy']
  readonly askCredit: LinkChannelDeps['askCredit']
  /** How long it may be without a link, in milliseconds. */
  readonly giveUpMs: number
  /** It was without a link for too long: so many messages are lost with it. */
  onClosed(lost: number): void
}

/**
 * The channel to one peer over all the links that carry it one after another. What a link could not send any more goes
 * first over the next one, in the same order; a line that finds no next link in time closes.
 */
export class PeerSession {
  readonly #deps: PeerSessionDeps
  #channels: readonly LinkChannel[] = []
  /** What waits for the next link, with the room that it holds. */
  #unsent: UnsentFrame[] = []
  readonly #rates: Pick<LinkChannelDeps, 'pace' | 'arrivals'>
  readonly #life: ChannelLife
  /** Monotonic milliseconds. */
  #usedAt = 0

  constructor(deps: PeerSessionDeps) {
    this.#deps = deps
    this.#rates = { pace: new TokenBucket(SENDER_RATE, deps.clock), arrivals: new TokenBucket(MEMBER_RATE, deps.clock) }
    this.#life = new ChannelLife({
      clock: deps.clock,
      giveUpMs: deps.giveUpMs,
      onMove: ({ type }) => type === 'closed' && deps.onClosed(this.#drop(this.#unsent.splice(0)))
    })
  }

  /** Where it stands. Times are of the monotonic clock. */
  get state(): ChannelState {
    return this.#life.state
  }

  /** The channel over the newest link; null without one. */
  get newest(): LinkChannel | null {
    return this.#channels.at(-1) ?? null
  }

  /** When its newest link opened, or was used last. Monotonic milliseconds. */
  get usedAt(): number {
    return this.#usedAt
  }

  /** Does something wait to be sent? */
  get isBusy(): boolean {
    return this.#unsent.length > 0 || this.#channels.some((one) => one.isBusy)
  }

  /** It is used for more than keeping it alive. */
  used(): void {
    this.#usedAt = this.#deps.clock.monotonic()
  }

  /** The channel over this link. */
  over(link: Link): LinkChannel | undefined {
    return this.#channels.find((one) => one.link.id === link.id)
  }

  /** A new link. Returns whether it is the only one. */
  opened(link: Link): boolean {
    this.used()
    this.#channels = [...this.#channels, new LinkChannel(link, { ...this.#deps, ...this.#rates })]
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
    const [kept, stale] = divided(gone.takeUnsent())
    gone.onClosed()
    this.#drop(stale)
    if (this.#channels.length > 0) {
      this.#carry(kept)
      return false
    }
    this.#unsent = kept
    this.#life.step({ type: 'disconnected' })
    return true
  }

  /** Ends it, with what waits. */
  close(reason: string): void {
    this.#life.step({ type: 'close', reason })
  }

  #carry(messages: readonly UnsentFrame[]): void {
    for (const one of messages) this.newest?.resume(one)
  }

  /** How many they were. */
  #drop(messages: readonly UnsentFrame[]): number {
    for (const { bytes } of messages) this.#deps.budget.leave(bytes)
    return messages.length
  }
}

/** What is worth sending later, and the rest: lanes send again, cards are told anew, heartbeats are stale, pings belong to their link. */
function divided(messages: readonly UnsentFrame[]): [kept: UnsentFrame[], stale: UnsentFrame[]] {
  const isKept = ({ message }: UnsentFrame): boolean =>
    message.kind === 'envelope' ||
    (message.kind === 'control' && message.name === 'cancel') ||
    (message.kind === 'relayed' && message.frame.content[0] === FRAME.envelope)
  return [messages.filter(isKept), messages.filter((one) => !isKept(one))]
}

/** What the life of a channel needs. */
interface ChannelLifeDeps {
  readonly clock: Clock
  /** How long it may be without a link, in milliseconds. */
  readonly giveUpMs: number
  /** Called with what each move asks for, once the channel stands where it led. */
  onMove(effect: ChannelEffect): void
}

/** The machine of one channel, driven: it holds where the channel stands and closes it when there is no link in time. */
export class ChannelLife {
  readonly #deps: ChannelLifeDeps
  #state: ChannelState
  #timer: Timer

  constructor(deps: ChannelLifeDeps) {
    this.#deps = deps
    this.#state = createChannel(deps.clock.monotonic(), deps.giveUpMs)
    this.#timer = this.#deadline()
  }

  /** Where it stands. Times are of the monotonic clock. */
  get state(): ChannelState {
    return this.#state
  }

  /** Moves it; what is not possible where it stands changes nothing. */
  step(input: ChannelInput): void {
    const { clock, onMove } = this.#deps
    const step = stepChannel(this.#state, input, clock.monotonic())
    if (!step.ok) return
    this.#state = step.state
    for (const effect of step.effects) {
      clock.clear(this.#timer)
      if (effect.type === 'reconnect') this.#timer = this.#deadline()
      onMove(effect)
    }
  }

  #deadline(): Timer {
    return this.#deps.clock.after(this.#deps.giveUpMs, () => this.step({ type: 'tick' }))
  }
}
