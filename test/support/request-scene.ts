import type { Assert } from 'brittle'
import { MortalLedger } from './durable-scene.js'
import type { Task } from '../../src/domain/task/task.js'
import type { Asking } from '../../src/node/requests/caller/request-codec.js'
import type { Asked } from '../../src/node/requests/caller/requests.js'
import { agentDefinition, capability, FakeAgent } from './fake-agents.js'
import { type FakeNode, type FakeNodeOptions, World } from './fake-node.js'

/** Two nodes with a link; the peer has the agent `slow`, and this node's operator asks it. */
export interface RequestScene {
  readonly world: World
  readonly here: FakeNode
  readonly peer: FakeNode
  readonly agent: FakeAgent
  ask(changes?: Partial<Asking>): Promise<Asked>
  /** The caller's task of a request. */
  task(asked: Asked): Task | undefined
  /** The peer's process dies, and another begins with what was on its disk. */
  restart(awayMs: number): Promise<FakeAgent>
}

/** What a scene may differ in. */
export interface RequestSceneOptions {
  readonly timeoutMs: number
  readonly concurrency?: number
  readonly settings?: FakeNodeOptions['settings']
  /** May its capability be repeated? Default: true. */
  readonly isIdempotent?: boolean
}

export async function requestScene(
  t: Assert,
  { timeoutMs, concurrency = 1, settings = {}, isIdempotent = true }: RequestSceneOptions
): Promise<RequestScene> {
  const world = new World(t)
  const define = (): FakeAgent =>
    new FakeAgent(
      agentDefinition('slow', { concurrency, capabilities: [capability('slow.do', { idempotent: isIdempotent })] })
    )
  const agent = define()
  let ledger = new MortalLedger()
  const here = await world.member('here')
  const peer = await world.member('peer', { agents: [agent], settings, ledger })
  await world.link(here, peer)
  return {
    world,
    here,
    peer,
    agent,
    ask: (changes = {}) =>
      here.core.requests.ask({
        sender: { agentId: 'operator', nodeId: here.id },
        target: { agentId: 'slow', nodeId: peer.id },
        capability: 'slow.do',
        input: { a: 1 },
        description: 'why',
        timeoutMs,
        mayQueue: false,
        ...changes
      }),
    task: ({ taskId }) => (taskId === null ? undefined : here.core.tasks.get(taskId)),
    restart: async (awayMs) => {
      world.net.disconnect(here.id, peer.id)
      ledger = ledger.kill()
      await peer.core.close()
      await world.pass(awayMs, 1000)
      const young = define()
      const again = await world.start(peer.actor, { agents: [young], store: peer.store, ledger })
      await world.link(here, again)
      return young
    }
  }
}
