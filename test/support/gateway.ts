import type { Assert } from 'brittle'
import { TaskService } from '../../src/node/gateway/task-service.js'
import type { Message } from '../../src/domain/gateway/message.js'
import type { GatewayReply, GatewaySend, GatewaySnapshot } from '../../src/ports/gateway.js'
import type { Principal } from '../../src/ports/node-api.js'
import type { FakeNode } from './fake-node.js'

/** A client of the gateway, by its token. */
export const ALICE: Principal = {
  kind: 'token',
  name: 'token alice',
  id: 'tok_a',
  tier: 0,
  sandboxId: null,
  scopes: ['read', 'send']
}

/** The gateway of a node, until the test ends. */
export async function gatewayOf(t: Assert, node: FakeNode): Promise<TaskService> {
  const gateway = new TaskService(node.core)
  await gateway.start()
  t.teardown(() => gateway.stop())
  return gateway
}

/** The task that a message led to. */
export function taskOf(reply: GatewayReply): GatewaySnapshot {
  if (reply.kind !== 'task') throw new Error('an answer without a task')
  return reply.snapshot
}

let said = 0

/** A message of a client, with an id of its own. */
export const says = (text: string, more: Partial<Message> = {}): Message => ({
  messageId: `m${++said}`,
  role: 'user',
  parts: [{ text }],
  ...more
})

/** A request to the agent `slow` that does not wait for the end of the task. */
export const request = (message: Message, more: Partial<GatewaySend> = {}): GatewaySend => ({
  message,
  agent: 'slow',
  skill: null,
  mayAnswer: false,
  wait: false,
  ...more
})
