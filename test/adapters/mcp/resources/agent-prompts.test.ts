import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { AgentPrompts, renderPrompt } from '../../../../src/adapters/mcp/resources/agent-prompts.js'
import { failsWith } from '../../../support/fails.js'
import { echo } from '../../../support/fake-agents.js'
import { World } from '../../../support/fake-node.js'
import { holds } from '../../../support/holds.js'

const word = fc.stringMatching(/^[A-Za-z0-9_-]{1,12}$/)

test('Feature: a2a-mcp-protocols, Property 22: MCP prompt template substitution', async (t: Assert) => {
  const value = fc.string({ unit: fc.constantFrom('{', '}', 'a', '$', '&', ' ') })
  await holds(
    t,
    fc.property(
      fc.uniqueArray(word, { minLength: 1, maxLength: 8 }),
      fc.array(fc.nat(7), { maxLength: 30 }),
      fc.array(value, { minLength: 8, maxLength: 8 }),
      (names, order, values) => {
        const used = order.map((at) => at % names.length)
        const template = used.map((at) => `<{${names[at]}}>`).join('')
        const args = Object.fromEntries(names.map((name, at) => [name, values[at] ?? '']))
        const known = names.map((name) => ({ name, description: '', required: true }))
        const text = renderPrompt({ name: 'p', description: '', arguments: known, template }, args)
        return text === used.map((at) => `<${values[at] ?? ''}>`).join('')
      }
    ),
    200
  )
})

test('braces that are no argument stay, and an absent argument is reported or becomes empty', async (t: Assert) => {
  const prompt = {
    name: 'p',
    description: '',
    arguments: [
      { name: 'a', description: '', required: true },
      { name: 'b', description: '', required: false }
    ],
    template: '{a}{b}{c} {"a": {a}} {__proto__} {toString}'
  }
  t.is(renderPrompt(prompt, { a: '{b}' }), '{b}{c} {"a": {b}} {__proto__} {toString}')
  await failsWith(t, 'INVALID_INPUT', () => Promise.resolve().then(() => renderPrompt(prompt, { b: 'x' })))
})

test('prompts of agents of this node are offered under names that clients take', async (t: Assert) => {
  const world = new World(t)
  const prompts = [
    {
      name: 'greet',
      description: 'Greets.',
      arguments: [{ name: 'who', description: '', required: true }],
      template: 'Hello {who}'
    }
  ]
  const owner = await world.owner({ agents: [echo('text', { prompts }), echo('plain')] })
  const source = new AgentPrompts({ api: owner.api(), clock: world.clock })
  t.alike(await source.list(), [
    { name: 'text__greet', description: 'Greets.', arguments: [{ name: 'who', description: '', required: true }] }
  ])
  for (const name of ['text__greet', 'text.greet']) {
    const got = await source.get(name, { who: 'Ada' })
    t.alike(got?.messages, [{ role: 'user', content: { type: 'text', text: 'Hello Ada' } }])
  }
  t.is(await source.get('text__nothing', {}), undefined)
})

test('a client is notified of changed prompts of agents, and without listeners nothing is read', async (t: Assert) => {
  const world = new World(t)
  const prompt = { name: 'greet', description: 'Greets.', arguments: [], template: 'Hello' }
  const owner = await world.owner({ agents: [echo('text', { prompts: [prompt] })] })
  const source = new AgentPrompts({ api: owner.api(), clock: world.clock })
  let changes = 0
  const stops = [source.onChange(() => changes++), source.onChange(() => {})]
  await world.pass(3000)
  t.is(changes, 0)
  owner.source.set([echo('text', { prompts: [{ ...prompt, template: 'Good day' }] })])
  await world.pass(3000)
  t.is(changes, 1)
  for (const stop of stops) stop()
  owner.source.set([echo('text')])
  await world.pass(3000)
  t.is(changes, 1)
})
