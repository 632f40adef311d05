import test from 'brittle'
import { NodeError } from '../../../src/kit/errors.js'
import { MAX_CARDS } from '../../../src/domain/membership/fold/card.js'
import { echo } from '../../support/fake-agents.js'
import { type FakeNode, knownCards, World } from '../../support/fake-node.js'

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

test('cards that a peer could not be sent are sent when its budget allows, without a new link', async (t) => {
  const world = new World(t)
  const here = await world.member('here', { agents: [echo('a'), echo('b')] })
  const peer = await world.member('peer')
  world.log.isWritable = false
  await world.link(here, peer)
  const relieve = overload(here)
  here.source.set([echo('a', { description: 'new' }), echo('c')])
  await world.settle()
  await world.pass(10_000, 1000)
  t.alike(knownCards(peer, here), ['a 1', 'b 1', 'operator 1'])
  relieve()
  await world.pass(2000, 1000)
  t.alike(knownCards(peer, here), ['a 2', 'c 1', 'operator 1'], 'new, changed and removed')
  const sent = here.links.open.map((link) => link.sent.length)
  await world.pass(30_000, 1000)
  t.alike(
    here.links.open.map((link) => link.sent.length),
    sent,
    'and only once'
  )
})

test('as many cards as a node may have, with the longest ids, reach a peer over a link alone, and go when they are removed', async (t) => {
  const world = new World(t)
  const full = Array.from({ length: MAX_CARDS - 1 }, (_, i) => echo(`a${i}`.padEnd(64, '-')))
  const here = await world.member('here')
  const peer = await world.member('peer')
  await world.settle()
  world.log.isWritable = false
  here.source.set(full)
  await world.settle()
  await world.link(here, peer)
  const known = (): number => peer.core.registry.ofNode(here.id).length
  t.is(known(), MAX_CARDS)
  // A sender keeps to its rate.
  const told = (): Promise<void> => world.pass(2000, 100)
  here.source.set(full.slice(0, 1))
  await told()
  t.is(known(), 2)
  here.source.set(full)
  await told()
  t.is(known(), MAX_CARDS)
  world.net.disconnect(here.id, peer.id)
  here.source.set(full.slice(1000))
  await world.settle()
  await world.link(here, peer)
  await told()
  t.is(known(), 24, 'and messages sent while there was no link')
})

test('as many cards as a node may have reach a peer through the log alone', async (t) => {
  const world = new World(t)
  const here = await world.member('here', { agents: Array.from({ length: MAX_CARDS - 1 }, (_, i) => echo(`a${i}`)) })
  await world.settle()
  const peer = await world.member('peer')
  t.is(peer.core.registry.ofNode(here.id).length, MAX_CARDS)
})
