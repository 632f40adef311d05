import test, { type Assert } from 'brittle'
import { type Client, ProtocolError } from '@modelcontextprotocol/client'
import { inputRequired } from '@modelcontextprotocol/server'
import { askClient, type ClientRequest } from '../../../../src/adapters/mcp/tools/client-ask.js'
import type { PromptSource } from '../../../../src/adapters/mcp/resources/prompt-source.js'
import { STATE_TTL_MS } from '../../../../src/adapters/mcp/http/request-states.js'
import type { ToolHandler } from '../../../../src/adapters/mcp/server/tool.js'
import { ANYTHING, call, CLAIM, McpScene, payloadOf, request } from '../../../support/mcp.js'

const ALL = { elicitation: {}, sampling: {}, roots: {} }
const NAME = form('Your name?')
const ROOTS: ClientRequest = { method: 'roots/list', params: {} }
const JOKE: ClientRequest = {
  method: 'sampling/createMessage',
  params: { messages: [{ role: 'user', content: { type: 'text', text: 'a joke' } }], maxTokens: 10 }
}

function form(message: string): ClientRequest {
  const requestedSchema = {
    type: 'object' as const,
    properties: { name: { type: 'string' as const } },
    required: ['name']
  }
  return { method: 'elicitation/create', params: { message, requestedSchema } }
}

/** Asks for a name, then for a joke and folders; what was said first is kept by the client. */
const greet: ToolHandler = (args, { client }) => {
  const kept = client.state as { readonly name: string } | undefined
  const said = client.answer('name')
  if (kept === undefined && said?.kind !== 'elicit') return Promise.resolve(askClient({ name: NAME }))
  if (kept === undefined) return Promise.resolve(askClient({ joke: JOKE, roots: ROOTS }, { name: nameOf(said) }))
  const [joke, roots] = [client.answer('joke'), client.answer('roots')]
  if (joke?.kind !== 'sampling' || roots?.kind !== 'roots') return Promise.reject(new Error('nothing was said'))
  return Promise.resolve({ args, name: kept.name, joke: joke.result.content, roots: roots.roots.length })
}

function nameOf(said: unknown): unknown {
  return (said as { readonly content?: Readonly<Record<string, unknown>> } | undefined)?.content?.['name']
}

/** A client that answers everything, and how often it was asked. */
async function talkative(
  t: Assert,
  scene: McpScene,
  mode: 'auto' | 'legacy'
): Promise<{ readonly client: Client; readonly asked: string[] }> {
  const client = await scene.client(t, mode, ALL)
  const asked: string[] = []
  client.setRequestHandler('elicitation/create', ({ params }) => {
    asked.push(params.message)
    return { action: 'accept', content: { name: 'Ada' } }
  })
  client.setRequestHandler('sampling/createMessage', () => {
    asked.push('joke')
    return { role: 'assistant', model: 'm', content: { type: 'text', text: 'ha' } }
  })
  client.setRequestHandler('roots/list', () => {
    asked.push('roots')
    return { roots: [{ uri: 'file:///a' }] }
  })
  return { client, asked }
}

