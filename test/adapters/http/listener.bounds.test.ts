import { once } from 'node:events'
import http from 'node:http'
import net from 'node:net'
import test, { type Assert } from 'brittle'
import type { HttpError } from '../../../src/adapters/http/http-error.js'
import { healthRoute, type HttpCall, type HttpRoute, type TokenCall } from '../../../src/adapters/http/route.js'
import {
  ask,
  echoRoute,
  errorOf,
  head,
  listening,
  RawConnection,
  statusesOf,
  statusOf,
  streamRoute,
  TOKEN,
  WITH_TOKEN
} from './raw-http.js'

test('a body at the bound passes, one byte more is 413, announced or not', async (t: Assert) => {
  const { port } = await listening(t, [echoRoute({ maxBodyBytes: 10 })])
  const sized = (bytes: number): string =>
    `${head('POST /echo', { port, headers: [WITH_TOKEN, `Content-Length: ${bytes}`, 'Connection: close'] })}${'x'.repeat(bytes)}`
  const chunked = (bytes: number): string =>
    `${head('POST /echo', { port, headers: [WITH_TOKEN, 'Transfer-Encoding: chunked', 'Connection: close'] })}${bytes.toString(16)}\r\n${'x'.repeat(bytes)}\r\n0\r\n\r\n`
  for (const form of [sized, chunked]) {
    const good = await ask(t, port, form(10))
    t.is(statusOf(good), 200)
    t.ok(good.endsWith('x'.repeat(10)))
    const large = await ask(t, port, form(11))
    t.is(statusOf(large), 413)
    t.is(errorOf(large).code, 'PAYLOAD_TOO_LARGE')
  }
})

test('a route that reads large bodies itself refuses one in its own words', async (t: Assert) => {
  const handle = async (_request: unknown, _response: unknown, call: HttpCall): Promise<unknown> =>
    await call.readBody().catch((error: HttpError) => {
      error.shape = { own: 'words' }
      throw error
    })
  const { port } = await listening(t, [
    { path: '/echo', methods: ['POST'], maxBodyBytes: 10, readsLargeBodies: true, handle }
  ])
  const text = `${head('POST /echo', { port, headers: [WITH_TOKEN, 'Content-Length: 11', 'Connection: close'] })}${'x'.repeat(11)}`
  const answer = await ask(t, port, text)
  t.is(statusOf(answer), 413)
  t.ok(answer.endsWith('{"own":"words"}'))
})

test('a client that is still sending reads its 401 or 413, and is cut when it does not stop', async (t: Assert) => {
  const { port } = await listening(t, [echoRoute({ maxBodyBytes: 1000 })], {
    limits: { drainMs: 100, drainBytes: 100_000 }
  })
  const endless = ['Transfer-Encoding: chunked']
  const chunk = `4000\r\n${'x'.repeat(0x4000)}\r\n`
  for (const [status, headers] of [
    [401, endless],
    [401, ['Content-Length: 999999999']],
    [413, [WITH_TOKEN, ...endless]],
    [413, [WITH_TOKEN, 'Content-Length: 999999999']]
  ] as const) {
    const connection = new RawConnection(t, port).write(head('POST /echo', { port, headers }))
    const send = (): void => {
      while (connection.socket.writable && connection.socket.write(chunk));
    }
    connection.socket.on('drain', send)
    send()
    const text = await connection.until(/\}\}$/)
    t.is(statusOf(text), status)
    t.ok(/connection: close/i.test(text))
    t.ok(['UNAUTHORIZED', 'PAYLOAD_TOO_LARGE'].includes(errorOf(text).code))
    await connection.closed
    t.ok(connection.socket.bytesWritten < 8_000_000, `${connection.socket.bytesWritten} bytes were taken at most`)
  }
})

test('an ordinary client that sends 8 MiB to a route of 1 MiB reads its 413', async (t: Assert) => {
  const { port } = await listening(t, [echoRoute()], { limits: { drainMs: 2000 } })
  const request = http.request({
    port,
    host: '127.0.0.1',
    path: '/echo',
    method: 'POST',
    headers: { authorization: `Bearer ${TOKEN}` }
  })
  request.on('error', () => {})
  request.end(Buffer.alloc(8 * 1024 * 1024))
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  t.is(response.statusCode, 413)
  const body = (await response.toArray()).join('')
  t.is((JSON.parse(body) as { error: { code: string } }).error.code, 'PAYLOAD_TOO_LARGE')
})

test('a body that nobody reads is bounded too', async (t: Assert) => {
  const { port } = await listening(t, [healthRoute()], { limits: { drainMs: 50, drainBytes: 100_000 } })
  const connection = new RawConnection(t, port).write(
    head('GET /health', { port, headers: ['Transfer-Encoding: chunked'] })
  )
  const chunk = `4000\r\n${'x'.repeat(0x4000)}\r\n`
  const send = (): void => {
    while (connection.socket.writable && connection.socket.write(chunk));
  }
  connection.socket.on('drain', send)
  send()
  t.is(statusOf(await connection.end()), 200)
})

