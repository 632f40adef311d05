import test from 'brittle'
import { NodeError } from '../../../src/kit/errors.js'
import { checkSignedCard } from '../../../src/domain/card/schema.js'
import { actor, verify } from '../../support/membership.js'
import type { AgentDefinition } from '../../../src/ports/agent-runtime.js'
import { failsWith } from '../../support/fails.js'
import { capability, agentDefinition, echo, type FakeAgent } from '../../support/fake-agents.js'
import { World } from '../../support/fake-node.js'
import { FakeStore } from '../../support/fake-store.js'
import { MAX_CARDS } from '../../../src/domain/membership/fold/card.js'
import { addressesOn } from '../../../src/domain/card/endpoints.js'

test('every agent and the operator have a card that their node signed', async (t) => {
  const world = new World(t)
  const here = await world.member('here', { agents: [echo('a'), echo('b', { tier: 3 })] })
  const cards = here.core.localCards.own()
  t.alike(cards.map((one) => one.body.id).sort(), ['a', 'b', 'operator'])
  const { certificate } = world.log.view().members.get(here.id) ?? { certificate: null }
  for (const card of cards)
    t.ok(certificate !== null && checkSignedCard(card, { certificate: certificate.body, verify }).ok, card.body.id)
  t.is(cards.find((one) => one.body.id === 'b')?.body.tier, 3)
})

test('the card of the operator alone names the addresses of the node', async (t) => {
  const world = new World(t)
  const addresses = { tcp: ['10.0.0.1:7000'], websocket: ['wss://a.example/mesh'] }
  const here = await world.owner({ agents: [echo('a')], settings: { addresses } })
  const addressesOf = (id: string) => {
    const card = here.core.registry.get({ agentId: id, nodeId: here.id })
    return card === undefined ? null : addressesOn(card)
  }
  t.alike(addressesOf('operator'), addresses)
  t.alike(addressesOf('a'), { tcp: [], websocket: [] })
})

test('a card is never more powerful than the certificate, and in its sandbox', async (t) => {
  const world = new World(t)
  const here = await world.member('here', { agents: [echo('a', { tier: 0 })], terms: { tier: 2, sandboxId: 'ci' } })
  for (const { body } of here.core.localCards.own()) {
    t.is(body.tier, 2)
    t.is(body.sandboxId, 'ci')
  }
})

test('an agent that asks for another sandbox than that of its node is not offered, and the node says so', async (t) => {
  const world = new World(t)
  const boxed = (sandboxId: string): FakeAgent => echo('boxed', { sandboxId, source: '/agents/boxed.md' })
  const here = await world.member('here', {
    agents: [echo('a', { sandboxId: 'ci' }), boxed('lab')],
    terms: { sandboxId: 'ci' }
  })
  const ids = (): string[] => here.core.localCards.own().map(({ body }) => body.id)
  t.alike(ids(), ['operator', 'a'], 'one of the same sandbox is')
  const reason =
    'it asks for the sandbox lab, but this node is certified for ci alone: name that one or none, or let a node in lab serve it'
  const problem = {
    code: 'AGENT_FILE_INVALID',
    message: `/agents/boxed.md: a2a.sandbox: agent boxed is not offered: ${reason}`,
    next: 'a2a-node agents check /agents/boxed.md'
  }
  const status = await here.api().call('node.status', {})
  t.alike([status.agents.ready, status.problems], [['a'], [problem]])
  const listed = await here.api().call('agents.list', {})
  t.alike([listed.agents.map(({ id }) => id), listed.problems], [['a'], [problem]])
  await failsWith(t, 'AGENT_NOT_FOUND', () =>
    here.api().call('message.call', { agent: 'boxed', capability: 'boxed.do', input: {} })
  )
  const program = { id: 'mine', description: '', sandboxId: 'lab', capabilities: [], onMessage: () => {} }
  t.is(
    (await failsWith(t, 'INVALID_CARD', () => here.core.attach(program))).message,
    `the agent is not offered: ${reason}`
  )
  here.source.set([echo('a'), boxed('ci')])
  await world.settle()
  t.alike(ids(), ['operator', 'a', 'boxed'])
  t.alike((await here.api().call('node.status', {})).problems, [])
  here.source.set([echo('a'), boxed('lab')])
  await world.settle()
  t.alike(ids(), ['operator', 'a'], 'one that was offered is taken back')
  const plain = await world.member('plain', { agents: [boxed('lab')] })
  t.is(plain.core.localCards.own().at(-1)?.body.sandboxId, 'lab', 'a node in none offers agents of any')
})

