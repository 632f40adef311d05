import { SUPPORTED_PROTOCOL_VERSIONS } from '@modelcontextprotocol/server'
import { Client } from '@modelcontextprotocol/client'
import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { askClient } from '../../../src/adapters/mcp/tools/client-ask.js'
import { HANDSHAKE_VERSIONS } from '../../../src/cli/mcp/offline.js'
import { NodeError } from '../../../src/kit/errors.js'
import { holds } from '../../support/holds.js'
import {
  type Answer,
  call,
  CLAIM,
  initialize,
  McpScene,
  payloadOf,
  type RawClient,
  request,
  StreamTransport
} from '../../support/mcp.js'
import { ShimScene, turns } from '../../support/shim-scene.js'

const CHANGES = ['tools', 'prompts', 'resources'].map((list) => `notifications/${list}/list_changed`)

/** A node with a tool that counts its calls, and one that never ends. */
function counting(): { readonly node: McpScene; calls(): number } {
  const node = new McpScene({ prompts: { list: () => [], get: () => Promise.resolve(undefined) } })
  let calls = 0
  node.tool('count', () => Promise.resolve(++calls))
  node.tool('hang', () => new Promise(() => {}))
  return { node, calls: () => calls }
}

/** The tools, or another list, in an answer. */
function listed(answer: Answer | undefined, list = 'tools'): readonly unknown[] {
  return (answer?.result?.[list] ?? []) as readonly unknown[]
}

function notices(client: RawClient): unknown[] {
  return client.told.map(({ method }) => method)
}

function faultOf(answer: { readonly result?: unknown }): unknown {
  const { details } = payloadOf(answer) as { details: { code: string; retryable: boolean; next: unknown } }
  return [(answer.result as { isError: boolean }).isError, details]
}

const RETRY = [true, { code: 'NODE_NOT_RUNNING', retryable: true, next: ['a2a-node start --detach'] }]

for (const mode of ['legacy', 'auto'] as const)
  test(`an official client keeps its session over a restart of the node (${mode})`, async (t: Assert) => {
    const scene = await ShimScene.make(t)
    const first = counting()
    scene.node = first.node
    const { stream } = scene.connect()
    const client = new Client(
      { name: 'official', version: '0' },
      { versionNegotiation: { mode }, listChanged: { tools: { onChanged: () => changed() } } }
    )
    let changes = 0
    let changed = (): void => void changes++
    await client.connect(new StreamTransport(stream))
    t.teardown(() => client.close())
    t.alike((await client.listTools()).tools.map(({ name }) => name).sort(), ['count', 'hang'])
    t.alike(payloadOf({ result: await client.callTool({ name: 'count' }) }), 1)

    const hanging = client.callTool({ name: 'hang' })
    await turns()
    await scene.stop()
    t.alike(faultOf({ result: await hanging }), RETRY)
    t.is((await client.listTools()).tools.length, 2, 'the list is that of the last time')
    const later = client.callTool({ name: 'count' })
    await turns()
    const isTold = new Promise<void>((resolve) => (changed = resolve))
    const second = counting()
    second.node.tool('more', () => Promise.resolve(null))
    scene.node = second.node
    await scene.pass(2000)
    t.alike(payloadOf({ result: await later }), 1, 'a call that was not sent before runs on the new node')
    await isTold
    t.is((await client.listTools()).tools.length, 3)
    t.is(first.calls(), 1)
  })

test('a client that starts before any node is answered at once, and its list changes when the node comes', async (t: Assert) => {
  const scene = await ShimScene.make(t)
  const client = scene.client(t)
  const { result } = await client.ask(initialize())
  t.alike([result?.['protocolVersion'], result?.['serverInfo']], ['2025-06-18', { name: 'a2a-node', version: '1.2.3' }])
  client.write({ jsonrpc: '2.0', method: 'notifications/initialized' })
  t.alike((await client.ask(request('ping', 'ping'))).result, {})
  client.write(request('list', 'tools/list'), call('call', 'count'))
  await turns()
  t.is(client.answers.length, 2, 'an unknown list waits for the node')
  const { node, calls } = counting()
  scene.node = node
  await scene.pass(2000)
  const answers = (await client.heard(4)).slice(2)
  t.alike(
    answers.map(({ id }) => id),
    ['list', 'call']
  )
  t.is(listed(answers[0]).length, 2)
  t.alike([payloadOf(answers[1] ?? {}), calls()], [1, 1])
  t.alike(notices(client), CHANGES)
})

