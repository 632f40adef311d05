import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { CONTROL_SCHEMAS } from '../../../src/domain/channel/control.js'
import { checkSignedCard } from '../../../src/domain/card/schema.js'
import { seal } from '../../../src/domain/membership/signing.js'
import { actor, cardBody, signedCard, verify } from '../../support/membership.js'
import { echo } from '../../support/fake-agents.js'
import { ProviderStore } from '../../../src/node/cards/provider-store.js'
import { type FakeNode, World } from '../../support/fake-node.js'
import { FakeStore } from '../../support/fake-store.js'
import { ManualClock } from '../../support/manual-clock.js'
import { forgeControl } from '../../support/forge.js'
import { holds } from '../../support/holds.js'

const OWN = { organization: 'Node Works', url: 'https://node.example' }
const FILE = { organization: 'File Works', url: 'https://file.example/about' }

/** `id: organization` for each agent of `other` that `node` lists, the operator left out. */
async function providers(node: FakeNode, other: FakeNode): Promise<string[]> {
  const { agents } = await node.api().call('agents.list', {})
  return agents.flatMap((one) => (one.node.id === other.id ? [`${one.id}: ${one.provider?.organization ?? '-'}`] : []))
}

function revisionOf(node: FakeNode, id: string): number | undefined {
  return node.core.localCards.own().find(({ body }) => body.id === id)?.body.revision
}

test('an agent has the provider of its file, else that of the node, and an agent outside of the mesh only its own', async (t: Assert) => {
  const world = new World(t)
  const agents = [
    echo('a'),
    echo('b', { provider: FILE }),
    echo('c', { runtime: 'a2a' }),
    echo('d', { runtime: 'a2a', provider: FILE })
  ]
  const here = await world.member('here', { agents, settings: { provider: OWN } })
  t.alike(await providers(here, here), ['a: Node Works', 'b: File Works', 'c: -', 'd: File Works'])
  t.alike((await here.api().call('agents.show', { agent: 'b' })).provider, FILE)
  t.alike((await here.api().call('node.status', {})).provider, OWN)
  const plain = await world.member('plain', { agents: [echo('a')] })
  t.absent('provider' in (await plain.api().call('agents.show', { agent: `a@${plain.id}` })))
  t.absent('provider' in (await plain.api().call('node.status', {})))
})

test('a linked node knows the providers of the other, also when the log brought the cards first', async (t: Assert) => {
  const world = new World(t)
  const here = await world.member('here', {
    agents: [echo('a'), echo('b', { provider: FILE })],
    settings: { provider: OWN }
  })
  const peer = await world.member('peer')
  await world.settle()
  t.alike(await providers(peer, here), ['a: -', 'b: -'], 'the log carries none')
  await world.link(here, peer)
  t.alike(await providers(peer, here), ['a: Node Works', 'b: File Works'])
  world.net.disconnect(here.id, peer.id)
  await world.settle()
  t.alike(await providers(peer, here), ['a: Node Works', 'b: File Works'], 'and remembers them')
})

test('a node knows the providers of nodes that are away after its restart, also of a stop right after they came', async (t: Assert) => {
  for (const waitMs of [0, 2000]) {
    const world = new World(t)
    const agents = [echo('a'), echo('b', { provider: FILE })]
    const here = await world.member('here', { agents, settings: { provider: OWN } })
    const peer = await world.member('peer')
    await world.link(here, peer)
    world.clock.advance(waitMs)
    await world.settle()
    world.net.disconnect(here.id, peer.id)
    await peer.core.close()
    const again = await world.start(peer.actor, { store: peer.store })
    await world.settle()
    t.alike(await providers(again, here), ['a: Node Works', 'b: File Works'])
    // Another revision has a provider of its own, or none.
    here.source.set([echo('a', { description: 'new' }), echo('b', { provider: FILE })])
    await world.settle()
    t.alike(await providers(again, here), ['a: -', 'b: File Works'])
    world.log.model.revoke(actor('owner'), here.actor)
    world.log.changed()
    await again.core.close()
    t.absent(JSON.stringify(await peer.store.read('providers')).includes(here.id), 'a revoked node is forgotten')
  }
})

