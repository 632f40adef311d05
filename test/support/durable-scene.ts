import type { Assert } from 'brittle'
import type { Task } from '../../src/domain/task/task.js'
import type { Asked } from '../../src/node/requests/caller/requests.js'
import type { Asking } from '../../src/node/requests/caller/request-codec.js'
import type { LastFault } from '../../src/node/dependencies.js'
import { createMemoryLedger } from './memory-ledger.js'
import { NodeError } from '../../src/kit/errors.js'
import type { Ledger, LedgerChanges } from '../../src/ports/ledger.js'
import { agentDefinition, capability, FakeAgent } from './fake-agents.js'
import { type FakeNode, World } from './fake-node.js'
import { NodeClock } from '../simulation/node-clock.js'

/**
 * A ledger in memory whose process can be killed: what it holds at that moment is left, and nothing more gets into it.
 */
export class MortalLedger implements Ledger {
  readonly #disk: Ledger
  #isDead = false
  #isFull = false
  #left: { commits: number; readonly isWritten: boolean; onDeath(): void } | null = null

  constructor(disk: Ledger = createMemoryLedger()) {
    this.#disk = disk
  }

  /** What is called waits for this. */
  #held: Promise<void> = Promise.resolve()
  #onCommit = (): void => {}

  get: Ledger['get'] = async (key) => {
    await this.#held
    return this.#disk.get(key)
  }
  list: Ledger['list'] = (range) => this.#disk.list(range)
  compact: Ledger['compact'] = () => this.#disk.compact()
  size: Ledger['size'] = () => this.#disk.size()
  close: Ledger['close'] = () => Promise.resolve()

