import test, { type Assert } from 'brittle'
import { HttpError } from '../../../src/adapters/http/http-error.js'
import { startHttpListener } from '../../../src/adapters/http/listener.js'
import { healthRoute, type HttpRoute, type RoutePlace, type TokenCall } from '../../../src/adapters/http/route.js'
import { failsWith } from '../../support/fails.js'
import {
  ask,
  echoRoute,
  errorOf,
  head,
  HOLDER,
  listening,
  RawConnection,
  statusOf,
  streamRoute,
  TOKEN,
  WITH_TOKEN,
  statusesOf
} from './raw-http.js'

test('health needs no token and discloses nothing of the node', async (t: Assert) => {
  const { port } = await listening(t, [healthRoute()])
  const text = await ask(t, port, head('GET /health', { port, headers: ['Connection: close'] }))
  t.is(statusOf(text), 200)
  t.is(text.slice(text.indexOf('\r\n\r\n') + 4), '{"status":"ok"}')
  t.absent(/server|powered/i.test(text))
  const bare = await ask(t, port, head('HEAD /health', { port, headers: ['Connection: close'] }))
  t.ok(statusOf(bare) === 200 && bare.endsWith('\r\n\r\n'))
})

test('before it is opened it answers that the node is starting', async (t: Assert) => {
  const listener = await startHttpListener({ host: '127.0.0.1', port: 0, hosts: [], origins: [] })
  t.teardown(() => listener.close())
  const port = Number(new URL(listener.url).port)
  const text = await ask(t, port, head('GET /health', { port }))
  t.is(statusOf(text), 503)
  t.is(errorOf(text).code, 'NODE_NOT_RUNNING')
})

test('a port that is taken is PORT_IN_USE, a host that this machine lacks CONFIG_INVALID', async (t: Assert) => {
  const { port } = await listening(t, [])
  await failsWith(t, 'PORT_IN_USE', () => startHttpListener({ host: '127.0.0.1', port, hosts: [], origins: [] }))
  const { message } = await failsWith(t, 'CONFIG_INVALID', () =>
    startHttpListener({ host: '192.0.2.77', port: 0, hosts: [], origins: [] })
  )
  t.is(message, 'cannot serve HTTP on 192.0.2.77:0: the address is not one of this machine')
})

test('of routes that fit, the whole path wins, then one segment between two parts, then the longest beginning', async (t: Assert) => {
  const named = (name: string, place: RoutePlace): HttpRoute => ({
    ...place,
    methods: ['GET'],
    isPublic: true,
    handle: (_request, response) => void response.end(name)
  })
  const { port } = await listening(t, [
    named('begins', { prefix: '/a/' }),
    named('longer', { prefix: '/a/b/c' }),
    named('between', { prefix: '/a/', suffix: '/c' }),
    named('whole', { path: '/a/x/c' })
  ])
  const table = {
    '/a/b/c': 'between',
    '/a/b/cd': 'longer',
    '/a/b%2F/c': 'between',
    '/a/x/c': 'whole',
    '/a//c': 'begins',
    '/a/c': 'begins',
    '/a/b/b/c': 'begins',
    '/a/b/': 'begins'
  }
  for (const [path, name] of Object.entries(table)) {
    const text = await ask(t, port, head(`GET ${path}`, { port, headers: ['Connection: close'] }))
    t.ok(text.endsWith(name) || text.includes(`\r\n${name}\r\n`), `${path}: ${text.slice(text.indexOf('\r\n\r\n'))}`)
  }
})

test('a caller with the token reaches the route with its identity', async (t: Assert) => {
  let seen: unknown = null
  const route: HttpRoute = {
    prefix: '/deep/',
    methods: ['GET'],
    handle: (_request, response, { principal, path, query }) => {
      seen = { principal, path, query }
      response.end('ok')
    }
  }
  const { port } = await listening(t, [route])
  const text = await ask(t, port, head('GET /deep/er?q=1', { port, headers: [WITH_TOKEN, 'Connection: close'] }))
  t.is(statusOf(text), 200)
  t.alike(seen, { principal: HOLDER, path: '/deep/er', query: 'q=1' })
})

