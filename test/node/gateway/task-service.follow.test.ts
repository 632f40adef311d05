import test, { type Assert } from 'brittle'
import { TaskService } from '../../../src/node/gateway/task-service.js'
import { RETENTION_MS } from '../../../src/node/gateway/task-index.js'
import type { Principal } from '../../../src/ports/node-api.js'
import { failsWith } from '../../support/fails.js'
import { agentDefinition, FakeAgent } from '../../support/fake-agents.js'
import { World } from '../../support/fake-node.js'

const ALICE: Principal = {
  kind: 'token',
  name: 'token alice',
  id: 'tok_a',
  tier: 0,
  sandboxId: null,
  scopes: ['read', 'send']
}

test('the follower of a task that waits for its client gets no more events once that is past its time', async (t: Assert) => {
  const world = new World(t)
  const slow = new FakeAgent(agentDefinition('slow'))
  const owner = await world.owner({ agents: [slow] })
  const gateway = new TaskService(owner.core)
  await gateway.start()
  t.teardown(() => gateway.stop())
  const message = { messageId: 'm', role: 'user', parts: [{ text: 'which?' }] } as const
  const reply = await gateway.send(ALICE, { message, agent: 'slow', skill: null, mayAnswer: false, wait: false })
  const id = reply.kind === 'task' ? reply.snapshot.task.id : ''
  await world.settle()
  slow.finish({ a2a: { state: 'input-required', message: 'Which?' } })
  await world.settle()
  const states: string[] = []
  const read = async (): Promise<void> => {
    for await (const event of gateway.follow(ALICE, id, { after: 0 }))
      if (event.type === 'status') states.push(event.state)
  }
  const end = read()
  await world.settle()
  t.is(states.at(-1), 'input-required')
  world.clock.advance(RETENTION_MS + 60_000)
  await world.pass(120_000, 60_000)
  await end
  await failsWith(t, 'TASK_NOT_FOUND', () => gateway.get(ALICE, id))
})
