import type { Unsubscribe } from '../../kit/events.js'
import type { Calls, WatchName, Watches } from '../../ports/node-api.js'
import { listApprovals } from './approvals.js'
import type { NodeCore } from '../node.js'

/** How often it is looked whether watched agents are others, in milliseconds. */
const AGENTS_MS = 1000

/** Hands a value to the reader of a watch. */
export type Push<T> = (value: T) => void
/** Ends a watch; with an error when it cannot go on. */
export type End = (error?: unknown) => void
/** Opens a watch: tells what is, then what changes, until it is stopped. */
export type Watch<N extends WatchName> = (
  node: NodeCore,
  params: Watches[N]['params'],
  to: { readonly push: Push<Watches[N]['item']>; readonly end: End }
) => Unsubscribe | Promise<Unsubscribe>

/** `peers.list`: at each change of links and members. */
export function watchPeers(node: NodeCore, tell: () => void): Unsubscribe {
  tell()
  const stops = [
    node.events.on((event) => (event.type === 'peer' || event.type === 'membership' ? tell() : undefined)),
    node.deps.log.onChange(tell),
    node.deps.logState.onChange(tell)
  ]
  return () => {
    for (const end of stops) end()
  }
}

type AgentList = Calls['agents.list']['result']

/** `agents.list`: when agents come or go, and when their cards, their prompts or their nodes' presence change. */
export function watchAgents({ agents, deps: { clock } }: NodeCore, list: () => AgentList, push: Push<AgentList>): Unsubscribe {
  let last: string | null = null
  const tell = (): void => {
    const now = list()
    const facts = now.agents
      .map(({ id, origin, address, revision, status }) => {
        const prompts = origin === 'local' ? (agents.definition(id)?.prompts ?? []) : []
        return `${address} ${revision} ${status === 'offline'} ${JSON.stringify(prompts)}`
      })
      .join('\n')
    const shown = `${facts}\n${JSON.stringify(now.problems)}`
    if (shown !== last) push(now)
    last = shown
  }
  tell()
  const timer = clock.every(AGENTS_MS, tell)
  return () => clock.clear(timer)
}

/** `approvals.list`. */
export const watchApprovals: Watch<'approvals.list'> = (node, _params, { push }) => {
  const tell = (): void => push(listApprovals(node))
  tell()
  return node.approvals.onChange(tell)
}

/** `node.events`: recent ones, and with `follow` those that come. */
export const watchEvents: Watch<'node.events'> = (node, { follow = false }, { push, end }) => {
  for (const event of node.events.recent()) push(event)
  if (follow) return node.events.on(push)
  end()
  return () => {}
}
