import test, { type Assert } from 'brittle'
import { type InvocationEvent, invocationEvent } from '../../../../src/adapters/mcp/server/tool-record.js'
import { shown } from '../../../../src/kit/text.js'
import { A2AObservability } from '../../../../src/node/observe/observability.js'
import { call, CLAIM, initialize, McpScene, payloadOf, request, type Answer } from '../../../support/mcp.js'

/** A line, as text or as what is written as JSON, and the error that it gets. */
interface Row {
  readonly what: string
  readonly line: unknown
  readonly code: number
  /** Of the answer; null when it cannot be told. */
  readonly id: unknown
  /** In the answer's data; that of the connection when absent. */
  readonly correlationId?: string
}

const meta = { correlationId: 'mine' }
const deep = `${'{"a":'.repeat(40)}1${'}'.repeat(40)}`

/** Refused whatever the state of the connection. */
const MALFORMED: readonly Row[] = [
  { what: 'no JSON', line: '{"jsonrpc":', code: -32_700, id: null },
  { what: 'two messages in a line', line: '{} {}', code: -32_700, id: null },
  { what: 'no UTF-8', line: Uint8Array.from([0x22, 0xff, 0x22, 0x0a]), code: -32_700, id: null },
  { what: 'a number', line: '7', code: -32_600, id: null },
  { what: 'null', line: 'null', code: -32_600, id: null },
  { what: 'a text', line: '"ping"', code: -32_600, id: null },
  { what: 'an empty batch', line: '[]', code: -32_600, id: null },
  { what: 'a batch', line: [request(1, 'ping'), request(2, 'ping')], code: -32_600, id: null },
  { what: 'an empty object', line: {}, code: -32_600, id: null },
  { what: 'no jsonrpc', line: { id: 1, method: 'ping' }, code: -32_600, id: 1 },
  { what: 'another jsonrpc', line: { jsonrpc: '1.0', id: 'x', method: 'ping' }, code: -32_600, id: 'x' },
  { what: 'no method', line: { jsonrpc: '2.0', id: 1 }, code: -32_600, id: 1 },
  { what: 'a method that is no text', line: { jsonrpc: '2.0', id: 1, method: 7 }, code: -32_600, id: 1 },
  { what: 'id null', line: request(null, 'ping'), code: -32_600, id: null },
  { what: 'id true', line: request(true, 'ping'), code: -32_600, id: null },
  { what: 'id object', line: request({}, 'ping'), code: -32_600, id: null },
  { what: 'id list', line: request([1], 'ping'), code: -32_600, id: null },
  { what: 'id fraction', line: request(1.5, 'ping'), code: -32_600, id: null },
  {
    what: 'id beyond the whole numbers',
    line: '{"jsonrpc":"2.0","id":1e400,"method":"ping"}',
    code: -32_600,
    id: null
  },
  { what: 'id of 257 characters', line: request('x'.repeat(257), 'ping'), code: -32_600, id: null },
  { what: 'params list', line: request(1, 'ping', []), code: -32_602, id: 1 },
  { what: 'params text', line: request(1, 'ping', 'x'), code: -32_602, id: 1 },
  { what: 'nested too deep', line: `{"jsonrpc":"2.0","id":1,"method":"ping","params":${deep}}`, code: -32_600, id: 1 },
  {
    what: 'a key that could reach a prototype',
    line: '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"__proto__":{}}}',
    code: -32_600,
    id: 1
  },
  {
    what: 'a wrong shape with a correlation id',
    line: request(null, 'tools/call', { _meta: meta }),
    code: -32_600,
    id: null,
    correlationId: 'mine'
  }
]

