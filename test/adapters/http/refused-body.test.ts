import { once } from 'node:events'
import test, { type Assert } from 'brittle'
import type { HttpRoute } from '../../../src/adapters/http/route.js'
import { ask, head, listening, RawConnection, statusesOf, statusOf, WITH_TOKEN } from './raw-http.js'

const MAX = 1000
const JSON_TYPE = 'Content-Type: application/json'

/** Its errors have the text of the body; null: it was not read. */
const route = (more: Partial<HttpRoute> = {}): HttpRoute => ({
  path: '/rpc',
  methods: ['GET', 'POST'],
  errorBody: (_error, { body, edges = null }) => ({
    read: body === null ? edges && [edges.head, edges.tail].map(String).join('...') : String(body)
  }),
  refusedBodyBytes: ({ method }) => (method === 'POST' ? MAX : 0),
  handle: async (_request, response, call) => void response.end(await call.readBody()),
  ...(more as object)
})

const readOf = (text: string): string | null =>
  (JSON.parse(text.slice(text.indexOf('\r\n\r\n') + 4)) as { read: string | null }).read
const sized = (port: number, body: string, ...headers: string[]): string =>
  `${head('POST /rpc', { port, headers: [`Content-Length: ${body.length}`, ...headers] })}${body}`

test('the answer to a request without a valid token may name its body: JSON within the bound, announced or in chunks', async (t: Assert) => {
  const { port } = await listening(t, [route()])
  const full = `"${'x'.repeat(MAX - 2)}"`
  const chunked = `${head('POST /rpc', { port, headers: [JSON_TYPE, 'Transfer-Encoding: chunked'] })}2\r\n{}\r\n0\r\n\r\n`
  for (const [text, body] of [
    [sized(port, '{"id":1}', JSON_TYPE), '{"id":1}'],
    [sized(port, '{"id":1}', JSON_TYPE, 'Authorization: Bearer wrong'), '{"id":1}'],
    [sized(port, '{}', 'Content-Type: application/a2a+json; charset=utf-8'), '{}'],
    [sized(port, full, JSON_TYPE), full],
    [chunked, '{}']
  ] as const) {
    const answer = await ask(t, port, text)
    t.alike([statusOf(answer), readOf(answer)], [401, body])
  }
})

test('a body of another type, above the bound or after 100 Continue is not read, nor where no id is needed', async (t: Assert) => {
  const { port } = await listening(t, [route()])
  const large = 'x'.repeat(MAX + 1)
  const chunks = `${(MAX + 1).toString(16)}\r\n${large}\r\n0\r\n\r\n`
  for (const text of [
    sized(port, '{}', 'Content-Type: text/plain'),
    sized(port, '{}', 'Content-Type: application/jsonx'),
    sized(port, '{}'),
    sized(port, large, JSON_TYPE),
    `${head('POST /rpc', { port, headers: [JSON_TYPE, 'Transfer-Encoding: chunked'] })}${chunks}`,
    head('POST /rpc', { port, headers: [JSON_TYPE, 'Content-Length: 2', 'Expect: 100-continue'] }),
    head('GET /rpc', { port, headers: [JSON_TYPE] })
  ]) {
    const answer = await ask(t, port, text)
    t.alike([statusesOf(answer), readOf(answer)], [[401], null], text.split('\r\n').join(' ').slice(0, 100))
  }
})

test('a client that sends its body slowly gets its 401 in bounded time', { timeout: 20_000 }, async (t: Assert) => {
  const { port } = await listening(t, [route()], { limits: { refusedBodyMs: 200, refusedBodies: 3, drainMs: 100 } })
  const slow = Array.from({ length: 3 }, () =>
    new RawConnection(t, port).write(head('POST /rpc', { port, headers: [JSON_TYPE, 'Content-Length: 9'] }))
  )
  for (const one of slow) one.write('{')
  for (const { socket } of slow) if (socket.connecting) await once(socket, 'connect')
  for (const one of slow) t.alike([statusOf(await one.end()), readOf(one.text)], [401, null])
  t.is(readOf(await ask(t, port, sized(port, '{}', JSON_TYPE))), '{}', 'their places are free again')
})

