import { createSchemaCompiler } from '../../src/adapters/agents/schemas/compile-schema.js'
import type { Clock } from '../../src/kit/clock.js'
import { laneText } from '../../src/domain/reliable/keys.js'
import type { AgentOutcome, AgentRun, AgentTask } from '../../src/ports/agent-runtime.js'
import { agentDefinition, capability, FakeAgent, type FakeRun } from '../support/fake-agents.js'
import type { Following } from '../../src/node/swarms/event-log.js'
import type { SwarmEvent } from '../../src/ports/swarm-api.js'
import type { FakeNode, World } from '../support/fake-node.js'
import { FakeStore } from '../support/fake-store.js'
import type { Actor } from '../support/membership.js'
import { Disk } from './disk.js'
import { NodeClock } from './node-clock.js'
import type { Random } from './random.js'
import type { Trace } from './trace.js'
import type { Run, Witness } from './witness.js'

// One for all worlds: equal schemas are compiled once.
const compileSchema = createSchemaCompiler()

/** What places of a world share. */
export interface PlaceParts {
  readonly world: World
  readonly clock: Clock
  readonly random: Random
  readonly trace: Trace
  readonly witness: Witness
  /** Is there a pair of nodes that never has a link? */
  readonly hasRelays: boolean
}

/** An agent whose runs are witnessed. The test ends them, or with `endsAfter` they end by themselves. */
class WitnessedAgent extends FakeAgent {
  readonly #place: string
  readonly #witness: Witness
  readonly #ofTask = new Map<AgentTask, Run>()

  constructor(
    id: string,
    { place, witness, endsSoon }: { place: string; witness: Witness; endsSoon: ((run: () => void) => void) | null }
  ) {
    const capabilities = [capability(`${id}.again`), capability(`${id}.once`, { idempotent: false })]
    super(agentDefinition(id, { capabilities, concurrency: 2 }), (task) => {
      endsSoon?.(() => {
        const run = this.open.find((one) => one.task === task)
        if (run !== undefined) this.complete(run)
      })
      return null
    })
    this.#place = place
    this.#witness = witness
  }

  override async run(task: AgentTask, run: AgentRun): Promise<AgentOutcome> {
    const seen = this.#witness.begins(this.#place, task)
    this.#ofTask.set(task, seen)
    const outcome = await super.run(task, run)
    this.#witness.ends(seen, outcome)
    return outcome
  }

  /** Ends a run with a result that no other run gives. */
  complete(run: FakeRun): void {
    run.end({ ok: true, result: `${run.task.requestId} by run ${this.#ofTask.get(run.task)?.number}` })
  }
}

/** Where a node lives: its disk and wall clock outlive its processes. */
export class Place {
  readonly name: string
  readonly actor: Actor
  readonly disk: Disk
  /** The process that runs now; null while it is down or starts. */
  node: FakeNode | null = null
  /** A process is there, or starts. */
  isUp = false
  /** Counts its processes. */
  life = 0
  /** Times that its disk was lost. */
  losses = 0
  /** How far its wall clock is ahead, in milliseconds. */
  skewMs = 0
  /** Swarms whose course is witnessed. */
  readonly #followed = new Set<string>()
  #agents: WitnessedAgent[] = []
  #clock: NodeClock
  readonly #store = new FakeStore()
  readonly #parts: PlaceParts

  constructor(parts: PlaceParts, actor: Actor) {
    const { clock, random, trace, witness } = parts
    this.name = actor.name
    this.actor = actor
    this.#parts = parts
    this.#clock = new NodeClock(clock, () => this.skewMs)
    this.disk = new Disk({
      clock,
      random,
      onDurable: (changes) => witness.keeps(this.name, changes),
      onRefused: (changes) => witness.refused(this.name, changes)
    })
    trace.add(this.name, 'is there')
  }

  /** Runs of its agents that wait to be ended. */
  get open(): { readonly agent: WitnessedAgent; readonly run: FakeRun }[] {
    return this.#agents.flatMap((agent) => agent.open.map((run) => ({ agent, run })))
  }

  /** Timers of its process. */
  get timers(): number {
    return this.#clock.pending
  }

