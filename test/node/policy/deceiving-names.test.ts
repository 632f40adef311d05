import test, { type Assert } from 'brittle'
import { shortId } from '../../../src/kit/ids.js'
import { ASK, callText, waitingOf } from '../../support/approval-scene.js'
import { echo } from '../../support/fake-agents.js'
import { failsWith } from '../../support/fails.js'
import { type FakeNode, World } from '../../support/fake-node.js'
import { actor } from '../../support/membership.js'

/** Gives a member a name that no honest admin does: the log takes it. */
function nameAnyway(world: World, { actor: node }: FakeNode, name: string): void {
  const owner = actor('owner')
  const before = world.log.model.certificateOf(node)
  world.log.model.recertify(owner, { ...before, name, serial: before.serial + 1, issuer: owner.id })
  world.log.changed()
}

test('a member that got in as a look-alike is shown by its key and with its characters written out, in approvals and events', async (t: Assert) => {
  const world = new World(t)
  const peer = await world.member('peer', { agents: [echo('text')], policy: ASK })
  for (const name of ['boss', 'ape']) await world.member(name)
  const [hidden, alike] = [await world.member('hidden'), await world.member('alike')]
  nameAnyway(world, hidden, 'bo\u3164ss')
  nameAnyway(world, alike, 'аре')
  await world.link(peer, hidden, alike)
  void callText(hidden)
  void callText(alike)
  await world.settle()
  const shownAs = ['bo\\u{3164}ss', `аре-${alike.id.slice(0, 4)}`]
  const list = await waitingOf(peer)
  t.alike(
    list.map(({ from, fromNode }) => [from, fromNode]),
    [hidden, alike].map(({ id }, at) => [`operator@${shownAs[at]}`, { id, name: shownAs[at] }])
  )
  const shown = await peer.api().call('approvals.show', { id: list[0]?.id ?? '' })
  t.alike(shown.fromNode, { id: hidden.id, name: shownAs[0] })
  t.alike(shown.toNode, { id: peer.id, name: 'peer' })
  await peer.api().call('approvals.deny', { id: list[0]?.id ?? '' })
  const events = peer.core.events.recent().filter(({ type }) => type === 'approval')
  t.alike(
    events.map(({ data }) => data['fromKey']),
    [hidden, alike, hidden].map(({ id }) => shortId(id))
  )
  const names = (await peer.api().call('peers.list', {})).peers.map(({ name }) => name)
  t.ok(names.includes('boss') && names.includes('ape') && shownAs.every((one) => names.includes(one)), names.join())
})

test('a member is not renamed to an invalid name, or to a look-alike of the name of another', async (t: Assert) => {
  const world = new World(t)
  const owner = await world.owner()
  const [ape, third] = [await world.member('ape'), await world.member('third')]
  const api = owner.api()
  const hidden = await failsWith(t, 'USAGE', () => api.call('peers.rename', { peer: 'third', name: 'a\u00adpe' }))
  t.ok(hidden.message.includes('U+00AD at character 2 is invisible'), hidden.message)
  t.alike(hidden.next, [`a2a-node peers rename ${third.id} ape`])
  const alike = await failsWith(t, 'CONFLICT', () => api.call('peers.rename', { peer: 'third', name: 'аре' }))
  t.ok(alike.message.includes('is called ape, which looks like аре'), alike.message)
  t.alike(alike.data, { candidates: [`ape (${shortId(ape.id)})`] })
  t.is((await api.call('peers.rename', { peer: 'third', name: 'Пётр' })).name, 'Пётр')
})

test('a document gets no name that deceives; one that is in the log already is used, and shown with a warning', async (t: Assert) => {
  const world = new World(t)
  const owner = await world.owner()
  const api = owner.api()
  const hidden = await failsWith(t, 'INVALID_INPUT', () => api.call('documents.create', { name: 'no\u061ctes' }))
  t.ok(hidden.message.includes('U+061C at character 3 is invisible'), hidden.message)
  t.alike(hidden.next, ['a2a-node doc open notes'])
  for (const name of ['ape', 'a/b (draft) v2.md']) t.ok((await api.call('documents.create', { name })).created)
  const alike = await failsWith(t, 'AMBIGUOUS_NAME', () => api.call('documents.create', { name: 'аре' }))
  t.alike(alike.data, { candidates: ['ape'] })
  for (const name of ['аре', 'bo\u200bss'])
    world.log.model.write(actor('owner'), {
      kind: 'document',
      mesh: world.log.model.view().mesh?.id ?? '',
      name,
      access: null,
      at: 1
    })
  world.log.changed()
  const { documents } = await api.call('documents.list', {})
  t.alike(Object.fromEntries(documents.map(({ name, nameWarning }) => [name, nameWarning ?? null])), {
    ape: 'it looks like the name of the document \u0430\u0440\u0435',
    'a/b (draft) v2.md': null,
    '\u0430\u0440\u0435': 'it looks like the name of the document ape',
    'bo\u200bss': 'U+200B at character 3 is invisible'
  })
  t.absent((await api.call('documents.create', { name: 'bo\u200bss' })).created)
  t.ok((await api.call('documents.show', { document: 'bo\u200bss' })).nameWarning)
})

test('the title on a card is shown without characters that nobody sees', async (t: Assert) => {
  const world = new World(t)
  const here = await world.member('here', { agents: [echo('text', { name: 'Te\u200bxt\u{e0061} 🧪' })] })
  t.is((await here.api().call('agents.show', { agent: 'text' })).name, 'Text 🧪')
})
