import { setTimeout as delay } from 'node:timers/promises'
import { oneOf } from '../chance.mjs'
import { AGAIN, ONCE } from '../witness.mjs'
import { Load } from './load.mjs'

/** Swarms at once. */
const DRIVERS = 2
const ITEMS = 20

/** Swarms that any node launches, of items that may be run again and of others: of each its launcher and its id. */
export class Swarms extends Load {
  ends = new Set(['completed', 'failed', 'partial', 'canceled'])

  drive(isDone) {
    return this.repeat(DRIVERS, isDone, async () => {
      const accepted = await this.#launch()
      if (accepted === null) await delay(100)
      else while (!isDone() && !(await this.#isOver(accepted))) await delay(200)
    })
  }

  /** The swarm with what became of its items. */
  async look(_name, { launcher, id }) {
    const api = await this.given.fleet.api(launcher)
    const { status, results } = await api.call('swarm.results', { id })
    return { state: status, results }
  }

  /** What must not be of a swarm; null: nothing. */
  faultOf(name, { state, results }) {
    if (state === 'canceled' || results.length !== ITEMS) return `${state} with ${results.length} of ${ITEMS} results`
    const capability = this.accepted.get(name).capability
    const faults = results.map((item) => faultOfItem(capability, item, this.given.effects))
    return faults.find((fault) => fault !== null) ?? null
  }

  async #launch() {
    const { fleet, chance } = this.given
    const name = this.newName('s')
    const [launcher, capability] = [oneOf(fleet.names, chance), oneOf([ONCE, AGAIN], chance)]
    const items = Array.from({ length: ITEMS }, (_, at) => ({ item: `${name}.${at}`, input: { n: `${name}.${at}` } }))
    try {
      const api = await fleet.api(launcher)
      const { id } = await api.call('swarm.start', { goal: name, capability, strategy: 'map', items })
      this.accepted.set(name, { launcher, id, capability })
      return this.accepted.get(name)
    } catch {
      return null
    }
  }

  async #isOver(accepted) {
    const seen = await this.look('', accepted).catch(() => ({ state: 'not there' }))
    return this.ends.has(seen.state)
  }
}

function faultOfItem(capability, { item, status, result, error }, effects) {
  const run = `${capability} ${item}`
  if (status === 'completed')
    return result?.n === item && effects.ended(run) > 0 ? null : `${item}: completed, ended ${effects.ended(run)} times`
  if (status === 'unknown' && capability === ONCE) return null
  return `${item}: ${status} (${error?.code}), begun ${effects.begun(run)} times`
}
