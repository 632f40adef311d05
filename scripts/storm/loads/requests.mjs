import { setTimeout as delay } from 'node:timers/promises'
import { oneOf } from '../chance.mjs'
import { AGAIN, ONCE } from '../witness.mjs'
import { Load } from './load.mjs'

/** Requests that are asked for at once. */
const DRIVERS = 16
/** One in so many may be run again. */
const AGAIN_EVERY = 3
/** Accepted requests without an end above which no further one is asked for. */
const MAX_AHEAD = 1000

/** Queued requests between any two nodes: of each its caller and its task there, by its run. */
export class Requests extends Load {
  ends = new Set(['completed', 'failed', 'canceled', 'rejected', 'unknown'])

  drive(isDone) {
    return this.repeat(DRIVERS, isDone, async () => {
      await this.#ask()
      while (this.accepted.size - this.given.effects.read().size > MAX_AHEAD && !isDone()) await delay(50)
    })
  }

  /** The task as its caller shows it. */
  async look(_run, { caller, id }) {
    const api = await this.given.fleet.api(caller)
    return await api.call('tasks.show', { id })
  }

  /** What must not be of a task that is as it is; null: nothing. */
  faultOf(run, { state, result, error }) {
    const { effects } = this.given
    if (state === 'completed' && result?.n !== run.split(' ')[1]) return `result ${JSON.stringify(result)}`
    if (state === 'completed') return effects.ended(run) === 0 ? 'completed, never run' : null
    if (state === 'unknown') return run.startsWith(ONCE) ? null : 'unknown, although it may be run again'
    return `${state} (${error?.code}), begun ${effects.begun(run)} times`
  }

  /** Requests that their agent's node says are completed, and their caller says are not. */
  async disagreements(ends) {
    const found = []
    for (const name of this.given.fleet.names) {
      const { tasks } = await (await this.given.fleet.api(name)).call('tasks.list', {})
      for (const { role, state, capability, result } of tasks) {
        const seen = role === 'callee' && state === 'completed' ? ends.get(`${capability} ${result?.n}`) : undefined
        if (seen !== undefined && seen.state !== 'completed')
          found.push(`${result.n}: completed on ${name}, ${seen.state} for its caller`)
      }
    }
    return found
  }

  async #ask() {
    const { fleet, chance } = this.given
    const n = this.newName('r')
    const capability = chance() * AGAIN_EVERY < 1 ? AGAIN : ONCE
    const caller = oneOf(fleet.names, chance)
    const api = await fleet.api(caller)
    const request = { agent: `witness@${fleet.otherThan(caller, chance)}`, capability, input: { n }, wait: false }
    try {
      const { outcome, taskId } = await api.call('message.call', request)
      if (outcome === 'QUEUED') this.accepted.set(`${capability} ${n}`, { caller, id: taskId })
    } catch {
      // It was not accepted, so nothing is promised: it may have been run or not.
      await delay(20)
    }
  }
}
