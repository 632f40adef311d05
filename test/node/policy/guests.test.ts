import { ManualClock } from '../../support/manual-clock.js'
import test, { type Assert } from 'brittle'
import { FIRST_RULES } from '../../../src/adapters/storage/policy/policy-file.js'
import { memberPrincipal } from '../../../src/node/gateway/resolve-agent.js'
import { agentDefinition, capability, echo, FakeAgent } from '../../support/fake-agents.js'
import { type FakeNode, World } from '../../support/fake-node.js'
import { failsWith } from '../../support/fails.js'
import { gatewayOf } from '../../support/gateway.js'
import { waitingOf } from '../../support/approval-scene.js'

interface Scene {
  readonly world: World
  /** Has the first rules and the agent `text`, whose capability declares no side effect. */
  readonly owner: FakeNode
  readonly agent: FakeAgent
  readonly guest: FakeNode
  /** A machine of the owner's person. */
  readonly second: FakeNode
}

async function sceneOf(t: Assert): Promise<Scene> {
  const world = new World(t)
  const agent = echo('text')
  const owner = await world.owner({ agents: [agent], policy: FIRST_RULES })
  const guest = await world.member('guest', { agents: [echo('helper')] })
  const second = await world.member('second', { terms: { trust: 'mine' } })
  return { world, owner, agent, guest, second }
}

const CALL = { agent: 'text@owner', capability: 'text.do', input: { n: 1 }, wait: false } as const

test('work of a guest waits for the owner by any path: as its operator, a weaker caller, a message without a capability, a broadcast', async (t) => {
  const { world, owner, agent, guest } = await sceneOf(t)
  await world.link(owner, guest)
  const [strong, weak] = [guest.api(), guest.api({ tier: 2 })]
  await strong.call('message.call', CALL)
  await weak.call('message.call', { ...CALL, justification: 'the report is due' })
  await strong.call('message.send', { agent: 'text@owner', text: 'x', wait: false })
  await strong.call('message.send', { agent: '*', text: 'all', all: true, wait: false })
  await world.settle()
  t.is(agent.tasks.length, 0)
  t.is((await waitingOf(owner)).length, 4)
  t.ok((await waitingOf(owner)).every(({ rule }) => rule.includes('guests-ask')))
})

test('a guest that calls over A2A is refused, as nobody is asked there, and so is each of its agents', async (t) => {
  const { world, owner, agent, guest } = await sceneOf(t)
  await world.link(owner, guest)
  const gateway = await gatewayOf(t, owner)
  for (const claims of [{}, { tier: 3 as const }, { agent: 'helper' }])
    await failsWith(t, 'POLICY_DENIED', () =>
      gateway.send(memberPrincipal({ directory: owner.core.directory, clock: new ManualClock() }, guest.id, claims), {
        skill: null,
        mayAnswer: false,
        wait: false,
        agent: 'text',
        message: {
          messageId: JSON.stringify(claims),
          role: 'user',
          parts: [{ text: 'x' }],
          metadata: { justification: 'the report is due' }
        }
      })
    )
  await world.settle()
  t.is(agent.tasks.length, 0)
})

test('a machine of the person that passes the work of a guest on lends it nothing, and works itself at once', async (t) => {
  const { world, owner, agent, guest, second } = await sceneOf(t)
  await world.link(guest, second)
  await world.link(second, owner)
  await world.settle()
  await guest.api().call('message.call', CALL)
  await world.settle()
  t.alike([agent.tasks.length, (await waitingOf(owner)).length], [0, 1])
  await second.api().call('message.call', CALL)
  await world.settle()
  t.is(agent.tasks.length, 1)
  await owner.api().call('peers.trust', { peer: 'guest', trust: 'mine' })
  await guest.api().call('message.call', { ...CALL, input: { n: 2 } })
  await world.settle()
  t.is(agent.tasks.length, 2, 'after a word of the owner')
})

/** Agents of a guest and of a machine of the owner's person; each has a capability that reads and one that executes. */
async function swarmScene(
  t: Assert,
  policy = FIRST_RULES
): Promise<{ world: World; owner: FakeNode; guest: FakeNode }> {
  const world = new World(t)
  const capabilities = [capability('scan', { sideEffect: 'read' }), capability('fix', { sideEffect: 'exec' })]
  const agents = (): FakeAgent[] => [new FakeAgent(agentDefinition('w', { capabilities }), DONE)]
  const owner = await world.owner({ policy })
  const guest = await world.member('guest', { agents: agents(), policy })
  const second = await world.member('second', { agents: agents(), terms: { trust: 'mine' } })
  await world.link(owner, guest, second)
  await world.settle()
  return { world, owner, guest }
}

const DONE = (): { ok: true; result: string } => ({ ok: true, result: 'done' })
const SWARM = { goal: 'do it', strategy: 'map', items: ['one', 'two'].map((item) => ({ item, input: 1 })) } as const

test('a swarm leaves guests out of work with side effects and names the command that trusts them; they read in swarms', async (t) => {
  const { world, owner } = await swarmScene(t)
  const reason = 'guest, may only ask; `a2a-node peers trust guest mine`'
  const preview = async (id: string): Promise<unknown> =>
    (await owner.api().call('swarm.preview', { ...SWARM, capability: id })).stages.map(({ agents, leftOut }) => ({
      agents: [...agents].sort(),
      leftOut
    }))
  t.alike(await preview('scan'), [{ agents: ['w@guest', 'w@second'], leftOut: [] }])
  t.alike(await preview('fix'), [{ agents: ['w@second'], leftOut: [{ agent: 'w@guest', rule: reason }] }])
  const id = await owner.core.swarms.launch({ ...SWARM, capability: 'fix' })
  await world.pass(2000)
  const { status, leftOut } = (await owner.core.swarms.find(id)).info()
  t.alike([status, leftOut], ['completed', [{ agent: 'w@guest', rule: reason }]])
  await owner.api().call('peers.trust', { peer: 'guest', trust: 'mine' })
  t.alike(await preview('fix'), [{ agents: ['w@guest', 'w@second'], leftOut: [] }], 'the printed command helps')
})