test('kept providers are bounded, of a node and of all, and a damaged or foreign document costs none of a start', async (t: Assert) => {
  const clock = new ManualClock()
  const [store, lines]: [FakeStore, string[]] = [new FakeStore(), []]
  const telemetry = { log: (_level: string, message: string) => void lines.push(message) }
  const opened = (): ProviderStore => new ProviderStore({ store, clock, telemetry })
  const alone = opened()
  for (let id = 0; id < 300; id++) alone.put('one', { id: `a${id}`, revision: 1, provider: OWN })
  const isKept = (id: number): boolean => alone.of('one', { id: `a${id}`, revision: 1 }) !== null
  t.alike([isKept(43), isKept(44), isKept(299)], [false, true, true], 'of one node the newest 256 stay')
  await alone.close()
  await store.remove('providers')
  const kept = opened()
  for (let node = 0; node < 12; node++)
    for (let id = 0; id < 300; id++) kept.put(`node${node}`, { id: `a${id}`, revision: 1, provider: OWN })
  kept.put('late', { id: 'a', revision: 1, provider: FILE })
  await kept.close()
  const again = opened()
  await again.load()
  const count = (node: string): number =>
    Array.from({ length: 300 }, (_, id) => again.of(node, { id: `a${id}`, revision: 1 })).filter((one) => one !== null)
      .length
  const counts = Array.from({ length: 12 }, (_, node) => count(`node${node}`))
  t.is(
    counts.reduce((sum, one) => sum + one, 0),
    2047
  )
  t.ok(Math.min(...counts) >= 128, `nodes share the bound: ${counts.join(' ')}`)
  t.alike(again.of('late', { id: 'a', revision: 1 }), FILE)
  t.is(again.of('late', { id: 'a', revision: 2 }), null)

  for (const value of [null, 7, [], { nodes: 7 }, { nodes: { n: 7 } }, { nodes: { n: [{ id: 7 }, null] } }]) {
    await store.write('providers', value)
    await opened().load()
  }
  store.fault = new Error('no space')
  const full = opened()
  full.put('n', { id: 'a', revision: 1, provider: OWN })
  await full.close()
  t.alike(lines, ['providers of agents could not be kept'])
  store.read = () => Promise.reject(new Error('damaged'))
  await opened().load()
  t.is(lines.length, 2)
})

test('another provider is a new revision of a card, and reaches linked nodes; none is sent any more', async (t: Assert) => {
  const world = new World(t)
  const here = await world.member('here', { agents: [echo('a')] })
  const peer = await world.member('peer')
  await world.link(here, peer)
  t.is(revisionOf(here, 'a'), 1)
  here.source.set([echo('a', { provider: OWN })])
  await world.settle()
  t.alike([revisionOf(here, 'a'), await providers(peer, here)], [2, ['a: Node Works']])
  here.source.set([echo('a', { provider: OWN })])
  await world.settle()
  t.is(revisionOf(here, 'a'), 2, 'the same one is no change')
  here.source.set([echo('a', { provider: FILE })])
  await world.settle()
  t.alike([revisionOf(here, 'a'), await providers(peer, here)], [3, ['a: File Works']])
  here.source.set([echo('a')])
  await world.settle()
  t.alike([revisionOf(here, 'a'), await providers(peer, here)], [4, ['a: -']])
})

test('a node of an earlier build reads the same as before: no new key in a signed card, and messages without providers', async (t: Assert) => {
  const world = new World(t)
  const here = await world.member('here', { agents: [echo('a', { provider: FILE })], settings: { provider: OWN } })
  const peer = await world.member('peer')
  const { certificate } = world.log.view().members.get(here.id) ?? { certificate: null }
  for (const card of here.core.localCards.own()) {
    t.absent('provider' in card.body, card.body.id)
    t.ok(certificate !== null && checkSignedCard(card, { certificate: certificate.body, verify }).ok)
  }
  const { cards, all } = CONTROL_SCHEMAS.cards.shape
  const earlier = CONTROL_SCHEMAS.cards.pick({ cards: true, all: true })
  t.alike(Object.keys(earlier.shape), ['cards', 'all'])
  t.ok(cards !== undefined && all !== undefined)
  const notice = { id: 'a', revision: 1, provider: FILE }
  t.alike(
    earlier.parse({ cards: [], all: null, providers: [notice] }),
    { cards: [], all: null },
    'the further key is no fault there'
  )
  await world.link(here, peer)
  const sent = signedCard(peer.actor, cardBody('old'))
  forgeControl(peer, here, { name: 'cards', body: { cards: [sent], all: null } })
  await world.settle()
  t.alike(await providers(here, peer), ['old: -'])
})

