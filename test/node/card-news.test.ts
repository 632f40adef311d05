import test from 'brittle'
import { NodeError } from '../../src/kit/errors.js'
import { echo } from '../support/fake-agents.js'
import { type FakeNode, World } from '../support/fake-node.js'

/** Nothing more fits into its queues, until the function that is returned is called. */
function overload({ core: { peers } }: FakeNode): () => void {
  const { send } = peers
  peers.send = () => {
    throw new NodeError('OVERLOADED', 'too much waits')
  }
  return () => {
    peers.send = send
  }
}

test('what a peer could not be told of cards it is told when there is room again, without a new link', async (t) => {
  const world = new World(t)
  const here = await world.member('here', { agents: [echo('a'), echo('b')] })
  const peer = await world.member('peer')
  world.log.isWritable = false
  await world.link(here, peer)
  const known = (): string[] =>
    peer.core.registry
      .ofNode(here.id)
      .map((card) => `${card.id} ${card.revision}`)
      .sort()
  const relieve = overload(here)
  here.source.set([echo('a', { description: 'new' }), echo('c')])
  await world.settle()
  await world.pass(10_000, 1000)
  t.alike(known(), ['a 1', 'b 1', 'operator 1'])
  relieve()
  await world.pass(2000, 1000)
  t.alike(known(), ['a 2', 'c 1', 'operator 1'], 'new, changed and removed')
  const sent = here.links.open.map((link) => link.sent.length)
  await world.pass(30_000, 1000)
  t.alike(
    here.links.open.map((link) => link.sent.length),
    sent,
    'and only once'
  )
})