test('no token, a wrong one, two of them, or one elsewhere than in the header: 401 that says how, and on record', async (t: Assert) => {
  const { port, refusals } = await listening(t, [echoRoute()])
  const none = await ask(t, port, head('POST /echo', { port }))
  t.is(statusOf(none), 401)
  t.ok(/\r\nwww-authenticate: Bearer realm="a2a-node"\r\n/i.test(none))
  t.is(errorOf(none).code, 'UNAUTHORIZED')
  const wrong = [
    ['Authorization: Bearer a2a_wrong'],
    [`Authorization: Bearer ${TOKEN}x`],
    [`Authorization: Bearer  ${TOKEN}`],
    [`Authorization: Basic ${TOKEN}`],
    [`Authorization: ${TOKEN}`],
    ['Authorization:'],
    [WITH_TOKEN, WITH_TOKEN],
    ['Authorization: Bearer a2a_wrong', WITH_TOKEN]
  ]
  for (const headers of wrong) {
    const text = await ask(t, port, head('POST /echo', { port, headers }))
    t.is(statusOf(text), 401, headers.join())
    t.ok(/error="invalid_token"/.test(text))
  }
  for (const target of [`/echo?access_token=${TOKEN}`, `/echo?token=${TOKEN}`])
    t.is(statusOf(await ask(t, port, head(`POST ${target}`, { port }))), 401)
  t.is(refusals.length, wrong.length + 3)
  t.ok(refusals.every(({ rule, status }) => rule === 'http-token' && status === 401))
  t.absent(JSON.stringify(refusals).includes('a2a_'), 'nothing that was sent is in the record')
})

test('without a token nobody learns which paths there are; with one, unknown paths are 404 and wrong methods 405', async (t: Assert) => {
  const { port } = await listening(t, [echoRoute(), healthRoute()])
  for (const target of ['/echo', '/nothing', '*', '/echo/', '//echo'])
    t.is(statusOf(await ask(t, port, head(`GET ${target}`, { port }))), 401, target)
  const close = [WITH_TOKEN, 'Connection: close']
  for (const target of ['/nothing', '/ECHO', '/echo/x', '/a/../echo', '/%65cho', '*']) {
    const text = await ask(t, port, head(`POST ${target}`, { port, headers: close }))
    t.is(statusOf(text), 404, target)
    t.is(errorOf(text).code, 'NOT_FOUND')
    t.ok(/content-type: application\/json/i.test(text))
  }
  const wrong = await ask(t, port, head('DELETE /echo', { port, headers: close }))
  t.is(statusOf(wrong), 405)
  t.ok(/\r\nallow: POST\r\n/i.test(wrong))
  t.ok(
    /\r\nallow: GET, HEAD\r\n/i.test(await ask(t, port, head('POST /health', { port, headers: ['Connection: close'] })))
  )
})

