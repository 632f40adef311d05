import test, { type Assert } from 'brittle'
import type { GatewaySend } from '../../../src/ports/gateway.js'
import { MortalLedger } from '../../support/durable-scene.js'
import { agentDefinition, FakeAgent } from '../../support/fake-agents.js'
import { World } from '../../support/fake-node.js'
import { ALICE, gatewayOf } from '../../support/gateway.js'

test('a run that ends with its client is not resumed when the node was killed; later requests of its client are', async (t: Assert) => {
  const slows = (): FakeAgent => new FakeAgent(agentDefinition('slow', { concurrency: 4 }))
  const world = new World(t)
  const [ledger, slow] = [new MortalLedger(), slows()]
  const owner = await world.owner({ agents: [slow], ledger })
  const gateway = await gatewayOf(t, owner)
  const begin = async (text: string, more: Partial<GatewaySend> = {}): Promise<string> => {
    const message = { messageId: text, role: 'user', parts: [{ text }] } as const
    const reply = await gateway.send(ALICE, {
      message,
      agent: 'slow',
      skill: null,
      mayAnswer: false,
      wait: false,
      ...more
    })
    return reply.kind === 'task' ? reply.snapshot.task.id : ''
  }
  const attended = await begin('attended', { isAttended: true })
  const other = await begin('other')
  await world.settle()
  t.is(slow.open.length, 2)
  const left = ledger.kill()
  gateway.stop()
  await owner.core.close()
  const again = slows()
  const after = await gatewayOf(t, await world.start(owner.actor, { agents: [again], ledger: left }))
  await world.pass(2000)
  const { state, message } = (await after.get(ALICE, attended)).task
  t.alike([state, message?.parts[0]?.text?.startsWith('interrupted: ')], ['failed', true])
  t.alike(
    again.tasks.map(({ input }) => input),
    [{ text: 'other' }]
  )
  t.is((await after.get(ALICE, other)).task.state, 'working')
})
