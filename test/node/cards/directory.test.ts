import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { type AgentAddress, parseAddress } from '../../../src/domain/card/card.js'
import type { RegisteredCard } from '../../../src/domain/card/registry.js'
import { resolveAgent } from '../../../src/domain/routing/names.js'
import { failsWith } from '../../support/fails.js'
import { echo, type FakeAgent } from '../../support/fake-agents.js'
import { World } from '../../support/fake-node.js'
import { holds } from '../../support/holds.js'
import { actor } from '../../support/membership.js'

test('nodes are found by name, id and prefix; the nearest names help', async (t) => {
  const world = new World(t)
  const here = await world.member('here')
  const { directory } = here.core
  await world.member('laptop')
  const { id } = actor('laptop')
  t.is(directory.node('laptop'), id)
  t.is(directory.node(id), id)
  t.is(directory.node(id.slice(0, 8)), id)
  t.is(directory.node('here'), here.id, 'itself too')
  const error = await failsWith(t, 'PEER_NOT_FOUND', () => directory.node('laptob'))
  t.alike(error.data, { nearest: ['laptop'] })
  t.ok(error.message.includes('did you mean laptop?'))
})

test('an agent on two nodes is ambiguous by its id alone', async (t) => {
  const world = new World(t)
  const here = await world.member('here', { agents: [echo('text'), echo('mine')] })
  const peer = await world.member('peer', { agents: [echo('text')] })
  await world.link(here, peer)
  const { directory } = here.core
  t.alike(directory.agent('mine'), { agentId: 'mine', nodeId: here.id })
  t.alike(directory.agent('text@peer'), { agentId: 'text', nodeId: peer.id })
  const error = await failsWith(t, 'AMBIGUOUS_NAME', () => directory.agent('text'))
  t.alike(error.data, { candidates: ['text@here', 'text@peer'] })
  await failsWith(t, 'AGENT_NOT_FOUND', () => directory.agent('test@peer'))
})

test('an agent is the one that a look at all agents finds, for any names and any visibility', async (t) => {
  const world = new World(t)
  const agents = (): FakeAgent[] => [echo('text'), echo('texts')]
  const here = await world.member('here', { agents: [...agents(), echo('mine')] })
  const peer = await world.member('peer', { agents: agents() })
  // A node may call itself by the key of another one.
  const sly = await world.member(peer.id, { agents: agents() })
  for (const other of [peer, sly]) await world.link(here, other)
  const { directory } = here.core
  const cards = here.core.registry.listAll()
  const ids = fc.constantFrom('text', 'texts', 'mine', 'tex', 'none', '')
  const nodes = fc.constantFrom(
    'here',
    'peer',
    here.id,
    peer.id,
    sly.id,
    sly.id.slice(0, 6),
    directory.ref(sly.id).name,
    'nobody',
    ''
  )
  const text = fc.oneof(
    ids,
    fc.tuple(ids, nodes).map(([id, node]) => `${id}@${node}`)
  )
  await holds(
    t,
    fc.property(text, fc.subarray([...cards]), (called, seen) => {
      const sees = (card: RegisteredCard): boolean => seen.includes(card)
      const found = resolveAgent(
        called,
        seen.map(({ id, nodeId }) => ({ agentId: id, nodeId })),
        directory.nodes()
      )
      const named = here.core.registry.getByAddress(called)
      const expected =
        named !== undefined && sees(named)
          ? { agentId: named.id, nodeId: named.nodeId }
          : found.kind === 'found'
            ? found.value
            : null
      assert.deepEqual(
        agentOr(null, () => directory.agent(called, sees)),
        expected
      )
    }),
    500
  )
})

function agentOr<T>(none: T, find: () => AgentAddress): AgentAddress | T {
  try {
    return find()
  } catch {
    return none
  }
}

test('two nodes of one name have distinct displayed names', async (t) => {
  const world = new World(t)
  const here = await world.member('here')
  const owner = actor('owner')
  await world.member('twin')
  const { log } = world
  const before = log.model.certificateOf(actor('twin'))
  log.model.recertify(owner, { ...before, name: 'here', serial: 2, issuer: owner.id })
  log.changed()
  const names = [here.id, actor('twin').id].map((id) => here.core.directory.ref(id).name)
  t.is(names[0], 'here')
  t.is(names[1], `here-${actor('twin').id.slice(0, 4)}`)
  t.is(here.core.directory.shownAddress(`a@${actor('twin').id}`), `a@${names[1]}`)
})