test('a body that broke off before it was asked for is one that breaks off', async (t: Assert) => {
  let known: (call: TokenCall) => void = () => {}
  const open = new Promise<TokenCall>((resolve) => (known = resolve))
  const late: HttpRoute = { path: '/late', methods: ['POST'], handle: (_request, _response, call) => known(call) }
  const { port } = await listening(t, [late])
  const client = new RawConnection(t, port).write(
    head('POST /late', { port, headers: [WITH_TOKEN, 'Content-Length: 6'] })
  )
  const call = await open
  const gone = new Promise<void>((resolve) => call.onAbort(resolve))
  client.socket.destroy()
  await gone
  await new Promise((resolve) => setImmediate(resolve))
  t.is(await call.readBody().then(String, (error: { code: string }) => error.code), 'INCOMPLETE')
})

test('a client that waits for 100 Continue sends no body of a refused request', async (t: Assert) => {
  const { port } = await listening(t, [echoRoute({ maxBodyBytes: 1000 })])
  const waits = 'Expect: 100-continue'
  const refused = await ask(t, port, head('POST /echo', { port, headers: ['Content-Length: 900', waits] }))
  t.alike(statusesOf(refused), [401])
  const large = await ask(t, port, head('POST /echo', { port, headers: [WITH_TOKEN, 'Content-Length: 1001', waits] }))
  t.alike(statusesOf(large), [413])
  const connection = new RawConnection(t, port).write(
    head('POST /echo', { port, headers: [WITH_TOKEN, 'Content-Length: 2', waits, 'Connection: close'] })
  )
  await connection.until('100 Continue')
  t.alike(statusesOf(await connection.write('hi').end()), [100, 200])
  t.is(
    statusOf(
      await ask(t, port, head('POST /echo', { port, headers: [WITH_TOKEN, 'Expect: a miracle', 'Connection: close'] }))
    ),
    417
  )
})

test('garbage, oversize headers and smuggling are answered in JSON, put on record and cut', async (t: Assert) => {
  const { port, refusals } = await listening(t, [healthRoute()], { limits: { drainMs: 50 } })
  const smuggled = head('POST /health', { port, headers: ['Content-Length: 4', 'Transfer-Encoding: chunked'] })
  const bad: readonly (readonly [number, string])[] = [
    [400, 'nonsense\r\n\r\n'],
    [400, '\u0016\u0003\u0001\u0002\u0000\u0001'],
    [400, smuggled],
    [400, head('POST /health', { port, headers: ['Content-Length: -1'] })],
    [400, head('GET /health', { port, headers: ['Bad Header: x'] })],
    [431, head('GET /health', { port, headers: [`X: ${'x'.repeat(17_000)}`] })],
    [431, head(`GET /${'x'.repeat(17_000)}`, { port })]
  ]
  for (const [status, text] of bad) {
    const answer = await ask(t, port, text)
    t.is(statusOf(answer), status, JSON.stringify(text.slice(0, 60)))
    t.ok(errorOf(answer).code.length > 0)
    t.absent(/<html/i.test(answer))
  }
  t.is(refusals.length, bad.length)
  t.is(
    statusOf(await ask(t, port, head('GET /health', { port, headers: ['Connection: close'] }))),
    200,
    'and it goes on serving'
  )
})

test('bytes that make no sense behind a good request end the connection without harming its answer', async (t: Assert) => {
  const { port } = await listening(t, [healthRoute()], { limits: { drainMs: 50 } })
  const connection = new RawConnection(t, port).write(head('GET /health', { port }))
  await connection.until('{"status":"ok"}')
  t.alike(statusesOf(await connection.write('\u0000\u0001garbage\r\n\r\n').end()), [200, 400])
})

test('slow headers, slow bodies and silent connections are ended in time', async (t: Assert) => {
  const limits = { headersTimeoutMs: 50, requestTimeoutMs: 100, checkMs: 10, drainMs: 50 }
  const { port, refusals, faults } = await listening(t, [echoRoute()], { limits })
  const slow = await ask(t, port, `POST /echo HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n`)
  t.is(statusOf(slow), 408)
  t.is(errorOf(slow).code, 'TIMEOUT')
  const body = await ask(t, port, `${head('POST /echo', { port, headers: [WITH_TOKEN, 'Content-Length: 10'] })}abc`)
  t.is(statusOf(body), 408)
  t.is(refusals.length, 2)
  await ask(t, port, '')
  t.is(refusals.length, 2, 'a silent connection is closed without a report')
  t.alike(faults, [])
})

test('connections beyond the limit are dropped; one that ends frees a slot', async (t: Assert) => {
  const { port } = await listening(t, [healthRoute()], { limits: { maxConnections: 2 } })
  const two = [new RawConnection(t, port), new RawConnection(t, port)]
  for (const one of two) await one.write(head('GET /health', { port })).until('ok')
  t.is(await ask(t, port, head('GET /health', { port })), '')
  two[0]?.socket.destroy()
  let text = ''
  while (text === '') text = await ask(t, port, head('GET /health', { port, headers: ['Connection: close'] }))
  t.is(statusOf(text), 200)
})