test('without a node an unknown list is empty after a while, and a call fails with a command that helps', async (t: Assert) => {
  const scene = await ShimScene.make(t)
  const client = scene.client(t)
  await client.open()
  client.write(
    request('list', 'resources/templates/list'),
    call('call', 'count'),
    request('read', 'resources/read', { uri: 'a:b' })
  )
  await turns()
  await scene.pass(5000)
  const answers = await client.heard(3)
  t.alike(answers.find(({ id }) => id === 'list')?.result, { resourceTemplates: [] })
  t.alike(faultOf(answers.find(({ id }) => id === 'call') ?? {}), RETRY)
  const { error } = answers.find(({ id }) => id === 'read') ?? {}
  t.alike([error?.code, error?.data?.['retryable']], [-32_603, true])
})

test('before the handshake nothing but it is answered without a node', async (t: Assert) => {
  const scene = await ShimScene.make(t)
  const client = scene.client(t)
  client.write(request('list', 'tools/list'), call('call', 'count'))
  await turns()
  await scene.pass(5000)
  for (const { error } of await client.heard(2))
    t.alike([error?.code, error?.data?.['code']], [-32_002, 'NOT_INITIALIZED'])
  client.write('no json', '[]')
  for (const { error } of (await client.heard(4)).slice(2)) t.is(error?.code, -32_700)
})

test('handshake and lists of the last time are answered without a node, to each client of the same rights', async (t: Assert) => {
  const scene = await ShimScene.make(t)
  scene.node = counting().node
  const first = scene.client(t)
  const asks = [
    request('tools', 'tools/list'),
    request('prompts', 'prompts/list'),
    request('claimed', 'tools/list', { _meta: CLAIM }),
    request('discover', 'server/discover', { _meta: CLAIM })
  ]
  const asked = async (client: RawClient): Promise<unknown[]> => {
    const answers: unknown[] = [(await client.ask(initialize())).result]
    client.write({ jsonrpc: '2.0', method: 'notifications/initialized' })
    for (const ask of asks.slice(0, 2)) answers.push((await client.ask(ask)).result)
    return answers
  }
  const known = await asked(first)
  await first.close()
  // The newer protocol on a connection of its own.
  const modern = scene.client(t)
  for (const ask of asks.slice(2)) known.push((await modern.ask(ask)).result)
  await modern.close()
  await scene.stop()
  const second = scene.client(t)
  const answers = await asked(second)
  for (const ask of asks.slice(2)) answers.push((await second.ask(ask)).result)
  t.alike(answers, known)
})

test('a new node process gets the handshake, the level of log lines and the subscriptions of the client', async (t: Assert) => {
  const scene = await ShimScene.make(t)
  let changed = (_uri: string | null): void => {}
  const watched = (): McpScene =>
    new McpScene({
      resources: {
        list: () => [],
        read: () => Promise.resolve([{ uri: 'a:b', text: 'x' }]),
        onChange: (run) => {
          changed = run
          return () => {}
        }
      }
    })
  scene.node = watched()
  const client = scene.client(t)
  await client.open()
  await client.ask(request(1, 'resources/subscribe', { uri: 'a:b' }))
  await client.ask(request(2, 'resources/subscribe', { uri: 'a:gone' }))
  await client.ask(request(3, 'resources/unsubscribe', { uri: 'a:gone' }))
  await client.ask(request(4, 'logging/setLevel', { level: 'debug' }))
  await scene.stop()
  scene.node = watched()
  scene.node.tool('log', (_args, { log }) => {
    log('debug', 'a line')
    return Promise.resolve(null)
  })
  await scene.pass(2000)
  t.is(client.answers.length, 4, 'the renewed requests have no answer for the client')
  changed('a:b')
  changed('a:gone')
  await client.ask(call(5, 'log'))
  await turns()
  t.alike(
    client.told.slice(3).map(({ method, params }) => [method, (params as { uri?: string }).uri]),
    [
      ['notifications/resources/updated', 'a:b'],
      ['notifications/message', undefined]
    ]
  )
})

test('a request for changes of the newer protocol goes on: acknowledged once, notified of changes', async (t: Assert) => {
  const scene = await ShimScene.make(t)
  scene.node = counting().node
  const client = scene.client(t)
  client.write(request('listen', 'subscriptions/listen', { notifications: { toolsListChanged: true }, _meta: CLAIM }))
  await client.notified(1)
  await scene.stop()
  const { node } = counting()
  scene.node = node
  await scene.pass(2000)
  node.tool('new', () => Promise.resolve(null))
  await turns()
  t.alike(notices(client), [
    'notifications/subscriptions/acknowledged',
    'notifications/tools/list_changed',
    'notifications/tools/list_changed'
  ])
  for (const { params } of client.told)
    t.is(JSON.stringify(params).includes('"io.modelcontextprotocol/subscriptionId":"listen"'), true)
  t.is(client.answers.length, 0)
})