/** Refused in a connection that runs. */
const RUNNING: readonly Row[] = [
  { what: 'unknown method', line: request(1, 'no/such'), code: -32_601, id: 1 },
  {
    what: 'unknown method with a correlation id',
    line: request(1, 'no/such', { _meta: meta }),
    code: -32_601,
    id: 1,
    correlationId: 'mine'
  },
  { what: 'method of a part that is not there', line: request(1, 'resources/list'), code: -32_601, id: 1 },
  { what: 'call without params', line: request(1, 'tools/call'), code: -32_602, id: 1 },
  { what: 'call without name', line: request(1, 'tools/call', {}), code: -32_602, id: 1 },
  { what: 'call of a number', line: call(1, 7), code: -32_602, id: 1 },
  { what: 'arguments list', line: call(1, 'echo', []), code: -32_602, id: 1 },
  { what: 'arguments text', line: call(1, 'echo', 'x'), code: -32_602, id: 1 },
  { what: 'call of null', line: call(1, null, {}), code: -32_602, id: 1 },
  {
    what: 'arguments wrong, correlation id',
    line: call(1, 'echo', 7, meta),
    code: -32_602,
    id: 1,
    correlationId: 'mine'
  },
  { what: '_meta list', line: call(1, 'echo', {}, []), code: -32_602, id: 1 },
  { what: 'correlation id that is none', line: call(1, 7, {}, { correlationId: 7 }), code: -32_602, id: 1 },
  {
    what: 'correlation id of 129 characters',
    line: call(1, 7, {}, { correlationId: 'x'.repeat(129) }),
    code: -32_602,
    id: 1
  },
  { what: 'a cursor that nobody gave', line: request(1, 'tools/list', { cursor: 'x' }), code: -32_602, id: 1 },
  { what: 'a cursor that is no text', line: request(1, 'tools/list', { cursor: 1 }), code: -32_602, id: 1 },
  { what: 'ping with _meta that is no object', line: request(1, 'ping', { _meta: 1 }), code: -32_602, id: 1 },
  { what: 'a second initialize', line: initialize(1), code: -32_600, id: 1 }
]

/** Refused before the handshake is done. */
const EARLY: readonly Row[] = [
  'ping',
  'tools/list',
  'tools/call',
  'resources/list',
  'no/such',
  'notifications/initialized'
].map((method) => ({
  what: `${method} before the handshake`,
  line: request('early', method, { name: 7, _meta: meta }),
  code: -32_002,
  id: 'early'
}))

function holdsRow(t: Assert, { what, code, id, correlationId = 'connection-1' }: Row, answer: Answer): void {
  t.alike([answer.error?.code, answer.id, answer.error?.data?.['correlationId']], [code, id, correlationId], what)
}

function withEcho(): McpScene {
  const scene = new McpScene()
  scene.tool('echo', (args) => Promise.resolve(args))
  return scene
}

test('every malformed line is answered, before the handshake and after it, and the connection goes on', async (t: Assert) => {
  const [early, running] = [withEcho().connect(t), withEcho().connect(t)]
  await running.open()
  for (const row of MALFORMED) for (const client of [early, running]) holdsRow(t, row, await client.ask(row.line))
  t.is((await early.open()).error, undefined)
  for (const client of [early, running]) t.alike(payloadOf(await client.ask(call(1, 'echo', { a: 1 }))), { a: 1 })
})

test('every request that is wrong in itself is answered with its code and a correlation id', async (t: Assert) => {
  const client = withEcho().connect(t)
  await client.open()
  for (const row of RUNNING) holdsRow(t, row, await client.ask(row.line))
  t.alike(payloadOf(await client.ask(call(1, 'echo'))), {})
})

test('a member that is null is as one that is absent, in each message of a client; in the arguments it is data', async (t: Assert) => {
  const client = withEcho().connect(t)
  await client.open()
  t.alike(payloadOf(await client.ask(call(1, 'echo', null))), {})
  t.alike(payloadOf(await client.ask(call(2, 'echo', { a: null, b: { c: null } }))), { a: null, b: { c: null } })
  t.alike(payloadOf(await client.ask(call(3, 'echo', { d: 1 }, null))), { d: 1 })
  for (const params of [null, { cursor: null }, { cursor: null, _meta: null }, { _meta: { progressToken: null } }])
    t.ok((await client.ask({ jsonrpc: '2.0', id: 4, method: 'tools/list', params })).result, JSON.stringify(params))
  const { error, id } = await client.ask({ jsonrpc: '2.0', id: null, method: 'ping' })
  t.alike([error?.code, id], [-32_600, null], 'no request has the id null')
  const early = withEcho().connect(t)
  const info = { name: 'x', version: '1', title: null }
  const begin = {
    protocolVersion: '2025-06-18',
    capabilities: { roots: null, elicitation: {} },
    clientInfo: info,
    _meta: null
  }
  t.ok((await early.ask({ jsonrpc: '2.0', id: 5, method: 'initialize', params: begin })).result)
})

