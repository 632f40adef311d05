import test, { type Assert } from 'brittle'
import { ProtocolError } from '@modelcontextprotocol/client'
import type { PromptSource } from '../../../../src/adapters/mcp/resources/prompt-source.js'
import { joinResources, ResourceRegistry } from '../../../../src/adapters/mcp/resources/resource-registry.js'
import type { ResourceSource } from '../../../../src/adapters/mcp/resources/resource-source.js'
import { Emitter } from '../../../../src/kit/events.js'
import { NodeError } from '../../../../src/kit/errors.js'
import { ANYTHING, call, CLAIM, McpScene, payloadOf, request } from '../../../support/mcp.js'

/** Two resources and a template, whose content changes when told. */
function cards(): { source: ResourceSource; changes: Emitter<string | null> } {
  const changes = new Emitter<string | null>(() => {})
  const source: ResourceSource = {
    list: () => [{ uri: 'a2a://cards/a', name: 'a', mimeType: 'application/json' }],
    templates: () => [{ uriTemplate: 'a2a://cards/{id}', name: 'card' }],
    read: (uri) => {
      if (uri === 'a2a://cards/refused')
        return Promise.reject(new NodeError('SANDBOX_VIOLATION', 'not in your sandbox'))
      if (uri === 'a2a://cards/broken') return Promise.reject(new Error('broken'))
      return Promise.resolve(
        uri === 'a2a://cards/a' ? [{ uri, mimeType: 'application/json', text: '{"id":"a"}' }] : undefined
      )
    },
    onChange: (changed) => changes.on(changed)
  }
  return { source, changes }
}

function greetings(): { source: PromptSource; changes: Emitter<null> } {
  const changes = new Emitter<null>(() => {})
  const source: PromptSource = {
    list: () => [{ name: 'greet', description: 'says hello', arguments: [{ name: 'who', required: true }] }],
    get: (name, args) => {
      if (name !== 'greet') return Promise.resolve(undefined)
      if (args['who'] === undefined) return Promise.reject(new NodeError('INVALID_INPUT', 'who is missing'))
      return Promise.resolve({ messages: [{ role: 'user', content: { type: 'text', text: `hello ${args['who']}` } }] })
    },
    onChange: (changed) => changes.on(() => changed())
  }
  return { source, changes }
}

async function codeOf(asked: Promise<unknown>): Promise<number> {
  return await asked.then(
    () => 0,
    (error: unknown) => (error instanceof ProtocolError ? error.code : -1)
  )
}

for (const mode of ['legacy', 'auto'] as const) {
  test(`resources and prompts are listed and read by the official client (${mode})`, async (t: Assert) => {
    const scene = new McpScene({ resources: cards().source, prompts: greetings().source })
    const client = await scene.client(t, mode)
    t.alike(
      (await client.listResources()).resources.map((one) => one.uri),
      ['a2a://cards/a']
    )
    t.alike(
      (await client.listResourceTemplates()).resourceTemplates.map((one) => one.uriTemplate),
      ['a2a://cards/{id}']
    )
    t.alike((await client.readResource({ uri: 'a2a://cards/a' })).contents, [
      { uri: 'a2a://cards/a', mimeType: 'application/json', text: '{"id":"a"}' }
    ])
    t.is(await codeOf(client.readResource({ uri: 'a2a://cards/b' })), -32_602)
    t.is(await codeOf(client.readResource({ uri: 'a2a://cards/refused' })), -32_602)
    t.is(await codeOf(client.readResource({ uri: 'a2a://cards/broken' })), -32_603)
    t.alike(
      (await client.listPrompts()).prompts.map((one) => one.name),
      ['greet']
    )
    const { messages } = await client.getPrompt({ name: 'greet', arguments: { who: 'Ada' } })
    t.alike(messages[0].content, { type: 'text', text: 'hello Ada' })
    t.is(await codeOf(client.getPrompt({ name: 'no' })), -32_602)
    t.is(await codeOf(client.getPrompt({ name: 'greet' })), -32_602)
  })
}