test('a revision rises by one with each change, and only then, also over restarts', async (t) => {
  const world = new World(t)
  const store = new FakeStore()
  const here = await world.member('here', { agents: [echo('a')], store })
  const revision = (): number | undefined =>
    here.core.localCards.own().find((one) => one.body.id === 'a')?.body.revision
  t.is(revision(), 1)
  const { writes } = store
  here.source.set([echo('a')])
  await world.settle()
  t.is(revision(), 1, 'the same words')
  t.is(store.writes, writes)
  here.source.set([echo('a', { description: 'new words' })])
  await world.settle()
  t.is(revision(), 2)
  await here.core.close()
  const again = await world.start(here.actor, { agents: [echo('a', { description: 'new words' })], store })
  t.is(again.core.localCards.own().find((one) => one.body.id === 'a')?.body.revision, 2)
  again.source.set([echo('a')])
  await world.settle()
  t.is(again.core.localCards.own().find((one) => one.body.id === 'a')?.body.revision, 3)
})

test('a removed agent leaves the log, and comes back with a higher revision', async (t) => {
  const world = new World(t)
  const here = await world.member('here', { agents: [echo('a')] })
  await world.settle()
  const logged = (): number | undefined => world.log.view().cards.get(here.id)?.get('a')?.body.revision
  t.is(logged(), 1)
  here.source.set([])
  await world.settle()
  t.is(logged(), undefined)
  t.is(here.core.registry.getByAddress(`a@${here.id}`), undefined)
  here.source.set([echo('a')])
  await world.settle()
  t.is(logged(), 3)
})

test('another certificate makes new cards', async (t) => {
  const world = new World(t)
  const here = await world.member('here', { agents: [echo('a')] })
  const peer = await world.member('peer')
  await world.link(here, peer)
  const owner = actor('owner')
  const before = world.log.model.certificateOf(here.actor)
  const changed = { ...before, name: 'renamed', maxTier: 3 as const, serial: before.serial + 1, issuer: owner.id }
  t.is(world.log.model.recertify(owner, changed).skipped, null)
  world.log.changed()
  await world.settle()
  const card = peer.core.registry.getByAddress(`a@${here.id}`)
  t.is(card?.tier, 3)
  t.is(card?.revision, 2)
  t.is(here.core.localCards.own().find((one) => one.body.id === 'operator')?.body.description, 'The person at renamed.')
})

test('cards go into the log once, and an idle node writes nothing', async (t) => {
  const world = new World(t)
  const here = await world.member('here', { agents: [echo('a'), echo('b')] })
  const peer = await world.member('peer')
  await world.link(here, peer)
  const count = world.log.submitted.length
  t.is(count, 4, 'a, b and two operators')
  for (let i = 0; i < 5; i++) world.log.changed()
  await world.pass(60_000, 5000)
  t.is(world.log.submitted.length, count)
})

test('a card that no writer takes is in the log as soon as a link or a view says that there is one', async (t) => {
  for (const sign of ['link', 'view'] as const) {
    const world = new World(t)
    const peer = await world.member('peer')
    world.log.isWritable = false
    const here = await world.member('here', { agents: [echo('a')] })
    await world.settle()
    world.log.isWritable = true
    await world.pass(60_000, 10_000)
    t.is(world.log.view().cards.get(here.id)?.size ?? 0, 0, 'nothing polls')
    if (sign === 'view') world.log.changed()
    else world.net.connect(here.id, peer.id)
    await world.settle()
    t.alike([...(world.log.view().cards.get(here.id)?.keys() ?? [])].sort(), ['a', 'operator'], sign)
  }
})

