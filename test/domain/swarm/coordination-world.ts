import assert from 'node:assert/strict'
import {
  COORDINATION_PERIOD_MS,
  type Coordination,
  type ItemRecord,
  majorityOf
} from '../../../src/domain/swarm/coordination.js'
import {
  type CandidateEffect,
  type CandidateInput,
  type CandidateState,
  isCoordinating,
  leaseEnd,
  openCandidate,
  stepCandidate
} from '../../../src/domain/swarm/coordination-candidate.js'
import { decodeCoordination, type Tell } from '../../../src/domain/swarm/coordination-message.js'
import {
  openVoter,
  stepVoter,
  type VoterEffect,
  type VoterInput,
  type VoterStart,
  type VoterState
} from '../../../src/domain/swarm/coordination-vote.js'
import { Random } from '../../simulation/random.js'
import { CoordinationExam } from './coordination-exam.js'

/** What one simulated world is made of; shares from 0 to 1. */
export interface CoordinationWorldOptions {
  readonly seed: number
  readonly nodes: number
  readonly itemCount: number
  readonly mayTakeOver?: boolean
  /** Milliseconds of faults; all is well after them. */
  readonly faultyMs?: number
  readonly loss?: number
  readonly duplication?: number
  /** At each second of the faulty time. */
  readonly crashes?: number
  /** Of the crashes: the disk is lost too. */
  readonly disksLost?: number
  readonly partitions?: number
  /** A node lets go of what it cannot do. */
  readonly retreats?: number
  /** A node stands still, its monotonic clock too: a machine that sleeps. */
  readonly freezes?: number
  /** Rates of clocks are within this share of true. Default 0.05. */
  readonly drift?: number
}

interface Place {
  readonly id: string
  readonly rate: number
  offset: number
  /** Counts its starts: what a process began ends with it. */
  life: number
  isUp: boolean
  frozenAt: number | null
  side: number
  voter: VoterState
  candidate: CandidateState
  disk: { epoch: number; candidate: string | null; records: Map<number, ItemRecord> } | null
  isDiskLost: boolean
  durableAt: number
}

type Event = { readonly at: number; readonly order: number; readonly run: () => void }
const TICK_MS = COORDINATION_PERIOD_MS / 4

/**
 * The participants of one swarm over a network and disks that fail. Times are true ones; each node has a clock of its
 * own.
 */
export class CoordinationWorld {
  readonly exam: CoordinationExam
  readonly places: readonly Place[]
  readonly coordination: Coordination
  readonly #options: CoordinationWorldOptions
  readonly #random: Random
  #events: Event[] = []
  #order = 0
  #now = 0
  #made = 0

  constructor(options: CoordinationWorldOptions) {
    this.#options = options
    this.#random = new Random(options.seed)
    const voters = Array.from({ length: options.nodes }, (_, index) => `n${index}`)
    this.coordination = { swarm: 's', itemCount: options.itemCount, voters, mayTakeOver: options.mayTakeOver !== false }
    this.exam = new CoordinationExam((options.freezes ?? 0) === 0)
    const { drift = 0.05 } = options
    this.places = voters.map((id) => {
      const rate = 1 + this.#random.int(-1000, 1000) * 0.001 * drift
      const none = { isUp: true, frozenAt: null, side: 0, disk: null, isDiskLost: false, durableAt: 0, life: 0 }
      const parts = { coordination: this.coordination, self: id, run: `${id}.0` }
      const offset = this.#random.int(-1e6, 1e6)
      const place = {
        ...none,
        id,
        rate,
        offset,
        voter: openVoter(parts, { type: 'fresh' }, 0),
        candidate: openCandidate(parts, offset)
      }
      return place
    })
    for (const place of this.places) this.#tick(place, 0)
  }

  get now(): number {
    return this.#now
  }

  /** Who coordinates now. */
  get coordinator(): Place | null {
    return this.places.find((place) => place.isUp && isCoordinating(place.candidate, this.clock(place))) ?? null
  }