test('changes are reported once a turn after the handshake, those of a resource to its subscribers', async (t: Assert) => {
  const [resources, prompts] = [cards(), greetings()]
  const scene = new McpScene({ resources: resources.source, prompts: prompts.source })
  const client = scene.connect(t)
  scene.tool('early', () => Promise.resolve(null))
  await client.open()
  await client.ask(request(1, 'resources/subscribe', { uri: 'a2a://cards/a' }))
  t.is(client.told.length, 0)
  for (const name of ['a', 'b', 'c']) scene.tool(name, () => Promise.resolve(null))
  prompts.changes.emit(null)
  resources.changes.emit(null)
  for (const uri of ['a2a://cards/a', 'a2a://cards/b', 'a2a://cards/a']) resources.changes.emit(uri)
  const told = (await client.notified(4)).map(({ method, params }) => [
    method,
    (params as { uri?: string } | undefined)?.uri
  ])
  t.alike(told, [
    ['notifications/tools/list_changed', undefined],
    ['notifications/prompts/list_changed', undefined],
    ['notifications/resources/list_changed', undefined],
    ['notifications/resources/updated', 'a2a://cards/a']
  ])
  await client.ask(request(2, 'resources/unsubscribe', { uri: 'a2a://cards/a' }))
  resources.changes.emit('a2a://cards/a')
  await client.ask(request(3, 'ping'))
  t.is(client.told.length, 4)
  await client.close()
  t.alike([resources.changes.size, prompts.changes.size], [0, 0], 'a connection that ended listens no more')
})

test('a resource that is not there, or not for this caller, cannot be subscribed to', async (t: Assert) => {
  const { source, changes } = cards()
  const lacking = new ResourceRegistry()
  const scene = new McpScene({ resources: joinResources([lacking, source]) })
  const client = scene.connect(t)
  await client.open()
  for (const uri of ['a2a://cards/b', 'a2a://cards/refused', 'http://127.0.0.1/', '']) {
    const { error } = await client.ask(request(uri, 'resources/subscribe', { uri }))
    t.is(error?.code, -32_602, uri)
  }
  changes.emit('a2a://cards/b')
  t.alike((await client.ask(request(1, 'resources/subscribe', { uri: 'a2a://cards/a' }))).result, {})
  changes.emit('a2a://cards/a')
  const told = (await client.notified(1)).map(({ params }) => (params as { uri?: string }).uri)
  t.alike(told, ['a2a://cards/a'])
})

test('a subscriber by another URI of a resource is notified by that URI', async (t: Assert) => {
  const { source, changes } = cards()
  const scene = new McpScene({
    resources: { ...source, nameOf: (uri) => (uri.startsWith('a2a://cards/a') ? 'a2a://cards/a' : undefined) }
  })
  const client = scene.connect(t)
  await client.open()
  for (const uri of ['a2a://cards/a@here', 'a2a://cards/a'])
    await client.ask(request(uri, 'resources/subscribe', { uri }))
  changes.emit('a2a://cards/a')
  const told = (await client.notified(2)).map(({ params }) => (params as { uri?: string }).uri)
  t.alike(told, ['a2a://cards/a@here', 'a2a://cards/a'])
})

test('a client of the new era that listens is notified of changes', async (t: Assert) => {
  const scene = new McpScene()
  const client = await scene.client(t, 'auto')
  const changed = new Promise<void>((resolve) =>
    client.setNotificationHandler('notifications/tools/list_changed', () => resolve())
  )
  const subscription = await client.listen({ toolsListChanged: true })
  scene.tool('new', () => Promise.resolve(null))
  await changed
  t.ok(subscription)
})