test('foreign hosts and origins are 403 before anything else, with a good token too', async (t: Assert) => {
  let calls = 0
  const route: HttpRoute = {
    path: '/x',
    methods: ['GET', 'OPTIONS'],
    isPublic: true,
    handle: (_request, response) => response.end(String(++calls))
  }
  const { port, refusals } = await listening(t, [route])
  const foreign = [
    `GET /x HTTP/1.1\r\nHost: rebound.example:${port}\r\n\r\n`,
    `GET /x HTTP/1.1\r\nHost: rebound.example:${port}\r\n${WITH_TOKEN}\r\n\r\n`,
    `GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n`,
    `GET /x HTTP/1.1\r\n\r\n`,
    `GET /x HTTP/1.0\r\n\r\n`,
    `GET http://rebound.example/x HTTP/1.1\r\nHost: localhost:${port}\r\n\r\n`,
    `GET /x HTTP/1.1\r\nHost: localhost:${port}\r\nHost: localhost:${port}\r\n\r\n`,
    `GET /x HTTP/1.1\r\nHost: localhost:${port}\r\n${'a:\r\n'.repeat(3000)}Origin: http://evil.example\r\n\r\n`,
    head('GET /x', { port, headers: ['Origin: http://evil.example'] }),
    head('GET /x', { port, headers: ['Origin: null', WITH_TOKEN] }),
    head('OPTIONS /x', { port, headers: ['Origin: http://evil.example', 'Access-Control-Request-Method: GET'] })
  ]
  for (const text of foreign) {
    const answer = await ask(t, port, text)
    t.is(statusOf(answer), 403, JSON.stringify(text.slice(0, 60)))
    t.is(errorOf(answer).code, 'FORBIDDEN')
    t.absent(/access-control/i.test(answer))
  }
  t.is(calls, 0)
  t.is(refusals.length, foreign.length)
  const close = 'Connection: close'
  t.is(
    statusOf(await ask(t, port, head(`GET http://localhost:${port}/x`, { port, headers: [close] }))),
    200,
    'absolute form of our own'
  )
  t.is(
    statusOf(await ask(t, port, head('GET /x', { port, headers: [`Origin: http://localhost:${port}`, close] }))),
    200,
    'our own origin'
  )
})

test('a page that the config names may ask first and read the answer; it needs a token like everybody', async (t: Assert) => {
  const { port } = await listening(t, [echoRoute()], { origins: ['https://app.example.org'] })
  const from = 'Origin: https://app.example.org'
  const asks = [
    'Access-Control-Request-Method: POST',
    'Access-Control-Request-Headers: authorization,content-type',
    'Connection: close'
  ]
  const asked = await ask(t, port, head('OPTIONS /echo', { port, headers: [from, ...asks] }))
  t.is(statusOf(asked), 204)
  t.ok(/\r\naccess-control-allow-origin: https:\/\/app\.example\.org\r\n/i.test(asked))
  t.ok(/\r\naccess-control-allow-headers: authorization,content-type\r\n/i.test(asked))
  t.ok(/\r\naccess-control-allow-methods: POST\r\n/i.test(asked))
  const refused = await ask(t, port, head('POST /echo', { port, headers: [from] }))
  t.is(statusOf(refused), 401)
  t.ok(/\r\naccess-control-allow-origin: https:\/\/app/i.test(refused), 'it may read why')
  const done = await ask(
    t,
    port,
    `${head('POST /echo', { port, headers: [from, WITH_TOKEN, 'Content-Length: 2', 'Connection: close'] })}hi`
  )
  t.is(statusOf(done), 200)
})

test('requests on one connection are answered in their order; behind one that is refused nothing is done', async (t: Assert) => {
  const seen: string[] = []
  const route: HttpRoute = {
    prefix: '/n/',
    methods: ['GET'],
    handle: async (_request, response, { path }) => {
      seen.push(path)
      // The first waits until all have come.
      if (path === '/n/1') await new Promise((resolve) => setImmediate(resolve))
      response.end(path)
    }
  }
  const { port } = await listening(t, [route])
  const get = (path: string, ...more: string[]): string => head(`GET ${path}`, { port, headers: [WITH_TOKEN, ...more] })
  const text = await ask(t, port, get('/n/1') + get('/n/2') + get('/n/3', 'Connection: close'))
  t.alike(
    [...text.matchAll(/\/n\/\d/g)].map(([path]) => path),
    ['/n/1', '/n/2', '/n/3']
  )
  seen.length = 0
  const refused = await ask(t, port, get('/n/1') + head('GET /n/2', { port }) + get('/n/3'))
  t.alike(statusesOf(refused), [200, 401])
  t.alike(seen, ['/n/1'])
})