test('closing lets go of idle connections, gives a request its time, and cuts what stays', async (t: Assert) => {
  let opened: (call: TokenCall) => void = () => {}
  const open = new Promise<TokenCall>((resolve) => (opened = resolve))
  const { port, listener } = await listening(t, [streamRoute((call) => opened(call)), healthRoute()], {
    limits: { closeGraceMs: 50 }
  })
  const idle = new RawConnection(t, port).write(head('GET /health', { port }))
  await idle.until('ok')
  const stream = new RawConnection(t, port).write(head('GET /stream', { port, headers: [WITH_TOKEN] }))
  const { signal } = await open
  const closed = listener.close()
  t.ok(signal.aborted, 'the handler gets it')
  await Promise.all([closed, idle.closed, stream.closed, listener.close()])
  const late = net.connect(port, '127.0.0.1')
  const [error] = (await once(late, 'error')) as [NodeJS.ErrnoException]
  t.is(error.code, 'ECONNREFUSED')
})

test('two thousand refused requests harm nobody else', async (t: Assert) => {
  const { port, refusals } = await listening(t, [healthRoute(), echoRoute()])
  const agent = new http.Agent({ keepAlive: true, maxSockets: 16 })
  t.teardown(() => agent.destroy())
  const one = (i: number): Promise<number> =>
    new Promise((resolve, reject) => {
      const headers = i % 2 === 0 ? { host: 'evil.example' } : { authorization: `Bearer a2a_${i}` }
      const request = http.get({ port, host: '127.0.0.1', path: '/echo', agent, headers }, (response) => {
        response.resume().once('end', () => resolve(response.statusCode ?? 0))
      })
      request.on('error', reject)
    })
  const counts = new Map<number, number>()
  for (let i = 0; i < 2000; i += 100) {
    const statuses = await Promise.all(Array.from({ length: 100 }, (_, at) => one(i + at)))
    for (const status of statuses) counts.set(status, (counts.get(status) ?? 0) + 1)
  }
  t.alike([counts.get(403), counts.get(401)], [1000, 1000])
  t.is(refusals.length, 2000)
  t.is(statusOf(await ask(t, port, head('GET /health', { port, headers: ['Connection: close'] }))), 200)
})

test('a client that reads only when it has sent everything reads its answer too', async (t: Assert) => {
  const { port } = await listening(t, [echoRoute({ maxBodyBytes: 1000 })], {
    limits: { drainMs: 30_000, drainBytes: 2 ** 26 }
  })
  // More than the buffers of both ends hold.
  const bytes = 2 ** 25
  for (const headers of [[], [WITH_TOKEN]]) {
    const connection = new RawConnection(t, port)
    connection.socket.pause()
    connection.write(head('POST /echo', { port, headers: [...headers, `Content-Length: ${bytes}`] }))
    await new Promise<void>((resolve, reject) => {
      connection.socket.write(Buffer.alloc(bytes), (error) =>
        error === undefined || error === null ? resolve() : reject(error)
      )
    })
    connection.socket.resume()
    t.is(statusOf(await connection.end()), headers.length === 0 ? 401 : 413)
  }
})

test('bytes after a body that was too large are not executed', async (t: Assert) => {
  let calls = 0
  const count: HttpRoute = {
    path: '/count',
    methods: ['GET'],
    handle: (_request, response) => response.end(String(++calls))
  }
  const { port } = await listening(t, [echoRoute({ maxBodyBytes: 10 }), count])
  const connection = new RawConnection(t, port)
  connection.write(`${head('POST /echo', { port, headers: [WITH_TOKEN, 'Content-Length: 11'] })}0123456789`)
  await connection.until(/\}\}$/)
  connection.write(`x${head('GET /count', { port, headers: [WITH_TOKEN] })}`)
  t.alike([statusesOf(await connection.end()), calls], [[413], 0])
})

test('garbage behind a request whose answer is under way does not get into the answer', async (t: Assert) => {
  const asked: string[] = []
  const slow: HttpRoute = {
    path: '/slow',
    methods: ['GET'],
    handle: (_request, _response, { path }) => void asked.push(path)
  }
  const { port } = await listening(t, [streamRoute(() => {}), slow])
  const asking = (path: string): string => head(`GET ${path}`, { port, headers: [WITH_TOKEN] })
  const connection = new RawConnection(t, port).write(asking('/stream'))
  await connection.until('data: first')
  t.alike(statusesOf(await connection.write('\u0000\u0001garbage\r\n\r\n').end()), [200])
  const other = new RawConnection(t, port).write(asking('/stream') + asking('/slow'))
  await other.until('data: first')
  t.alike(asked, ['/slow'])
  t.alike(
    statusesOf(await other.write('\u0000\u0001garbage\r\n\r\n').end()),
    [200],
    'with another one that waits behind it'
  )
})