test('a card that the log does not accept is not sent again and again', async (t) => {
  const world = new World(t)
  const here = await world.member('here')
  let asked = 0
  const { log } = here.core.deps
  const { submit } = log
  log.submit = async () => {
    asked++
    await Promise.resolve()
    world.log.changed()
  }
  here.source.set([echo('a')])
  await world.settle()
  t.is(asked, 1)
  world.log.changed()
  await world.settle()
  t.is(asked, 1)
  log.submit = submit
})

test('a revision that could not be kept is never shown; the next change shows it', async (t) => {
  const world = new World(t)
  const here = await world.member('here')
  const peer = await world.member('peer')
  await world.link(here, peer)
  here.store.fault = new NodeError('DISK_FULL', 'full')
  here.source.set([echo('a')])
  await world.settle()
  t.is(peer.core.registry.getByAddress(`a@${here.id}`), undefined)
  t.is(here.core.localCards.own().length, 1)
  t.ok(here.lines.some((line) => line.includes('cards could not be made')))
  here.store.fault = null
  here.source.set([echo('a'), echo('b')])
  await world.settle()
  t.is(peer.core.registry.ofNode(here.id).length, 3)
})

test('after a restore, cards go on above what the log has', async (t) => {
  const world = new World(t)
  const here = await world.member('here', { agents: [echo('a')] })
  for (const description of ['2', '3', '4']) {
    here.source.set([echo('a', { description })])
    await world.settle()
  }
  t.is(world.log.view().cards.get(here.id)?.get('a')?.body.revision, 4)
  await here.core.close()
  await world.start(here.actor, { agents: [echo('a', { description: 'restored' })], store: new FakeStore() })
  await world.settle()
  t.is(world.log.view().cards.get(here.id)?.get('a')?.body.revision, 5)
})

test('after a restore, a card that says the same as long ago is still a new one', async (t) => {
  const world = new World(t)
  const backup = new FakeStore()
  const first = await world.member('here', { agents: [echo('a')], store: backup })
  await world.settle()
  await first.core.close()
  const store = new FakeStore()
  await store.write('cards', await backup.read('cards'))
  const second = await world.start(first.actor, { agents: [echo('a', { description: 'newer' })], store })
  await world.settle()
  await second.core.close()
  await world.start(first.actor, { agents: [echo('a')], store: backup })
  await world.settle()
  const card = world.log.view().cards.get(first.id)?.get('a')
  t.alike([card?.body.revision, card?.body.description], [3, ''])
})

test('an agent without a valid card does not keep the others from theirs', async (t) => {
  const world = new World(t)
  const broken = echo('broken', { capabilities: [capability('has spaces in it')] })
  const here = await world.member('here', { agents: [broken, echo('good')] })
  t.alike(
    here.core.localCards
      .own()
      .map((one) => one.body.id)
      .sort(),
    ['good', 'operator']
  )
  await failsWith(t, 'INVALID_CARD', () => here.core.localCards.check(agentDefinition('Not An Id')))
})

test('agents beyond the limit of the mesh get no card, and the node reports which', async (t) => {
  const world = new World(t)
  const full = Array.from({ length: MAX_CARDS - 1 }, (_, i) => echo(`m${i}`))
  const here = await world.member('here', { agents: full })
  const peer = await world.member('peer')
  await world.link(here, peer)
  const problems = async (): Promise<string[]> => {
    const status = await here.api().call('node.status', {})
    const listed = await here.api().call('agents.list', {})
    t.alike(listed.problems, status.problems)
    t.is(status.agents.ready.length, MAX_CARDS - 1)
    return status.problems.map(({ code, message }) => `${code} ${message.split(';')[0]}`)
  }
  t.alike(await problems(), [])
  here.source.set([echo('a'), echo('b'), ...full])
  await world.settle()
  t.alike(await problems(), ['TOO_MANY_AGENTS not in the mesh: a, b'])
  t.is(here.lines.filter((line) => line.includes('takes no more agents')).length, 1)
  t.alike((await here.api().call('agents.list', { origin: 'remote' })).problems, [])
  const known = (): string[] => peer.core.registry.ofNode(here.id).map((one) => one.id)
  const logged = (): string[] => [...(world.log.view().cards.get(here.id)?.keys() ?? [])]
  for (const ids of [known(), logged()])
    t.alike([ids.length, ids.includes('m0'), ids.includes('a')], [MAX_CARDS, true, false])
  t.is(peer.lines.length, 0, 'nothing is announced that others drop')
  await failsWith(t, 'USAGE', () => here.core.attach({ id: 'bot', onMessage: () => {} }))
  t.absent(here.core.agents.has('bot'))
  here.source.set([echo('a'), ...full.slice(1)])
  await world.settle()
  t.alike(await problems(), [])
  for (const ids of [known(), logged()])
    t.alike([ids.length, ids.includes('m0'), ids.includes('a')], [MAX_CARDS, false, true])
  world.log.isWritable = false
  here.source.set([echo('b'), ...full.slice(1)])
  await world.settle()
  t.alike(
    [known().length, known().includes('a'), known().includes('b')],
    [MAX_CARDS, false, true],
    'also where only the peer learns of it'
  )
})

