import assert from 'node:assert/strict'
import {
  createSwarm,
  stepSwarm,
  type SwarmEffect,
  type SwarmInput,
  type SwarmParts
} from '../../../src/domain/swarm/machine.js'
import { NodeError } from '../../../src/kit/errors.js'
import { SwarmExam } from './exam.js'

/** What one simulated world is made of; probabilities from 0 to 1. */
export interface WorldOptions {
  readonly seed: number
  readonly items: SwarmParts['items']
  readonly agents: number
  readonly maxParallel: number
  readonly retries: number
  readonly deadlineAt: number
  readonly loss: number
  readonly duplication: number
  /** A run fails. */
  readonly failure: number
  /** A run neither ends nor heartbeats. */
  readonly hang: number
  /** At each heartbeat time of a worker: its link breaks for a while. */
  readonly outage: number
  /** A worker has less room than it said. */
  readonly full: number
  /** Further workers that claim 1,024 places, take whatever comes and heartbeat it for ever. */
  readonly hoarders?: number
  readonly cancelAt?: number
}

const LEASE_MS = 1000
const BEAT_MS = 250

interface Worker {
  readonly address: string
  readonly isHoarder: boolean
  readonly slots: number
  isLinked: boolean
  readonly runs: Map<string, { index: number; attempt: number; isHung: boolean }>
}

type Event = { readonly at: number; readonly order: number; readonly run: () => void }

/**
 * A launcher and its workers over a network that loses, repeats, delays and reorders messages. Replayable by its seed.
 */
export class World {
  readonly exam: SwarmExam
  readonly log: string[] = []
  readonly #options: WorldOptions
  readonly #workers: Worker[]
  readonly #state
  #events: Event[] = []
  #order = 0
  #now = 0
  #random: number