test('a listener by another URI of a resource is notified by that URI, also after its target changes', async (t: Assert) => {
  const { source, changes } = cards()
  const names: Record<string, string> = { 'a2a://cards/b': 'a2a://cards/b' }
  const scene = new McpScene({ resources: { ...source, nameOf: (uri) => names[uri] } })
  const client = await scene.client(t, 'auto')
  const told: unknown[] = []
  let heard = (): void => {}
  client.setNotificationHandler('notifications/resources/updated', ({ params: { uri } }) => {
    told.push(uri)
    heard()
  })
  /** What is told of changes, up to that of a resource that is listened to as it is called. */
  const toldOf = async (...changed: string[]): Promise<unknown[]> => {
    told.length = 0
    for (const uri of changed) changes.emit(uri)
    await new Promise(setImmediate)
    while (!told.includes('a2a://cards/end'))
      await new Promise<void>((resolve) => ((heard = resolve), changes.emit('a2a://cards/end')))
    return told.filter((uri) => uri !== 'a2a://cards/end')
  }
  await client.listen({ resourceSubscriptions: ['a2a://cards/a@here', 'a2a://cards/end'] })
  t.alike(await toldOf('a2a://cards/a'), [], 'it means none yet')
  names['a2a://cards/a@here'] = 'a2a://cards/a'
  changes.emit(null)
  t.alike(await toldOf('a2a://cards/b', 'a2a://cards/a'), ['a2a://cards/a@here'])
  names['a2a://cards/a@here'] = 'a2a://cards/b'
  changes.emit(null)
  t.alike(await toldOf('a2a://cards/a', 'a2a://cards/b'), ['a2a://cards/a@here'])
})

test('the official client gets progress and can cancel in both eras', async (t: Assert) => {
  for (const mode of ['legacy', 'auto'] as const) {
    const scene = new McpScene()
    let signal: AbortSignal | null = null
    scene.tool('work', (_, { progress, abortSignal }) => {
      signal = abortSignal
      progress({ progress: 1, total: 2, message: 'half' })
      return new Promise((_resolve, reject) =>
        abortSignal.addEventListener('abort', () => reject(new Error('stopped')))
      )
    })
    const client = await scene.client(t, mode)
    const controller = new AbortController()
    const reports: unknown[] = []
    const called = client.callTool(
      { name: 'work' },
      {
        signal: controller.signal,
        onprogress: (report) => {
          reports.push(report)
          controller.abort('enough')
        }
      }
    )
    await t.exception(called)
    await scene.recorded(1)
    t.alike(reports, [{ progress: 1, total: 2, message: 'half' }], mode)
    t.ok((signal as AbortSignal | null)?.aborted)
    t.is(scene.records[0].outcome, 'aborted')
  }
})

test('wrong metadata of one tool does not hide the other tools from clients', async (t: Assert) => {
  const odd = { readOnlyHint: 'yes', title: 7, idempotentHint: true }
  const scene = new McpScene({
    sources: [
      {
        list: () => [
          { name: 'odd.hints', description: '', inputSchema: ANYTHING, annotations: odd },
          { name: 'odd.output', description: '', inputSchema: ANYTHING, outputSchema: { type: 'array' } },
          { name: 'odd.input', description: '', inputSchema: { type: 'string' } },
          { name: 'good', description: '', inputSchema: ANYTHING }
        ],
        get: () => undefined
      }
    ]
  })
  const client = await scene.client(t)
  const { tools } = await client.listTools()
  t.alike(
    tools.map((one) => [one.name, one.annotations, one.outputSchema]),
    [
      ['good', undefined, undefined],
      ['odd__hints', { idempotentHint: true }, undefined],
      ['odd__output', undefined, undefined]
    ] as never
  )
})

test('with a clock and ids that are given, every run gives the same bytes', async (t: Assert) => {
  const run = async (): Promise<string> => {
    const scene = new McpScene()
    scene.tool('echo', (args) => Promise.resolve(args))
    scene.tool('fails', () => Promise.reject(new Error('no')))
    const client = scene.connect(t)
    const opened = await client.open()
    for (const line of [
      call(1, 'echo', { a: 1 }),
      call(2, 'fails'),
      call(3, 7),
      request(4, 'no/such'),
      request(5, 'tools/list')
    ]) {
      await client.ask(line)
      scene.clock.advance(10)
    }
    return JSON.stringify([opened, client.answers, scene.records])
  }
  t.is(await run(), await run())
})

test('a message with a claim in a connection with a handshake is served too', async (t: Assert) => {
  const scene = new McpScene()
  scene.tool('echo', (args) => Promise.resolve(args))
  const client = scene.connect(t)
  await client.open()
  t.alike(payloadOf(await client.ask(call(1, 'echo', { a: 1 }, CLAIM))), { a: 1 })
  t.alike(payloadOf(await client.ask(call(2, 'echo', { a: 2 }))), { a: 2 })
})
