import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { AgentCoordinator } from '../../../src/node/agents/agent-coordinator.js'
import { failsWith } from '../../support/fails.js'
import { holds } from '../../support/holds.js'

const message = (payload: unknown): { type: string; payload: unknown } => ({ type: 'do', payload })

test('the messages of one agent are handled one after the other, in the order they were sent', async (t) => {
  await holds(
    t,
    fc.asyncProperty(fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.nat({ max: 5 })), { maxLength: 30 }), async (script) => {
      const coordinator = new AgentCoordinator()
      const begun = new Map<string, number[]>()
      for (const id of ['a', 'b', 'c']) {
        let isBusy = false
        coordinator.registerAgent(id, async ({ payload }, { agentId, state }) => {
          assert.equal(isBusy, false, 'never two at once')
          isBusy = true
          const { index, turns } = payload as { index: number; turns: number }
          begun.set(agentId, [...(begun.get(agentId) ?? []), index])
          const count = (state.get('count') ?? 0) as number
          for (let i = 0; i < turns; i++) await Promise.resolve()
          state.set('count', count + 1)
          isBusy = false
          return index
        })
      }
      const answers = await Promise.all(script.map(([id, turns], index) => coordinator.sendMessage(id, message({ index, turns }))))
      assert.deepEqual(answers, [...script.keys()])
      for (const id of ['a', 'b', 'c']) {
        const sent = [...script.keys()].filter((index) => script[index][0] === id)
        assert.deepEqual(begun.get(id) ?? [], sent, 'in the order they were sent')
        assert.equal(coordinator.getAgentState(id)?.get('count') ?? 0, sent.length, 'no update is lost')
      }
    })
  )
})

test('an agent that is busy holds up no other', async (t) => {
  const coordinator = new AgentCoordinator()
  let go = (): void => {}
  coordinator.registerAgent('slow', () => new Promise<void>((resolve) => (go = resolve)))
  coordinator.registerAgent('quick', () => 'done')
  const slow = coordinator.sendMessage('slow', message(1))
  t.is(await coordinator.sendMessage('quick', message(2)), 'done')
  go()
  await slow
})

test('what changes a state is told, once a message, with a copy', async (t) => {
  const told: [string, unknown][] = []
  const coordinator = new AgentCoordinator({
    onStateChange: (id, state) => {
      told.push([id, Object.fromEntries(state)])
      state.set('n', 99)
    }
  })
  coordinator.registerAgent('a', ({ payload }, { state }) => {
    if (payload !== null) state.set('n', payload).set('twice', payload)
    return payload
  })
  for (const payload of [1, null, 2]) await coordinator.sendMessage('a', message(payload))
  t.alike(told, [
    ['a', { n: 1, twice: 1 }],
    ['a', { n: 2, twice: 2 }]
  ])
  coordinator.getAgentState('a')?.set('n', 99)
  t.is(coordinator.getAgentState('a')?.get('n'), 2)
})

test('a handler that fails leaves the state as it was, and its agent goes on', async (t) => {
  const told: string[] = []
  const coordinator = new AgentCoordinator({ maxStateBytes: 20, onStateChange: (id) => told.push(id) })
  coordinator.registerAgent('a', async ({ payload }, { state }) => {
    state.set('half', true)
    await Promise.resolve()
    state.set('k', payload)
    return 'kept'
  })
  await failsWith(t, 'PAYLOAD_TOO_LARGE', () => coordinator.sendMessage('a', message('x'.repeat(100))))
  t.is(coordinator.getAgentState('a')?.size, 0)
  t.alike(told, [])
  t.is(await coordinator.sendMessage('a', message(1)), 'kept')
  t.alike(told, ['a'])
})

test('an agent is registered once; a removed one takes nothing, and what waited for it fails', async (t) => {
  const lines: string[] = []
  const coordinator = new AgentCoordinator({ logger: { log: (_level, text) => lines.push(text) } })
  let go = (): void => {}
  coordinator.registerAgent('a', (_message, { logger }) => {
    logger.log('info', 'begun')
    return new Promise<string>((resolve) => {
      go = () => resolve('done')
    })
  })
  await failsWith(t, 'USAGE', () => coordinator.registerAgent('a', () => 1))
  await failsWith(t, 'USAGE', () => coordinator.registerAgent('', () => 1))
  await failsWith(t, 'AGENT_NOT_FOUND', () => coordinator.sendMessage('b', message(1)))
  const running = coordinator.sendMessage('a', message(1))
  const waiting = failsWith(t, 'AGENT_NOT_FOUND', () => coordinator.sendMessage('a', message(2)))
  await Promise.resolve()
  t.is(coordinator.unregisterAgent('a'), true)
  t.is(coordinator.unregisterAgent('a'), false)
  await waiting
  go()
  t.is(await running, 'done')
  t.is(coordinator.getAgentState('a'), undefined)
  t.alike(lines, ['begun'])
})
