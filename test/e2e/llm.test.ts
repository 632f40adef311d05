import fs from 'node:fs'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import type { Reply } from '../../src/ports/node-api.js'
import { type LlmServer, llmServer, refusing, streaming } from '../support/llm/llm-server.js'
import { eventsOf } from '../support/facade-scene.js'
import { LLAMA_CPP, OLLAMA, VLLM } from '../support/llm/shapes.js'
import {
  type LocalMesh,
  localMesh,
  type LocalNode,
  type TestMesh,
  testMesh,
  until,
  untilAgent
} from '../support/nodes.js'

const AGENT = [
  '---',
  'name: thinker',
  'description: Answers by a language model.',
  'a2a:',
  '  capabilities:',
  '    - { id: think, description: Answer a question, input: { type: object }, sideEffect: read }',
  '  runtime: { type: llm, model: local/tiny, tools: [text.*, "far.*"], maxTurns: 4 }',
  '---',
  'You answer in one line.',
  ''
].join('\n')

/** A home with the agent, and a provider at that address. */
async function homeOf(mesh: LocalMesh, server: LlmServer, agent = AGENT): Promise<string> {
  const home = await mesh.dir()
  fs.mkdirSync(path.join(home, 'agents'), { recursive: true })
  fs.writeFileSync(path.join(home, 'agents', 'thinker.md'), agent)
  fs.writeFileSync(
    path.join(home, 'config.yaml'),
    ['llm:', '  providers:', '    local:', `      url: ${server.url}`, '      apiKey: env:TEST_LLM_KEY', ''].join('\n')
  )
  return home
}

async function thinking(mesh: LocalMesh, server: LlmServer, agent = AGENT): Promise<LocalNode> {
  const node = await mesh.start('a', { home: await homeOf(mesh, server, agent), env: { TEST_LLM_KEY: 'sk-e2e' } })
  await untilAgent(node, 'thinker@a')
  return node
}

test('an agent of a language model is called from the command line, uses a tool of the mesh and answers', async (t: Assert) => {
  const call = { name: 'text__stats', pieces: ['{"te', 'xt":"one two"}'] }
  const server = await llmServer(
    t,
    streaming([...LLAMA_CPP.calls([call]), LLAMA_CPP.usage(9, 3)]),
    streaming([...LLAMA_CPP.text(['Two ', 'words.']), LLAMA_CPP.usage(19, 4)])
  )
  const node = await thinking(await localMesh(t), server)
  const reply = await node.json<Reply>(['call', 'thinker', 'think', '{"prompt":"How many words?"}'])
  t.alike([reply.outcome, reply.payload], ['COMPLETED', 'Two words.'])
  const [first, second] = server.seen
  t.is(first.headers.authorization, 'Bearer sk-e2e')
  t.is(first.body.model, 'tiny')
  t.alike(first.body.messages, [
    { role: 'system', content: 'You answer in one line.' },
    { role: 'user', content: 'How many words?' }
  ])
  const names = first.body.tools?.map((one) => one.function.name) ?? []
  t.ok(names.includes('text__stats') && names.every((name) => name.startsWith('text__')), names.join())
  t.is((JSON.parse(String(second.body.messages.at(-1)?.content)) as { words: number }).words, 2)
  const plain = await node.cli(['send', 'thinker', 'And now?'])
  t.alike([plain.code, plain.stdout.trim()], [0, 'Two words.'])
  t.is(server.seen[2].body.messages.at(-1)?.content, 'And now?')
  t.absent((await node.cli(['config', 'show'])).stdout.includes('sk-e2e'))
})

