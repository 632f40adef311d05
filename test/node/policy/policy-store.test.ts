import test from 'brittle'
import type { PolicyWarning } from '../../../src/ports/policy-api.js'
import { echo } from '../../support/fake-agents.js'
import type { FakeNode } from '../../support/fake-node.js'
import { World } from '../../support/fake-node.js'

/** The problems of `status`, as code and message. */
async function problemsOf(node: FakeNode): Promise<string[]> {
  return (await node.api().call('node.status', {})).problems.map(({ code, message }) => `${code} ${message}`)
}

/** What `policy show` says of a name that no node has. */
function unknown(line: number, name: string): PolicyWarning {
  const message = `no node is called "${name}": the rule is for nobody of that name`
  return { line, name, candidates: [], nearest: [], message }
}

function eventsOf(node: FakeNode): unknown[] {
  return node.core.events
    .recent()
    .filter(({ type, message }) => type === 'policy' && message.includes('nobody'))
    .map(({ data }) => data['names'])
}

test('a rule for a name without a node is a warning, a problem, and reported at once', async (t) => {
  const world = new World(t)
  const here = await world.owner({
    policy:
      'rules:\n  - { from: { node: phone }, decision: deny }\n  - { to: { node: [owner, tablet] }, decision: allow }\n'
  })
  t.alike((await here.api().call('policy.show', {})).warnings, [unknown(2, 'phone'), unknown(3, 'tablet')])
  t.alike(await problemsOf(here), [
    'PEER_NOT_FOUND /config/policy.yaml:2: no node is called "phone" (and 1 more like it): the rule is for nobody of that name'
  ])
  t.alike(eventsOf(here), [['policy.yaml:2: phone', 'policy.yaml:3: tablet']])
  t.ok(here.lines.some((line) => line.includes('name nodes that nobody is called')))
  const phone = await world.member('phone')
  await world.member('tablet')
  t.alike(await problemsOf(here), [])
  const renamed = await here.api().call('peers.rename', { peer: phone.id, name: 'mobile' })
  t.alike(
    renamed.policy,
    [{ file: '/config/policy.yaml', line: 2, name: 'phone', means: null }],
    'the caller of a rename is warned at once'
  )
  t.alike((await here.api().call('peers.rename', { peer: phone.id, name: 'mobile' })).policy, [], 'and not again')
  await world.settle()
  t.alike(await problemsOf(here), [
    'PEER_NOT_FOUND /config/policy.yaml:2: no node is called "phone": the rule is for nobody of that name'
  ])
  t.alike(eventsOf(here).slice(1), [['policy.yaml:2: phone']], 'once, and not for earlier findings')
  here.policy.write(
    `rules:\n  - { from: { node: ${phone.id} }, decision: deny }\n  - { from: { node: [mobile, watch] }, decision: deny }\n`
  )
  t.alike((await here.api().call('policy.show', {})).warnings, [unknown(3, 'watch')])
  t.alike(eventsOf(here).slice(2), [['policy.yaml:3: watch']])
})

test('a key never warns, for any node', async (t) => {
  const world = new World(t)
  const stranger = 'y'.repeat(52)
  const here = await world.owner({
    policy: `rules:\n  - { from: { node: ${stranger} }, to: { node: ${stranger} }, decision: deny }\n`
  })
  t.alike((await here.api().call('policy.show', {})).warnings, [])
  t.alike(await problemsOf(here), [])
  t.alike(eventsOf(here), [])
  here.policy.write(`rules:\n  - { from: { node: [${stranger}, ${here.id}, owner] }, decision: deny }\n`)
  const [rule] = (await here.api().call('policy.show', {})).rules
  t.alike(rule?.from.nodeNames, [null, 'owner', null], 'and names the agents that have it')
})

test('a name in another case or with a slip is reported with a similar one', async (t) => {
  const world = new World(t)
  const here = await world.owner({ policy: 'rules:\n  - { from: { node: Phone }, decision: deny }\n' })
  await world.member('phone')
  t.alike(await problemsOf(here), [
    'PEER_NOT_FOUND /config/policy.yaml:2: no node is called "Phone" (did you mean phone?): the rule is for nobody of that name'
  ])
})

test('the beginning of an id means its node; where it may mean several, each is denied, none is allowed, and it is reported', async (t) => {
  const world = new World(t)
  const here = await world.owner({ agents: [echo('text')] })
  const phone = await world.member('phone', { terms: { tier: 2 } })
  await world.link(here, phone)
  const beginning = phone.id.slice(0, 6)
  const decided = async (from: FakeNode, decision: string): Promise<unknown> => {
    here.policy.write(`rules:\n  - { from: { node: ${beginning} }, decision: ${decision} }\n`)
    const { code, line } = await here.api().call('policy.test', { from: from.id, to: 'text' })
    return [code, line]
  }
  t.alike(await decided(phone, 'deny'), ['POLICY_DENIED', 2])
  t.alike(await decided(phone, 'allow'), [null, 2])
  t.alike(await problemsOf(here), [])
  // Whoever comes later by that name is not meant alone, and takes nothing over.
  const impostor = await world.member(beginning, { terms: { tier: 2 } })
  await world.link(here, impostor)
  for (const node of [phone, impostor]) {
    t.alike(await decided(node, 'deny'), ['POLICY_DENIED', 2])
    t.alike(await decided(node, 'allow'), ['ESCALATION_REQUIRED', null])
  }
  const [warning] = (await here.api().call('policy.show', {})).warnings
  t.alike(
    warning?.candidates,
    [phone, impostor].map((one) => `${one.name} (${one.id.slice(0, 4)}...${one.id.slice(-4)})`)
  )
  const [problem] = await problemsOf(here)
  t.ok(problem?.startsWith(`AMBIGUOUS_NAME /config/policy.yaml:2: "${beginning}" may mean phone (`), problem)
  const told = here.core.events
    .recent()
    .filter(({ message }) => message === 'rules of the policy name nodes that are several')
  t.is(told.length, 1)
})

test('the name of a rule stays when another one is inserted before it', async (t) => {
  const world = new World(t)
  const here = await world.owner({ policy: 'rules:\n  - { name: mine, decision: ask }\n  - decision: deny\n' })
  const idsOf = async (): Promise<unknown[]> =>
    (await here.api().call('policy.show', {})).rules.map(({ id, line }) => [id, line])
  const [mine, derived] = (await idsOf()) as [string, number][]
  t.is(mine?.[0], 'mine')
  t.ok(/^#[a-z0-9]{6}$/.test(derived?.[0] ?? ''), derived?.[0])
  here.policy.write(
    'rules:\n  - { capability: a.b, decision: allow }\n  - { name: mine, decision: ask }\n  - decision: deny\n  - decision: deny\n'
  )
  t.alike((await idsOf()).slice(1), [
    ['mine', 3],
    [derived?.[0], 4],
    [`${derived?.[0]}-2`, 5]
  ])
  const { rule } = await here.api().call('policy.test', { from: 'L0', to: 'L1' })
  t.is(rule, 'policy.yaml:3: ask (mine)', 'decisions name it')
})
