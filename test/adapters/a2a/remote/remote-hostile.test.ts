import http from 'node:http'
import net, { type AddressInfo } from 'node:net'
import test, { type Assert } from 'brittle'
import { MAX_REMOTE_CARD_BYTES, readRemoteCard } from '../../../../src/adapters/a2a/remote/remote-card.js'
import { connectRemote } from '../../../../src/adapters/a2a/remote/remote-connect.js'
import { guardedFetch, type Resolve } from '../../../../src/adapters/a2a/net/ssrf-fetch.js'
import { systemClock } from '../../../../src/adapters/system/system-clock.js'
import { messageOf } from '../../../../src/kit/errors.js'
import { eventually } from '../../../support/agents/eventually.js'
import { remoteScene, remoteSpec } from '../../../support/a2a/remote-scene.js'

const LIMITS = { headMs: 400, bodyMs: 400, silenceMs: 400, maxBytes: 10_000, maxStreamBytes: 10_000 }

type Answer = (request: http.IncomingMessage, response: http.ServerResponse, body: string) => void

async function listening(t: Assert, server: net.Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => new Promise<void>((resolve) => server.close(() => resolve())))
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function web(t: Assert, answer: Answer): Promise<string> {
  const server = http.createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => (body += String(chunk))).on('end', () => answer(request, response, body))
  })
  t.teardown(() => server.closeAllConnections(), { order: -1 })
  return await listening(t, server)
}

const card = (host: string, more: object = {}): string =>
  JSON.stringify({
    name: 'Evil',
    description: 'Evil.',
    version: '1.0.0',
    capabilities: { streaming: true },
    supportedInterfaces: [{ url: `http://${host}/a2a`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    skills: [{ id: 'talk', name: 'Talk', description: '', tags: [] }],
    ...more
  })

/** An agent with a card of the common form, whose other answers are those given. */
async function agentThat(t: Assert, answer: Answer): Promise<string> {
  let host = ''
  host = await web(t, (request, response, body) =>
    request.method === 'GET' ? response.end(card(host)) : answer(request, response, body)
  )
  return host
}

const event = (body: string, result: object): string =>
  `data: ${JSON.stringify({ jsonrpc: '2.0', id: (JSON.parse(body) as { id: number }).id, result })}\n\n`

test('a card that is huge, endless, slow, compressed, no JSON, no card or a redirect is not used, and says why', async (t: Assert) => {
  const cases: [Answer, RegExp][] = [
    [
      (_, response) => response.end(card('x', { description: 'x'.repeat(MAX_REMOTE_CARD_BYTES) })),
      /more than 262144 bytes/
    ],
    [(_, response) => void response.writeHead(302, { location: 'http://169.254.169.254/latest' }).end(), /redirect/],
    [(_, response) => void response.writeHead(200, { 'content-encoding': 'gzip' }).end('x'), /gzip/],
    [(_, response) => response.end('<html>'), /not JSON/],
    [(_, response) => response.end('[]'), /no JSON object/],
    [(_, response) => response.end('{"__proto__":{"x":1}}'), /__proto__/],
    [(_, response) => response.end('{"a":'.repeat(5000)), /not JSON|nested/],
    [
      (_, response) => response.end(card('x', { skills: 'none' })),
      /not to be used: \/skills is "none"; must be a list, and 2 more; run a2a-node agents check http:\/\/127\.0\.0\.1:\d+\/card$/
    ],
    [
      (_, response) =>
        response.end('{"name":"text","description":"x","version":"1.0.0","capabilities":[{"id":"text.stats"}]}'),
      /what is there is no agent card: try http:\/\/127\.0\.0\.1:\d+\/card\/\.well-known\/agent-card\.json$/
    ],
    [
      (_, response) => response.end(card('x', { supportedInterfaces: [{ url: 'http://x', protocolBinding: 'GRPC' }] })),
      /no address that this node can call/
    ],
    [(_, response) => response.end(card('169.254.169.254')), /refused.*linkLocal/],
    [(_, response) => response.end(card('[::ffff:127.0.0.1]')), /refused.*ipv4Mapped/],
    [(_, response) => void response.writeHead(404).end('x'.repeat(100_000)), /HTTP 404/],
    [(_, response) => void response.socket?.destroy(), /broke off|hang up|ended/],
    [(_, response) => void response.socket?.end(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`), /[Hh]eader/]
  ]
  for (const [answer, reason] of cases) {
    const host = await web(t, answer)
    const scene = await remoteScene(t, remoteSpec(`http://${host}/card`))
    await scene.settled()
    const { lastError } = scene.info()
    t.ok(scene.agents().length === 0 && reason.test(lastError ?? ''), lastError ?? '')
    await scene.remotes.close()
  }
})

test('a card of a public host leads to no host that the config names, and one of https not to http', async (t: Assert) => {
  const to = async (place: string, url: string): Promise<string> => {
    const read = readRemoteCard(
      JSON.parse(card('x', { supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }] }))
    )
    if (!read.ok) throw new Error(read.reason)
    const reach = { clock: systemClock(), policy: { allowed: [{ host: '127.0.0.1', port: null }] } }
    const spec = { card: place, secret: null, key: null, maxOutputBytes: 1000, timeoutMs: 1000 }
    return await connectRemote(reach, spec, read.card).then(() => 'goes', messageOf)
  }
  t.is(await to('http://127.0.0.1:8000/card', 'http://127.0.0.1:8001/a2a'), 'goes')
  t.is(await to('https://far.example.com/card', 'https://api.example.com/a2a'), 'goes')
  t.ok(/not public/.test(await to('https://far.example.com/card', 'https://127.0.0.1:8001/a2a')))
  t.ok(/over https and leads to http/.test(await to('https://far.example.com/card', 'http://far.example.com/a2a')))
})

test('an answer of the resolver that is private reaches no socket, also when it comes second or among others', async (t: Assert) => {
  let connections = 0
  const server = net.createServer((socket) => {
    connections++
    socket.destroy()
  })
  const host = await listening(t, server)
  const port = host.split(':')[1]
  const answers: string[][] = [
    ['127.0.0.1'],
    ['93.184.216.34', '127.0.0.1'],
    ['::1'],
    ['::ffff:127.0.0.1'],
    ['169.254.169.254'],
    []
  ]
  for (const addresses of answers) {
    const resolve: Resolve = () =>
      Promise.resolve(addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })))
    const get = guardedFetch({ policy: { allowed: [] }, limits: LIMITS, clock: systemClock(), resolve })
    const reason = await get(`http://rebind.example.com:${port}/`).then(() => '', messageOf)
    t.ok(/address is refused/.test(reason), `${addresses.join(' ')}: ${reason}`)
  }
  t.is(connections, 0)
})