test('cards that are too large together are not announced, in words of their own; smaller ones are', async (t) => {
  const world = new World(t)
  const large = (id: string, length = 60_000): AgentDefinition =>
    agentDefinition(id, { capabilities: [capability('c', { inputSchema: { title: 'x'.repeat(length) } })] })
  const full = Array.from({ length: 69 }, (_, i) => large(`m${i}`))
  const here = await world.member('here', { agents: full.map((one) => echo(one.id, one)) })
  const peer = await world.member('peer')
  await world.link(here, peer)
  const known = (): string[] => peer.core.registry.ofNode(here.id).map((one) => one.id)
  const logged = (): string[] => [...(world.log.view().cards.get(here.id)?.keys() ?? [])]
  for (const ids of [known(), logged()]) t.is(ids.length, 70)
  here.source.set([...full, large('n'), large('small', 10)].map((one) => echo(one.id, one)))
  await world.settle()
  const { problems } = await here.api().call('node.status', {})
  t.alike(
    problems.map(({ code, message }) => `${code} ${message}`),
    [
      'TOO_MANY_AGENTS not in the mesh: n; it takes 4 MiB of cards of one node: shorten descriptions and schemas, or remove the files of some'
    ]
  )
  for (const ids of [known(), logged()])
    t.alike([ids.length, ids.includes('n'), ids.includes('small')], [71, false, true])
  t.is(peer.lines.length, 0, 'nothing is announced that others drop')
})

test('a new agent never takes the place of one that is announced, also over restarts', async (t) => {
  const world = new World(t)
  const store = new FakeStore()
  const full = Array.from({ length: MAX_CARDS - 1 }, (_, i) => echo(`m${i}`))
  const here = await world.member('here', { agents: full, store })
  await world.settle()
  await here.core.close()
  const again = await world.start(here.actor, { agents: [echo('a'), ...full], store })
  t.alike(again.core.localCards.surplus(), ['a'])
  t.is(again.core.localCards.own().length, MAX_CARDS)
})

test('the labels of a node are on the signed cards of its agents, and a change of them is a new revision', async (t) => {
  const world = new World(t)
  const store = new FakeStore()
  const here = await world.member('here', { agents: [echo('a')], store, settings: { labels: ['gpu', 'zone=eu'] } })
  const there = await world.member('there')
  await world.link(here, there)
  const { agents } = await there.api().call('agents.list', {})
  t.alike(
    agents.map(({ id, labels }) => [id, labels]),
    [['a', ['gpu', 'zone=eu']]]
  )
  const card = here.core.localCards.own().find((one) => one.body.id === 'a')
  const { certificate } = world.log.view().members.get(here.id) ?? { certificate: null }
  if (card === undefined || certificate === null) throw new Error('no card')
  const trust = { certificate: certificate.body, verify }
  t.ok(checkSignedCard(card, trust).ok)
  const { labels: _labels, ...bare } = card.body
  for (const body of [{ ...card.body, labels: ['cpu'] }, bare])
    t.absent(checkSignedCard({ ...card, body }, trust).ok, 'signed')
  await here.core.close()
  const again = await world.start(here.actor, { agents: [echo('a')], store })
  const body = again.core.localCards.own().find((one) => one.body.id === 'a')?.body
  t.is(body?.revision, 2)
  t.is(body?.labels, undefined, 'a card without labels is as it always was')
})