  place(index: number): Place {
    const place = this.places[index]
    assert.ok(place !== undefined)
    return place
  }

  clock(place: Place): number {
    return place.offset + (place.frozenAt ?? this.#now) * place.rate
  }

  /** Goes on until something is so, at most for so long. */
  until(isSo: () => boolean, atMostMs: number): boolean {
    const end = this.#now + atMostMs
    while (!isSo()) {
      const event = this.#next()
      if (event === null) return false
      if (event.at > end) {
        this.#events.push(event)
        this.#now = end
        return false
      }
      this.#now = event.at
      event.run()
      this.exam.holders(this.places.filter((place) => this.#hasLease(place)).map(({ id }) => id))
    }
    return true
  }

  /** Faults for a while, then everybody is back and all is well. */
  endure(): this {
    const { faultyMs = 0 } = this.#options
    for (let at = 1000; at < faultyMs; at += 1000) this.#later(at, () => this.#misfortune())
    this.#later(faultyMs, () => this.#heal())
    this.until(() => false, faultyMs)
    return this
  }

  get isWellAgain(): boolean {
    return this.#now >= (this.#options.faultyMs ?? 0)
  }

  crash(place: Place, losesDisk = false): void {
    place.isUp = false
    place.life++
    place.frozenAt = null
    const lost = this.places.filter((one) => one.isDiskLost && one !== place).length
    // More lost disks than that, and what they held may be nowhere: nobody votes again.
    if (!losesDisk || lost + 1 > majorityOf(this.coordination) - 1) return
    place.disk = null
    place.isDiskLost = true
  }

  restart(place: Place): void {
    if (place.isUp) return
    const { disk, isDiskLost } = place
    place.isUp = true
    place.life++
    place.durableAt = this.#now
    place.offset = this.#random.int(-1e6, 1e6)
    const parts = { coordination: this.coordination, self: place.id, run: `${place.id}.${place.life}` }
    const stored = disk === null ? null : { ...disk, records: new Map(disk.records) }
    const start: VoterStart = isDiskLost
      ? { type: 'lost' }
      : stored === null
        ? { type: 'fresh' }
        : { type: 'restarted', stored }
    place.voter = openVoter(parts, start, this.clock(place))
    place.candidate = openCandidate(parts, this.clock(place))
    this.#tick(place, place.life)
  }

  /** Cuts the nodes into two sides; without any all are together. */
  split(side: readonly Place[] = []): void {
    for (const place of this.places) place.side = side.includes(place) ? 1 : 0
  }

  #hasLease(place: Place): boolean {
    const { phase } = place.candidate
    return place.isUp && phase !== 'waiting' && phase !== 'asking' && this.clock(place) < leaseEnd(place.candidate)
  }

  #later(delay: number, run: () => void): void {
    this.#events.push({ at: this.#now + delay, order: this.#order++, run })
  }

  #next(): Event | null {
    let best = 0
    for (let i = 1; i < this.#events.length; i++) {
      const [a, b] = [this.#events[i], this.#events[best]]
      if (a !== undefined && b !== undefined && (a.at < b.at || (a.at === b.at && a.order < b.order))) best = i
    }
    return this.#events.splice(best, 1)[0] ?? null
  }

  /** Runs on a node unless its process has ended; what comes while it stands still comes after it. */
  #on(place: Place, life: number, run: () => void): void {
    if (!place.isUp || place.life !== life) return
    if (place.frozenAt === null) run()
    else this.#later(50, () => this.#on(place, life, run))
  }

