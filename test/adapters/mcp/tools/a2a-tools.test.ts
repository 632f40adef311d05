import test, { type Assert } from 'brittle'
import { createSchemaCompiler } from '../../../../src/adapters/agents/schemas/compile-schema.js'
import { a2aTools } from '../../../../src/adapters/mcp/tools/a2a-tools.js'
import type { RegisteredTool } from '../../../../src/adapters/mcp/server/tool.js'
import { failsWith } from '../../../support/fails.js'
import { agentDefinition, echo, FakeAgent } from '../../../support/fake-agents.js'
import { type FakeNode, World } from '../../../support/fake-node.js'
import { toolContext } from '../../../support/tool-context.js'

interface Scene {
  readonly world: World
  readonly owner: FakeNode
  readonly peer: FakeNode
  readonly slow: FakeAgent
  tool(name: string): RegisteredTool
  /** Calls a tool and lets everything happen. */
  run(name: string, args: Readonly<Record<string, unknown>>): Promise<unknown>
}

async function scene(t: Assert): Promise<Scene> {
  const world = new World(t)
  const slow = new FakeAgent(agentDefinition('slow'), () => null)
  const owner = await world.owner({ agents: [echo('text')] })
  const peer = await world.member('peer', { agents: [echo('text'), slow] })
  await world.link(owner, peer)
  const tools = a2aTools({
    api: owner.api({ kind: 'mcp' }),
    compileSchema: createSchemaCompiler(),
    toJson: (value) => value
  })
  const tool = (name: string): RegisteredTool => {
    const found = tools.find(({ definition }) => definition.name === name)
    if (found === undefined) throw new Error(`no tool ${name}`)
    return found
  }
  const run = async (name: string, args: Readonly<Record<string, unknown>>): Promise<unknown> => {
    const { validator, handler } = tool(name)
    const faults = validator(args)
    if (faults.length > 0) throw new Error(faults.map(({ path, message }) => `${path} ${message}`).join('; '))
    const result = handler(args, toolContext())
    result.catch(() => {})
    await world.settle()
    return await result
  }
  return { world, owner, peer, slow, tool, run }
}

test('a2a_list_agents gives every agent that can be seen, or those with a capability', async (t: Assert) => {
  const { run } = await scene(t)
  const { agents } = (await run('a2a_list_agents', {})) as { agents: { agent: string; capabilities: string[] }[] }
  t.alike(
    agents.map(({ agent }) => agent),
    ['text@owner', 'slow@peer', 'text@peer']
  )
  const some = (await run('a2a_list_agents', { capability: 'slow.do' })) as { agents: { agent: string }[] }
  t.alike(
    some.agents.map(({ agent }) => agent),
    ['slow@peer']
  )
  const here = (await run('a2a_list_agents', { origin: 'local' })) as { agents: { agent: string }[] }
  t.alike(
    here.agents.map(({ agent }) => agent),
    ['text@owner']
  )
})

test('a2a_send and a2a_call give the answer of the agent, of one that the node picks, and of everybody', async (t: Assert) => {
  const { run } = await scene(t)
  t.alike(await run('a2a_send', { agent: 'text@peer', text: 'hello' }), { text: 'hello' })
  t.alike(await run('a2a_call', { capability: 'text.do', agent: 'text@peer', input: { a: 1 } }), { a: 1 })
  t.alike(await run('a2a_call', { capability: 'text.do' }), {})
  const all = (await run('a2a_send', { agent: '*', text: 'hello', wait: false })) as { targets: { agent: string }[] }
  t.ok(all.targets.some(({ agent }) => agent === 'text@peer'))
  await failsWith(t, 'CAPABILITY_NOT_FOUND', () => run('a2a_call', { capability: 'nothing', agent: 'text@peer' }))
  await failsWith(t, 'CAPABILITY_NOT_FOUND', () => run('a2a_call', { capability: 'nothing' }))
})

test('a call that the caller does not await gives a task, which a2a_task shows and cancels', async (t: Assert) => {
  const { run, slow, world } = await scene(t)
  const queued = (await run('a2a_call', { capability: 'slow.do', agent: 'slow@peer', wait: false })) as {
    outcome: string
    taskId: string
  }
  t.is(queued.outcome, 'QUEUED')
  await world.pass(3000)
  const shown = (await run('a2a_task', { id: queued.taskId })) as { state: string }
  t.is(shown.state, 'working')
  slow.finish({ done: true })
  await world.settle()
  t.alike(((await run('a2a_task', { id: queued.taskId })) as { result: unknown }).result, { done: true })
  const other = (await run('a2a_call', { capability: 'slow.do', agent: 'slow@peer', wait: false })) as {
    taskId: string
  }
  t.is(((await run('a2a_task', { id: other.taskId, cancel: true })) as { state: string }).state, 'canceled')
  await failsWith(t, 'TASK_NOT_FOUND', () => run('a2a_task', { id: 'nothing-of-that-name' }))
})

