import assert from 'node:assert/strict'
import type { Assert } from 'brittle'
import type { NodeSettings } from '../../src/node/dependencies.js'
import type { SwarmEvent, SwarmInfo, SwarmRequest, SwarmResults } from '../../src/ports/swarm-api.js'
import { MortalLedger } from './durable-scene.js'
import { agentDefinition, capability, FakeAgent } from './fake-agents.js'
import type { FakeRun } from './fake-agents.js'
import { type FakeNode, World } from './fake-node.js'

/** A worker's node, its agent and what is on its disk. */
interface Worker {
  node: FakeNode
  agent: FakeAgent
  ledger: MortalLedger
}

type Row = SwarmResults['results'][number]
type Told = Omit<Row, 'durationMs'>

/**
 * A launcher and workers that may be killed at any moment. Every worker has the agent `w`: `work.again` may be
 * repeated, `work.once` not. Watches from outside that what was told of a swarm never changes.
 */
export class SwarmScene {
  readonly world: World
  readonly workers: Worker[] = []
  launcher!: FakeNode
  ledger = new MortalLedger()
  /** Runs that any process of a worker began, as `requestId#attempt`. */
  readonly begun: string[] = []
  /** What those runs were given. */
  readonly inputs = new Map<string, unknown>()
  /** What a run that completes gives; its own name unless a test says otherwise. */
  answer: (run: string) => unknown = (run) => run
  /** How runs ended by themselves. */
  readonly ended = new Map<string, 'completed' | 'failed'>()
  /** What was told of items, by name. */
  readonly told = new Map<string, Told>()
  readonly #settings: Partial<NodeSettings>
  readonly #watched = new Set<string>()

  private constructor(t: Assert, settings: Partial<NodeSettings>) {
    this.world = new World(t)
    this.#settings = settings
  }

  static async start(
    t: Assert,
    names: readonly string[] = ['b', 'c'],
    settings: Partial<NodeSettings> = {}
  ): Promise<SwarmScene> {
    const scene = new SwarmScene(t, settings)
    scene.launcher = await scene.world.owner({ ledger: scene.ledger, settings })
    for (const name of names) {
      const [agent, ledger] = [scene.#define(), new MortalLedger()]
      scene.workers.push({ agent, ledger, node: await scene.world.member(name, { agents: [agent], ledger }) })
    }
    await scene.link()
    return scene
  }

  #define(): FakeAgent {
    const capabilities = [capability('work.again'), capability('work.once', { idempotent: false })]
    return new FakeAgent(agentDefinition('w', { capabilities, concurrency: 2 }), ({ requestId, attempt, input }) => {
      this.inputs.set(`${requestId}#${attempt}`, input)
      this.begun.push(`${requestId}#${attempt}`)
      return null
    })
  }

  /** Links every worker with the launcher. */
  async link(): Promise<void> {
    for (const { node } of this.workers) {
      if (!this.launcher.core.peers.isOnline(node.id)) this.world.net.connect(this.launcher.id, node.id)
    }
    await this.world.settle()
  }

  async unlink(worker: Worker): Promise<void> {
    this.world.net.disconnect(this.launcher.id, worker.node.id)
    await this.world.settle()
  }

  /** The launcher's process is killed; another starts with what was on its disk. The links come back when told. */
  async crash(): Promise<void> {
    this.#cut()
    this.ledger = this.ledger.kill()
    await this.#again()
  }

  /** The launcher's process is stopped as people stop it, and starts again. */
  async restart(): Promise<void> {
    await this.launcher.core.close()
    this.ledger = this.ledger.kill()
    await this.#again()
  }

  /** The launcher's process dies at a commit to come; see {@link SwarmScene.revive}. */
  killIn(commits: number, isWritten: boolean): void {
    this.ledger.killIn(commits, isWritten, () => this.#cut())
  }

  /** Starts the launcher again when it has died. */
  async revive(): Promise<void> {
    if (this.ledger.isDead) await this.crash()
  }

  #cut(): void {
    for (const { node } of this.workers) this.world.net.disconnect(this.launcher.id, node.id)
  }