test('every request before the handshake is NOT_INITIALIZED with the correlation id of the connection', async (t: Assert) => {
  const client = withEcho().connect(t)
  for (const row of EARLY) {
    const answer = await client.ask(row.line)
    holdsRow(t, row, answer)
    t.is(answer.error?.message, 'Not initialized')
    t.alike(Object.keys(answer.error?.data ?? {}).sort(), ['code', 'correlationId', 'message'])
    t.is(answer.error?.data?.['code'], 'NOT_INITIALIZED')
  }
  t.ok((await client.ask(initialize())).result)
  holdsRow(t, EARLY[0], await client.ask(EARLY[0].line))
})

test('an initialize that is refused leaves the connection where it was', async (t: Assert) => {
  const client = withEcho().connect(t)
  for (const params of [{}, { protocolVersion: 'x', capabilities: {}, clientInfo: {} }])
    t.is((await client.ask(request(1, 'initialize', params))).error?.code, -32_602)
  client.write({ jsonrpc: '2.0', method: 'notifications/initialized' })
  t.is((await client.ask(request(2, 'tools/list'))).error?.code, -32_002)
  await client.open()
  t.ok((await client.ask(request(3, 'tools/list'))).result)
})

test('empty lines, and lines that end with a carriage return, are no fault', async (t: Assert) => {
  const client = withEcho().connect(t)
  client.write('', '   ', '\r')
  await client.open()
  const answer = await client.ask(`${JSON.stringify(request(1, 'ping'))}\r`)
  t.alike(answer, { jsonrpc: '2.0', id: 1, result: {} })
})

test('a message that is never answered is dropped: wrong, unknown or early notifications, and responses to nothing', async (t: Assert) => {
  const client = withEcho().connect(t)
  const silent = [
    { jsonrpc: '2.0', method: 'notifications/whatever' },
    { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 99 } },
    { jsonrpc: '2.0', method: 'notifications/cancelled', params: [] },
    { jsonrpc: '2.0', id: 1, result: {} },
    { jsonrpc: '2.0', id: null, error: { code: -32_700, message: 'x' } },
    { jsonrpc: '2.0', result: {} },
    { jsonrpc: '2.0', id: 1, result: {}, error: {} }
  ]
  client.write(...silent)
  await client.open()
  client.write(...silent)
  t.alike(await client.ask(request(1, 'ping')), { jsonrpc: '2.0', id: 1, result: {} }, 'the first line that comes back')
})

test('a second request with an id in flight is refused without that id, and the first gets its answer', async (t: Assert) => {
  const scene = new McpScene()
  let go = (): void => {}
  scene.tool('slow', () => new Promise((resolve) => (go = () => resolve('done'))))
  const client = scene.connect(t)
  await client.open()
  client.write(call(7, 'slow'))
  for (const line of [call(7, 'slow'), request(7, 'ping')]) {
    const refused = await client.ask(line)
    t.alike([refused.error?.code, refused.id, refused.error?.data?.['requestId']], [-32_600, null, 7])
  }
  t.alike((await client.ask(request('7', 'ping'))).result, {}, 'a text is another id than a number')
  go()
  t.is(payloadOf((await client.heard(4))[3]), 'done')
  t.alike((await client.ask(request(7, 'ping'))).result, {}, 'answered: the id is free')
})

test('requests beyond 1,024 in flight are refused', async (t: Assert) => {
  const scene = new McpScene({ maxConcurrentExecutions: 2000 })
  const ends: (() => void)[] = []
  scene.tool('slow', () => new Promise((resolve) => ends.push(() => resolve(null))))
  const client = scene.connect(t)
  await client.open()
  for (let id = 0; id < 1024; id++) client.write(call(id, 'slow'))
  const refused = await client.ask(request('more', 'ping'))
  t.alike([refused.error?.code, refused.id, refused.error?.data?.['code']], [-32_603, 'more', 'RESOURCE_EXHAUSTED'])
  while (ends.length < 1024) await new Promise((resolve) => setImmediate(resolve))
  for (const end of ends) end()
  await client.heard(1025)
})