test('a2a_task gives the state of a swarm that is not awaited, its results once it has ended, and cancels one', async (t: Assert) => {
  const { run, slow, world } = await scene(t)
  const start = async (): Promise<string> =>
    ((await run('a2a_swarm', { goal: 'wait', capability: 'slow.do', items: ['one'], wait: false })) as { id: string })
      .id
  const id = await start()
  await world.settle()
  const running = (await run('a2a_task', { id })) as { id: string; status: string; counts: { total: number } }
  t.alike([running.id, running.status, running.counts.total], [id, 'running', 1])
  t.absent('results' in running)
  slow.finish({ done: true })
  await world.settle()
  const ended = (await run('a2a_task', { id })) as { status: string; results: { item: string; result: unknown }[] }
  t.is(ended.status, 'completed')
  t.alike(
    ended.results.map(({ item, result }) => [item, result]),
    [['one', { done: true }]]
  )
  t.is(((await run('a2a_task', { id: await start(), cancel: true })) as { status: string }).status, 'canceled')
  await failsWith(t, 'SWARM_NOT_FOUND', () => run('a2a_task', { id: 'swarm_nothing' }))
})

test('a call that is not answered in time says so with its task', async (t: Assert) => {
  const { world, tool } = await scene(t)
  const call = tool('a2a_call').handler({ capability: 'slow.do', agent: 'slow@peer', timeoutSeconds: 1 }, toolContext())
  const failed = call.catch((error: unknown) => error)
  await world.settle()
  await world.pass(2000)
  const error = (await failed) as { code: string; data: { taskId: string } }
  t.is(error.code, 'TIMEOUT')
  t.ok(error.data.taskId.length > 0)
})

test('a2a_swarm gives every result once, and the progress', async (t: Assert) => {
  const { world, tool } = await scene(t)
  const context = toolContext()
  const run = tool('a2a_swarm').handler(
    { goal: 'echo', capability: 'text.do', items: ['one', 'two', { n: 3 }] },
    context
  )
  await world.settle()
  const { status, results } = (await run) as { status: string; results: { item: string; result: unknown }[] }
  t.is(status, 'completed')
  t.alike(
    results.map(({ item, result }) => [item, result] as const).sort(([one], [other]) => one.localeCompare(other)),
    [
      ['item 3', { n: 3 }],
      ['one', { item: 'one' }],
      ['two', { item: 'two' }]
    ]
  )
  t.is(context.told.filter((line) => line.includes(': completed (')).length, 3)
})

test('a swarm of items is not begun with an input that no item would get', async (t: Assert) => {
  const { owner, tool } = await scene(t)
  const args = { goal: 'echo', capability: 'text.do', items: ['one'], input: { text: '{item}' } }
  const refused = (await tool('a2a_swarm')
    .handler(args, toolContext())
    .catch((error: unknown) => error)) as { code?: string }
  t.is(refused.code, 'INVALID_INPUT')
  t.alike((await owner.api().call('swarm.list', {})).swarms, [])
})

test('a swarm that its client gives up is canceled', async (t: Assert) => {
  const { world, owner, tool } = await scene(t)
  const context = toolContext()
  const run = tool('a2a_swarm').handler({ goal: 'wait', capability: 'slow.do' }, context)
  await world.settle()
  context.abort.abort()
  await world.settle()
  t.is(((await run) as { status: string }).status, 'canceled')
  t.is((await owner.api().call('swarm.list', {})).swarms[0]?.status, 'canceled')
})

test('arguments that do not fit are found before anything is asked', async (t: Assert) => {
  const { tool } = await scene(t)
  const wrong: readonly [string, object][] = [
    ['a2a_call', {}],
    ['a2a_call', { capability: '' }],
    ['a2a_call', { capability: 'a', timeoutSeconds: 0 }],
    ['a2a_call', { capability: 'a', unknown: 1 }],
    ['a2a_send', { agent: 'text', text: 1 }],
    ['a2a_task', { id: 1 }],
    ['a2a_swarm', { goal: 'g', capability: 'c', items: [] }],
    ['a2a_swarm', { goal: 'g', capability: 'c', items: [1] }],
    ['a2a_swarm', { goal: 'g', capability: 'c', strategy: 'plan' }]
  ]
  for (const [name, args] of wrong) t.ok(tool(name).validator(args).length > 0, `${name} ${JSON.stringify(args)}`)
})