test('behind a token that takes time to be checked nothing is done before it counts, and nothing when it does not', async (t: Assert) => {
  const seen: string[] = []
  const route: HttpRoute = {
    prefix: '/n/',
    methods: ['GET'],
    handle: (_request, response, { path }) => {
      seen.push(path)
      response.end(path)
    }
  }
  const checks: ((is: boolean) => void)[] = []
  const slow = (token: string) =>
    token === 'slow' ? new Promise<boolean>((resolve) => void checks.push(resolve)) : null
  const { port } = await listening(t, [route], { slow })
  const late = (path: string): string => head(`GET ${path}`, { port, headers: ['Authorization: Bearer slow'] })
  const quick = (path: string, ...more: string[]): string =>
    head(`GET ${path}`, { port, headers: [WITH_TOKEN, ...more] })
  const untilChecked = async (count: number): Promise<void> => {
    while (checks.length < count) await new Promise((resolve) => setImmediate(resolve))
  }
  const refused = new RawConnection(t, port).write(late('/n/1') + quick('/n/2') + late('/n/3'))
  await untilChecked(1)
  checks[0]?.(false)
  t.alike([statusesOf(await refused.end()), seen, checks.length], [[401], [], 1])
  const taken = new RawConnection(t, port).write(
    late('/n/1') + late('/n/2') + quick('/n/3') + quick('/n/4', 'Connection: close')
  )
  await untilChecked(2)
  checks[1]?.(true)
  await untilChecked(3)
  t.alike(seen, ['/n/1'])
  checks[2]?.(true)
  t.alike(
    [statusesOf(await taken.end()), seen],
    [
      [200, 200, 200, 200],
      ['/n/1', '/n/2', '/n/3', '/n/4']
    ]
  )
})

test('revoking a token cuts what is open under it at once, and lets nobody in again', async (t: Assert) => {
  let open: TokenCall | null = null
  const { port, revoke, holders } = await listening(t, [streamRoute((call) => (open = call))])
  const connection = new RawConnection(t, port).write(head('GET /stream', { port, headers: [WITH_TOKEN] }))
  await connection.until('data: first')
  const { signal } = open as unknown as TokenCall
  t.is(holders(), 1)
  t.absent(signal.aborted)
  revoke()
  t.ok(signal.aborted)
  await connection.closed
  t.is(statusOf(await ask(t, port, head('GET /stream', { port, headers: [WITH_TOKEN] }))), 401)
})

test('a handler may say a last word when its token is revoked', async (t: Assert) => {
  const route: HttpRoute = {
    path: '/stream',
    methods: ['GET'],
    handle: (_request, response, { signal }) => {
      signal.addEventListener('abort', () => response.end('data: revoked\n\n'))
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: first\n\n')
    }
  }
  const { port, revoke } = await listening(t, [route])
  const connection = new RawConnection(t, port).write(head('GET /stream', { port, headers: [WITH_TOKEN] }))
  await connection.until('data: first')
  revoke()
  t.ok((await connection.end()).includes('data: revoked'))
})

test('a handler that waits for the end of a token is notified after the answer too, and not after it unsubscribed', async (t: Assert) => {
  const ended: string[] = []
  const release: (() => void)[] = []
  const route: HttpRoute = {
    prefix: '/n/',
    methods: ['GET'],
    handle: (_request, response, call) => {
      release.push(call.onTokenEnd(() => ended.push(call.path)))
      response.end()
    }
  }
  const { port, revoke, holders } = await listening(t, [route])
  const get = (path: string, ...more: string[]): string => head(`GET ${path}`, { port, headers: [WITH_TOKEN, ...more] })
  t.alike(statusesOf(await ask(t, port, get('/n/1') + get('/n/2', 'Connection: close'))), [200, 200])
  release[0]?.()
  t.is(holders(), 1)
  revoke()
  t.alike(ended, ['/n/2'])
})

test('a client that hangs up ends the signal of its request and holds nothing', async (t: Assert) => {
  let opened: (call: TokenCall) => void = () => {}
  const open = new Promise<TokenCall>((resolve) => (opened = resolve))
  const { port, holders } = await listening(t, [streamRoute((call) => opened(call))])
  const connection = new RawConnection(t, port).write(head('GET /stream', { port, headers: [WITH_TOKEN] }))
  const call = await open
  const told = new Promise<void>((resolve) => call.onAbort(resolve))
  const aborted = new Promise<void>((resolve) => call.signal.addEventListener('abort', resolve))
  connection.socket.destroy()
  await Promise.all([aborted, told])
  await new Promise<void>((resolve) => call.onAbort(resolve))
  t.is(holders(), 0)
})