  #tick(place: Place, life: number): void {
    this.#on(place, life, () => {
      this.#later(TICK_MS + this.#random.int(0, 50), () => this.#tick(place, life))
      this.#vote(place, { type: 'tick' })
      this.#stand(place, { type: 'tick', voter: place.voter })
      if (!isCoordinating(place.candidate, this.clock(place))) return
      const { accepted, proposals } = place.candidate
      const open = Array.from({ length: this.coordination.itemCount }, (_, index) => index)
      const next = open.filter((index) => !accepted.has(index) && !proposals.has(index)).slice(0, 2)
      this.#stand(place, {
        type: 'propose',
        items: next.map((index) => ({ index, digest: `${place.id} ${this.#made++}` }))
      })
    })
  }

  #vote(place: Place, input: VoterInput): void {
    this.#perform(place, stepVoter(place.voter, input, this.clock(place)))
  }

  #stand(place: Place, input: CandidateInput): void {
    this.#perform(place, stepCandidate(place.candidate, input, this.clock(place)))
  }

  #perform(place: Place, effects: readonly (VoterEffect | CandidateEffect)[]): void {
    const { life } = place
    for (const effect of effects) {
      if (effect.type === 'store') {
        place.durableAt = Math.max(place.durableAt, this.#now) + this.#random.int(1, 300)
        this.#later(place.durableAt - this.#now, () => (place.life === life ? this.#commit(place, effect) : undefined))
      } else if (effect.type === 'tell') {
        if (place.durableAt <= this.#now) this.#send(place, effect)
        else this.#later(place.durableAt - this.#now, () => this.#on(place, life, () => this.#send(place, effect)))
      } else this.exam.see(place.id, effect, isCoordinating(place.candidate, this.clock(place)))
    }
  }

  #commit(place: Place, { epoch, candidate, records }: Extract<VoterEffect, { type: 'store' }>): void {
    const before = place.disk?.records ?? new Map<number, ItemRecord>()
    place.disk = { epoch, candidate, records: new Map([...before, ...records]) }
    place.isDiskLost = false
  }

  #send(from: Place, { to, message }: Tell): void {
    const target = this.places.find(({ id }) => id === to)
    assert.ok(target !== undefined)
    const { loss = 0, duplication = 0 } = this.isWellAgain ? {} : this.#options
    const copies = target === from ? 1 : this.#random.is(loss) ? 0 : this.#random.is(duplication) ? 2 : 1
    const { life } = target
    for (let copy = 0; copy < copies; copy++) {
      const delay = this.#random.int(1, !this.isWellAgain && this.#random.is(0.05) ? 6000 : 100)
      this.#later(target === from ? 0 : delay, () => {
        if (from.side !== target.side && from !== target) return
        // What is on its way when the process ends comes to the next one, now and then.
        this.#on(target, this.#random.is(0.5) ? target.life : life, () => {
          assert.ok(
            message.kind === 'held' || decodeCoordination(message).ok,
            'a machine says only what a decoder takes'
          )
          this.#vote(target, { type: 'message', from: from.id, message })
          this.#stand(target, { type: 'message', from: from.id, message })
        })
      })
    }
  }

  #misfortune(): void {
    const { crashes = 0, disksLost = 0, partitions = 0, freezes = 0, retreats = 0 } = this.#options
    const place = this.#random.pick(this.places)
    assert.ok(place !== null)
    const span = this.#random.int(200, this.#random.is(0.5) ? 2000 : 15_000)
    if (place.isUp && this.#random.is(crashes)) {
      this.crash(place, this.#random.is(disksLost))
      this.#later(span, () => this.restart(place))
    }
    if (place.isUp && this.#random.is(retreats)) this.#stand(place, { type: 'retreat' })
    if (this.#random.is(partitions))
      this.split(this.#random.is(0.5) ? this.places.filter(() => this.#random.is(0.5)) : [])
    if (place.isUp && place.frozenAt === null && this.#random.is(freezes)) {
      place.frozenAt = this.#now
      this.#later(span, () => this.#thaw(place))
    }
  }

  #thaw(place: Place): void {
    if (place.frozenAt === null) return
    // Its clock goes on from where it stood.
    place.offset -= (this.#now - place.frozenAt) * place.rate
    place.frozenAt = null
  }

  #heal(): void {
    this.split()
    for (const place of this.places) {
      this.#thaw(place)
      this.restart(place)
    }
  }
}
