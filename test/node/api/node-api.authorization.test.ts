import test from 'brittle'
import { asNodeError } from '../../../src/kit/errors.js'
import { TIERS, tierText } from '../../../src/domain/routing/tier.js'
import type { Calls, NodeApi } from '../../../src/ports/node-api.js'
import { echo } from '../../support/fake-agents.js'
import { World } from '../../support/fake-node.js'
import { failsWith } from '../../support/fails.js'

/** The code of what a call fails with; its outcome when it does not. */
async function outcomeOf(world: World, call: Promise<Calls['message.call']['result']>): Promise<string> {
  const result = call.then(
    ({ outcome, error }) => error?.code ?? outcome,
    (error: unknown) => asNodeError(error).code
  )
  await world.settle()
  return result
}

test('a token of each tier is let in and refused exactly as the operator of a node of that tier is, here and elsewhere', async (t) => {
  const world = new World(t)
  const agents = TIERS.map((tier) => echo(`own${tier}`, { tier }))
  const owner = await world.owner({ agents })
  const peer = await world.member('peer', {
    agents: TIERS.map((tier) => echo(`far${tier}`, { tier })),
    terms: { tier: 0 }
  })
  await world.link(owner, peer)
  let refused = 0
  for (const tier of TIERS) {
    const { token } = await owner.api().call('token.create', { tier })
    const principal = owner.core.tokens.admit(token)?.principal
    if (principal === undefined) throw new Error('the token is not admitted')
    const holder = owner.api(principal)
    const member = await world.member(`sender${tier}`, { terms: { tier } })
    await world.link(member, owner, peer)
    for (const target of TIERS) {
      for (const justification of [{}, { justification: 'asked to' }]) {
        const askEach = async (api: NodeApi, agent: string): Promise<string> =>
          outcomeOf(
            world,
            api.call('message.call', { agent, capability: `${agent.split('@')[0]}.do`, input: {}, ...justification })
          )
        for (const agent of [`own${target}@owner`, `far${target}@peer`]) {
          const [got, wanted] = [await askEach(holder, agent), await askEach(member.api(), agent)]
          t.is(got, wanted, `${tierText(tier)} to ${agent} ${Object.keys(justification).join()}: ${wanted}`)
          if (wanted !== 'COMPLETED') refused++
        }
      }
    }
  }
  t.ok(refused > 10, `${refused} were refused`)
})

test('a sandboxed caller sees the tasks and swarms of its own sandbox, and those of others are none', async (t) => {
  const world = new World(t)
  const owner = await world.owner({ agents: [echo('text'), echo('boxed', { sandboxId: 'ci' })] })
  await world.settle()
  const boxed = owner.api({ kind: 'token', sandboxId: 'ci' })
  const call = async (api: NodeApi, agent: string): Promise<string> => {
    const reply = api.call('message.call', { agent, capability: `${agent}.do`, input: 1, wait: false })
    await world.settle()
    return (await reply).taskId ?? ''
  }
  const [hidden, own] = [await call(owner.api(), 'text'), await call(boxed, 'boxed')]
  t.ok((await owner.api().call('tasks.list', {})).tasks.length >= 2)
  const { tasks } = await boxed.call('tasks.list', {})
  t.ok(tasks.length > 0 && tasks.every(({ agent }) => agent === 'boxed@owner'))
  t.is((await boxed.call('tasks.show', { id: own })).id, own)
  await failsWith(t, 'TASK_NOT_FOUND', () => boxed.call('tasks.show', { id: hidden }))
  await failsWith(t, 'TASK_NOT_FOUND', () => boxed.call('tasks.show', { id: hidden.slice(0, -2) }))
  await failsWith(t, 'TASK_NOT_FOUND', () => boxed.call('tasks.cancel', { id: hidden }))
  const swarm = { goal: 'g', strategy: 'each' } as const
  const theirs = await owner.api().call('swarm.start', { ...swarm, capability: 'text.do' })
  const ours = await boxed.call('swarm.start', { ...swarm, capability: 'boxed.do' })
  await world.settle()
  t.alike(
    (await boxed.call('swarm.list', {})).swarms.map(({ id }) => id),
    [ours.id]
  )
  t.is((await owner.api().call('swarm.list', {})).swarms.length, 2)
  t.is((await boxed.call('swarm.results', { id: ours.id })).id, ours.id)
  for (const name of ['swarm.show', 'swarm.results', 'swarm.cancel'] as const)
    await failsWith(t, 'SWARM_NOT_FOUND', () => boxed.call(name, { id: theirs.id }))
  await failsWith(t, 'SWARM_NOT_FOUND', async () => {
    for await (const _ of boxed.watch('swarm.watch', { id: theirs.id })) t.fail('nothing is shown')
  })
})

