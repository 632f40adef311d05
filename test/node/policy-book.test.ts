import test from 'brittle'
import type { FakeNode } from '../support/fake-node.js'
import { World } from '../support/fake-node.js'

/** The problems of `status`, as code and message. */
async function problemsOf(node: FakeNode): Promise<string[]> {
  return (await node.api().call('node.status', {})).problems.map(({ code, message }) => `${code} ${message}`)
}

function eventsOf(node: FakeNode): unknown[] {
  return node.core.events
    .recent()
    .filter(({ type, message }) => type === 'policy' && message.includes('nobody'))
    .map(({ data }) => data['names'])
}

test('a rule for a name that no node has is a warning, a problem, and told as soon as it is so', async (t) => {
  const world = new World(t)
  const here = await world.owner({
    policy: 'rules:\n  - { from: { node: phone }, decision: deny }\n  - { to: { node: [owner, tablet] }, decision: allow }\n'
  })
  t.alike((await here.api().call('policy.show', {})).warnings, [
    { line: 2, name: 'phone' },
    { line: 3, name: 'tablet' }
  ])
  t.alike(await problemsOf(here), [
    'PEER_NOT_FOUND /config/policy.yaml:2: no node is called "phone" (and 1 more like it): the rule is for nobody of that name'
  ])
  t.alike(eventsOf(here), [['policy.yaml:2: phone', 'policy.yaml:3: tablet']])
  t.ok(here.lines.some((line) => line.includes('name nodes that nobody is called')))
  const phone = await world.member('phone')
  await world.member('tablet')
  t.alike(await problemsOf(here), [])
  const renamed = await here.api().call('peers.rename', { peer: phone.id, name: 'mobile' })
  t.alike(renamed.policy, [{ file: '/config/policy.yaml', line: 2, name: 'phone', means: null }], 'who renames hears of it at once')
  t.alike((await here.api().call('peers.rename', { peer: phone.id, name: 'mobile' })).policy, [], 'and not again')
  await world.settle()
  t.alike(await problemsOf(here), ['PEER_NOT_FOUND /config/policy.yaml:2: no node is called "phone": the rule is for nobody of that name'])
  t.alike(eventsOf(here).slice(1), [['policy.yaml:2: phone']], 'once, and not for what was known before')
  here.policy.write(
    `rules:\n  - { from: { node: ${phone.id} }, decision: deny }\n  - { from: { node: [mobile, watch] }, decision: deny }\n`
  )
  t.alike((await here.api().call('policy.show', {})).warnings, [{ line: 3, name: 'watch' }])
  t.alike(eventsOf(here).slice(2), [['policy.yaml:3: watch']])
})

test('a key never warns, whoever has it', async (t) => {
  const world = new World(t)
  const stranger = 'y'.repeat(52)
  const here = await world.owner({ policy: `rules:\n  - { from: { node: ${stranger} }, to: { node: ${stranger} }, decision: deny }\n` })
  t.alike((await here.api().call('policy.show', {})).warnings, [])
  t.alike(await problemsOf(here), [])
  t.alike(eventsOf(here), [])
})