test('a line that is too long is refused with its id where that is readable, and the next one is served', async (t: Assert) => {
  const scene = new McpScene({ maxPayloadBytes: 1024 })
  scene.tool('echo', (args) => Promise.resolve(args))
  const client = scene.connect(t)
  await client.open()
  const long = 'x'.repeat(70_000)
  const rows: readonly (readonly [unknown, unknown])[] = [
    [{ jsonrpc: '2.0', id: 5, method: 'x', params: { long } }, 5],
    [{ method: 'x', params: { arguments: { long, id: 1 } }, jsonrpc: '2.0', id: 'last' }, 'last'],
    [{ id: 'first', method: 'prompts/get', params: { name: 'tools/call', long } }, 'first'],
    [{ jsonrpc: '2.0', method: 'x', params: { long, id: 7 } }, null],
    [`${long}"id":7}`, null],
    [long, null]
  ]
  for (const [line, id] of rows) {
    const answer = await client.ask(line)
    t.alike([answer.error?.code, answer.id, answer.error?.data?.['correlationId']], [-32_600, id, 'connection-1'])
  }
  t.alike(payloadOf(await client.ask(call(5, 'echo', { a: 1 }))), { a: 1 })
})

test('a call of a tool is refused as one, however far its arguments go beyond their bound', async (t: Assert) => {
  const scene = new McpScene({ maxPayloadBytes: 1024 })
  scene.tool('echo', (args) => Promise.resolve(args))
  const client = scene.connect(t)
  await client.open()
  for (const bytes of [1025, 60_000, 70_000, 200_000]) {
    const args = { say: 'x'.repeat(bytes) }
    const name = 'echo'
    const calls: readonly (readonly [string, unknown, string])[] = [
      ['id first', call(`a${bytes}`, name, args), name],
      ['id last', { method: 'tools/call', params: { name, arguments: args }, jsonrpc: '2.0', id: `b${bytes}` }, name],
      [
        'method last',
        { id: `c${bytes}`, params: { arguments: args, name }, jsonrpc: '2.0', method: 'tools/call' },
        bytes < 66_000 ? name : ''
      ],
      [
        'with _meta',
        {
          jsonrpc: '2.0',
          id: `d${bytes}`,
          method: 'tools/call',
          params: { _meta: { progressToken: 1 }, name, arguments: args }
        },
        name
      ]
    ]
    for (const [at, line, tool] of calls) {
      const [before, records] = [scene.limits.consecutiveExhausted, scene.records.length]
      const answer = await client.ask(line)
      const { code, runId, correlationId } = payloadOf(answer)
      t.alike(
        [answer.error, answer.result?.['isError'], code],
        [undefined, true, 'RESOURCE_EXHAUSTED'],
        `${at}, ${bytes}`
      )
      const record = scene.records[records]
      t.alike([record?.tool, record?.outcome, record?.runId], [tool, 'tool_error', runId], `${at}, ${bytes}: on record`)
      t.ok(typeof runId === 'string' && typeof correlationId === 'string')
      t.is(scene.limits.consecutiveExhausted, before + 1, 'it counts for health')
    }
  }
  t.alike(payloadOf(await client.ask(call(5, 'echo', { a: 1 }))), { a: 1 })
})

test('a call whose message is too large is on record without its arguments, and an invented name of a tool counts as none', async (t: Assert) => {
  const scene = new McpScene({ maxPayloadBytes: 1024 })
  scene.tool('text.echo', (args) => Promise.resolve(args))
  const client = scene.connect(t)
  await client.open()
  const invented = [
    'no.such',
    '',
    'x'.repeat(256),
    '\u202egnp',
    '\u001b[31m',
    '"}\\n# HELP x',
    '__proto__',
    'other',
    'unknown'
  ]
  const argumentsOf = { say: 'x'.repeat(70_000) }
  const names = ['text.echo', 'text__echo', ...invented, ...Array.from({ length: 20 }, (_, i) => `invented.${i}`)]
  for (const [at, name] of names.entries()) await client.ask(call(at, name, argumentsOf))
  t.is(scene.records.length, names.length)
  const [own, published, ...others] = scene.records
  for (const one of [own, published])
    t.alike([one?.tool, one?.isUnknown, one?.omitted], ['text.echo', undefined, ['arguments']])
  t.ok(others.every((one) => one.isUnknown === true && !('arguments' in one) && one.omitted?.[0] === 'arguments'))
  t.ok(
    others.every(({ tool }) => shown(tool) === tool),
    'safe to show, and bounded'
  )
  const observability = new A2AObservability()
  for (const record of scene.records) observability.emit(invocationEvent(record) as InvocationEvent)
  t.alike(observability.getMetrics().toolInvocationsByTool, { 'text.echo': 2, unknown: names.length - 2 })
  await client.ask(call('small', 'x'.repeat(60_000)))
  t.is(scene.records.at(-1)?.tool.length, 256, 'a long name in a message that is read, too')
})

