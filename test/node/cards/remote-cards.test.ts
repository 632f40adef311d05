import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { capability, echo } from '../../support/fake-agents.js'
import { knownCards, World } from '../../support/fake-node.js'
import { forgeControl } from '../../support/forge.js'
import { holds } from '../../support/holds.js'
import { actor, cardBody, certificate, signedCard } from '../../support/membership.js'

test('connected nodes know the cards of each other, and follow every change', async (t) => {
  const world = new World(t)
  const here = await world.member('here', { agents: [echo('a')] })
  const peer = await world.member('peer')
  world.log.isWritable = false
  await world.link(here, peer)
  t.alike(knownCards(peer, here), ['a 1', 'operator 1'])
  here.source.set([echo('a', { description: 'new' }), echo('b')])
  await world.settle()
  t.alike(knownCards(peer, here), ['a 2', 'b 1', 'operator 1'])
  here.source.set([echo('b')])
  await world.settle()
  t.alike(knownCards(peer, here), ['b 1', 'operator 1'])
})

test('cards of members who are away come from the log', async (t) => {
  const world = new World(t)
  const here = await world.member('here', { agents: [echo('a')] })
  const peer = await world.member('peer')
  await world.settle()
  t.is(peer.core.registry.ofNode(here.id).length, 2)
  here.source.set([])
  await world.settle()
  t.alike(
    peer.core.registry.ofNode(here.id).map((card) => card.id),
    ['operator'],
    'and so does their removal'
  )
})

test('a card that a peer no longer names when it connects is gone, also while the log still has it', async (t) => {
  const world = new World(t)
  const here = await world.member('here', { agents: [echo('a')] })
  const peer = await world.member('peer')
  await world.settle()
  world.log.isWritable = false
  here.source.set([])
  await world.settle()
  t.ok(peer.core.registry.getByAddress(`a@${here.id}`))
  await world.link(here, peer)
  t.is(peer.core.registry.getByAddress(`a@${here.id}`), undefined)
  world.log.changed()
  t.is(peer.core.registry.getByAddress(`a@${here.id}`), undefined, 'the old log does not bring it back')
  here.source.set([echo('a')])
  await world.settle()
  t.is(peer.core.registry.getByAddress(`a@${here.id}`)?.revision, 3, 'but the agent itself does')
})

test('a card sent by its node stays, though the log never had it', async (t) => {
  const world = new World(t)
  const here = await world.member('here')
  const peer = await world.member('peer')
  await world.link(here, peer)
  world.log.isWritable = false
  here.source.set([echo('a')])
  await world.settle()
  world.log.changed()
  t.ok(peer.core.registry.getByAddress(`a@${here.id}`))
})

test('many large cards are all sent, in frames that fit', async (t) => {
  const world = new World(t)
  const description = 'x'.repeat(8000)
  const agents = Array.from({ length: 40 }, (_, index) => echo(`agent-${index}`, { description }))
  const here = await world.member('here', { agents })
  const peer = await world.member('peer')
  world.log.isWritable = false
  await world.link(here, peer)
  t.is(peer.core.registry.ofNode(here.id).length, 41)
  here.source.set(agents.slice(0, 20))
  world.net.disconnect(here.id, peer.id)
  await world.settle()
  await world.link(here, peer)
  t.is(peer.core.registry.ofNode(here.id).length, 21, 'and lost parts are known from the last frame')
})

test('no JSON that a peer sends as cards throws or is taken', async (t) => {
  const world = new World(t)
  const here = await world.member('here')
  const peer = await world.member('peer')
  await world.link(here, peer)
  const before = here.core.registry.listAll().length
  const cardish = fc.record(
    {
      body: fc.record({ id: fc.string(), revision: fc.anything() }, { requiredKeys: [] }),
      by: fc.constant(peer.id),
      sig: fc.string()
    },
    { requiredKeys: [] }
  )
  const property = fc.property(fc.array(fc.oneof(fc.jsonValue(), cardish), { maxLength: 5 }), (cards) => {
    here.core.remoteCards.fromPeer(peer.id, cards, null)
    assert.equal(here.core.registry.listAll().length, before)
  })
  await holds(t, property, 300)
  forgeControl(peer, here, {
    name: 'cards',
    body: { cards: [null, 1, {}, { body: null }, { body: { id: 'x' } }], all: null }
  })
  forgeControl(peer, here, { name: 'found', body: { id: 'x', cards: [{}] } })
  await world.settle()
  t.is(here.core.registry.listAll().length, before)
})

test('a card is refused when another signed it, when it is too powerful, and when it was changed', async (t) => {
  const world = new World(t)
  const here = await world.member('here')
  const peer = await world.member('peer')
  await world.link(here, peer)
  const good = signedCard(peer.actor, cardBody('good'))
  const refused = [
    signedCard(actor('stranger'), cardBody('other')),
    signedCard(peer.actor, cardBody('strong', { tier: 0 })),
    { ...signedCard(peer.actor, cardBody('changed')), body: cardBody('changed', { description: 'more' }) }
  ]
  here.core.remoteCards.fromPeer(peer.id, [...refused, good], null)
  t.alike(
    here.core.registry
      .ofNode(peer.id)
      .map((card) => card.id)
      .sort(),
    ['good', 'operator']
  )
  const count = here.counted('errors', 'card')
  here.core.remoteCards.fromPeer(peer.id, refused, null)
  t.is(here.counted('errors', 'card'), count, 'each is checked once')
})

