import http2 from 'node:http2'
import net, { type AddressInfo } from 'node:net'
import { once } from 'node:events'
import test from 'brittle'
import type { GrpcCall } from '../../../../src/adapters/a2a/grpc/grpc-call.js'
import { GRPC_CODES } from '../../../../src/adapters/a2a/grpc/grpc-status.js'
import { answerOf, begin, echo, framed, type RawAnswer, rawScene } from '../../../support/grpc-raw.js'

/** Resolves once `count` has been called often enough. */
function countdown(times: number): { readonly done: Promise<void>; count(): void } {
  let left = times
  let resolve = (): void => {}
  const done = new Promise<void>((settle) => {
    resolve = settle
  })
  const count = (): void => {
    left -= 1
    if (left === 0) resolve()
  }
  return { done, count }
}

/** The codes of an answer, with its messages as texts. */
function codes({ http, code, messages }: RawAnswer): unknown[] {
  return [http, code, ...messages.map(String)]
}

test('a message is answered; bytes that are not exactly one message within the bounds are refused', async (t) => {
  const { connect } = await rawScene(t)
  const session = connect()
  t.alike(codes(await answerOf(begin(session))), [200, 0, 'hello'])
  t.alike(codes(await answerOf(begin(session, { body: framed(Buffer.alloc(0)) }))), [200, 0, ''])
  const large = Buffer.alloc(900_000, 'x')
  t.is((await answerOf(begin(session, { body: framed(large) }))).messages[0]?.length, large.length)
  const { INVALID_ARGUMENT, RESOURCE_EXHAUSTED, UNIMPLEMENTED } = GRPC_CODES
  const hello = Buffer.from('hello')
  for (const [name, body, code] of [
    ['a message that announces too much', framed(hello, { length: 1_000_001 }), RESOURCE_EXHAUSTED],
    ['a message that is too large', framed(Buffer.alloc(1_500_000)), RESOURCE_EXHAUSTED],
    ['a compressed message', framed(hello, { flag: 1 }), UNIMPLEMENTED],
    ['two messages', Buffer.concat([framed(hello), framed(hello)]), UNIMPLEMENTED],
    ['half a message', framed(hello, { length: 50 }), INVALID_ARGUMENT],
    ['no message', Buffer.alloc(0), INVALID_ARGUMENT]
  ] as const)
    t.alike(codes(await answerOf(begin(session, { body }))), [200, code], name)
  t.is((await answerOf(begin(session, { headers: { 'content-type': 'application/json' } }))).http, 415)
  t.is((await answerOf(begin(session, { headers: { 'content-type': 'application/grpc-web' } }))).http, 415)
  t.is((await answerOf(begin(session, { headers: { ':method': 'PUT' } }))).http, 405)
  t.alike(codes(await answerOf(begin(session))), [200, 0, 'hello'], 'the connection goes on')
})

test('errors of a service with any text become a status, and no call is served before the listener is open', async (t) => {
  const closed = await rawScene(t, null)
  t.is((await answerOf(begin(closed.connect()))).code, GRPC_CODES.UNAVAILABLE)
  for (const text of ['half of a pair \ud800', 'two\nlines', 'ä %41', 'x'.repeat(3000)]) {
    const { connect } = await rawScene(t, () => Promise.reject(new Error(text)))
    const { code, message } = await answerOf(begin(connect()))
    t.alike([code, message], [GRPC_CODES.INTERNAL, text.replace('\ud800', '\ufffd')])
  }
})

test('a message that does not come in time ends its call, and so does the deadline of the client', async (t) => {
  const calls: GrpcCall[] = []
  const serve = async (call: GrpcCall): Promise<void> => {
    calls.push(call)
    await call.message()
    await new Promise<void>((resolve) => call.signal.addEventListener('abort', resolve))
  }
  const { connect } = await rawScene(t, serve, { limits: { messageMs: 100 } })
  const session = connect()
  const slow = await answerOf(begin(session, { body: framed(Buffer.from('a')).subarray(0, 3), open: true }))
  t.alike([slow.code, slow.message], [GRPC_CODES.DEADLINE_EXCEEDED, 'the message did not come within 100 ms'])
  const late = await answerOf(begin(session, { headers: { 'grpc-timeout': '150m' } }))
  t.alike([late.code, late.message], [GRPC_CODES.DEADLINE_EXCEEDED, 'the time is over'])
  t.ok(calls.every(({ signal }) => signal.aborted))
})