test('requests without side effects are sent again after a restart, calls never', async (t: Assert) => {
  const scene = await ShimScene.make(t)
  const stuck = new McpScene({
    prompts: { list: () => new Promise(() => {}), get: () => Promise.resolve(undefined) }
  })
  stuck.tool('count', () => new Promise(() => {}))
  scene.node = stuck
  const client = scene.client(t)
  await client.open()
  client.write(request('list', 'prompts/list'), call('call', 'count', {}, { correlationId: 'mine' }))
  await turns()
  await scene.stop()
  const [failed] = await client.heard(1)
  t.alike([failed?.id, faultOf(failed ?? {}), payloadOf(failed ?? {})['correlationId']], ['call', RETRY, 'mine'])
  const { node, calls } = counting()
  scene.node = node
  await scene.pass(2000)
  const [, list] = await client.heard(2)
  t.alike([list?.id, list?.result], ['list', { prompts: [] }])
  t.is(calls(), 0)
})

test('a call that is canceled while it waits for a node never runs', async (t: Assert) => {
  const scene = await ShimScene.make(t)
  const client = scene.client(t)
  await client.open()
  client.write(call('one', 'count'), call('two', 'count'))
  client.write({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'one' } })
  await turns()
  const { node, calls } = counting()
  scene.node = node
  await scene.pass(2000)
  t.alike([(await client.heard(1))[0]?.id, calls()], ['two', 1])
})

test('a question of a node that ended is canceled, and its answer reaches no other node', async (t: Assert) => {
  const scene = await ShimScene.make(t)
  const schema = { type: 'object', properties: { name: { type: 'string' } } } as const
  const asking = (): McpScene => {
    const node = new McpScene()
    node.tool('ask', (_args, { client }) =>
      Promise.resolve(
        client.answer('name') ??
          askClient({ name: { method: 'elicitation/create', params: { message: 'Name?', requestedSchema: schema } } })
      )
    )
    return node
  }
  scene.node = asking()
  const client = scene.client(t)
  await client.open({ elicitation: {} })
  client.write(call('one', 'ask'))
  const [question] = await client.notified(1)
  await scene.stop()
  const [, canceled] = await client.notified(2)
  t.alike(
    [canceled?.method, canceled?.['params']],
    ['notifications/cancelled', { requestId: question?.id, reason: 'the node that asked has ended' }]
  )
  scene.node = asking()
  await scene.pass(2000)
  client.write(call('two', 'ask'))
  await turns()
  // Late: the other node has a question open, which it counts the same.
  client.write({ jsonrpc: '2.0', id: question?.id, result: { action: 'accept', content: { name: 'old' } } })
  await turns()
  const again = client.told.at(-1)
  t.is(client.answers.length, 1, 'the call is open')
  client.write({ jsonrpc: '2.0', id: again?.id, result: { action: 'accept', content: { name: 'new' } } })
  t.alike((payloadOf((await client.heard(2))[1] ?? {})['content'] as { name: string }).name, 'new')
})

test('a node is started at the beginning and after a crash, never after an orderly stop', async (t: Assert) => {
  const scene = await ShimScene.make(t)
  let starts = 0
  scene.start = () => {
    starts++
    scene.node = counting().node
    return Promise.resolve()
  }
  const client = scene.client(t)
  await client.open()
  t.is(payloadOf(await client.ask(call(1, 'count'))), 1)
  t.is(starts, 1)
  await scene.pass(30_000)
  await scene.stop()
  await scene.pass(60_000)
  t.is(starts, 1, 'a person stopped it')
  scene.hasCrashed = true
  await scene.pass(3000)
  t.is(starts, 2)
  t.is(payloadOf(await client.ask(call(2, 'count'))), 1)
})

test('a node that cannot be started is named in each failed call, and tried again later', async (t: Assert) => {
  const scene = await ShimScene.make(t)
  let starts = 0
  scene.start = () => {
    starts++
    return Promise.reject(new NodeError('CONFIG_INVALID', 'line 3 is wrong'))
  }
  const client = scene.client(t)
  await client.open()
  client.write(call(1, 'count'))
  await scene.pass(20_000)
  t.ok(String(payloadOf((await client.heard(1))[0] ?? {})['message']).includes('line 3 is wrong (CONFIG_INVALID)'))
  t.alike([starts, scene.notes.length], [1, 1])
  await scene.pass(15_000)
  t.is(starts, 2)
})

