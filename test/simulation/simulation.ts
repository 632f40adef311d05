import type { NodeId } from '../../src/kit/ids.js'
import { FakeLog } from '../support/fake-log.js'
import type { FakeLink } from '../support/fake-links.js'
import { type FakeNode, World } from '../support/fake-node.js'
import { ManualClock } from '../support/manual-clock.js'
import { actor, founded, LogModel } from '../support/membership.js'
import { Launches } from './launches.js'
import { SeededNet } from './net.js'
import { Place } from './place.js'
import { Queries } from './questions.js'
import { Random } from './random.js'
import { frameText, Trace } from './trace.js'
import { Witness } from './witness.js'

/** What is done to a world, and how often. */
const DEEDS = {
  ask: 30,
  finish: 20,
  fail: 3,
  cancel: 3,
  cut: 6,
  stall: 3,
  part: 4,
  heal: 4,
  kill: 6,
  stop: 1,
  start: 9,
  jump: 3,
  fill: 2,
  free: 4,
  pass: 12
}
/** The same where there are swarms. */
const DEEDS_OF_SWARMS = {
  ...DEEDS,
  launch: 12,
  abandon: 1,
  ask: 6,
  finish: 30,
  fail: 10,
  kill: 8,
  start: 12,
  lose: 1,
  pass: 16
}
/** The same where a pair of nodes never has a link, and relays lose frames. */
const DEEDS_OF_RELAYS = {
  ...DEEDS,
  lose: 0,
  launch: 0,
  abandon: 0,
  ask: 40,
  kill: 10,
  start: 14,
  cut: 10,
  jump: 1,
  drop: 8
}
/** One world of so many has swarms. */
const SWARMS_IN = 3
/** Of the others, one of so many has relays. */
const RELAYS_IN = 2
/**
 * How far wall clocks of nodes behind relays differ at most, in milliseconds: frames of a clock further off are not
 * relayed.
 */
const MAX_SKEW_MS = 100_000
/** Milliseconds of quiet within which everything must have ended. */
const QUIET_MS = 1_200_000

/** How a world went. */
export interface WorldResult {
  readonly seed: number
  /** What was broken first; null for nothing. */
  readonly fault: string | null
  readonly trace: Trace
  /** Requests and launches, also those that were refused. */
  readonly asked: number
  readonly launched: number
}

/** A world: whole nodes on one clock, with links and disks that a seed troubles. */
export class Simulation {
  readonly seed: number
  readonly trace: Trace
  readonly #random: Random
  readonly #clock = new ManualClock()
  readonly #witness: Witness
  readonly #net: SeededNet
  readonly #places: readonly Place[]
  readonly #questions: Queries
  readonly #launches: Launches
  /** Pairs of places that cannot reach each other. */
  readonly #parted = new Set<string>()
  readonly #hasSwarms: boolean
  /** The first and the last of its nodes never have a link. */
  readonly #hasRelays: boolean
  #isCalm = false

