import type { NodeId } from '../../../kit/ids.js'
import type { Hash } from '../../../kit/sign.js'
import { addressText, OPERATOR, parseAddress } from '../../../domain/card/card.js'
import { votersDigest } from '../../../domain/swarm/coordination.js'
import type { RequestPayload } from '../../../domain/task/payloads.js'
import type { InboundMessage } from '../../messaging/inbound-message.js'
import type { RequestStore } from '../store.js'

/** What telling who asked for a lease needs. */
export interface AskedBeforeDeps {
  readonly requestStore: Pick<RequestStore, 'name'>
  /** Do both nodes vote in the swarm, as this one does? */
  areVoters(swarm: string, nodes: readonly NodeId[]): boolean
  readonly hash: Hash
}

/**
 * Whose request a query is after: its sender's own, or a lease that another voter of the same swarm gave while it coordinated
 * (`askedBy`). Any voter hears the outcomes of the swarm; nothing is begun by a query. A node without a seat does not know who
 * votes: of it the lease must have been given with the digest of the voters that the query names (`voters`).
 */
export function priorRequest(
  incoming: InboundMessage,
  payload: RequestPayload,
  { requestStore, areVoters, hash }: AskedBeforeDeps
): InboundMessage {
  const { askedBy, swarm, requestId, attempt, isQuery, amongVoters = [] } = payload
  const sender = askedBy === undefined ? null : parseAddress(askedBy)
  if (sender === null || !isQuery || swarm === null || sender.agentId !== OPERATOR || !requestId.startsWith(`${swarm}.`)) return incoming
  const nodes = [incoming.peer, sender.nodeId]
  const isParticipant = areVoters(swarm, nodes)
  if (!isParticipant && !nodes.every((node) => amongVoters.includes(node))) return incoming
  const identity = { role: 'callee', source: addressText(sender), target: addressText(incoming.recipient), requestId, attempt } as const
  const recorded = { name: requestStore.name(identity), isFirst: false, isDone: false, refusal: null }
  const known = { ...incoming, peer: sender.nodeId, sender, recorded }
  return isParticipant ? known : { ...known, voters: votersDigest(amongVoters, hash) }
}
