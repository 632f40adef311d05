import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import test, { type Assert } from 'brittle'
import type { HttpRoute } from '../../../src/adapters/http/route.js'
import { ask, head, listening, RawConnection, statusOf, WITH_TOKEN } from './raw-http.js'

const LARGE = Buffer.alloc(16 * 1024 * 1024, 'x')

/**
 * Answers with more than the system holds for a connection, and keeps the answers; `stream`: in pieces that never end.
 */
function largeRoute(answers: ServerResponse[], { stream = false }: { readonly stream?: boolean } = {}): HttpRoute {
  return {
    path: '/large',
    methods: ['GET'],
    handle: (_request, response) => {
      answers.push(response)
      response.writeHead(200, stream ? { 'content-type': 'text/event-stream' } : { 'content-length': LARGE.length })
      if (stream) response.write(LARGE)
      else response.end(LARGE)
    }
  }
}

/** Asks, and reads nothing. */
function deaf(t: Assert, port: number): RawConnection {
  const connection = new RawConnection(t, port)
  connection.socket.pause()
  return connection.write(head('GET /large', { port, headers: [WITH_TOKEN] }))
}

async function untilAsked(answers: readonly ServerResponse[], count: number): Promise<void> {
  while (answers.length < count) await new Promise((resolve) => setImmediate(resolve))
}

test('a client that takes nothing of its answer, or of a stream, is cut in time; one that reads gets all of it', async (t: Assert) => {
  for (const stream of [false, true]) {
    const answers: ServerResponse[] = []
    const { port } = await listening(t, [largeRoute(answers, { stream })], { limits: { unreadMs: 200 } })
    const client = deaf(t, port)
    await untilAsked(answers, 1)
    const [answer] = answers
    if (answer !== undefined && !answer.closed) await once(answer, 'close')
    client.socket.resume()
    t.ok((await client.end()).length < LARGE.length, stream ? 'the stream' : 'the answer')
  }
  const { port } = await listening(t, [largeRoute([])], { limits: { unreadMs: 200 } })
  const text = await ask(t, port, head('GET /large', { port, headers: [WITH_TOKEN, 'Connection: close'] }))
  t.is(statusOf(text), 200)
  t.ok(text.length > LARGE.length)
})

test('a client that waits for longer work is not cut', async (t: Assert) => {
  const answers: ServerResponse[] = []
  const slow: HttpRoute = {
    path: '/slow',
    methods: ['GET'],
    handle: (_request, response) => void answers.push(response)
  }
  const { port } = await listening(t, [slow], { limits: { unreadMs: 20 } })
  const asked = ask(t, port, head('GET /slow', { port, headers: [WITH_TOKEN, 'Connection: close'] }))
  await untilAsked(answers, 1)
  let silences = 0
  await new Promise<void>((resolve) => answers[0]?.on('timeout', () => ++silences === 3 && resolve()))
  answers[0]?.end('done')
  t.ok((await asked).endsWith('done'))
})

test('bytes that wait for all clients together are bounded: the slowest client is cut, and others are served', async (t: Assert) => {
  const answers: ServerResponse[] = []
  const { port } = await listening(t, [largeRoute(answers)], { limits: { unreadBytes: 3 * LARGE.length } })
  for (let at = 1; at <= 12; at++) {
    deaf(t, port)
    await untilAsked(answers, at)
  }
  const waiting = answers.filter((one) => !one.destroyed)
  t.ok(waiting.reduce((sum, one) => sum + one.writableLength, 0) <= 3 * LARGE.length, 'never more than the bound')
  t.alike(waiting, answers.slice(-waiting.length), 'the first ones are cut')
  const text = await ask(t, port, head('GET /large', { port, headers: [WITH_TOKEN, 'Connection: close'] }))
  t.is(statusOf(text), 200)
})
