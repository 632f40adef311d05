import type { Assert } from 'brittle'
import { fromUtf8, type NodeId, utf8 } from '../../src/kit/ids.js'
import { APPROVALS_PATH } from '../../src/domain/policy/approval-call.js'
import { ASK, callText, firstWaiting } from './approval-scene.js'
import { echo, type FakeAgent } from './fake-agents.js'
import { type FakeNode, World } from './fake-node.js'

/** The operator of a node, as a call of another machine names it. */
export const OPERATOR = {
  kind: 'operator',
  name: 'operator',
  tier: 0,
  sandboxId: null,
  isAdmin: true,
  isLimited: false
}

/** Two machines of the owner, and a guest. */
export interface Machines {
  readonly world: World
  /** L0, a machine of the owner. */
  readonly desktop: FakeNode
  /** L1, a machine of the owner, with the agent `text`, which needs approval. */
  readonly peer: FakeNode
  readonly agent: FakeAgent
  /** L1, a guest. */
  readonly asker: FakeNode
}

/** Opens them. */
export async function machines(t: Assert): Promise<Machines> {
  const world = new World(t)
  const agent = echo('text')
  const desktop = await world.owner()
  const peer = await world.member('peer', { agents: [agent], policy: ASK })
  const asker = await world.member('asker')
  await world.link(desktop, peer, asker)
  await regard(world, desktop, peer, 'mine')
  await regard(world, peer, desktop, 'mine')
  return { world, desktop, peer, agent, asker }
}

/** Says how one node regards another. */
export async function regard(world: World, by: FakeNode, other: FakeNode, trust: 'mine' | 'guest'): Promise<void> {
  await by.api().call('peers.trust', { peer: other.id, trust })
  await world.settle()
}

/** The id of a request of the guest that waits at `peer`. */
export async function asked({ world, asker, peer }: Machines): Promise<string> {
  void callText(asker)
  await world.settle()
  return await firstWaiting(peer)
}

/** The answer to a call as a node could forge it. */
export async function forged(from: FakeNode, to: NodeId, body: unknown): Promise<{ error?: { code: string } }> {
  const bytes = body instanceof Uint8Array ? body : utf8(JSON.stringify(body))
  for await (const piece of from.core.memberCalls.open(to, { path: APPROVALS_PATH, parameters: {}, body: bytes }))
    return JSON.parse(fromUtf8(piece.body)) as { error?: { code: string } }
  return {}
}
