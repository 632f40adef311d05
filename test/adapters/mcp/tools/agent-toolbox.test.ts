import test, { type Assert } from 'brittle'
import { type AgentToolboxDeps, openToolbox } from '../../../../src/adapters/mcp/tools/agent-toolbox.js'
import { createSchemaCompiler } from '../../../../src/adapters/agents/schemas/compile-schema.js'
import { A2AObservability } from '../../../../src/node/observe/observability.js'
import type { Tier } from '../../../../src/domain/routing/tier.js'
import type { AgentToolbox, AgentToolChoice } from '../../../../src/ports/agent-tools.js'
import { failsWith } from '../../../support/fails.js'
import { agentDefinition, capability, echo, FakeAgent } from '../../../support/fake-agents.js'
import { type FakeNode, World } from '../../../support/fake-node.js'

const NEVER = new AbortController().signal

/** The toolbox of an agent of a node, as the node makes it. */
async function toolboxOf(
  node: FakeNode,
  world: World,
  choice: Partial<AgentToolChoice> & { readonly tier?: Tier; readonly onCall?: AgentToolboxDeps['onCall'] } = {}
): Promise<AgentToolbox> {
  const { tier = 0, globs = ['*'], max = 64, onCall = () => {} } = choice
  const api = node.api({ kind: 'agent', name: 'agent helper', agentId: 'helper', tier, scopes: ['read', 'send'] })
  const parts = {
    onCall,
    api,
    agentId: 'helper',
    clock: world.clock,
    compileSchema: createSchemaCompiler(),
    toJson: (value: unknown) => value
  }
  return await openToolbox(parts, { globs, max, timeoutMs: 60_000 }, NEVER)
}

/** An owner with the agent `helper` of a tier, `strong` of L0 and `weak` of L2, and a member with `far`. */
async function scene(
  t: Assert,
  tier: Tier = 0
): Promise<{ world: World; owner: FakeNode; peer: FakeNode; strong: FakeAgent; far: FakeAgent }> {
  const world = new World(t)
  const inputSchema = { type: 'object', required: ['n'], properties: { n: { type: 'number' } } }
  const strong = echo('strong', {
    tier: 0,
    capabilities: [
      capability('strong.do', { inputSchema }),
      capability('strong.list', { inputSchema: { type: 'array' } })
    ]
  })
  const far = echo('far')
  const owner = await world.owner({ agents: [echo('helper', { tier }), strong, echo('weak', { tier: 2 })] })
  const peer = await world.member('gpu-box', { agents: [far] })
  await world.link(owner, peer)
  return { world, owner, peer, strong, far }
}

function names({ tools }: AgentToolbox): string[] {
  return tools.map(({ name }) => name).sort()
}

test('an agent is offered what its globs fit, by capability or by tool, never itself, and no more than it may have', async (t: Assert) => {
  const { world, owner } = await scene(t)
  t.alike(names(await toolboxOf(owner, world)), ['far_at_gpu-box__do', 'strong__do', 'strong__list', 'weak__do'])
  t.alike(names(await toolboxOf(owner, world, { globs: ['strong.*'] })), ['strong__do', 'strong__list'])
  t.alike(names(await toolboxOf(owner, world, { globs: ['*@gpu-box.*', 'weak.do'] })), [
    'far_at_gpu-box__do',
    'weak__do'
  ])
  t.alike(names(await toolboxOf(owner, world, { globs: ['nothing'] })), [])
  const few = await toolboxOf(owner, world, { max: 3 })
  t.alike([few.tools.length, few.left], [3, 1])
})

test('an agent is offered only the tools that its own tier may use, for any rights of its node', async (t: Assert) => {
  const { world, owner } = await scene(t, 2)
  t.alike(names(await toolboxOf(owner, world, { tier: 2 })), ['weak__do'])
})