  async #again(): Promise<void> {
    await this.launcher.core.close()
    this.launcher = await this.world.start(this.launcher.actor, {
      store: this.launcher.store,
      ledger: this.ledger,
      settings: this.#settings
    })
    await this.world.settle()
    for (const id of this.#watched) await this.watch(id)
  }

  /**
   * A worker's process is killed, and what its agent was at ends with it; another starts, with what was on its disk
   * unless told otherwise.
   */
  async crashWorker(worker: Worker, disk?: MortalLedger): Promise<void> {
    const left = worker.ledger.kill()
    worker.ledger = disk ?? left
    this.world.net.disconnect(this.launcher.id, worker.node.id)
    await worker.node.core.close()
    worker.agent = this.#define()
    worker.node = await this.world.start(worker.node.actor, {
      store: worker.node.store,
      ledger: worker.ledger,
      agents: [worker.agent]
    })
    await this.world.settle()
  }

  /** Launches a swarm over so many items, and watches it. */
  async launch(items: number, changes: Partial<SwarmRequest> = {}): Promise<string> {
    return await this.run(mapOf(items, changes))
  }

  /**
   * Launches any swarm, and watches it. It is the launcher's alone: who else could coordinate is seen in
   * swarm-takeover.test.ts.
   */
  async run(request: SwarmRequest): Promise<string> {
    const id = await this.launcher.core.swarms.launch({ takeover: false, ...request })
    await this.watch(id)
    await this.world.settle()
    return id
  }

  /** Follows a swarm; what is told of an item is what was told of it before. */
  async watch(id: string): Promise<void> {
    this.#watched.add(id)
    const swarm = await this.launcher.core.swarms.find(id)
    const { past } = swarm.follow((event) => this.#see(event))
    for (const event of past) this.#see(event)
    const rows = new Map(swarm.results().results.map(({ durationMs: _ms, ...row }) => [row.item, row]))
    for (const [item, row] of this.told) assert.deepEqual(rows.get(item), row, 'reported text is still there')
  }

  #see(event: SwarmEvent): void {
    if (event.type !== 'item') return
    const { type: _type, ...row } = event
    assert.deepEqual(row, this.told.get(row.item) ?? row, 'an item has one outcome')
    this.told.set(row.item, row)
  }

  async info(id: string): Promise<SwarmInfo> {
    return (await this.launcher.core.swarms.find(id)).info()
  }

  async rows(id: string): Promise<readonly Row[]> {
    return (await this.launcher.core.swarms.find(id)).results().results
  }

  /** Ends a run that is under way. */
  end({ task: { requestId, attempt }, end }: FakeRun, status: 'completed' | 'failed' = 'completed'): void {
    const name = `${requestId}#${attempt}`
    this.ended.set(name, status)
    end(
      status === 'completed'
        ? { ok: true, result: this.answer(name) }
        : { ok: false, code: 'TASK_FAILED', message: name }
    )
  }

  /** Ends all nodes. */
  async close(): Promise<void> {
    for (const { core } of [this.launcher, ...this.workers.map(({ node }) => node)]) await core.close()
  }

  /** Every run under way, at every worker. */
  open(): FakeRun[] {
    return this.workers.flatMap(({ agent }) => agent.open)
  }

  /** Lets the agents do all that comes, with links, until the swarm has ended. */
  async finish(id: string): Promise<void> {
    for (
      let round = 0;
      (await this.info(id)).status === 'running' || (await this.info(id)).status === 'stalled';
      round++
    ) {
      assert.ok(round < 1000, 'the swarm does not end')
      await this.revive()
      await this.link()
      for (const run of this.open()) this.end(run)
      await this.world.pass(500)
    }
    await this.revive()
  }
}

/** A swarm that maps over numbers. */
export function mapOf(count: number, changes: Partial<SwarmRequest> = {}): SwarmRequest {
  const items = Array.from({ length: count }, (_, index) => ({ item: `item ${index}`, input: index }))
  return { goal: 'do it', capability: 'work.again', strategy: 'map', items, ...changes }
}