  constructor(seed: number) {
    this.seed = seed
    this.#random = new Random(seed)
    this.trace = new Trace(() => Math.round(this.#clock.monotonic() * 1000) / 1000)
    this.#witness = new Witness(this.trace)
    this.#net = new SeededNet({
      clock: this.#clock,
      random: this.#random,
      witness: {
        onFrame: (link, frame) =>
          this.trace.add(this.#ownerOf(link)?.name ?? '?', `gets ${frameText(frame)} from ${this.#at(link.peer).name}`),
        onAck: (link, lanes) => this.#ownerOf(link)?.acknowledges(link.peer, lanes)
      }
    })
    this.#hasSwarms = seed % SWARMS_IN === 0
    this.#hasRelays = !this.#hasSwarms && seed % RELAYS_IN === 0
    const names = this.#names()
    const world = new World({ teardown: () => {} }, { clock: this.#clock, net: this.#net, log: logOf(names) })
    const hasRelays = this.#hasRelays
    const parts = {
      world,
      clock: this.#clock,
      random: this.#random,
      trace: this.trace,
      witness: this.#witness,
      hasRelays
    }
    this.#places = names.map((name) => new Place(parts, actor(name)))
    this.#questions = new Queries(parts)
    this.#launches = new Launches(parts)
  }

  /** Lets it happen, from the first start to the end of everything. */
  async run(): Promise<WorldResult> {
    for (const place of this.#places) this.#start(place)
    await this.#pass(2000)
    for (
      let left = this.#random.int(5, 30) * (this.#hasSwarms || this.#hasRelays ? 2 : 1);
      left > 0 && this.#isWell;
      left--
    ) {
      const deed = this.#random.weighted(this.#deeds)
      if (deed === 'pass')
        await this.#pass(this.#random.is(0.2) ? this.#random.int(1000, 30_000) : this.#random.int(1, 1000))
      else this.#do(deed)
      await this.#turn()
      await this.#events(this.#random.int(0, 12))
    }
    if (this.#isWell) await this.#quiesce()
    if (this.#isWell) await this.#judge()
    if (this.#isWell) await this.#close()
    return {
      seed: this.seed,
      fault: this.#witness.faults[0] ?? null,
      trace: this.trace,
      asked: this.#questions.count,
      launched: this.#launches.count
    }
  }

  #names(): readonly string[] {
    if (this.#hasRelays) return ['a', 'b', 'c', 'd'].slice(0, this.#random.int(3, 4))
    return ['a', 'b', 'c'].slice(0, this.#random.is(0.3) === this.#hasSwarms ? 2 : 3)
  }

  get #deeds(): Readonly<Record<string, number>> {
    if (this.#hasRelays) return DEEDS_OF_RELAYS
    return this.#hasSwarms ? DEEDS_OF_SWARMS : DEEDS
  }

  get #isWell(): boolean {
    return this.#witness.faults.length === 0
  }

  /** Lets all promises run that need no event. */
  #turn(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve))
  }

  /** So many events, one after the other: frames, timers, commits. */
  async #events(count: number): Promise<void> {
    for (let left = count; left > 0 && this.#isWell && this.#clock.step(Number.MAX_SAFE_INTEGER); left--)
      await this.#turn()
  }

  /** Lets time pass, event by event. */
  async #pass(ms: number): Promise<void> {
    const end = this.#clock.monotonic() + ms
    while (this.#isWell && this.#clock.step(end)) await this.#turn()
    if (this.#isWell) this.#clock.advance(end - this.#clock.monotonic())
  }

  #do(deed: string): void {
    const place = this.#random.pick(this.#places)
    const other = this.#random.pick(this.#places)
    if (place === null || other === null) return
    place.look()
    if (deed === 'ask') return this.#ask(place, other)
    if (deed === 'part' || deed === 'heal') return this.#part(place, this.#besides(place), deed === 'part')
    const link = this.#random.pick(this.#net.openLinks(place.actor.id, this.#besides(place).actor.id))
    if (deed === 'cut' && link !== null) return this.#cut(link)
    if (deed === 'stall' && link !== null) return this.#stall(link)
    if (deed === 'finish' || deed === 'fail') return this.#end(place, deed === 'finish')
    if (deed === 'cancel') return this.#questions.cancel()
    if (deed === 'launch') return this.#launches.launch(place)
    if (deed === 'abandon') return this.#launches.cancel(this.#places)
    if (deed === 'kill') return this.#kill(place)
    if (deed === 'lose') return this.#lose(place)
    if (deed === 'stop') return void this.#stop(place)
    if (deed === 'start') return this.#start(this.#places.find(({ isUp }) => !isUp) ?? place)
    if (deed === 'jump') return this.#jump(place)
    if (deed === 'drop') return this.#drop(place)
    if (deed === 'fill' || deed === 'free') return this.#fill(place, deed === 'fill')
  }

  /** Where there are relays most requests are for a node without a link. */
  #ask(place: Place, other: Place): void {
    const ends = this.#places.filter((one) => this.#isEnd(one))
    const [from, to] = this.#random.is(0.5) ? ends : ends.reverse()
    if (this.#hasRelays && from !== undefined && to !== undefined && this.#random.is(0.7))
      return this.#questions.ask(from, to)
    this.#questions.ask(place, place === other && this.#random.is(0.8) ? this.#besides(place) : other)
  }

  /** Is it the first or the last of all? */
  #isEnd(place: Place): boolean {
    return place === this.#places[0] || place === this.#places.at(-1)
  }

  #end(place: Place, isDone: boolean): void {
    const one = this.#random.pick(place.open)
    if (one === null) return
    if (isDone) one.agent.complete(one.run)
    else one.run.end({ ok: false, code: 'TASK_FAILED', message: 'it did not work' })
  }

  #start(place: Place): void {
    if (!place.isUp) place.start(() => this.#reach())
  }

  #lose(place: Place): void {
    this.#kill(place)
    place.lose()
  }

  #kill(place: Place): void {
    if (!place.isUp) return
    place.kill()
    for (const other of this.#places)
      for (const link of this.#net.openLinks(place.actor.id, other.actor.id)) this.#net.cut(link, 'its node is gone')
    this.#reach()
  }

  /** The process ends by itself, as on a signal. */
  async #stop(place: Place): Promise<void> {
    const { node, life } = place
    if (node === null) return
    this.trace.add(place.name, 'stops')
    await node.core.close()
    if (life !== place.life) return
    this.trace.add(place.name, 'has stopped')
    this.#kill(place)
    if (this.#isCalm) this.#start(place)
  }

  #jump(place: Place): void {
    if (this.#hasRelays) place.skewMs = this.#random.int(-MAX_SKEW_MS / 2, MAX_SKEW_MS / 2)
    else place.skewMs += this.#random.int(-600_000, 600_000) * (this.#random.is(0.2) ? 5 : 0.1)
    this.trace.add(place.name, `its wall clock is ahead by ${place.skewMs} ms`)
  }

  /** The node loses the next frames that it should relay. */
  #drop(place: Place): void {
    const count = this.#random.int(1, 20)
    this.trace.add(place.name, `loses the next ${count} frames that it should relay`)
    place.loseRelayed(count)
  }

  #fill(place: Place, isFull: boolean): void {
    if (place.disk.isFull === isFull) return
    place.disk.isFull = isFull
    this.trace.add(place.name, isFull ? 'its disk is full' : 'its disk has room')
  }

  #cut(link: FakeLink): void {
    this.trace.add(this.#ownerOf(link)?.name ?? '?', `its link to ${this.#at(link.peer).name} is cut`)
    this.#net.cut(link)
    this.#reach()
  }

  /** Nothing arrives at this end for a while; then all of it does, or the link is cut. */
  #stall(link: FakeLink): void {
    this.trace.add(this.#ownerOf(link)?.name ?? '?', `its link to ${this.#at(link.peer).name} stalls`)
    link.isHeld = true
    const isCut = this.#random.is(0.5)
    this.#clock.after(this.#random.int(1, 10_000), () => {
      link.isHeld = false
      if (isCut && !link.closed) this.#cut(link)
      else if (link.waiting > 0) link.deliver()
    })
  }

