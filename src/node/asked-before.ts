import type { NodeId } from '../kit/ids.js'
import { addressText } from '../domain/card/card.js'
import type { RequestPayload } from '../domain/task/payloads.js'
import { OPERATOR } from './agents.js'
import { parseAddress } from './directory.js'
import type { Incoming } from './incoming.js'
import type { RequestBook } from './request-book.js'

/** What telling who asked for a lease needs. */
export interface AskedBeforeParts {
  readonly book: Pick<RequestBook, 'name'>
  /** Do both nodes vote in the swarm, as this one does? */
  areVoters(swarm: string, nodes: readonly NodeId[]): boolean
}

/**
 * Whose request a query is after: its sender's own, or a lease that another voter of the same swarm gave while it coordinated
 * (`askedBy`). Any voter hears the outcomes of the swarm; nothing is begun by a query.
 */
export function askedBefore(incoming: Incoming, payload: RequestPayload, { book, areVoters }: AskedBeforeParts): Incoming {
  const { askedBy, swarm, requestId, attempt, isQuery } = payload
  const sender = askedBy === undefined ? null : parseAddress(askedBy)
  if (sender === null || !isQuery || swarm === null || sender.agentId !== OPERATOR || !requestId.startsWith(`${swarm}.`)) return incoming
  if (!areVoters(swarm, [incoming.peer, sender.nodeId])) return incoming
  const identity = { role: 'callee', source: addressText(sender), target: addressText(incoming.recipient), requestId, attempt } as const
  const recorded = { name: book.name(identity), isFirst: false, isDone: false, refusal: null }
  return { ...incoming, peer: sender.nodeId, sender, recorded }
}
