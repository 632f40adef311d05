import type { FakeNode } from './fake-node.js'

/**
 * The two ends of an exchange as one of its nodes sees them: `text` here and the operator of `peer` unless told
 * otherwise.
 */
export interface Ends {
  readonly peer: string
  readonly correlationId: string
  readonly own?: string
  readonly other?: string
}

/** Does a node let replies pass between these two? */
export function isOpen(node: FakeNode, { peer, correlationId, own = 'text', other = 'operator' }: Ends): boolean {
  const thread = {
    sender: { agentId: own, nodeId: node.id },
    recipient: { agentId: other, nodeId: peer },
    correlationId
  }
  const { exchanges: conversations } = node.core
  return conversations.maySend(thread) || conversations.mayReceive(thread)
}

/** From now on a node takes every reply, as if it had asked for it. */
export function takeAllReplies({ core: { exchanges: conversations } }: FakeNode): void {
  conversations.mayReceive = () => true
  conversations.isAwaited = () => true
}