test('clients of the gateway read what a model says while it comes, as text', async (t: Assert) => {
  const mesh = await localMesh(t)
  const server = await llmServer(t, streaming(LLAMA_CPP.text(['One ', 'line.'])))
  const node = await mesh.start('a', {
    home: await homeOf(mesh, server),
    env: { TEST_LLM_KEY: 'sk-e2e' },
    args: ['--http', '0']
  })
  await untilAgent(node, 'thinker@a')
  const { token } = await node.json<{ token: string }>(['a2a', 'token', 'create', '--tier', 'L0'])
  const read = async (place: string, json: object): Promise<string> => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    return await (
      await fetch(`${node.info.http}/agents/thinker/${place}`, { method: 'POST', headers, body: JSON.stringify(json) })
    ).text()
  }
  const told = eventsOf(await read('stream', { prompt: 'Well?' }))
  const tokens = told.flatMap(({ event, data }) =>
    event === 'state' && typeof data['token'] === 'string' ? [data['token']] : []
  )
  t.alike([tokens.join(''), told.at(-1)?.data['content']], ['One line.', 'One line.'])
  const run = {
    threadId: 't',
    runId: 'r',
    messages: [{ id: 'm', role: 'user', content: 'Well?' }],
    tools: [],
    context: [],
    state: {}
  }
  const deltas = (await read('agui', run))
    .split('\n')
    .filter((line) => line.startsWith('data: '))
    .map((line) => (JSON.parse(line.slice('data: '.length)) as { delta?: string }).delta ?? '')
  t.is(deltas.join(''), 'One line.', 'and once')
})

test('an agent of another node is a tool too: its node decides on the agent that asks, and its people may be asked', async (t: Assert) => {
  const mesh = await localMesh(t)
  const server = await llmServer(
    t,
    streaming(VLLM.calls([{ name: 'text_at_b__stats', pieces: ['{"text":"a b c"}'] }])),
    streaming(VLLM.text(['Three.']))
  )
  const a = await thinking(mesh, server, AGENT.replace('[text.*, "far.*"]', '["text@b.*"]'))
  const { code } = await a.api.call('invite.create', { trust: 'mine' })
  const home = await mesh.dir()
  fs.writeFileSync(path.join(home, 'policy.yaml'), 'rules:\n  - { from: { agent: thinker }, decision: ask }\n')
  const b = await mesh.start('b', { join: code, home })
  await untilAgent(a, 'text@b')
  await untilAgent(b, 'thinker@a')
  const replying = a.json<Reply>(['call', 'thinker', 'think', '{"text":"Count."}'])
  const { approvals } = await until(b.api, 'approvals.list', {}, (now) => now.approvals.length > 0)
  t.alike([approvals[0].from, approvals[0].to], ['thinker@a', 'text@b'])
  await b.api.call('approvals.allow', { id: approvals[0].id })
  t.is((await replying).payload, 'Three.')
  t.is((JSON.parse(String(server.seen[1].body.messages.at(-1)?.content)) as { words: number }).words, 3)
})

test('a provider that cannot start is LLM_INIT_FAILED at the command line, with the next step', async (t: Assert) => {
  const server = await llmServer(t, refusing(OLLAMA.refusals.unknownModel))
  const node = await thinking(await localMesh(t), server)
  const failed = await node.cli(['call', 'thinker', 'think', '{"text":"hi"}', '--json'])
  t.is(failed.code, 1)
  const { error } = JSON.parse(failed.stdout || failed.stderr) as {
    error: { code: string; message: string; next: string[] }
  }
  t.is(error.code, 'LLM_INIT_FAILED')
  t.ok(
    error.message.includes('try pulling it first') && error.next.some((step) => step.includes('config path')),
    JSON.stringify(error)
  )
})

test('agents run asks the model of the config without a node and without tools', async (t: Assert) => {
  const mesh = await testMesh(t)
  const server = await llmServer(t, streaming(OLLAMA.text(['Yes.'])))
  const home = await homeOf(mesh, server)
  const file = path.join(home, 'agents', 'thinker.md')
  const run = (env: Record<string, string>): ReturnType<TestMesh['run']> =>
    mesh.run(['--home', home, 'agents', 'run', file, '{"text":"Well?"}'], { env })
  const good = await run({ TEST_LLM_KEY: 'sk-e2e' })
  t.alike([good.code, good.stdout.trim()], [0, 'Yes.'])
  t.absent(server.seen[0].body.tools)
  const keyless = await run({})
  t.is(keyless.code, 1)
  t.ok(
    keyless.stderr.includes('the variable TEST_LLM_KEY is not set') && keyless.stderr.includes('LLM_INIT_FAILED'),
    keyless.stderr
  )
})
