import type { Assert } from 'brittle'
import type { ApprovalInfo } from '../../src/ports/policy-api.js'
import type { NodeSettings } from '../../src/node/dependencies.js'
import type { Reply } from '../../src/ports/node-api.js'
import { echo, type FakeAgent } from './fake-agents.js'
import { type FakeNode, World } from './fake-node.js'

/** A policy that asks about every capability of `text`. */
export const ASK = `rules:
  # whoever wants something done is asked about
  - capability: text.*
    decision: ask
`

/** Two nodes of which one asks the other. */
export interface ApprovalScene {
  readonly world: World
  /** L0, asks. */
  readonly owner: FakeNode
  /** L1, has the agent `text` and the policy. */
  readonly peer: FakeNode
  readonly agent: FakeAgent
}

/** An owner's node, and a member's with an agent `text` and a policy. */
export async function approvalScene(
  t: Assert,
  policy = ASK,
  agent = echo('text'),
  settings: Partial<NodeSettings> = {}
): Promise<ApprovalScene> {
  const world = new World(t)
  const owner = await world.owner()
  const peer = await world.member('peer', { agents: [agent], policy, settings })
  await world.link(owner, peer)
  return { world, owner, peer, agent }
}

/** Calls `text.do` of `text@peer` as the operator of a node. */
export function callText(node: FakeNode, more: { timeoutMs?: number; wait?: boolean } = {}): Promise<Reply> {
  return node.api().call('message.call', { agent: 'text@peer', capability: 'text.do', input: { n: 1 }, ...more })
}

/** What `approvals ls` lists. */
export async function waitingOf(node: FakeNode): Promise<readonly ApprovalInfo[]> {
  return (await node.api().call('approvals.list', {})).approvals
}

/** The id of the first that waits. */
export async function firstWaiting(node: FakeNode): Promise<string> {
  const [one] = await waitingOf(node)
  if (one === undefined) throw new Error('nothing waits')
  return one.id
}

/** State of a node's newest task, and what it waits for. */
export async function taskState(node: FakeNode): Promise<string> {
  const [task] = (await node.api().call('tasks.list', {})).tasks
  return `${task?.state} ${task?.waitingFor}`
}