test('a tool is called in the name of the agent, and a call beyond its own tier is refused', async (t: Assert) => {
  const { world, owner, strong, far } = await scene(t)
  const toolbox = await toolboxOf(owner, world)
  t.alike(await toolbox.call('strong__do', { n: 1 }, NEVER), { n: 1 })
  t.alike(await toolbox.call('strong__list', { input: [1] }, NEVER), [1])
  const answer = toolbox.call('far_at_gpu-box__do', { n: 2 }, NEVER)
  await world.settle()
  t.alike(await answer, { n: 2 })
  t.alike([strong.tasks.length, far.tasks.length], [2, 1])
  // Its card says L0, but who calls is weaker: the weaker counts.
  const weaker = await toolboxOf(owner, world, { tier: 2 })
  await failsWith(t, 'ESCALATION_REQUIRED', () => weaker.call('strong__do', { n: 1 }, NEVER))
  const senders = owner.audit.all.flatMap(({ code, sender }) => (code === 'ESCALATION_REQUIRED' ? [sender] : []))
  t.alike(senders, [`helper@${owner.id}`], 'the caller is on record by its name')
})

test('arguments that do not fit and tools that are not offered are refused before anybody is asked', async (t: Assert) => {
  const { world, owner, strong } = await scene(t)
  const toolbox = await toolboxOf(owner, world, { globs: ['strong.*'] })
  await failsWith(t, 'INVALID_INPUT', () => toolbox.call('strong__do', { n: 'one' }, NEVER))
  await failsWith(t, 'INVALID_INPUT', () => toolbox.call('strong__do', [1], NEVER))
  for (const name of ['weak__do', '__proto__', '', 'helper__do'])
    await failsWith(t, 'CAPABILITY_NOT_FOUND', () => toolbox.call(name, {}, NEVER))
  t.is(strong.tasks.length, 0)
})

test('each call of a tool is counted as one, with its names, its time and the code of its error', async (t: Assert) => {
  const { world, owner } = await scene(t)
  const counted = new A2AObservability()
  const toolbox = await toolboxOf(owner, world, { onCall: (call) => counted.emit(call) })
  await toolbox.call('strong__do', { n: 1 }, NEVER)
  await failsWith(t, 'INVALID_INPUT', () => toolbox.call('strong__do', {}, NEVER))
  const answer = toolbox.call('far_at_gpu-box__do', { n: 2 }, NEVER)
  world.clock.advance(40)
  await world.settle()
  await answer
  await failsWith(t, 'CAPABILITY_NOT_FOUND', () => toolbox.call('rm', {}, NEVER))
  const weaker = await toolboxOf(owner, world, { tier: 2, onCall: (call) => counted.emit(call) })
  await failsWith(t, 'ESCALATION_REQUIRED', () => weaker.call('strong__do', { n: 1 }, NEVER))
  const { tools, totalToolInvocations, toolErrorCount } = counted.getMetrics()
  t.alike([totalToolInvocations, toolErrorCount], [5, 3])
  t.alike(
    tools.map(({ tool, invocations, errors, timed }) => [tool, invocations, errors, timed]),
    [
      ['strong.do', 3, 2, 3],
      ['far@gpu-box.do', 1, 0, 1],
      ['unknown', 1, 1, 1]
    ]
  )
  t.ok((tools[1]?.totalDurationMs ?? 0) >= 40)
  t.alike(
    counted.getRecentEvents().map(({ publishedName = null, code = null }) => [publishedName, code]),
    [
      ['strong__do', null],
      ['strong__do', 'INVALID_INPUT'],
      ['far_at_gpu-box__do', null],
      [null, 'CAPABILITY_NOT_FOUND'],
      ['strong__do', 'ESCALATION_REQUIRED']
    ]
  )
})

test('an abort cancels the call at the agent that has it', async (t: Assert) => {
  const world = new World(t)
  const slow = new FakeAgent(agentDefinition('slow'))
  const owner = await world.owner({ agents: [echo('helper'), slow] })
  const stop = new AbortController()
  const answer = (await toolboxOf(owner, world)).call('slow__do', {}, stop.signal)
  await world.settle()
  t.is(slow.open.length, 1)
  stop.abort()
  await failsWith(t, 'CANCELED', () => answer)
  await world.settle()
  t.is(slow.open.length, 0)
})