test('operations on the whole node are not for a sandboxed caller, with any scopes', async (t) => {
  const world = new World(t)
  const owner = await world.owner()
  const boxed = owner.api({ kind: 'token', sandboxId: 'ci' })
  const calls: readonly (readonly [keyof Calls, object])[] = [
    ['node.stop', {}],
    ['node.config', {}],
    ['node.backup', { file: '/x' }],
    ['mesh.set', { reset: true }],
    ['peers.revoke', { peer: 'peer' }],
    ['peers.address', { peer: 'peer', address: '10.0.0.5:7422' }],
    ['invite.list', {}],
    ['approvals.list', {}],
    ['approvals.allow', { id: 'app_1' }],
    ['token.list', {}],
    ['token.revoke', { id: 'tok_1' }],
    ['push.list', {}],
    ['push.retry', { all: true }],
    ['tools.calls', {}],
    ['tools.list', {}],
    ['tools.refresh', {}]
  ]
  for (const [name, params] of calls) await failsWith(t, 'SANDBOX_VIOLATION', () => boxed.call(name, params))
  await failsWith(t, 'SANDBOX_VIOLATION', async () => {
    for await (const _ of boxed.watch('node.events', {})) t.fail('nothing is shown')
  })
})

test('an admin weaker than the node neither changes the rules of the mesh, nor decides for its person, nor takes its key', async (t) => {
  const world = new World(t)
  const owner = await world.owner()
  const weak = owner.api({ kind: 'token', tier: 1 })
  await failsWith(t, 'FORBIDDEN', () => weak.call('mesh.set', { reset: true }))
  await failsWith(t, 'FORBIDDEN', () => weak.call('node.backup', { file: '/x' }))
  for (const name of ['approvals.allow', 'approvals.deny'] as const)
    await failsWith(t, 'FORBIDDEN', () => weak.call(name, { id: 'app_1' }))
  const full = owner.api({ kind: 'token', tier: 0 })
  t.is((await full.call('mesh.set', { reset: true })).changed, false)
  await failsWith(t, 'APPROVAL_NOT_FOUND', () => full.call('approvals.allow', { id: 'app_1' }))
})

test('a caller that is weaker than the node, sandboxed or limited to some agents calls no machine its own, also by no invite', async (t) => {
  const world = new World(t)
  const owner = await world.owner()
  await world.member('peer')
  const callers = {
    FORBIDDEN: [owner.api({ tier: 1 }), owner.api({ kind: 'mcp', agents: ['*'] })],
    SANDBOX_VIOLATION: [owner.api({ sandboxId: 'ci' })]
  } as const
  for (const code of ['FORBIDDEN', 'SANDBOX_VIOLATION'] as const)
    for (const api of callers[code]) {
      await failsWith(t, code, () => api.call('peers.trust', { peer: 'peer', trust: 'mine' }))
      await failsWith(t, code, () => api.call('invite.create', { trust: 'mine' }))
      t.is((await api.call('invite.create', {})).trust, 'guest')
    }
  const { trust } = await owner.api({ sandboxId: 'ci' }).call('invite.create', { tier: 0 })
  t.is(trust, 'guest', 'of L0 too')
  t.is((await owner.api().call('invite.create', { tier: 0 })).trust, 'mine')
  t.is((await owner.api().call('peers.trust', { peer: 'peer', trust: 'mine' })).trust, 'mine')
})