test('names of others are shown without control characters', async (t) => {
  const world = new World(t)
  const here = await world.member('here')
  t.is(here.core.directory.shownAddress('not an address'), 'not an address')
  await failsWith(t, 'PEER_NOT_FOUND', () => here.core.directory.node('\u001b[31mred'))
  const error = await failsWith(t, 'AGENT_NOT_FOUND', () => here.core.directory.agent('\u001b[31mred'))
  t.absent(error.message.includes('\u001b'))
})

test('an agent counts as weak as the weakest of certificate, card and represented caller', async (t) => {
  const world = new World(t)
  const here = await world.member('here', { agents: [echo('a', { tier: 2 }), echo('boxed', { sandboxId: 'ci' })] })
  const { directory } = here.core
  const at = (agentId: string): { agentId: string; nodeId: string } => ({ agentId, nodeId: here.id })
  t.alike(directory.party(at('operator')), { address: `operator@${here.id}`, tier: 1, sandboxId: null })
  t.is(directory.party(at('a'))?.tier, 2)
  t.is(directory.party(at('a'), { maxTier: 3 })?.tier, 3)
  t.is(directory.party(at('a'), { maxTier: 0 })?.tier, 2)
  t.is(directory.party(at('boxed'))?.sandboxId, 'ci')
  t.is(directory.party(at('operator'), { maxTier: 0, sandboxId: 'ci' })?.sandboxId, 'ci')
  t.is(directory.party(at('nobody')), null)
})

test('a revoked node has no party, for any cards it had', async (t) => {
  const world = new World(t)
  const here = await world.member('here')
  const peer = await world.member('peer', { agents: [echo('a')] })
  await world.link(here, peer)
  const address = { agentId: 'a', nodeId: peer.id }
  t.ok(here.core.directory.party(address))
  world.log.model.revoke(actor('owner'), peer.actor)
  world.log.changed()
  t.is(here.core.directory.party(address), null)
})

test('the agent that a message names is the one at its address, for any later changes of it and its node', async (t) => {
  const world = new World(t)
  const here = await world.member('here', { agents: [echo('a'), echo('boxed', { sandboxId: 'ci' })] })
  const peer = await world.member('peer', { agents: [echo('a', { tier: 2 })] })
  await world.link(here, peer)
  const { directory, registry } = here.core
  const nodes = [here.id, peer.id, 'nobody', '']
  const arbName = fc.tuple(fc.constantFrom('a', 'boxed', 'operator', 'none', '', 'a@b'), fc.constantFrom(...nodes))
  const arbText = fc.oneof(
    arbName.map((parts) => parts.join('@')),
    fc.string()
  )
  const agrees = (text: string): boolean => {
    const [named, address] = [directory.named(text), parseAddress(text)]
    if (named === null || address === null) return named === address
    assert.deepEqual(named, { address, card: directory.card(address), party: directory.party(address) })
    return true
  }
  await holds(t, fc.property(arbText, agrees), 300)
  const theirs = `a@${peer.id}`
  const tier = (): number | undefined => directory.named(theirs)?.party?.tier
  t.is(tier(), 2)
  const card = registry.getByAddress(theirs)
  t.ok(card !== undefined && registry.merge({ ...card, tier: 3, revision: card.revision + 1 }, peer.id, 0))
  t.is(tier(), 3, 'a new card counts at once')
  world.log.model.revoke(actor('owner'), peer.actor)
  world.log.changed()
  t.is(directory.named(theirs)?.party, null, 'and so does that its node was put out')
  if (card !== undefined) registry.merge({ ...card, tier: 3, revision: card.revision + 2 }, peer.id, 0)
  t.is(registry.getByAddress(theirs)?.tier, 3)
  t.is(directory.named(theirs)?.party, null, 'also while its card is still known')
  await holds(t, fc.property(arbText, agrees), 300)
})

test('addresses are taken apart at the last @', (t) => {
  t.alike(parseAddress('a@b'), { agentId: 'a', nodeId: 'b' })
  t.alike(parseAddress('a@b@c'), { agentId: 'a@b', nodeId: 'c' })
  for (const text of ['', '@', 'a@', '@b', 'ab']) t.is(parseAddress(text), null)
})
