import assert from 'node:assert/strict'
import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import type { NodeSettings } from '../../../src/node/dependencies.js'
import type { AgentCoordinator, AgentMessage } from '../../../src/node/sdk/agent-coordinator.js'
import { createLayer } from '../../../src/node/sdk/layer.js'
import { failsWith } from '../../support/fails.js'
import { type FakeNode, World } from '../../support/fake-node.js'
import { holds } from '../../support/holds.js'

const message = (payload: unknown): AgentMessage => ({ type: 'do', payload })

async function scene(
  t: Assert,
  settings: Partial<NodeSettings> = {}
): Promise<{ readonly world: World; readonly node: FakeNode; readonly agents: AgentCoordinator }> {
  const world = new World(t)
  const node = await world.owner({ settings })
  return { world, node, agents: createLayer(node.core).agents }
}

test('messages of programs and of API callers reach an agent one after the other, and its state stays consistent', async (t) => {
  const { world, node, agents } = await scene(t)
  const api = node.api()
  const script = fc.array(
    fc.record({
      id: fc.constantFrom('a', 'b', 'c'),
      turns: fc.nat({ max: 5 }),
      isCall: fc.boolean(),
      fails: fc.boolean()
    }),
    {
      maxLength: 20
    }
  )
  const property = fc.asyncProperty(script, async (messages) => {
    const begun = new Map<string, number[]>()
    let overlaps = 0
    for (const id of ['a', 'b', 'c']) {
      let isBusy = false
      await agents.registerAgent(id, async ({ payload }, { agentId, state }) => {
        if (isBusy) overlaps++
        isBusy = true
        const { index, turns, fails } = payload as { index: number; turns: number; fails: boolean }
        begun.set(agentId, [...(begun.get(agentId) ?? []), index])
        const count = (state.get('count') ?? 0) as number
        for (let i = 0; i < turns; i++) await Promise.resolve()
        state.set('count', count + 1)
        isBusy = false
        if (fails) throw new Error('it will not')
        return index
      })
    }
    const sent = messages.map(async ({ id, turns, isCall, fails }, index) => {
      const body = message({ index, turns, fails })
      if (!isCall) return await agents.sendMessage(id, body).catch((error: unknown) => (error as { code: string }).code)
      const reply = await api.call('message.call', { agent: id, capability: `${id}.message`, input: body })
      return reply.outcome === 'COMPLETED' ? reply.payload : reply.error?.code
    })
    await world.settle()
    const answers = await Promise.all(sent)
    const states = new Map(['a', 'b', 'c'].map((id) => [id, agents.getAgentState(id)?.get('count') ?? 0]))
    for (const id of ['a', 'b', 'c']) assert.equal(await agents.unregisterAgent(id), true)
    assert.equal(overlaps, 0, 'never two at once')
    assert.deepEqual(
      answers,
      messages.map(({ fails }, index) => (fails ? 'TASK_FAILED' : index))
    )
    for (const id of ['a', 'b', 'c']) {
      const own = [...messages.keys()].filter((index) => messages[index].id === id)
      assert.deepEqual(
        [...(begun.get(id) ?? [])].sort((a, b) => a - b),
        own,
        'each once'
      )
      const ofPrograms = (begun.get(id) ?? []).filter((index) => !messages[index].isCall)
      assert.deepEqual(
        ofPrograms,
        [...ofPrograms].sort((a, b) => a - b),
        'in the order they were sent'
      )
      assert.equal(
        states.get(id),
        own.filter((index) => !messages[index].fails).length,
        'no update is lost, and none of a failure is kept'
      )
    }
  })
  await holds(t, property, 100)
})

test('an agent that is busy holds up no other', async (t) => {
  const { agents } = await scene(t)
  let go = (): void => {}
  await agents.registerAgent('slow', () => new Promise<void>((resolve) => (go = resolve)))
  await agents.registerAgent('quick', () => 'done')
  const slow = agents.sendMessage('slow', message(1))
  t.is(await agents.sendMessage('quick', message(2)), 'done')
  go()
  t.is(await slow, null)
})

test('a listener gets each change of a state, once a message, with a copy', async (t) => {
  const { agents, node } = await scene(t)
  const told: [string, unknown][] = []
  const stop = agents.onStateChange((id, state) => {
    told.push([id, Object.fromEntries(state)])
    state.set('n', 99)
    throw new Error('a bad listener')
  })
  await agents.registerAgent('a', ({ payload }, { state }) => {
    if (payload !== null) state.set('n', payload).set('twice', payload)
    return payload
  })
  for (const payload of [1, null, 2]) t.is(await agents.sendMessage('a', message(payload)), payload)
  t.alike(told, [
    ['a', { n: 1, twice: 1 }],
    ['a', { n: 2, twice: 2 }]
  ])
  t.is(node.lines.filter((line) => line.includes('a listener of agent states failed')).length, 2)
  agents.getAgentState('a')?.set('n', 99)
  t.is(agents.getAgentState('a')?.get('n'), 2)
  stop()
  await agents.sendMessage('a', message(3))
  t.is(told.length, 2)
})

