import test, { type Assert } from 'brittle'
import { agentDefinition, FakeAgent } from '../../../support/fake-agents.js'
import { modern, type Scene, scene } from '../../../support/mcp-http-scene.js'

/** A command of the node, or an option of one. */
const COMMAND = /a2a-node [a-z]|(?<![\w-])--[a-z]/

test('answers over HTTP name no command or option: errors, tasks, swarms, resources and prompts', async (t: Assert) => {
  const bad = new FakeAgent(agentDefinition('bad', { concurrency: 4 }), () => ({
    ok: false,
    code: 'INVALID_OUTPUT',
    message: 'it made no JSON'
  }))
  const made = await scene(t, [bad])
  const tool = (name: string, args: Readonly<Record<string, unknown>>): Promise<string> =>
    answerOf(made, 'tools/call', { name, arguments: args })
  const queued = await tool('a2a_call', { agent: 'bad', capability: 'bad.do', input: {}, wait: false })
  await made.world.settle()
  const task = /task_\w+/.exec(queued)?.[0] ?? ''
  const started = await tool('a2a_swarm', { goal: 'x', capability: 'bad.do', items: ['a'], wait: false })
  const swarm = /swarm_\w+/.exec(started)?.[0] ?? ''
  await made.world.pass(60_000, 1000)
  const failures = {
    'a tool that fails': await tool('bad__do', {}),
    'a call that fails': await tool('a2a_call', { agent: 'bad', capability: 'bad.do', input: {} }),
    'no agent': await tool('a2a_call', { agent: 'nobody', capability: 'x', input: {} }),
    'no tool': await tool('nothing', {}),
    'no task': await tool('a2a_task', { id: 'task_aaaaaaaaaaaaaaaa' }),
    'arguments that do not fit': await tool('a2a_call', { capability: 7 }),
    'arguments that are too large': await tool('text__do', { text: 'x'.repeat(1_048_577) }),
    'a failed task': await tool('a2a_task', { id: task }),
    'a failed swarm': await tool('a2a_task', { id: swarm }),
    'a resource': await answerOf(made, 'resources/read', { uri: `a2a://swarms/${swarm}` }),
    'no prompt': await answerOf(made, 'prompts/get', { name: 'nothing' }),
    'no resource': await answerOf(made, 'resources/read', { uri: 'a2a://agents/nobody' })
  }
  for (const [title, text] of Object.entries(failures)) {
    t.absent(COMMAND.exec(text)?.[0], title)
    t.ok(/error|fail|"code\\*"|NOT_FOUND|no prompt|not found/i.test(text), `${title}: ${text.slice(0, 200)}`)
  }
  t.ok(/INVALID_OUTPUT/.test(failures['a failed task']) && /INVALID_OUTPUT/.test(failures['a failed swarm']))
  t.ok(/INVALID_OUTPUT/.test(failures['a resource']), 'errors within answers are read too')
})

let count = 0

async function answerOf({ send }: Scene, method: string, params: Readonly<Record<string, unknown>>): Promise<string> {
  return (await send('POST', ...modern(++count, method, params))).text
}