  #part(a: Place, b: Place, isParted: boolean): void {
    const pair = pairOf(a, b)
    if (this.#parted.has(pair) === isParted) return
    this.trace.add(a.name, isParted ? `cannot reach ${b.name}` : `can reach ${b.name}`)
    if (isParted) this.#parted.add(pair)
    else this.#parted.delete(pair)
    if (isParted) for (const link of this.#net.openLinks(a.actor.id, b.actor.id)) this.#net.cut(link)
    this.#reach()
  }

  /** Whom nodes can dial changed; those who can reach each other are linked again after a while. */
  #reach(): void {
    for (const [at, a] of this.#places.entries()) {
      a.node?.links.reachable.clear()
      for (const b of this.#places) if (a !== b && this.#canReach(a, b)) a.node?.links.reachable.add(b.actor.id)
      for (const b of this.#places.slice(at + 1)) {
        const afterMs =
          this.#isCalm || this.#random.is(this.#hasRelays ? 0.8 : 0.5)
            ? this.#random.int(0, 200)
            : this.#random.int(0, 20_000)
        if (this.#canReach(a, b) && !this.#net.isLinked(a.actor.id, b.actor.id))
          this.#clock.after(afterMs, () => this.#link(a, b))
      }
    }
  }

  #link(a: Place, b: Place): void {
    if (!this.#canReach(a, b) || this.#net.isLinked(a.actor.id, b.actor.id)) return
    this.trace.add(a.name, `is linked to ${b.name}`)
    this.#net.connect(a.actor.id, b.actor.id)
  }

  #isNeverLinked(a: Place, b: Place): boolean {
    return this.#hasRelays && this.#isEnd(a) && this.#isEnd(b)
  }

  #canReach(a: Place, b: Place): boolean {
    return a.node !== null && b.node !== null && !this.#parted.has(pairOf(a, b)) && !this.#isNeverLinked(a, b)
  }

