import type { Clock, Timer } from '../../kit/clock.js'
import { createChannel, stepChannel } from '../../domain/channel/machine.js'
import type { ChannelEffect, ChannelInput, ChannelState } from '../../domain/channel/machine.js'

/** What the life of a channel needs. */
export interface ChannelLifeDeps {
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