for (const mode of ['legacy', 'auto'] as const) {
  test(`a tool asks its client in rounds, and keeps what it needs between them (${mode})`, async (t: Assert) => {
    const scene = new McpScene({ maxConcurrentExecutions: 1 })
    scene.tool('greet', greet)
    const { client, asked } = await talkative(t, scene, mode)
    const answer = await client.callTool({ name: 'greet', arguments: { a: 1 } })
    t.alike(payloadOf({ result: answer }), {
      args: { a: 1 },
      name: 'Ada',
      joke: { type: 'text', text: 'ha' },
      roots: 1
    })
    t.alike(asked, ['Your name?', 'joke', 'roots'])
    t.alike(
      (await scene.recorded(3)).map(({ outcome, runId }) => [outcome, runId]),
      [1, 2, 3].map((count) => ['success', `run-${count}`])
    )
    t.is(scene.limits.getTelemetry().concurrentExecutions, 0)
  })

  test(`a prompt asks its client too (${mode})`, async (t: Assert) => {
    const prompts: PromptSource = {
      list: () => [{ name: 'hello' }],
      get: (_name, _args, { client }) => {
        const said = client.answer('name')
        if (said === undefined) return Promise.resolve(askClient({ name: NAME }))
        return Promise.resolve({
          messages: [{ role: 'user', content: { type: 'text', text: `hello ${String(nameOf(said))}` } }]
        })
      }
    }
    const { client } = await talkative(t, new McpScene({ prompts }), mode)
    const { messages } = await client.getPrompt({ name: 'hello' })
    t.alike(messages[0].content, { type: 'text', text: 'hello Ada' })
  })

  test(`a handler knows what its client takes, and a question that it does not take fails the call (${mode})`, async (t: Assert) => {
    const scene = new McpScene()
    const url = inputRequired.elicitUrl({ message: 'sign in', url: 'https://a.example' })
    scene.tool('takes', (_args, { client }) =>
      Promise.resolve([NAME, url, JOKE, ROOTS].map((one) => client.takes(one)))
    )
    scene.tool('asks', () => Promise.resolve(askClient({ name: NAME })))
    const [silent, sampler] = [
      await scene.client(t, mode),
      await scene.client(t, mode, { sampling: {}, elicitation: { url: {} } })
    ]
    t.alike(payloadOf({ result: await silent.callTool({ name: 'takes' }) }), [false, false, false, false])
    t.alike(payloadOf({ result: await sampler.callTool({ name: 'takes' }) }), [false, true, true, false])
    const refused = await silent.callTool({ name: 'asks' }).then(
      ({ isError }) => isError,
      (error: unknown) => (error instanceof ProtocolError ? error.code : null)
    )
    t.is(refused, mode === 'legacy' ? true : -32_021)
  })

  test(`a client that does not answer as asked fails the call, and no other (${mode})`, async (t: Assert) => {
    const scene = new McpScene()
    scene.tool('greet', greet)
    scene.tool('echo', (args) => Promise.resolve(args))
    const client = await scene.client(t, mode, ALL)
    client.setRequestHandler('elicitation/create', () => Promise.reject(new Error('no')))
    const failed = await client.callTool({ name: 'greet' }).then(
      ({ isError }) => isError,
      () => true
    )
    t.ok(failed)
    t.alike(payloadOf({ result: await client.callTool({ name: 'echo', arguments: { a: 1 } }) }), { a: 1 })
  })
}

/** A call of the newest era with what was said and kept. */
function round(id: number, name: string, more: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  const { arguments: args = {}, ...rest } = more
  const meta = { ...CLAIM, 'io.modelcontextprotocol/clientCapabilities': ALL }
  return request(id, 'tools/call', { name, arguments: args, ...rest, _meta: meta })
}

test('a state carried by a client is refused when it is forged, of another call or old', async (t: Assert) => {
  const scene = new McpScene()
  const runs: unknown[] = []
  for (const name of ['one', 'two']) {
    scene.tool(name, (_args, { client }) => {
      runs.push(client.state)
      return Promise.resolve(client.state === undefined ? askClient({ name: NAME }, 'kept') : 'done')
    })
  }
  const client = scene.connect(t)
  const asked = await client.ask(round(1, 'one', { arguments: { a: 1, b: 2 } }))
  t.is(asked.result?.['resultType'], 'input_required')
  const requestState = String(asked.result?.['requestState'])
  const refused = async (id: number, name: string, more: object): Promise<unknown> =>
    (await client.ask(round(id, name, { ...more }))).error?.code
  t.is(await refused(2, 'one', { arguments: { a: 1, b: 2 }, requestState: `${requestState}x` }), -32_602)
  t.is(await refused(3, 'one', { arguments: { a: 1, b: 3 }, requestState }), -32_602)
  t.is(await refused(4, 'two', { arguments: { a: 1, b: 2 }, requestState }), -32_602)
  t.is(await refused(5, 'one', { arguments: { a: 1, b: 2 }, requestState: 5 }), -32_602)
  t.is(await refused(6, 'one', { arguments: { a: 1, b: 2 }, inputResponses: 7 }), -32_602)
  t.alike(runs, [undefined], 'nothing ran')
  const done = await client.ask(round(7, 'one', { arguments: { b: 2, a: 1 }, requestState }))
  t.is(payloadOf(done), 'done')
  scene.clock.advance(STATE_TTL_MS + 1)
  t.is(await refused(8, 'one', { arguments: { a: 1, b: 2 }, requestState }), -32_602)
})

