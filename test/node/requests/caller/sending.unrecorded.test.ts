import test from 'brittle'
import type { Assert } from 'brittle'
import { createMemoryLedger } from '../../../support/memory-ledger.js'
import type { Asking } from '../../../../src/node/requests/caller/request-codec.js'
import type { Asked } from '../../../../src/node/requests/caller/requests.js'
import type { Ledger } from '../../../../src/ports/ledger.js'
import { agentDefinition, capability, FakeAgent } from '../../../support/fake-agents.js'
import { type FakeNode, World } from '../../../support/fake-node.js'

/** A ledger that tells how many changes it was given. */
class CountingLedger implements Ledger {
  readonly #disk = createMemoryLedger()
  changes = 0

  get: Ledger['get'] = (key) => this.#disk.get(key)
  list: Ledger['list'] = (range) => this.#disk.list(range)
  compact: Ledger['compact'] = () => this.#disk.compact()
  size: Ledger['size'] = () => this.#disk.size()
  close: Ledger['close'] = () => Promise.resolve()
  commit: Ledger['commit'] = async (changes) => {
    this.changes += changes.length
    await this.#disk.commit(changes)
  }
}

/**
 * Two nodes; the peer's agent `book` has `book.look`, which only reads, `book.count`, which does but may not be
 * repeated, and `book.write`.
 */
class Scene {
  readonly ledgers = [new CountingLedger(), new CountingLedger()] as const
  readonly world: World
  here!: FakeNode
  peer!: FakeNode
  agent = book()

  constructor(t: Assert) {
    this.world = new World(t)
  }

  static async start(t: Assert): Promise<Scene> {
    const scene = new Scene(t)
    const [ledger, peers] = scene.ledgers
    scene.here = await scene.world.member('here', { ledger })
    scene.peer = await scene.world.member('peer', { ledger: peers, agents: [scene.agent] })
    await scene.world.link(scene.here, scene.peer)
    await scene.world.pass(1500, 500)
    return scene
  }

  ask(name: string, changes: Partial<Asking> = {}): Promise<Asked> {
    return this.here.core.requests.ask({
      sender: { agentId: 'operator', nodeId: this.here.id },
      target: { agentId: 'book', nodeId: this.peer.id },
      capability: name,
      input: { a: 1 },
      description: '',
      timeoutMs: 600_000,
      mayQueue: false,
      mayGoUnrecorded: true,
      ...changes
    })
  }

  /** How many changes either ledger was given while this was done. */
  async changesIn(run: () => Promise<unknown>): Promise<readonly number[]> {
    const before = this.ledgers.map(({ changes }) => changes)
    await run()
    await this.world.pass(60_000, 1000)
    return this.ledgers.map(({ changes }, at) => changes - (before[at] ?? 0))
  }

  /** What is asked is done by the agent and answered. */
  async done(name: string, changes: Partial<Asking> = {}): Promise<void> {
    const asked = await this.ask(name, changes)
    await this.world.settle()
    this.agent.finish(`did ${name}`)
    await asked.answer
  }
}

function book(): FakeAgent {
  const capabilities = [
    capability('book.look', { sideEffect: 'read' }),
    capability('book.count', { sideEffect: 'read', idempotent: false }),
    capability('book.write', { sideEffect: 'write' })
  ]
  return new FakeAgent(agentDefinition('book', { capabilities, concurrency: 4 }))
}

test('awaited read-only requests are in the ledger of neither node; all others are, for any option of the caller', async (t) => {
  const scene = await Scene.start(t)
  t.alike(await scene.changesIn(() => scene.done('book.look')), [0, 0])
  const others: readonly (readonly [string, Partial<Asking>])[] = [
    ['book.look', { mayGoUnrecorded: false }],
    ['book.look', { mayQueue: true }],
    ['book.count', {}],
    ['book.write', {}]
  ]
  for (const [name, changes] of others) {
    const [here = 0, there = 0] = await scene.changesIn(() => scene.done(name, changes))
    t.ok(here > 0 && there > 0, `${name} ${JSON.stringify(changes)}: ${here}, ${there}`)
  }
})

test('a caller that says of a writing capability that it keeps no record has it recorded all the same', async (t) => {
  const scene = await Scene.start(t)
  const { here, peer, agent } = scene
  const send = async (name: string): Promise<void> => {
    await here.core.outbound.send({
      sender: { agentId: 'operator', nodeId: here.id },
      recipient: { agentId: 'book', nodeId: peer.id },
      type: 'request',
      payload: { requestId: `req-${name}`, attempt: 1, capability: name, input: {}, isUnrecorded: true }
    })
    await scene.world.settle()
    agent.finish()
  }
  t.is((await scene.changesIn(() => send('book.look')))[1], 0)
  t.ok(((await scene.changesIn(() => send('book.write')))[1] ?? 0) > 0)
  t.is(agent.tasks.length, 2)
})

test('an unrecorded request is shown as a task, and sent again when its link was cut or its node lost it', async (t) => {
  const scene = await Scene.start(t)
  const { world, here, peer } = scene
  const asked = await scene.ask('book.look')
  await world.pass(1500, 500)
  t.is((await here.api().call('tasks.show', { id: asked.taskId ?? '' })).state, 'working')
  const justSent = await scene.ask('book.look')
  world.net.disconnect(here.id, peer.id)
  await world.settle()
  await peer.core.close()
  scene.agent = book()
  scene.peer = await world.start(peer.actor, { store: peer.store, ledger: scene.ledgers[1], agents: [scene.agent] })
  await world.link(here, scene.peer)
  await world.pass(20_000, 1000)
  t.is(scene.agent.tasks.length, 2)
  for (const { answer } of [asked, justSent]) {
    scene.agent.finish('once more')
    t.alike(await answer, { outcome: 'COMPLETED', result: 'once more' })
  }
  t.is((await here.api().call('tasks.show', { id: asked.taskId ?? '' })).state, 'completed')
})

test('the outcome of an unrecorded request is unknown when its node stays away, and a cancellation ends it', async (t) => {
  const scene = await Scene.start(t)
  const { world, here, peer } = scene
  const [lost, unwanted] = [await scene.ask('book.look'), await scene.ask('book.look')]
  await world.settle()
  unwanted.cancel()
  await world.settle()
  const canceled = await unwanted.answer
  t.is(canceled.outcome === 'FAILED' && canceled.error.code, 'CANCELED')
  t.is(scene.agent.open.length, 1, 'its agent got the order to stop')
  world.net.disconnect(here.id, peer.id)
  await world.pass(11_000, 1000)
  const answer = await lost.answer
  t.is(answer.outcome === 'UNKNOWN' && answer.error.code, 'PEER_OFFLINE')
})
