import test from 'brittle'
import { asNodeError } from '../../src/kit/errors.js'
import { type TestNode, testMesh, untilAgent, untilTrue } from '../support/nodes.js'

const TEXT = 'word '.repeat(60_000)

/** Sends notifications of 300 kB until the queue to the peer is full; how many were taken. */
async function fill(from: TestNode, agent: string): Promise<number> {
  for (let taken = 0; taken < 3000; taken++) {
    try {
      await from.api.call('message.send', { agent, text: TEXT, type: 'notification' })
    } catch (error) {
      if (asNodeError(error).code === 'OVERLOADED') return taken
      throw error
    }
  }
  return Number.POSITIVE_INFINITY
}

async function delivered(node: TestNode): Promise<number> {
  const { counters } = await node.api.call('node.metrics', {})
  const mine = counters.filter(({ name, label }) => name === 'messages_delivered' && label === 'notification')
  return mine.reduce((sum, { value }) => sum + value, 0)
}

test('a peer that does not read slows its sender, both ways; accepted messages are delivered once it reads', async (t) => {
  const mesh = await testMesh(t)
  const [a, b] = (await mesh.meshOf('a', 'b')) as [TestNode, TestNode]
  await Promise.all([untilAgent(a, 'text@b'), untilAgent(b, 'text@a')])
  for (const [sender, receiver] of [
    [a, b],
    [b, a]
  ] as const) {
    receiver.kill('SIGSTOP')
    const taken = await fill(sender, `text@${receiver.name}`)
    t.ok(taken > 0 && taken < 100, `${taken} messages of 300 kB were taken, then OVERLOADED`)
    receiver.kill('SIGCONT')
    await untilTrue(async () => (await delivered(receiver)) === taken, 'all that was taken is delivered')
    t.pass('delivered, each once')
  }
})