test('answers that are none count as none, and names that were not asked are ignored', async (t: Assert) => {
  const scene = new McpScene()
  scene.tool('asks', (_args, { client }) =>
    Promise.resolve(client.answer('name') === undefined ? askClient({ name: NAME }) : 'done')
  )
  const client = scene.connect(t)
  const wrong = [
    {},
    { other: { action: 'accept' } },
    { name: 12_345 },
    { name: {} },
    { name: { action: 'perhaps' } },
    { name: [] }
  ]
  for (const [id, inputResponses] of wrong.entries()) {
    const { result } = await client.ask(round(id, 'asks', { inputResponses }))
    t.is(result?.['resultType'], 'input_required', JSON.stringify(inputResponses))
  }
  const inputResponses = { name: { action: 'decline' }, other: { action: 'accept' } }
  t.is(payloadOf(await client.ask(round(99, 'asks', { inputResponses }))), 'done')
})

test('a client is asked no more than it can be expected to answer', async (t: Assert) => {
  const scene = new McpScene()
  const questions = Object.fromEntries(Array.from({ length: 8 }, (_, at) => [`q${at}`, NAME]))
  scene.tool('asks', (_args, { client }) =>
    Promise.resolve(client.answer('q0') === undefined ? askClient(questions) : 'done')
  )
  scene.tool('nothing', () => Promise.resolve(askClient({})))
  scene.tool('too-many', () => Promise.resolve(askClient({ ...questions, more: NAME })))
  scene.tool('too-much', () => Promise.resolve(askClient({ name: NAME }, 'x'.repeat(16_384))))
  const client = scene.connect(t)
  await client.open(ALL)
  for (const [at, name] of ['nothing', 'too-many', 'too-much'].entries()) {
    t.is(payloadOf(await client.ask(call(`bad ${at}`, name)))['code'], 'INVALID_ARGUMENT')
  }
  for (let id = 0; id < 8; id++) client.write(call(id, 'asks'))
  const asked = await client.notified(64)
  const refused = await client.ask(call('one more', 'asks'))
  t.is(refused.id, 'one more')
  t.ok(refused.result?.['isError'])
  t.is(client.told.filter((one) => one['method'] === 'elicitation/create').length, 64)
  // Answers make room again.
  const answers = client.answers.length
  for (const { id } of asked.slice(0, 8)) client.write({ jsonrpc: '2.0', id, result: { action: 'decline' } })
  t.is(payloadOf((await client.heard(answers + 1))[answers]), 'done')
  client.write(call('again', 'asks'))
  t.is((await client.notified(72)).length >= 72, true)
})

test('a question ends with the call: it is canceled, its client is notified, and its slot is free', async (t: Assert) => {
  const scene = new McpScene({ maxConcurrentExecutions: 1 })
  scene.tool('asks', (_args, { client }) =>
    Promise.resolve(client.answer('name') === undefined ? askClient({ name: NAME }) : 'done')
  )
  const client = scene.connect(t)
  await client.open(ALL)
  client.write(call('first', 'asks'))
  const [question] = await client.notified(1)
  t.is(question['method'], 'elicitation/create')
  client.write({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'first' } })
  const [, canceled] = await client.notified(2)
  t.is(canceled['method'], 'notifications/cancelled')
  t.is((canceled['params'] as { requestId: unknown }).requestId, question.id)
  // Too late, twice, and to nothing that was asked: dropped.
  for (const id of [question.id, question.id, 999, 'x'])
    client.write({ jsonrpc: '2.0', id, result: { action: 'accept' } })
  client.write(call('second', 'asks'))
  const again = (await client.notified(3))[2]
  client.write({ jsonrpc: '2.0', id: again.id, result: { action: 'accept', content: { name: 'x' } } })
  const [answer] = await client.heard(1)
  t.is(answer.id, 'second')
  t.is(payloadOf(answer), 'done')
})

test('the arguments of a tool are checked in every round', async (t: Assert) => {
  const scene = new McpScene()
  const inputSchema = { ...ANYTHING, required: ['a'] }
  scene.registry.register({ name: 'asks', description: 'asks', inputSchema }, () =>
    Promise.resolve(askClient({ name: NAME }, 1))
  )
  const client = scene.connect(t)
  const { result } = await client.ask(round(1, 'asks', { arguments: { a: 1 } }))
  t.is(result?.['resultType'], 'input_required')
  t.is(payloadOf(await client.ask(round(2, 'asks')))['code'], 'INVALID_ARGUMENT')
})
