import type { Clock, Timer } from '../../kit/clock.js'
import { TokenBucket } from '../../kit/rate.js'
import { MEMBER_RATE, SENDER_RATE } from '../../domain/channel/credit.js'
import { FRAME } from '../../domain/channel/frames.js'
import {
  type ChannelState,
  createChannel,
  stepChannel,
  type ChannelEffect,
  type ChannelInput
} from '../../domain/channel/machine.js'
import type { Link } from '../../ports/mesh.js'
import type { Telemetry } from '../../ports/telemetry.js'
import { LinkChannel } from './link-channel.js'
import type { LinkChannelDeps, UnsentFrame } from './link-channel.js'
import type { PeerBudget } from './send-budget.js'

/** Dependencies of {@link PeerSession}. */
export interface PeerSessionDeps {
  readonly clock: Clock
  readonly telemetry: Telemetry
  /** Counts the bytes of waiting messages. */
  readonly budget: PeerBudget
  /** See {@link LinkChannelDeps}. */
  readonly isBusy: LinkChannelDeps['isBusy']
  readonly askCredit: LinkChannelDeps['askCredit']
  /** The longest time without a link, in milliseconds. */
  readonly giveUpMs: number
  /** Called after too long a time without a link: `lost` messages are lost. */
  onClosed(lost: number): void
}

/**
 * The channel to one peer over its successive links. Unsent messages of a link go first over the next one, in the same
 * order. A session without a next link in time closes.
 */
export class PeerSession {
  readonly #deps: PeerSessionDeps
  #channels: readonly LinkChannel[] = []
  /** Unsent messages for the next link, with their bytes in the budget. */
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

  /** The state of the channel, in monotonic times. */
  get state(): ChannelState {
    return this.#life.state
  }

  /** The channel over the newest link that takes messages, else over the newest; null without one. */
  get newest(): LinkChannel | null {
    const last = this.#channels.at(-1) ?? null
    return this.#channels.length < 2 ? last : (this.#channels.findLast(({ link }) => !link.closed) ?? last)
  }

  /** When its newest link opened, or was last used. Monotonic milliseconds. */
  get usedAt(): number {
    return this.#usedAt
  }

  /** True when messages wait. */
  get isBusy(): boolean {
    return this.#unsent.length > 0 || this.#channels.some((one) => one.isBusy)
  }

  /** Notes a use beyond keep-alive. */
  used(): void {
    this.#usedAt = this.#deps.clock.monotonic()
  }

  /** The channel over this link. */
  over(link: Link): LinkChannel | undefined {
    return this.#channels.find((one) => one.link.id === link.id)
  }

  /** Adds a new link. Returns true for the only one. */
  opened(link: Link): boolean {
    this.used()
    this.#channels = [...this.#channels, new LinkChannel(link, { ...this.#deps, ...this.#rates })]
    if (this.#channels.length > 1) return false
    this.#life.step({ type: 'acknowledged' })
    this.#carry(this.#unsent.splice(0))
    return true
  }

  /** Removes a closed link. Returns true for the last one; null for an unknown one. */
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

  /** Closes the session and drops its waiting messages. */
  close(reason: string): void {
    this.#life.step({ type: 'close', reason })
  }

  #carry(messages: readonly UnsentFrame[]): void {
    for (const one of messages) this.newest?.resume(one)
  }

  /** Returns their number. */
  #drop(messages: readonly UnsentFrame[]): number {
    for (const { bytes } of messages) this.#deps.budget.leave(bytes)
    return messages.length
  }
}

/**
 * Splits messages into those to send later and stale ones: lanes resend, cards are sent anew, heartbeats and pings are
 * stale.
 */
function divided(messages: readonly UnsentFrame[]): [kept: UnsentFrame[], stale: UnsentFrame[]] {
  const isKept = ({ message }: UnsentFrame): boolean =>
    message.kind === 'envelope' ||
    (message.kind === 'control' && message.name === 'cancel') ||
    (message.kind === 'relayed' && message.frame.content[0] === FRAME.envelope)
  return [messages.filter(isKept), messages.filter((one) => !isKept(one))]
}

/** Dependencies of {@link ChannelLife}. */
interface ChannelLifeDeps {
  readonly clock: Clock
  /** The longest time without a link, in milliseconds. */
  readonly giveUpMs: number
  /** Called with each effect of a step, after the state change. */
  onMove(effect: ChannelEffect): void
}

/** Runs the state machine of one channel: holds its state, and closes it when there is no link in time. */
export class ChannelLife {
  readonly #deps: ChannelLifeDeps
  #state: ChannelState
  #timer: Timer

  constructor(deps: ChannelLifeDeps) {
    this.#deps = deps
    this.#state = createChannel(deps.clock.monotonic(), deps.giveUpMs)
    this.#timer = this.#deadline()
  }

  /** The state, in monotonic times. */
  get state(): ChannelState {
    return this.#state
  }

  /** Applies an input; one that the state does not allow changes nothing. */
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