test('an older revision changes nothing', async (t) => {
  const world = new World(t)
  const here = await world.member('here')
  const peer = await world.member('peer')
  await world.link(here, peer)
  const told = (revision: number): void =>
    here.core.remoteCards.fromPeer(
      peer.id,
      [signedCard(peer.actor, cardBody('a', { revision, description: `${revision}` }))],
      null
    )
  told(5)
  told(4)
  told(5)
  t.is(here.core.registry.getByAddress(`a@${peer.id}`)?.description, '5')
  here.core.remoteCards.removedByPeer(peer.id, [{ id: 'a', revision: 4 }])
  t.ok(here.core.registry.getByAddress(`a@${peer.id}`), 'an old removal neither')
  here.core.remoteCards.removedByPeer(peer.id, [{ id: 'a', revision: 6 }])
  t.absent(here.core.registry.getByAddress(`a@${peer.id}`))
})

test('a peer speaks for its own agents only, and has at most 1,024', async (t) => {
  const world = new World(t)
  const here = await world.member('here', { agents: [echo('mine')] })
  const peer = await world.member('peer')
  await world.link(here, peer)
  here.core.remoteCards.removedByPeer(peer.id, [{ id: 'mine', revision: 99 }])
  t.ok(here.core.registry.getByAddress(`mine@${here.id}`))
  const many = Array.from({ length: 1100 }, (_, index) => signedCard(peer.actor, cardBody(`a${index}`)))
  here.core.remoteCards.fromPeer(peer.id, many.slice(0, 500), null)
  here.core.remoteCards.fromPeer(peer.id, many.slice(500), null)
  t.is(here.core.registry.ofNode(peer.id).length, 1024)
})

test('a peer has at most 4 MiB of cards, however it changes them', async (t) => {
  const world = new World(t)
  const here = await world.member('here')
  const peer = await world.member('peer')
  await world.link(here, peer)
  const tell = (id: string, revision: number, length: number): boolean => {
    const large = capability('c', { inputSchema: { title: 'x'.repeat(length) } })
    here.core.remoteCards.fromPeer(
      peer.id,
      [signedCard(peer.actor, cardBody(id, { revision, capabilities: [large] }))],
      null
    )
    return here.core.registry.getByAddress(`${id}@${peer.id}`)?.revision === revision
  }
  let count = 0
  while (tell(`a${count}`, 1, 60_000)) count++
  t.is(count, 69)
  t.ok(tell('a0', 2, 10), 'a smaller one frees a slot')
  t.ok(tell('more', 1, 60_000))
  t.absent(tell('a0', 3, 60_000), 'a newer card may not take what is not there')
  here.core.remoteCards.removedByPeer(peer.id, [{ id: 'a1', revision: 1 }])
  t.ok(tell('a0', 4, 60_000), 'a removal frees a slot')
  t.ok(here.core.registry.bytesOf(peer.id) <= 4 * 1024 ** 2)
})

test('the cards of a revoked node are gone, and it brings none back', async (t) => {
  const world = new World(t)
  const here = await world.member('here')
  const peer = await world.member('peer', { agents: [echo('a')] })
  await world.link(here, peer)
  world.log.model.revoke(actor('owner'), peer.actor)
  world.log.changed()
  t.is(here.core.registry.ofNode(peer.id).length, 0)
  here.core.remoteCards.fromPeer(peer.id, [signedCard(peer.actor, cardBody('a', { revision: 9 }))], null)
  t.is(here.core.registry.ofNode(peer.id).length, 0)
})

test('a node that passed by its chain, and that the log does not know, takes its cards with it when its last link ends', async (t) => {
  const world = new World(t)
  const here = await world.member('here')
  const guest = actor('guest')
  world.net.linksOf(guest.id, () => certificate({ issuer: actor('owner'), node: guest }))
  const [first] = world.net.connect(guest.id, here.id)
  const second = world.net.connect(guest.id, here.id)[0]
  here.core.remoteCards.fromPeer(guest.id, [signedCard(guest, cardBody('a'))], null)
  const agents = async (): Promise<string[]> => (await here.api().call('agents.list', {})).agents.map((one) => one.id)
  t.ok((await agents()).includes('a'))
  first.close('gone')
  t.ok((await agents()).includes('a'), 'it is still linked')
  second.close('gone')
  t.absent((await agents()).includes('a'))
  t.is(here.core.registry.ofNode(guest.id).length, 0)
})

test('an admission that the log takes back takes the cards of an absent node with it', async (t) => {
  const world = new World(t)
  const here = await world.member('here')
  const before = world.log.view()
  await world.member('absent')
  await world.settle()
  const absent = actor('absent').id
  t.is(here.core.registry.ofNode(absent).length, 1)
  here.core.remoteCards.fromView(before)
  t.is(here.core.registry.ofNode(absent).length, 0)
})

test('a message of invalid cards is one line of log with their number', async (t) => {
  const world = new World(t)
  const here = await world.member('here')
  const peer = await world.member('peer')
  await world.link(here, peer)
  forgeControl(peer, here, { name: 'cards', body: { cards: Array.from({ length: 1000 }, () => 0), all: null } })
  const strong = Array.from({ length: 20 }, (_, index) =>
    signedCard(peer.actor, cardBody(`strong${index}`, { tier: 0 }))
  )
  forgeControl(peer, here, { name: 'cards', body: { cards: strong, all: null } })
  await world.settle()
  t.is(here.lines.length, 2)
  t.ok(here.lines[0]?.includes('count=1000') && here.lines[1]?.includes('count=20'), here.lines.join(''))
  t.is(here.counted('errors', 'card'), 1020)
})
