import type { Assert } from 'brittle'
import type { Message } from '../../src/domain/gateway/message.js'
import type { PushTarget } from '../../src/domain/gateway/push.js'
import { TaskService } from '../../src/node/gateway/task-service.js'
import type { PushService } from '../../src/node/gateway/push/push-service.js'
import type { GatewaySend, Owners } from '../../src/ports/gateway.js'
import type { Principal } from '../../src/ports/node-api.js'
import { MortalLedger } from './durable-scene.js'
import { agentDefinition, FakeAgent } from './fake-agents.js'
import { type FakeNode, World } from './fake-node.js'
import { FakeWebhooks } from './fake-webhooks.js'

/** A caller that begins tasks. */
export const ALICE: Principal = {
  kind: 'token',
  name: 'token alice',
  id: 'tok_a',
  tier: 0,
  sandboxId: null,
  scopes: ['read', 'send']
}
/** Another one. */
export const BOB: Principal = { ...ALICE, name: 'token bob', id: 'tok_b' }
/** Where Alice wants to be told. */
export const HOOK_URL = 'https://alice.example.com/hook'

/** Nobody was revoked. */
export const NOBODY_GONE: Owners = { isGone: () => false, onGone: () => () => {} }

let said = 0
/** A message to the agent `slow`, another one each time. */
export function sends(
  target: PushTarget | null,
  more: Partial<Message> = {},
  version: '1.0' | '0.3' = '1.0'
): GatewaySend {
  return {
    message: { messageId: `m${++said}`, role: 'user', parts: [{ text: 'x' }], ...more },
    agent: 'slow',
    skill: null,
    mayAnswer: false,
    wait: false,
    ...(target === null ? {} : { push: { target, version } })
  }
}

/** A gateway of a node with these webhooks; it stops when the test ends. */
export async function pushGateway(
  t: Assert,
  node: FakeNode,
  webhooks: FakeWebhooks
): Promise<{ gateway: TaskService; push: PushService }> {
  const gateway = new TaskService(node.core, { push: { webhooks, owners: NOBODY_GONE } })
  await gateway.start()
  t.teardown(() => gateway.stop())
  if (gateway.push === null) throw new Error('it has webhooks')
  return { gateway, push: gateway.push }
}

/** A node with the agent `slow`, whose runs end when the test says so, and webhooks. */
export async function pushScene(t: Assert) {
  const world = new World(t)
  const slow = new FakeAgent(agentDefinition('slow'))
  const ledger = new MortalLedger()
  const owner = await world.owner({ agents: [slow], ledger })
  const webhooks = new FakeWebhooks()
  const begin = async (gateway: TaskService, request: GatewaySend, by: Principal = ALICE): Promise<string> => {
    const reply = await gateway.send(by, request)
    if (reply.kind !== 'task') throw new Error('no task')
    await world.settle()
    return reply.snapshot.task.id
  }
  return { world, owner, slow, ledger, webhooks, begin, ...(await pushGateway(t, owner, webhooks)) }
}