  async commit(given: LedgerChanges): Promise<void> {
    await this.#held
    // As a ledger on disk: what happens in the turn of the call goes with it.
    for (let step = 0; typeof given === 'function' && step < 20; step++) await Promise.resolve()
    const changes = typeof given === 'function' ? given() : given
    const isLast = !this.#isDead && this.#left !== null && --this.#left.commits < 0
    if (isLast) this.#isDead = true
    if (isLast && this.#left?.isWritten === true) await this.#disk.commit(changes)
    if (isLast) this.#left?.onDeath()
    if (this.#isDead) throw new NodeError('INTERNAL', 'the process is dead')
    if (this.#isFull) throw new NodeError('DISK_FULL', 'the disk is full')
    await this.#disk.commit(changes)
    this.#onCommit()
  }

  /** Nothing is read or written, from now or from the next commit on, until the function that it gives is called. */
  hold(from: 'now' | 'next commit'): () => void {
    let release = (): void => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    this.#onCommit = () => {
      this.#held = held
    }
    if (from === 'now') this.#held = held
    return () => {
      this.#onCommit = () => {}
      release()
    }
  }

  /** The disk is full, or has room again. */
  refuse(isFull: boolean): void {
    this.#isFull = isFull
  }

  /** The process will end at a commit, after so many others: when it is written, or just before. */
  killIn(commits: number, isWritten: boolean, onDeath: () => void): void {
    this.#left = { commits, isWritten, onDeath }
  }

  get isDead(): boolean {
    return this.#isDead
  }

  /** The process ends here and now; gives the ledger of the next one. */
  kill(): MortalLedger {
    this.#isDead = true
    const next = new MortalLedger(this.#disk)
    next.refuse(this.#isFull)
    return next
  }
}

/**
 * Two nodes that may be killed and started again. The peer has the agent `slow`: `slow.again` may be repeated,
 * `slow.once` not.
 */
export class DurableScene {
  readonly world: World
  here!: FakeNode
  peer!: FakeNode
  /** The agent of the peer's process that runs now. */
  agent!: FakeAgent
  /** Every task that any process of the peer was given. */
  readonly begun: FakeAgent['tasks'] = []
  /** How far the wall clock of the peer is ahead, in milliseconds. */
  peersSkewMs = 0
  /** The error of its own by which the process of the peer before ended; null for none. */
  peersFault: LastFault | null = null
  /** Runs that ended by themselves, by request. */
  readonly done: string[] = []
  readonly #concurrency: number
  readonly #ledgers = { here: new MortalLedger(), peer: new MortalLedger() }

  private constructor(t: Assert, concurrency: number) {
    this.world = new World(t)
    this.#concurrency = concurrency
  }

  static async start(t: Assert, { concurrency = 4 }: { readonly concurrency?: number } = {}): Promise<DurableScene> {
    const scene = new DurableScene(t, concurrency)
    scene.agent = scene.#define()
    scene.here = await scene.world.member('here', { ledger: scene.#ledgers.here })
    scene.peer = await scene.world.member('peer', {
      agents: [scene.agent],
      ledger: scene.#ledgers.peer,
      parts: scene.#partsOfPeer
    })
    await scene.link()
    return scene
  }

  get #partsOfPeer(): { readonly clock: NodeClock; readonly lastFault?: LastFault } {
    const lastFault = this.peersFault
    return {
      clock: new NodeClock(this.world.clock, () => this.peersSkewMs),
      ...(lastFault === null ? {} : { lastFault })
    }
  }

  #define(): FakeAgent {
    const capabilities = [capability('slow.again'), capability('slow.once', { idempotent: false })]
    const definition = agentDefinition('slow', { capabilities, concurrency: this.#concurrency })
    return new FakeAgent(definition, (task) => {
      this.begun.push(task)
      return null
    })
  }

  get isLinked(): boolean {
    return this.here.core.peers.isOnline(this.peer.id)
  }

  async link(): Promise<void> {
    if (!this.isLinked) await this.world.link(this.here, this.peer)
  }

  async unlink(): Promise<void> {
    this.world.net.disconnect(this.here.id, this.peer.id)
    await this.world.settle()
  }

  /** The peer's agent ends its oldest run. */
  finish(): void {
    const [run] = this.agent.open
    if (run === undefined) return
    this.done.push(run.task.requestId)
    this.agent.finish(`did ${run.task.requestId}`)
  }

  /** The process of this node is killed; another starts with what was on its disk. The link comes back when told. */
  async crashHere(): Promise<void> {
    const { here, world } = this
    const ledger = (this.#ledgers.here = this.#ledgers.here.kill())
    world.net.disconnect(here.id, this.peer.id)
    await here.core.close()
    this.here = await world.start(here.actor, { store: here.store, ledger })
    await world.settle()
  }

  /** What is on the peer's disk is gone with its next crash. */
  losePeersDisk(): void {
    this.#ledgers.peer = new MortalLedger()
  }

  /** The disk of this node, or of the peer, is full, or has room again. */
  fill(which: 'here' | 'peer', isFull: boolean): void {
    this.#ledgers[which].refuse(isFull)
  }

  /**
   * The disk of this node, or of the peer, does nothing until the function that it gives is called: see
   * {@link MortalLedger.hold}.
   */
  hold(which: 'here' | 'peer', from: 'now' | 'next commit'): () => void {
    return this.#ledgers[which].hold(from)
  }

  /**
   * The same of the peer, which is away for so long and whose policy file then says `policy`. What its agent was at
   * ends with it.
   */
  async crashPeer(policy = '', awayMs = 0): Promise<void> {
    const { peer, world } = this
    this.#ledgers.peer = this.#ledgers.peer.kill()
    world.net.disconnect(this.here.id, peer.id)
    await peer.core.close()
    await world.pass(awayMs, 1000)
    await this.#startPeer(policy)
  }

  /** The peer's process ends by itself, as on a signal, and another starts. */
  async restartPeer(): Promise<void> {
    const { peer, world } = this
    const closed = peer.core.close()
    await world.settle()
    await closed
    world.net.disconnect(this.here.id, peer.id)
    await this.#startPeer()
  }

  async #startPeer(policy = ''): Promise<void> {
    const { peer, world } = this
    this.agent = this.#define()
    const [ledger, agents, parts] = [this.#ledgers.peer, [this.agent], this.#partsOfPeer]
    this.peer = await world.start(peer.actor, { store: peer.store, ledger, agents, policy, parts })
    await world.settle()
  }

  ask(changes: Partial<Asking> = {}): Promise<Asked> {
    return this.here.core.requests.ask({
      sender: { agentId: 'operator', nodeId: this.here.id },
      target: { agentId: 'slow', nodeId: this.peer.id },
      capability: 'slow.again',
      input: { a: 1 },
      description: 'why',
      timeoutMs: 600_000,
      mayQueue: true,
      ...changes
    })
  }

  /** The caller's task, as `tasks show` has it. */
  async task(taskId: string | null): Promise<Pick<Task, 'state' | 'result' | 'error'>> {
    const { state, result, error } = await this.here.api().call('tasks.show', { id: taskId ?? '' })
    return { state, result, error }
  }

  /** How often a request's handler was begun. */
  runsOf(requestId: string): number {
    return this.begun.filter((one) => one.requestId === requestId).length
  }
}