test('no more bodies of refused requests are read at once than the bound; further answers come at once', async (t: Assert) => {
  const { port } = await listening(t, [route()], { limits: { refusedBodyMs: 60_000, refusedBodies: 2, drainMs: 50 } })
  const begin = head('POST /rpc', { port, headers: [JSON_TYPE, 'Content-Length: 2'] })
  const open = Array.from({ length: 5 }, () => new RawConnection(t, port).write(begin))
  const first = await Promise.race(open.map(async (one) => (await one.until('{"read":null}'), one)))
  const rest = open.filter((one) => one !== first)
  await Promise.race(rest.map((one) => one.until('{"read":null}')))
  for (const one of open) one.write('{}')
  const all = await Promise.all(open.map((one) => one.end()))
  t.ok(all.every((text) => statusOf(text) === 401))
  t.is(all.filter((text) => readOf(text) === '{}').length, 2)
})

test('a malformed body of a refused request ends the reading: its 401 comes at once', {
  timeout: 20_000
}, async (t: Assert) => {
  const { port, refusals } = await listening(t, [route()], { limits: { refusedBodyMs: 60_000, drainMs: 50 } })
  const begin = head('POST /rpc', { port, headers: [JSON_TYPE, 'Transfer-Encoding: chunked'] })
  const answer = await ask(t, port, `${begin}no chunk\r\n`)
  t.alike([statusesOf(answer), readOf(answer)], [[401], null])
  t.is(refusals.length, 1)
})

test('a client that hangs up in the body of its refused request leaves nothing behind', async (t: Assert) => {
  const { port, faults } = await listening(t, [route()], {
    limits: { refusedBodyMs: 60_000, refusedBodies: 1, drainMs: 50 }
  })
  for (let one = 0; one < 5; one++) {
    const { socket, closed } = new RawConnection(t, port).write(
      head('POST /rpc', { port, headers: [JSON_TYPE, 'Content-Length: 9'] })
    )
    if (socket.connecting) await once(socket, 'connect')
    socket.resetAndDestroy()
    await closed
  }
  const read = async (): Promise<boolean> => readOf(await ask(t, port, sized(port, '{}', JSON_TYPE))) === '{}'
  let isFree = false
  for (let one = 0; one < 100 && !isFree; one++) isFree = await read()
  t.ok(isFree)
  t.alike(faults, [])
})

test('of a body above the limit of its route the edges are read, announced or in chunks, unless it is larger than is read past or comes too slowly', async (t: Assert) => {
  const limits = { skipBytes: 50, skipMs: 100, drainMs: 50 }
  const { port, faults } = await listening(t, [route({ maxBodyBytes: 10 })], { limits })
  const about = (length: number, ...headers: string[]): string =>
    head('POST /rpc', { port, headers: [WITH_TOKEN, JSON_TYPE, ...headers, `Content-Length: ${length}`] })
  const text = `{"id":1,${'x'.repeat(40)}}`
  const chunked = head('POST /rpc', { port, headers: [WITH_TOKEN, JSON_TYPE, 'Transfer-Encoding: chunked'] })
  for (const [sent, read] of [
    [`${about(text.length)}${text}`, `${text}...${text}`],
    [`${about(text.length)}${text}${about(2)}{}`, `${text}...${text}`],
    [`${about(51)}${'x'.repeat(51)}`, null],
    [about(50), null],
    [about(50, 'Expect: 100-continue'), null],
    [`${chunked}b\r\n${'x'.repeat(11)}\r\n0\r\n\r\n`, `${'x'.repeat(11)}...${'x'.repeat(11)}`],
    [
      `${chunked}${text.replaceAll(/.{1,8}/g, (some) => `${some.length}\r\n${some}\r\n`)}0\r\n\r\n`,
      `${text}...${text}`
    ],
    [`${chunked}33\r\n${'x'.repeat(51)}\r\n0\r\n\r\n`, null],
    [`${chunked}b\r\n${'x'.repeat(11)}\r\n9\r\nx`, null],
    [`${chunked}b\r\n${'x'.repeat(11)}\r\nno size\r\n`, null]
  ] as const) {
    const answer = await ask(t, port, sent)
    t.alike([statusesOf(answer), readOf(answer)], [[413], read], sent.slice(-60))
  }
  const expecting = chunked.replace('\r\n\r\n', '\r\nExpect: 100-continue\r\n\r\n')
  const answer = await ask(t, port, `${expecting}b\r\n${'x'.repeat(11)}\r\n0\r\n\r\n`)
  t.alike([statusesOf(answer), answer.includes('"read":"xxxxxxxxxxx...')], [[100, 413], true], 'after 100 Continue')
  t.alike(faults, [])
})