  /** All is well from now on, until everything has ended. */
  async #quiesce(): Promise<void> {
    this.trace.add('-', 'all is calm from here on')
    this.#isCalm = true
    this.#parted.clear()
    for (const place of this.#places) {
      this.#fill(place, false)
      this.#start(place)
    }
    await this.#pass(500)
    this.#reach()
    for (let left = QUIET_MS; left > 0 && this.#isWell; left -= 1000) {
      await this.#pass(1000)
      for (const place of this.#places) this.#end(place, true)
      if (left < QUIET_MS - 5000 && this.#isQuiet()) return
    }
  }

  /** Has everything ended? */
  #isQuiet(): boolean {
    for (const place of this.#places) place.look()
    const isIdle = this.#places.every(
      ({ node, open }) => node !== null && open.length === 0 && this.#leftOf(node).length === 0
    )
    return isIdle && this.#questions.isOver && this.#launches.isOver(this.#places)
  }

  /** What a node has under way. */
  #leftOf({ core }: FakeNode): string[] {
    const { running, queued } = core.executor.counts()
    const left = {
      'requests that wait': core.requests.waitingCount(),
      'messages on their way': core.lanes.waiting,
      'runs under way': running + queued,
      'swarms under way': core.swarms.activeSessions().filter(({ id }) => !this.#witness.swarms.isBereft(id)).length
    }
    return Object.entries(left).flatMap(([what, count]) => (count > 0 ? [`${count} ${what}`] : []))
  }

  /** Everything has an end, and nothing is left over. */
  async #judge(): Promise<void> {
    const witness = this.#witness
    for (const { node, name } of this.#places) {
      if (node === null) {
        witness.fault(`${name} is not there at the end`)
        continue
      }
      for (const what of this.#leftOf(node)) witness.fault(`at the end ${name} has ${what}`)
    }
    this.#questions.judge()
    if (!this.#hasSwarms) return
    this.#launches.look()
    await this.#turn()
    await this.#pass(100)
    this.#launches.judge()
  }

  /** Nodes that close leave nothing that goes on. */
  async #close(): Promise<void> {
    for (const { name, node } of this.#places) {
      let isClosed = false
      void node?.core.close().then(() => {
        isClosed = true
      })
      await this.#pass(5000)
      if (!isClosed) this.#witness.fault(`${name} does not close`)
    }
    for (const { name, timers } of this.#places)
      if (timers > 0) this.#witness.fault(`${name} has ${timers} timers after its end`)
  }

  #besides(place: Place): Place {
    return this.#random.pick(this.#places.filter((one) => one !== place)) ?? place
  }

  #ownerOf({ other }: FakeLink): Place | null {
    return other === null ? null : this.#at(other.peer)
  }

  #at(nodeId: NodeId): Place {
    const place = this.#places.find(({ actor: { id } }) => id === nodeId)
    if (place === undefined) throw new Error('no such node in this world')
    return place
  }
}

function pairOf(a: Place, b: Place): string {
  return [a.name, b.name].sort().join(' ')
}

/** The log of a mesh of the owner and these members. Signed once; each world has a copy. */
function logOf(names: readonly string[]): FakeLog {
  const key = names.join(' ')
  const known = logs.get(key) ?? grown(names)
  logs.set(key, known)
  const model = new LogModel()
  for (const [name, record] of known.records) model.records.set(name, record)
  for (const writer of known.writers) model.writers.add(writer)
  return new FakeLog(model)
}

const logs = new Map<string, LogModel>()

function grown(names: readonly string[]): LogModel {
  const model = founded()
  for (const name of names) model.join(actor('owner'), actor(name))
  return model
}