  /** A process starts. `onStarted` is told when it has, unless it is killed before. */
  start(onStarted: () => void): void {
    const { clock, random, trace, witness, world } = this.#parts
    const life = ++this.life
    this.isUp = true
    this.#clock = new NodeClock(clock, () => this.skewMs)
    const soon = (run: () => void): void =>
      void this.#clock.after(random.is(0.8) ? random.next() * 20 : random.int(100, 5000), run)
    this.#agents = ['slow', 'fast'].map(
      (id) => new WitnessedAgent(id, { place: this.name, witness, endsSoon: id === 'fast' ? soon : null })
    )
    trace.add(this.name, `starts, for the ${life}. time`)
    const parts = { clock: this.#clock, chance: () => random.next(), compileSchema }
    world.start(this.actor, { agents: this.#agents, store: this.#store, ledger: this.disk.open(), parts }).then(
      (node) => {
        if (life !== this.life) return
        this.node = node
        trace.add(this.name, 'has started')
        node.core.tasks.onChange((task) => witness.tells(this.name, task))
        for (const task of node.core.tasks.list().reverse()) witness.tells(this.name, task)
        this.#followed.clear()
        this.look()
        onStarted()
      },
      (error: unknown) => {
        if (life === this.life) witness.fault(`${this.name} does not start: ${String(error)}`)
      }
    )
  }

  /** Follows the swarms that it has, also those of others. */
  look(): void {
    const { node } = this
    if (node === null) return
    for (const { id } of node.core.swarms.list()) {
      if (!this.#followed.has(id)) this.follow(id, (listener) => node.core.swarms.get(id).follow(listener))
    }
  }

  /** What this process tells of a swarm is witnessed from now on. */
  follow(id: string, follow: (listener: (event: SwarmEvent) => void) => Following): void {
    const { witness } = this.#parts
    this.#followed.add(id)
    const tells = (event: SwarmEvent): void => {
      this.#parts.trace.add(this.name, `swarm ${id}: ${textOf(event)}`)
      witness.swarms.tells(this.name, id, event)
    }
    for (const event of follow(tells).past) tells(event)
  }

  /** Its process loses the next frames that it should relay: nobody is told. */
  loseRelayed(count: number): void {
    const passing = this.node?.core.forwarder
    if (passing === undefined) return
    const pass = passing.pass.bind(passing)
    let left = count
    passing.pass = (...frame) => {
      if (left-- > 0) this.#parts.trace.add(this.name, 'loses a frame that it should relay')
      else pass(...frame)
    }
  }

  /** Its disk is lost, while no process runs. */
  lose(): void {
    this.#parts.trace.add(this.name, 'its disk is lost')
    this.disk.lose()
    this.#parts.witness.lost(this.name)
    this.losses++
  }

  /** The process is killed: nothing of it happens any more. Its links are cut by the world. */
  kill(): void {
    const { trace, witness } = this.#parts
    this.life++
    this.isUp = false
    this.#clock.kill()
    if (this.node !== null) {
      this.node.links.handlers = null
      this.node.links.reachable.clear()
    }
    this.node = null
    this.#agents = []
    witness.killed(this.name)
    trace.add(this.name, `is killed; ${this.disk.kill()} commits get through`)
  }

  /** The node says how far it has lanes of another. */
  acknowledges(
    peer: string,
    lanes: readonly { readonly source: string; readonly target: string; readonly ack: number }[]
  ): void {
    for (const { source, target, ack } of lanes) {
      const lane = { source: { agentId: source, nodeId: peer }, target: { agentId: target, nodeId: this.actor.id } }
      this.#parts.witness.acknowledges(this.name, laneText(lane), ack)
    }
  }
}

function textOf(event: SwarmEvent): string {
  switch (event.type) {
    case 'item':
      return `${event.item} of lease ${event.attempt} is ${event.status}`
    case 'lease':
      return `lease ${event.attempt} of ${event.item} to ${event.agent}`
    case 'released':
      return `lease ${event.attempt} of ${event.item} ends: ${event.reason}`
    case 'coordinator':
      return `${event.coordinator ?? 'nobody'} coordinates it, epoch ${event.epoch}`
    case 'done':
      return `it is ${event.status}`
    default:
      return event.type
  }
}