test('a swarm of a guest leaves out the machines of the owner, which are guests for it', async (t) => {
  const { guest } = await swarmScene(t)
  const [stage] = (await guest.api().call('swarm.preview', { ...SWARM, capability: 'fix' })).stages
  t.alike(stage?.agents, ['w@guest'])
  t.is(stage?.leftOut[0]?.rule, 'guest, may only ask; `a2a-node peers trust second mine`')
})

test('a home without a rule about guests has none: they take part in every swarm', async (t) => {
  const { owner } = await swarmScene(t, 'rules: []')
  const [stage] = (await owner.api().call('swarm.preview', { ...SWARM, capability: 'fix' })).stages
  t.is(stage?.agents.length, 2)
})

/** The owner with first rules, a guest and a machine of its person, all linked. */
async function documentScene(t: Assert): Promise<Pick<Scene, 'world' | 'owner' | 'guest' | 'second'>> {
  const { world, owner, guest, second } = await sceneOf(t)
  await world.link(owner, guest, second)
  await world.settle()
  return { world, owner, guest, second }
}

const writes = (node: FakeNode, text: string): Promise<unknown> =>
  node.api().call('documents.edit', { document: 'notes', edit: { type: 'text', text } })
const textOf = async (node: FakeNode): Promise<unknown> =>
  (await node.api().call('documents.read', { document: 'notes', type: 'text' })).value

test('a document of a mesh with guests is written by the machines of its person, and guests read it', async (t) => {
  const { world, owner, guest, second } = await documentScene(t)
  const { access } = await owner.api().call('documents.create', { name: 'notes' })
  t.alike([access?.write.members.map(({ name }) => name), access?.see.tier], [['second'], 'L3'])
  await writes(owner, 'ours')
  await world.settle()
  const error = await failsWith(t, 'FORBIDDEN', () => writes(guest, 'theirs'))
  t.ok(error.next.includes('a2a-node doc access notes --write second,guest   # on owner'), error.next.join('\n'))
  t.is(await textOf(guest), 'ours')
  await writes(second, 'ours, too')
  await world.settle()
  t.is(await textOf(guest), 'ours, too')
  const rule = { members: ['second', 'guest'], tier: null, unsandboxed: false }
  await owner.api().call('documents.restrict', { document: 'notes', see: {}, write: rule })
  await writes(guest, 'with permission')
  await world.settle()
  t.is(await textOf(owner), 'with permission')
})

test('a list given at the creation counts also beside guests, and a mesh without guests makes no list', async (t) => {
  const { owner } = await documentScene(t)
  const given = { name: 'open', write: { tier: 'L3' } } as const
  t.is((await owner.api().call('documents.create', given)).access?.write.tier, 'L3')
  await owner.api().call('peers.trust', { peer: 'guest', trust: 'mine' })
  const made = await owner.api().call('documents.create', { name: 'notes' })
  t.alike([made.access, made.unrestricted], [null, true])
  await owner.api().call('peers.trust', { peer: 'guest', trust: 'guest' })
  await owner.api().call('peers.revoke', { peer: 'guest' })
  t.is((await owner.api().call('documents.create', { name: 'plan' })).access, null, 'a revoked guest counts no more')
})

test('a member that becomes a guest keeps what it wrote, and writes on until a list of the machines of its person leaves it out', async (t) => {
  const { world, owner, second } = await documentScene(t)
  await owner.api().call('documents.create', { name: 'notes' })
  await writes(second, 'before')
  await world.settle()
  await owner.api().call('peers.trust', { peer: 'second', trust: 'guest' })
  await world.settle()
  t.is(await textOf(owner), 'before')
  await writes(second, 'before, still')
  await world.settle()
  const mine = { mine: true, tier: null, unsandboxed: false }
  const { access } = await owner.api().call('documents.restrict', { document: 'notes', see: {}, write: mine })
  t.alike(access?.write.members, [])
  await failsWith(t, 'FORBIDDEN', () => writes(second, 'after'))
  await world.settle()
  for (const node of [owner, second]) t.is(await textOf(node), 'before, still')
})

test('a machine that joins its person later writes after the list is set anew, and a guest never by that', async (t) => {
  const { world, owner, guest } = await documentScene(t)
  await owner.api().call('documents.create', { name: 'notes' })
  const third = await world.member('third', { terms: { trust: 'mine' } })
  await world.link(owner, third)
  await world.settle()
  const error = await failsWith(t, 'FORBIDDEN', () => writes(third, 'too early'))
  t.ok(
    error.next.some((step) => step.includes('--write second,third   # on owner')),
    error.next.join('\n')
  )
  const write = { mine: true, tier: null, unsandboxed: false }
  await owner.api().call('documents.restrict', { document: 'notes', see: {}, write })
  await writes(third, 'now')
  await failsWith(t, 'FORBIDDEN', () => writes(guest, 'theirs'))
})

test('a document of a guest is read by the machines of others and written by its own and the owner of the mesh', async (t) => {
  const { world, owner, second } = await documentScene(t)
  const guest = await world.member('other', { policy: FIRST_RULES })
  await world.link(owner, guest, second)
  await world.settle()
  await guest.api().call('documents.create', { name: 'notes' })
  await writes(guest, 'of a guest')
  await world.settle()
  await failsWith(t, 'FORBIDDEN', () => writes(second, 'ours'))
  t.is(await textOf(second), 'of a guest')
})