test('a setting above 1 MiB holds for every JSON value: a long text, lists, objects, nested and mixed ones', async (t: Assert) => {
  const scene = new McpScene({ maxPayloadBytes: 3_145_728 })
  scene.tool('echo', ({ say }) => Promise.resolve(JSON.stringify(say).length))
  const client = scene.connect(t)
  await client.open()
  const large: readonly unknown[] = [
    'x'.repeat(3_000_000),
    Array.from({ length: 400_000 }, (_, at) => at),
    Array.from({ length: 3000 }, () => 'y'.repeat(900)),
    Array.from({ length: 900 }, () => Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`key${at}`, [at]]))),
    { rows: Array.from({ length: 250_000 }, () => [[1]]), text: 'z'.repeat(500_000) }
  ]
  for (const [at, say] of large.entries()) {
    const { length } = JSON.stringify(say)
    t.ok(length > 2_000_000)
    t.is(payloadOf(await client.ask(call(at, 'echo', { say }))), length)
  }
  for (const [at, say] of ['x'.repeat(3_145_728), Array<number>(1_600_000).fill(1)].entries())
    t.is(payloadOf(await client.ask(call(at + 10, 'echo', { say })))['code'], 'RESOURCE_EXHAUSTED')
})

test('arguments beyond tools.maxPayloadBytes in a line that fits are RESOURCE_EXHAUSTED', async (t: Assert) => {
  const scene = new McpScene({ maxPayloadBytes: 1024 })
  scene.tool('echo', () => Promise.resolve('ran'))
  const client = scene.connect(t)
  await client.open()
  // {"say":"..."} is ten bytes around the text; ü is two bytes.
  t.is(payloadOf(await client.ask(call(1, 'echo', { say: 'ü'.repeat(507) }))), 'ran')
  const answer = await client.ask(call(2, 'echo', { say: `${'ü'.repeat(507)}x` }))
  t.is(answer.result?.['isError'], true)
  t.is(payloadOf(answer)['code'], 'RESOURCE_EXHAUSTED')
})

test('only what mcp.eras names is served', async (t: Assert) => {
  const modern = new McpScene({ eras: 'modern' }).connect(t)
  for (const line of [initialize(1), request(1, 'tools/list'), call(1, 'x')])
    t.is((await modern.ask(line)).error?.code, -32_022)
  t.ok((await modern.ask(request(2, 'tools/list', { _meta: CLAIM }))).result)
  const unclaimed = await modern.ask(request(3, 'tools/list'))
  t.is(unclaimed.error?.code, -32_602, 'a message without its claim')
  const legacy = new McpScene({ eras: 'legacy' }).connect(t)
  const refused = await legacy.ask(request(1, 'server/discover', { _meta: CLAIM }))
  t.alike([refused.error?.code, refused.error?.data?.['requested']], [-32_022, '2026-07-28'])
  await legacy.open()
  t.ok((await legacy.ask(request(2, 'tools/list'))).result)
})

test('a method absent from the claimed version is not found, for any params', async (t: Assert) => {
  const client = withEcho().connect(t)
  for (const method of ['initialize', 'resources/subscribe', 'resources/unsubscribe']) {
    for (const params of [{}, { ...(initialize()['params'] as object), uri: 'a2a://audit' }]) {
      t.is((await client.ask(request(1, method, { ...params, _meta: CLAIM }))).error?.code, -32_601, method)
    }
  }
  t.ok((await client.open()).result, 'the handshake is still open to it')
})

test('a claim of a version that nobody serves is refused by its name, never with NOT_INITIALIZED', async (t: Assert) => {
  const client = withEcho().connect(t)
  for (const version of ['2031-01-01', 'x', '2025-06-18']) {
    const claim = { ...CLAIM, 'io.modelcontextprotocol/protocolVersion': version }
    for (const method of ['tools/list', 'server/discover']) {
      const { error } = await client.ask(request(1, method, { _meta: claim }))
      t.alike(
        [error?.code, error?.data?.['supported'], error?.data?.['requested']],
        [-32_022, ['2026-07-28'], version],
        method
      )
    }
  }
  const broken = { 'io.modelcontextprotocol/protocolVersion': 7 }
  t.is((await client.ask(request(1, 'tools/list', { _meta: broken }))).error?.code, -32_602)
  t.ok((await client.open()).result, 'the handshake is still open to it')
})