test('a client that reads nothing holds bounded memory: beyond the bound the longest holder is cut', async (t) => {
  const ends: string[] = []
  const serve = async (call: GrpcCall): Promise<void> => {
    const name = String(await call.message())
    try {
      for (;;) await call.send(Buffer.alloc(400_000))
    } catch {
      ends.push(name)
    }
  }
  const { connect } = await rawScene(t, serve, { limits: { bufferedBytes: 1_000_000 } })
  const deaf = { settings: { initialWindowSize: 0 } }
  const streams = ['one', 'two', 'three'].map((name) => begin(connect(deaf), { body: framed(Buffer.from(name)) }))
  for (const stream of streams) stream.on('error', () => {})
  await Promise.race(streams.map(async (stream) => await once(stream, 'close')))
  t.is(ends.length, 1, 'one of them is cut, the others wait')
  for (const stream of streams) stream.destroy()
})

test('calls that a client gives up in a storm cost it its connection, and nobody else theirs', async (t) => {
  const { connect } = await rawScene(t, echo, { limits: { canceledBurst: 50, canceledPerSecond: 1 } })
  const other = connect()
  t.is((await answerOf(begin(other))).code, 0)
  const storm = connect()
  const gone = once(storm, 'close')
  const hasEnded = { now: false }
  storm.on('close', () => {
    hasEnded.now = true
  })
  while (!hasEnded.now) {
    for (let i = 0; i < 20 && !storm.destroyed; i++) {
      const stream = begin(storm, { open: true })
      stream.on('error', () => {})
      stream.close(http2.constants.NGHTTP2_CANCEL)
    }
    await new Promise((resolve) => setImmediate(resolve))
  }
  await gone
  t.alike(codes(await answerOf(begin(other))), [200, 0, 'hello'])
})

test('too many headers, bytes that are no HTTP/2 and further connections are refused; others are served', async (t) => {
  const { connect, listener } = await rawScene(t, echo, { limits: { headers: 20 }, maxConnections: 2 })
  const many = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`x-${i}`, 'y']))
  const session = connect()
  const refused = await answerOf(begin(session, { headers: many }))
  t.alike([refused.code, refused.http], [-1, 0])
  t.not(refused.reset, 0)
  t.is((await answerOf(begin(session))).code, 0, 'the same connection')
  const { port } = listener.server.address() as AddressInfo
  const raw = net.connect({ host: '127.0.0.1', port })
  raw.on('error', () => {})
  raw.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  raw.resume()
  await once(raw, 'close')
  const second = connect()
  t.is((await answerOf(begin(second))).code, 0)
  const third = connect()
  await once(third, 'close')
  t.is((await answerOf(begin(session))).code, 0)
})

test('a connection without a call is closed', async (t) => {
  const { connect } = await rawScene(t, echo, { limits: { firstCallMs: 50, idleMs: 100 } })
  await once(connect(), 'close')
  const session = connect()
  t.is((await answerOf(begin(session))).code, 0)
  await once(session, 'close')
  t.pass('both are closed')
})

test('a connection that does not answer a ping is cut, one that does goes on', async (t) => {
  const both = countdown(2)
  const serve = async (call: GrpcCall): Promise<void> => {
    await call.message()
    both.count()
    await new Promise<void>((resolve) => call.signal.addEventListener('abort', resolve))
  }
  const { connect, listener } = await rawScene(t, serve, { limits: { pingMs: 1000 } })
  const { port } = listener.server.address() as AddressInfo
  const link = { isCut: false }
  const relay = net.createServer((down) => {
    const up = net.connect({ host: '127.0.0.1', port })
    down.on('data', (chunk) => void (link.isCut || up.write(chunk))).on('error', () => {})
    up.on('data', (chunk) => void down.write(chunk)).on('error', () => {})
    up.on('close', () => down.destroy())
    t.teardown(() => void up.destroy())
  })
  await new Promise<void>((resolve) => relay.listen({ host: '127.0.0.1', port: 0 }, resolve))
  t.teardown(() => void relay.close())
  const far = http2.connect(`http://127.0.0.1:${(relay.address() as AddressInfo).port}`)
  far.on('error', () => {})
  const near = connect()
  for (const session of [far, near]) begin(session).on('error', () => {})
  await both.done
  link.isCut = true
  await once(far, 'close')
  t.absent(near.destroyed)
})

test('closing lets a call end, and cuts the rest after its time of grace', async (t) => {
  const both = countdown(2)
  const serve = async (call: GrpcCall): Promise<void> => {
    const text = String(await call.message())
    both.count()
    await new Promise<void>((resolve) => {
      if (text === 'obeys') call.signal.addEventListener('abort', resolve)
    })
  }
  const { connect, listener } = await rawScene(t, serve)
  const session = connect()
  const streams = ['obeys', 'stays'].map((text) => begin(session, { body: framed(Buffer.from(text)) }))
  const answers = Promise.all(streams.map(answerOf))
  await both.done
  await listener.close()
  const [obeyed, stayed] = await answers
  t.is(obeyed?.code, 0)
  t.is(stayed?.code, -1)
})