test('an answer that is slow, silent or too long is cut off within its time and size', async (t: Assert) => {
  const get = guardedFetch({
    policy: { allowed: [{ host: '127.0.0.1', port: null }] },
    limits: LIMITS,
    clock: systemClock()
  })
  const drip = (response: http.ServerResponse): void => {
    const timer = setInterval(() => response.write('x'), 50)
    response.on('close', () => clearInterval(timer))
  }
  const loris = await listening(
    t,
    net.createServer((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n')
      const timer = setInterval(() => socket.write('x: y\r\n'), 50)
      socket.on('close', () => clearInterval(timer)).on('error', () => {})
    })
  )
  t.ok(/no answer within 400 ms/.test(await get(`http://${loris}/`).then(() => '', messageOf)))
  const dripping = await web(t, (_, response) => drip(response))
  t.ok(
    /did not end within 400 ms/.test(
      await get(`http://${dripping}/`)
        .then((one) => one.text())
        .then(() => '', messageOf)
    )
  )
  const silent = await web(
    t,
    (_, response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': hi\n\n')
  )
  t.ok(
    /did not go on within 400 ms/.test(
      await get(`http://${silent}/`)
        .then((one) => one.text())
        .then(() => '', messageOf)
    )
  )
  const long = await web(t, (_, response) => response.end('x'.repeat(20_000)))
  t.ok(
    /more than 10000 bytes/.test(
      await get(`http://${long}/`)
        .then((one) => one.text())
        .then(() => '', messageOf)
    )
  )
})