  constructor(options: WorldOptions) {
    this.#options = options
    this.#random = options.seed >>> 0
    const parts = {
      id: 's',
      items: options.items,
      maxParallel: options.maxParallel,
      retries: options.retries,
      deadlineAt: options.deadlineAt,
      leaseMs: LEASE_MS
    }
    this.#state = createSwarm(parts, 0)
    this.exam = new SwarmExam(parts)
    this.#workers = Array.from({ length: options.agents + (options.hoarders ?? 0) }, (_, i) => ({
      // All hoarders are agents of one node.
      address: i < options.agents ? `a${i}@n${i}` : `a${i}@hoard`,
      isHoarder: i >= options.agents,
      slots: i < options.agents ? 1 + this.#below(3) : 1024,
      isLinked: true,
      runs: new Map()
    }))
  }

  /** Milliseconds since it began. */
  get now(): number {
    return this.#now
  }

  /** Runs until the swarm is done, at the latest a little after its deadline. */
  run(): this {
    for (const worker of this.#workers) {
      this.#later(this.#below(300), () => this.#join(worker))
      this.#later(BEAT_MS, () => this.#beat(worker))
    }
    this.#later(100, () => this.#tick())
    if (this.#options.cancelAt !== undefined) this.#later(this.#options.cancelAt, () => this.#input({ type: 'cancel' }))
    while (this.exam.done === null) {
      const event = this.#next()
      assert.ok(event !== undefined && event.at <= this.#options.deadlineAt + 200, 'the swarm did not end')
      this.#now = event.at
      event.run()
    }
    return this
  }

  #below(n: number): number {
    // mulberry32: small, seeded, good enough to vary worlds.
    this.#random = (this.#random + 0x6d2b79f5) >>> 0
    let x = this.#random
    x = Math.imul(x ^ (x >>> 15), x | 1)
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61)
    return ((x ^ (x >>> 14)) >>> 0) % n
  }

  #chance(p: number): boolean {
    return this.#below(10_000) < p * 10_000
  }

  #later(delay: number, run: () => void): void {
    this.#events.push({ at: this.#now + delay, order: this.#order++, run })
  }

  #next(): Event | undefined {
    let best = 0
    for (let i = 1; i < this.#events.length; i++) {
      const [a, b] = [this.#events[i], this.#events[best]]
      if (a.at < b.at || (a.at === b.at && a.order < b.order)) best = i
    }
    return this.#events.splice(best, 1)[0]
  }

  /** Sends over the link: maybe lost, maybe twice, with delays that reorder. */
  #send(worker: Worker, arrive: () => void): void {
    const copies = this.#chance(this.#options.loss) ? 0 : this.#chance(this.#options.duplication) ? 2 : 1
    for (let i = 0; i < copies; i++) {
      // Some copies are late by several leases.
      const delay = 1 + this.#below(this.#chance(0.05) ? 5000 : 60)
      this.#later(delay, () => (worker.isLinked ? arrive() : undefined))
    }
  }

  #tick(): void {
    this.#input({ type: 'tick' })
    this.#later(100, () => this.#tick())
  }

  #join(worker: Worker): void {
    if (worker.isLinked) this.#input({ type: 'accepted', agent: worker.address, slots: worker.slots })
  }

  #beat(worker: Worker): void {
    this.#later(BEAT_MS, () => this.#beat(worker))
    if (worker.isLinked && this.#chance(this.#options.outage)) return this.#breakLink(worker)
    const leases = [...worker.runs.values()].filter((run) => !run.isHung)
    if (leases.length > 0) this.#send(worker, () => this.#input({ type: 'heartbeat', leases }))
  }

  #breakLink(worker: Worker): void {
    worker.isLinked = false
    this.#input({ type: 'gone', agents: [worker.address], reason: 'link lost' })
    this.#later(200 + this.#below(4000), () => {
      worker.isLinked = true
      this.#join(worker)
    })
  }

  #input(input: SwarmInput): void {
    if (input.type === 'accepted') this.exam.accepted(input.agent, input.slots)
    if (input.type === 'gone') for (const agent of input.agents) this.exam.gone(agent)
    const { effects } = stepSwarm(this.#state, input, this.#now)
    for (const effect of effects) {
      this.log.push(`${this.#now} ${JSON.stringify(effect)}`)
      this.exam.see(effect)
      this.#perform(effect)
    }
  }

  #perform(effect: SwarmEffect): void {
    if (effect.type !== 'lease' && effect.type !== 'release') return
    const worker = this.#workers.find((one) => one.address === effect.agent)
    assert.ok(worker !== undefined)
    const { index, attempt } = effect
    if (effect.type === 'lease') this.#send(worker, () => this.#start(worker, index, attempt))
    else this.#send(worker, () => worker.runs.delete(`${index}/${attempt}`))
  }

  #start(worker: Worker, index: number, attempt: number): void {
    const key = `${index}/${attempt}`
    if (worker.runs.has(key)) return
    if (worker.isHoarder) return void worker.runs.set(key, { index, attempt, isHung: false })
    if (worker.runs.size >= worker.slots || this.#chance(this.#options.full)) {
      return this.#send(worker, () => this.#input({ type: 'busy', index, attempt, agent: worker.address }))
    }
    const isHung = this.#chance(this.#options.hang)
    worker.runs.set(key, { index, attempt, isHung })
    this.#later(20 + this.#below(isHung ? 10_000 : 800), () => this.#finish(worker, index, attempt))
  }

  #finish(worker: Worker, index: number, attempt: number): void {
    const key = `${index}/${attempt}`
    if (!worker.runs.delete(key)) return
    const { address } = worker
    if (this.#chance(this.#options.failure)) {
      const error = new NodeError('TASK_FAILED', key).toBody()
      return this.#send(worker, () =>
        this.#input({ type: 'result', index, attempt, agent: address, outcome: { ok: false, error } })
      )
    }
    this.exam.finished(address, key)
    this.#send(worker, () =>
      this.#input({
        type: 'result',
        index,
        attempt,
        agent: address,
        outcome: { ok: true, result: `${address} ${key}` }
      })
    )
  }
}