test('no notice of a provider throws, keeps cards from being taken, or changes another agent', async (t: Assert) => {
  const world = new World(t)
  const here = await world.member('here', { agents: [echo('own', { provider: OWN })] })
  const peer = await world.member('peer')
  const third = await world.member('third', { agents: [echo('theirs')] })
  await world.link(here, peer)
  await world.link(here, third)
  const text = { organization: 'X', url: 'https://x.example' }
  const wrong = [
    null,
    7,
    {},
    { id: 'good', revision: 1 },
    { id: 'good', revision: 9, provider: text },
    { id: 'good', revision: 1, provider: { organization: 'X' } },
    { id: 'good', revision: 1, provider: { organization: '\u001b[31mX', url: 'https://x.example' } },
    { id: 'good', revision: 1, provider: { organization: 'X'.repeat(129), url: 'https://x.example' } },
    { id: 'good', revision: 1, provider: { organization: 'X', url: 'javascript:alert(1)' } },
    { id: 'good', revision: 1, provider: { organization: 'X', url: `https://x.example/${'x'.repeat(512)}` } },
    { id: 'own', revision: 1, provider: text },
    { id: 'theirs', revision: 1, provider: text },
    { id: '__proto__', revision: 1, provider: text }
  ]
  const cards = [signedCard(peer.actor, cardBody('good'))]
  forgeControl(peer, here, { name: 'cards', body: { cards, all: null, providers: wrong } })
  await world.settle()
  t.alike(await providers(here, peer), ['good: -'])
  t.alike([await providers(here, here), await providers(here, third)], [['own: Node Works'], ['theirs: -']])
  const before = JSON.stringify(here.core.registry.listAll())
  const near = fc.record({ id: fc.string(), revision: fc.anything(), provider: fc.anything() }, { requiredKeys: [] })
  const property = fc.property(fc.array(fc.oneof(fc.jsonValue(), near)), (list) => {
    here.core.remoteCards.providersFromPeer(peer.id, list)
    return JSON.stringify(here.core.registry.listAll()) === before
  })
  await holds(t, property, 200)
  const right = { id: 'good', revision: 1, provider: { ...text, later: 'member' }, later: true }
  forgeControl(peer, here, { name: 'cards', body: { cards: [], all: null, providers: [...wrong, right] } })
  await world.settle()
  t.alike(await providers(here, peer), ['good: X'], 'a right one among them is taken, with members of a later build')
})

test('a signed card with a provider inside is refused, as a node of an earlier build does', async (t: Assert) => {
  const world = new World(t)
  const here = await world.member('here')
  const peer = await world.member('peer')
  await world.link(here, peer)
  const body = { ...cardBody('inside'), provider: OWN }
  here.core.remoteCards.fromPeer(peer.id, [seal('card', body, { id: peer.id, sign: peer.actor.sign })], null)
  t.is(here.core.registry.getById('inside').length, 0)
})

test('a revision of a card takes one provider, however many notices name it', async (t: Assert) => {
  const world = new World(t)
  const here = await world.member('here')
  const peer = await world.member('peer')
  await world.link(here, peer)
  const description = 'd'.repeat(4000)
  const notice = (id: string, organization: string, revision = 1) => ({
    id,
    revision,
    provider: { ...OWN, organization }
  })
  const cards = ['a', 'b'].map((id) => signedCard(peer.actor, cardBody(id, { description })))
  const flood = Array.from({ length: 1000 }, (_, at) => notice('a', `Works ${at}`))
  forgeControl(peer, here, {
    name: 'cards',
    body: { cards, all: null, providers: [...flood.slice(0, 999), notice('b', 'Other')] }
  })
  await world.settle()
  t.alike(await providers(here, peer), ['a: Works 0', 'b: Other'])
  const stored = here.core.registry.getById('a')
  here.core.remoteCards.providersFromPeer(peer.id, flood)
  t.is(here.core.registry.getById('a'), stored, 'nothing is stored or indexed again')
  const next = signedCard(peer.actor, cardBody('a', { description, revision: 2 }))
  forgeControl(peer, here, { name: 'cards', body: { cards: [next], all: null, providers: [notice('a', 'Next', 2)] } })
  await world.settle()
  t.alike(await providers(here, peer), ['a: Next', 'b: Other'])
})