test('a stream without end, of another task, of garbage or of too much ends as a failure, and the task is canceled', async (t: Assert) => {
  let canceled = 0
  const status = (state: string, id = 't1'): object => ({
    statusUpdate: { taskId: id, contextId: 'c', status: { state } }
  })
  const cases: [(response: http.ServerResponse, body: string) => void, RegExp][] = [
    [
      (response, body) => {
        const pump = (): void => {
          while (!response.destroyed && response.write(event(body, status('TASK_STATE_WORKING'))));
          response.once('drain', pump)
        }
        pump()
      },
      /more than 10000 things/
    ],
    [
      (response, body) =>
        void response.write(
          event(body, status('TASK_STATE_WORKING')) + event(body, status('TASK_STATE_COMPLETED', 't2'))
        ),
      /another task/
    ],
    [
      (response, body) =>
        void response.write(
          event(body, {
            artifactUpdate: { taskId: 't1', artifact: { artifactId: 'a', parts: [{ text: 'x'.repeat(2_000_000) }] } }
          })
        ),
      /more than 1048576 bytes/
    ],
    [(response) => response.end('data: {not json\n\n'), /may have done it, and is not asked again/],
    [(response) => response.end(), /may have done it, and is not asked again/],
    [
      (response, body) =>
        response.end(event(body, { message: { parts: [{ data: JSON.parse('{"__proto__":1}') as object }] } })),
      /__proto__/
    ]
  ]
  for (const [answer, reason] of cases) {
    let sends = 0
    const host = await agentThat(t, (_, response, body) => {
      const { method, id } = JSON.parse(body) as { method: string; id: number }
      if (method === 'CancelTask') {
        canceled++
        return response.end(JSON.stringify({ jsonrpc: '2.0', id, result: { id: 't1' } }))
      }
      if (method !== 'SendStreamingMessage')
        return response.end(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } }))
      sends++
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      answer(response, body)
    })
    const scene = await remoteScene(t, remoteSpec(`http://${host}/card`))
    await scene.settled()
    const outcome = await scene.call('talk', 'x')
    t.ok(!outcome.ok && reason.test(outcome.message), JSON.stringify(outcome).slice(0, 200))
    t.is(
      !outcome.ok && outcome.isUnknown === true,
      reason.source.includes('may have done it'),
      'its effect is unknown only where the answer was lost'
    )
    t.is(sends, 1, 'it was sent once')
    await scene.remotes.close()
  }
  await eventually(() => canceled >= 3)
})

test('an unreachable agent is reported by the kind of failure: the address is in the log of the node alone', async (t: Assert) => {
  const cases: [(server: http.Server) => void, RegExp, RegExp][] = [
    [
      (server) => void server.close(),
      /was not reached, and nothing was done: ECONNREFUSED$/,
      /ECONNREFUSED 127\.0\.0\.1:\d+$/
    ],
    [
      (server) => void server.removeAllListeners('request').on('request', ({ socket }) => socket.destroy()),
      /asked again\. ECONNRESET$/,
      /hang up$/
    ]
  ]
  for (const [fail, told, logged] of cases) {
    let host = ''
    const server = http.createServer((_, response) => void response.end(card(host)))
    host = await listening(t, server)
    const scene = await remoteScene(t, remoteSpec(`http://${host}/card`))
    await scene.settled()
    fail(server)
    server.closeAllConnections()
    const outcome = await scene.call('talk', 'x')
    t.ok(!outcome.ok && told.test(outcome.message) && !outcome.message.includes('127.0.0.1'), JSON.stringify(outcome))
    t.ok(
      scene.lines.some((line) => logged.test(line)),
      scene.lines.join('; ')
    )
    await scene.remotes.close()
  }
})

test('a name that leads elsewhere by now is refused without a word of where', async (t: Assert) => {
  let address = '127.0.0.1'
  let at = ''
  const host = await web(t, (_, response) => response.end(card(`named.example.com:${at}`)))
  at = host.split(':')[1] ?? ''
  const resolve: Resolve = () => Promise.resolve([{ address, family: 4 }])
  const scene = await remoteScene(t, remoteSpec(`http://named.example.com:${at}/card`), {
    allow: ['named.example.com'],
    resolve
  })
  await scene.settled()
  address = '169.254.169.254'
  const outcome = await scene.call('talk', 'x')
  t.ok(!outcome.ok && outcome.message.endsWith('nothing was done: the address is refused'), JSON.stringify(outcome))
  t.ok(
    scene.lines.some((line) => line.includes('169.254.169.254')),
    scene.lines.join('; ')
  )
  await scene.remotes.close()
})

test('answers of an agent are reported in bounded texts: errors, statuses, redirects of a call', async (t: Assert) => {
  const cases: [Answer, RegExp][] = [
    [
      (_, response, body) =>
        response.end(
          JSON.stringify({
            jsonrpc: '2.0',
            id: (JSON.parse(body) as { id: number }).id,
            error: { code: -32000, message: 'z'.repeat(90_000) }
          })
        ),
      /answered with an error: zzz/
    ],
    [(_, response) => void response.writeHead(401).end('nope'), /refused the message.*other credentials \(HTTP 401\)/],
    [(_, response) => void response.writeHead(429).end(), /too much to do/],
    [(_, response) => void response.writeHead(500).end('<html>'), /may have done it/],
    [(_, response) => void response.writeHead(307, { location: 'http://169.254.169.254/' }).end(), /redirect/]
  ]
  for (const [answer, reason] of cases) {
    const host = await agentThat(t, answer)
    const scene = await remoteScene(t, remoteSpec(`http://${host}/card`))
    await scene.settled()
    const outcome = await scene.call('talk', 'x')
    t.ok(
      !outcome.ok && outcome.code === 'TASK_FAILED' && reason.test(outcome.message) && outcome.message.length < 2300,
      outcome.ok ? '' : outcome.message.slice(0, 200)
    )
    await scene.remotes.close()
  }
})