test('a caller of some agents sees and asks these alone, on every node, and starts no swarm', async (t) => {
  const world = new World(t)
  const owner = await world.owner({ agents: [echo('text'), echo('files'), echo('filer')] })
  const peer = await world.member('peer', { agents: [echo('text'), echo('shell')] })
  await world.link(owner, peer)
  const limited = owner.api({ kind: 'mcp', scopes: ['read', 'send'], agents: ['file*', 'shell'] })
  const { agents } = await limited.call('agents.list', {})
  t.alike(agents.map(({ address }) => address).toSorted(), ['filer@owner', 'files@owner', 'shell@peer'])
  const ask = async (agent: string): Promise<string> =>
    outcomeOf(world, limited.call('message.call', { agent, capability: `${agent.split('@')[0]}.do`, input: 1 }))
  for (const agent of ['files@owner', 'filer@owner', 'shell@peer']) t.is(await ask(agent), 'COMPLETED', agent)
  for (const agent of ['text@owner', 'text@peer']) t.is(await ask(agent), 'AGENT_NOT_FOUND', agent)
  const recipient = { agentId: 'text', nodeId: owner.core.self }
  const head = { sender: { agentId: 'operator', nodeId: owner.core.self }, recipient, type: 'request' } as const
  t.is(
    owner.core.outbound.judge({ ...head, onBehalfOf: { maxTier: 0, agents: ['file*'] } }).allowed,
    false,
    'the rules refuse it too'
  )
  t.is(owner.core.outbound.judge({ ...head, onBehalfOf: { maxTier: 0, agents: ['tex*'] } }).allowed, true)
  for (const name of ['swarm.start', 'swarm.preview'] as const)
    await failsWith(t, 'FORBIDDEN', () => limited.call(name, { goal: 'x', capability: 'files.do', strategy: 'each' }))
})

test('a caller of some agents sees and cancels tasks of these alone, and sees no swarm, approval or event of the node', async (t) => {
  const world = new World(t)
  const owner = await world.owner({ agents: [echo('text'), echo('files')] })
  await world.settle()
  const limited = owner.api({ kind: 'mcp', scopes: ['read', 'send'], agents: ['file*'] })
  const call = async (agent: string): Promise<string> => {
    const reply = owner.api().call('message.call', { agent, capability: `${agent}.do`, input: 1, wait: false })
    await world.settle()
    return (await reply).taskId ?? ''
  }
  const [hidden, own] = [await call('text'), await call('files')]
  const swarm = await owner.api().call('swarm.start', { goal: 'g', strategy: 'each', capability: 'files.do' })
  await world.settle()
  const { tasks } = await limited.call('tasks.list', {})
  t.ok(tasks.length > 0 && tasks.every(({ agent }) => agent === 'files@owner'))
  t.is((await limited.call('tasks.show', { id: own })).id, own)
  for (const name of ['tasks.show', 'tasks.cancel'] as const)
    await failsWith(t, 'TASK_NOT_FOUND', () => limited.call(name, { id: hidden }))
  t.alike((await limited.call('swarm.list', {})).swarms, [])
  for (const name of ['swarm.show', 'swarm.results', 'swarm.cancel'] as const)
    await failsWith(t, 'SWARM_NOT_FOUND', () => limited.call(name, { id: swarm.id }))
  await failsWith(t, 'SWARM_NOT_FOUND', async () => {
    for await (const _ of limited.watch('swarm.watch', { id: swarm.id })) t.fail('nothing is shown')
  })
  for (const name of ['node.config', 'approvals.list', 'tools.list'] as const)
    await failsWith(t, 'FORBIDDEN', () => limited.call(name, {}))
  await failsWith(t, 'FORBIDDEN', () => limited.call('approvals.show', { id: 'app_1' }))
  for (const name of ['node.events', 'approvals.list'] as const)
    await failsWith(t, 'FORBIDDEN', async () => {
      for await (const _ of limited.watch(name, {})) t.fail('nothing is shown')
    })
})