test('a config without starts ends them, and another start of the home is waited for', async (t: Assert) => {
  for (const [code, notes, starts] of [
    ['FORBIDDEN', 1, 1],
    ['ALREADY_RUNNING', 0, 4]
  ] as const) {
    const scene = await ShimScene.make(t)
    let count = 0
    scene.start = () => {
      count++
      return Promise.reject(new NodeError(code, 'no'))
    }
    const client = scene.client(t)
    await client.open()
    await scene.pass(100_000)
    t.alike([scene.notes.length, count], [notes, starts], code)
  }
})

test('a first connection that is refused for good ends the client; a later one is tried again', async (t: Assert) => {
  const scene = await ShimScene.make(t)
  scene.fault = new NodeError('NO_PERMISSION', 'not yours')
  t.is(await scene.client(t).ended, scene.fault)
  scene.node = counting().node
  const client = scene.client(t)
  await client.open()
  await scene.stop()
  await scene.pass(10_000)
  scene.node = counting().node
  await scene.pass(2000)
  t.is(payloadOf(await client.ask(call(1, 'count'))), 1)
})

test('a node that ends each connection at once is not asked in a loop', async (t: Assert) => {
  const scene = await ShimScene.make(t)
  scene.node = counting().node
  scene.endsAtOnce = true
  const client = scene.client(t)
  await scene.pass(10_000)
  t.ok(scene.connections >= 5 && scene.connections <= 15, `${scene.connections} connections in 10 s`)
  scene.endsAtOnce = false
  await scene.pass(2000)
  await client.open()
  t.is(payloadOf(await client.ask(call(1, 'count'))), 1)
})

test('200 calls at once over one connection all succeed, and a line that is too long is refused by its id', async (t: Assert) => {
  const scene = await ShimScene.make(t)
  const { node, calls } = counting()
  scene.node = node
  const client = scene.client(t)
  await client.open()
  for (let i = 0; i < 200; i++) client.write(call(i, 'count'))
  const answers = await client.heard(200)
  t.is(new Set(answers.map((one) => payloadOf(one))).size, 200)
  t.is(calls(), 200)
  client.answers.length = 0
  client.write(call('long', 'count', { text: 'x'.repeat(17 * 1_048_576) }))
  const [long] = await client.heard(1)
  t.alike([long?.id, payloadOf(long ?? {})['code']], ['long', 'RESOURCE_EXHAUSTED'])
})

test('the client of an ended input is left, and its last known state is on disk', async (t: Assert) => {
  const scene = await ShimScene.make(t)
  scene.node = counting().node
  const client = scene.client(t)
  await client.open()
  await client.ask(request(1, 'tools/list'))
  client.stream.end()
  await client.ended
  await scene.stop()
  const next = scene.client(t)
  await next.open()
  t.is(listed(await next.ask(request(1, 'tools/list'))).length, 2)
})

test('each request is answered once, however often the node comes and goes', async (t: Assert) => {
  const arbStep = fc.constantFrom('list', 'call', 'hang', 'ping', 'stop', 'start', 'pass', 'cancel')
  const property = fc.asyncProperty(fc.array(arbStep, { minLength: 5, maxLength: 30 }), async (steps) => {
    const scene = await ShimScene.make(t)
    const client = scene.client(t)
    await client.open()
    const asked: number[] = []
    const canceled: number[] = []
    for (const [id, step] of steps.entries()) {
      if (step === 'stop') await scene.stop()
      else if (step === 'start') scene.node ??= counting().node
      else if (step === 'pass') await scene.pass(1000)
      else if (step === 'cancel' && asked.length > 0) {
        const target = asked.at(-1) as number
        canceled.push(target)
        client.write({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: target } })
      } else if (step !== 'cancel') {
        asked.push(id)
        if (step === 'call' || step === 'hang') client.write(call(id, step === 'call' ? 'count' : 'hang'))
        else client.write(request(id, step === 'list' ? 'tools/list' : 'ping'))
      }
      await turns()
    }
    // Calls that hang end with their node.
    await scene.stop()
    await scene.pass(25_000)
    const ids = client.answers.map(({ id }) => id as number)
    await client.close()
    return new Set(ids).size === ids.length && asked.every((id) => ids.includes(id) || canceled.includes(id))
  })
  await holds(t, property, 25)
})

test('the versions with a handshake are those of the SDK', (t: Assert) => {
  t.alike(HANDSHAKE_VERSIONS, SUPPORTED_PROTOCOL_VERSIONS)
})