test('the state of an agent has the bound of the settings, and a handler that exceeds it leaves the state as it was', async (t) => {
  const { agents } = await scene(t, { maxStateBytes: 20 })
  await agents.registerAgent('a', async ({ payload }, { state }) => {
    state.set('half', true)
    await Promise.resolve()
    state.set('k', payload)
    return 'kept'
  })
  const error = await failsWith(t, 'TASK_FAILED', () => agents.sendMessage('a', message('x'.repeat(100))))
  t.ok(error.message.includes('at most 20 are allowed'), error.message)
  t.is(agents.getAgentState('a')?.size, 0)
  t.is(await agents.sendMessage('a', message(1)), 'kept')
  t.alike(
    agents.getAgentState('a'),
    new Map<string, unknown>([
      ['half', true],
      ['k', 1]
    ])
  )
})

test('a handler whose answer has no form as JSON fails: its changes of the state are undone, and no listener gets them', async (t) => {
  const { agents } = await scene(t)
  let changes = 0
  agents.onStateChange(() => void changes++)
  const answers: readonly unknown[] = [
    () => 1,
    1n,
    {
      get x(): never {
        throw new Error('no value')
      }
    }
  ]
  await agents.registerAgent('a', ({ payload }, { state }) => {
    state.set('k', payload)
    return answers[payload as number]
  })
  for (const at of answers.keys()) await failsWith(t, 'INVALID_OUTPUT', () => agents.sendMessage('a', message(at)))
  t.alike([agents.getAgentState('a')?.size, changes], [0, 0])
  t.is(await agents.sendMessage('a', message(answers.length)), null, 'no answer is an answer')
  t.alike([agents.getAgentState('a')?.get('k'), changes], [answers.length, 1])
})

test('an agent that waits for an answer of its own gets a TIMEOUT, and goes on', async (t) => {
  const { world, agents } = await scene(t)
  await agents.registerAgent('a', async ({ payload }) =>
    payload === 0 ? 'end' : await agents.sendMessage('a', message(0))
  )
  const outer = failsWith(t, 'TIMEOUT', () => agents.sendMessage('a', message(1)))
  await world.pass(120_000, 1000)
  await outer
  t.is(await agents.sendMessage('a', message(0)), 'end')
})

test('an agent is registered once; a removed one takes nothing, and messages that waited for it fail', async (t) => {
  const { world, agents, node } = await scene(t)
  let go = (): void => {}
  const handler = (): Promise<string> => new Promise((resolve) => (go = () => resolve('done')))
  await agents.registerAgent('a', handler)
  await failsWith(t, 'USAGE', () => agents.registerAgent('a', () => 1))
  await failsWith(t, 'INVALID_CARD', () => agents.registerAgent('', () => 1))
  await failsWith(t, 'AGENT_NOT_FOUND', () => agents.sendMessage('b', message(1)))
  const running = agents.sendMessage('a', message(1))
  const waiting = failsWith(t, 'AGENT_NOT_FOUND', () => agents.sendMessage('a', message(2)))
  await world.settle()
  t.alike(node.core.agents.load('a'), { running: 1, waiting: 1, slots: 1 }, 'the queue is the one of the node')
  t.is(await agents.unregisterAgent('a'), true)
  t.is(await agents.unregisterAgent('a'), false)
  await waiting
  go()
  t.is(await running, 'done')
  t.is(agents.getAgentState('a'), undefined)
})

test('a message of an agent is decided as its own, and one of another form is its payload', async (t) => {
  const { node, agents } = await scene(t)
  const given: AgentMessage[] = []
  await agents.registerAgent('target', (one) => void given.push(one), { tier: 1 })
  await agents.registerAgent('weak', () => null, { tier: 3 })
  await failsWith(t, 'ESCALATION_REQUIRED', () =>
    agents.sendMessage('target', { ...message(1), sourceAgentId: 'weak' })
  )
  await agents.sendMessage('target', { ...message(2), sourceAgentId: 'target' })
  await node.api().call('message.send', { agent: 'target', text: 'hello' })
  await node
    .api()
    .call('message.call', { agent: 'target', capability: 'target.message', input: { type: 7, payload: 3 } })
  t.alike(given, [
    { type: 'do', payload: 2, sourceAgentId: 'target' },
    { type: 'message', payload: { text: 'hello' } },
    { type: 'message', payload: { type: 7, payload: 3 } }
  ])
})

test('a program on another node sends to an agent as to one of its own', async (t) => {
  const world = new World(t)
  const nodes = [await world.owner(), await world.member('b', { terms: { tier: 0 } })]
  await world.link(...nodes)
  const [here, there] = nodes.map(({ core }) => createLayer(core).agents)
  await there.registerAgent('counter', (_message, { state }) => {
    const count = ((state.get('n') ?? 0) as number) + 1
    state.set('n', count)
    return count
  })
  await world.settle()
  const sent = [1, 2, 3].map(() => here.sendMessage(`counter@${nodes[1].id}`, message(null)))
  await world.pass(1000, 100)
  t.alike(await Promise.all(sent), [1, 2, 3])
  t.is(here.getAgentState('counter'), undefined, 'its state stays where it is')
})