test('a client that hangs up ends all that it asked for on the connection, also what waits behind another answer', async (t: Assert) => {
  const ended: string[] = []
  const route: HttpRoute = {
    prefix: '/',
    methods: ['GET'],
    handle: (_request, response, call) => {
      const { path } = call
      call.onAbort(() => ended.push(`${path} aborted`))
      response.on('close', () => ended.push(`${path} closed`))
      if (path === '/done') response.end('done')
      if (path === '/stream') response.write('data: first\n\n')
    }
  }
  const { port, holders } = await listening(t, [route])
  const paths = ['/slow', '/done', '/stream']
  const client = new RawConnection(t, port).write(
    paths.map((path) => head(`GET ${path}`, { port, headers: [WITH_TOKEN] })).join('')
  )
  while (holders() < 3) await new Promise((resolve) => setImmediate(resolve))
  client.socket.destroy()
  while (holders() > 0) await new Promise((resolve) => setImmediate(resolve))
  t.alike(ended.sort(), paths.flatMap((path) => [`${path} aborted`, `${path} closed`]).sort())
})

test('nothing is begun for a client that hung up while its token was checked', async (t: Assert) => {
  let settle = (_isGood: boolean): void => {}
  const checked = new Promise<boolean>((resolve) => (settle = resolve))
  let begun = 0
  let asked = 0
  const route: HttpRoute = { path: '/x', methods: ['GET'], handle: () => void begun++ }
  const slow = (): Promise<boolean> => {
    asked++
    return checked
  }
  const { port, holders, listener } = await listening(t, [route], { slow })
  const client = new RawConnection(t, port).write(head('GET /x', { port, headers: [WITH_TOKEN] }).repeat(3))
  while (asked === 0) await new Promise((resolve) => setImmediate(resolve))
  client.socket.destroy()
  const other = new RawConnection(t, port).write(
    head('GET /none', { port, headers: [WITH_TOKEN, 'Connection: close'] })
  )
  while (asked === 1) await new Promise((resolve) => setImmediate(resolve))
  settle(true)
  t.is(statusOf(await other.end()), 404)
  t.alike([begun, holders(), asked], [0, 0, 2])
  await listener.close()
})

test('an error of a handler is 500 without its text; an HttpError is the answer; after the first byte the connection is cut', async (t: Assert) => {
  const routes: HttpRoute[] = [
    { path: '/bug', methods: ['GET'], handle: () => Promise.reject(new Error('secret detail')) },
    {
      path: '/throws',
      methods: ['GET'],
      handle: () => {
        throw new HttpError(409, { code: 'CONFLICT', message: 'busy', headers: { 'retry-after': '3' } })
      }
    },
    {
      path: '/late',
      methods: ['GET'],
      handle: async (_request, response) => {
        await new Promise<void>((resolve) => response.write('partial', () => resolve()))
        throw new Error('late')
      }
    }
  ]
  const { port, faults } = await listening(t, routes)
  const get = (path: string): Promise<string> =>
    ask(t, port, head(`GET ${path}`, { port, headers: [WITH_TOKEN, 'Connection: close'] }))
  const bug = await get('/bug')
  t.is(statusOf(bug), 500)
  t.absent(bug.includes('secret'))
  const thrown = await get('/throws')
  t.alike([statusOf(thrown), errorOf(thrown)], [409, { code: 'CONFLICT', message: 'busy' }])
  t.ok(/retry-after: 3/i.test(thrown))
  const late = await get('/late')
  t.ok(late.includes('partial') && !late.includes('\r\n0\r\n'), 'an answer that broke off does not look complete')
  t.is(faults.length, 2)
})
