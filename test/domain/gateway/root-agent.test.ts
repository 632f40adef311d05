import test from 'brittle'
import { rootAgent } from '../../../src/domain/gateway/root-agent.js'

type Definition = Parameters<typeof rootAgent>[1][number]

const agent = (id: string, tags: readonly string[] = [], more: Partial<Definition> = {}): Definition => ({
  id,
  runtime: 'command',
  capabilities: [{ tags }],
  ...more
})
const starter = agent('text', ['general'], { runtime: 'starter' })
const reserved = agent('a2a', [], { isReserved: true })

test('messages to the node go to the configured agent, else to the only one besides the starters, else to the only general one', (t) => {
  const [one, two, three] = [agent('one'), agent('two', ['general']), agent('three', ['x', 'general'])]
  for (const [configured, agents, expected] of [
    [null, [], null],
    [null, [starter, reserved], null],
    [null, [starter, one, reserved], 'one'],
    [null, [starter, one, two], 'two'],
    [null, [one, agent('four')], null],
    [null, [one, two, three], null],
    ['far@b', [one], 'far@b'],
    ['text', [starter, one], 'text']
  ] as const)
    t.is(rootAgent(configured, agents), expected, `${configured ?? 'none'} of ${agents.map(({ id }) => id).join()}`)
})
