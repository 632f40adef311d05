import test from 'brittle'
import { createSchemaCompiler } from '../../src/adapters/agents/schemas/compile-schema.js'
import { NodeError } from '../../src/kit/errors.js'
import type { Principal } from '../../src/ports/node-api.js'
import { AgentApis, openLlm, toolsOfMesh } from '../../src/compose/open-llm.js'
import { echo } from '../support/fake-agents.js'
import { World } from '../support/fake-node.js'
import { failsWith } from '../support/fails.js'
import { ManualClock } from '../support/manual-clock.js'

const LOCAL = {
  url: 'http://127.0.0.1:1/v1',
  model: null,
  apiKey: 'env:KEY',
  headers: { 'x-team': 'env:TEAM', 'x-b': 'c' },
  stallTimeoutMs: 1
}

test('a provider is read with its secrets from the environment; an unset variable is reported by name', async (t) => {
  const clock = new ManualClock()
  const llm = openLlm({ providers: () => ({ local: LOCAL }), env: { KEY: 'sk-1', TEAM: 'a' }, clock, tools: null })
  t.alike(await llm.provider('local'), { ...LOCAL, apiKey: 'sk-1', headers: { 'x-team': 'a', 'x-b': 'c' } })
  for (const name of ['other', '__proto__', 'constructor', '']) t.is(await llm.provider(name), null)
  const bare = openLlm({ providers: () => ({ local: LOCAL }), env: { KEY: 'sk-1' }, clock, tools: null })
  const error = await failsWith(t, 'CONFIG_INVALID', () => bare.provider('local'))
  t.ok(error.message.includes('llm.providers.local: x-team: the variable TEAM'), error.message)
})

test('an agent that asks before its node is up waits, and is then as powerful as its own card', async (t) => {
  const world = new World(t)
  const owner = await world.owner({
    agents: [echo('helper', { tier: 2 }), echo('strong', { tier: 0 }), echo('weak', { tier: 2 })]
  })
  const apis = new AgentApis()
  const tools = toolsOfMesh(apis, { clock: world.clock, compileSchema: createSchemaCompiler() })
  const choice = { globs: ['*'], max: 9, timeoutMs: 1000 }
  const opening = tools.open('helper', choice, new AbortController().signal)
  const principals: Principal[] = []
  const apiFor = (principal: Principal): ReturnType<typeof owner.api> => {
    principals.push(principal)
    return owner.api(principal)
  }
  apis.serve(owner.core, { apiFor })
  t.alike(
    (await opening).tools.map(({ name }) => name),
    ['weak__do']
  )
  t.alike(principals, [
    { kind: 'agent', name: 'agent helper', agentId: 'helper', tier: 2, sandboxId: null, scopes: ['read', 'send'] }
  ])
  await (await opening).call('weak__do', {}, new AbortController().signal)
  t.alike(
    owner.core.observability.getMetrics().toolInvocationsByTool,
    { 'weak.do': 1 },
    'its calls of tools are counted by the node'
  )
  await failsWith(t, 'AGENT_NOT_FOUND', () => tools.open('nobody', choice, new AbortController().signal))
})

test('an agent that waits for a node that never comes up is let go when its task is canceled', async (t) => {
  const stop = new AbortController()
  const waiting = new AgentApis().of('helper', stop.signal).catch((error: unknown) => error)
  stop.abort()
  const error = await waiting
  t.is(error instanceof NodeError && error.code, 'CANCELED')
})
