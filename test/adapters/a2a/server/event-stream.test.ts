import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import net from 'node:net'
import test, { type Assert } from 'brittle'
import {
  answerStream,
  BEHIND_WAIT_MS,
  HEARTBEAT_MS,
  MAX_BEHIND_BYTES
} from '../../../../src/adapters/a2a/server/event-stream.js'
import { ManualClock } from '../../../support/manual-clock.js'

/** More than the buffers of both sides of a connection take. */
const LARGE = 33_554_432

interface Scene {
  readonly clock: ManualClock
  /** Resolves once the client is behind. */
  readonly behind: Promise<void>
  /** Resolves when the stream has ended. */
  readonly answered: Promise<void>
  readonly client: net.Socket
}

/** Streams items to a client that does not read. */
async function scene(t: Assert, size: number): Promise<Scene> {
  const clock = new ManualClock()
  let isBehind = (): void => {}
  let isAnswered = (): void => {}
  const behind = new Promise<void>((resolve) => (isBehind = resolve))
  const answered = new Promise<void>((resolve) => (isAnswered = resolve))
  async function* values(): AsyncGenerator<{ id: null; value: object }> {
    for (const at of [0, 1, 2]) yield await Promise.resolve({ id: null, value: { at, text: 'x'.repeat(size) } })
  }
  const server = http.createServer((_request, response) => {
    const write = response.write.bind(response)
    response.write = ((chunk: string) => {
      const isRead = write(chunk)
      if (response.writableLength > MAX_BEHIND_BYTES) isBehind()
      return isRead
    }) as typeof response.write
    const parts = { clock, encode: (value: object) => value, encodeFault: () => ({}) }
    void answerStream(response, values(), parts).then(isAnswered)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = net.connect((server.address() as AddressInfo).port, '127.0.0.1')
  t.teardown(async () => {
    client.destroy()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  client.pause()
  client.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n')
  return { clock, behind, answered, client }
}

async function readAll(client: net.Socket): Promise<string> {
  let text = ''
  client.on('data', (chunk) => (text += chunk.toString('latin1')))
  client.resume()
  while (!text.endsWith('0\r\n\r\n')) await once(client, 'data')
  return text
}

test('a client that is behind is waited for, also when one item alone is that large, and gets all of it', async (t) => {
  const { behind, answered, client } = await scene(t, MAX_BEHIND_BYTES)
  await behind
  const text = await readAll(client)
  await answered
  t.is(text.split('data: {"at":').length - 1, 3)
})

test('a client that reads nothing in that time is hung up on', async (t) => {
  const { clock, behind, answered, client } = await scene(t, LARGE)
  await behind
  clock.advance(BEHIND_WAIT_MS)
  await answered
  const closed = once(client, 'close')
  client.on('error', () => {}).resume()
  await closed
  t.pass('its connection ended')
})

test('a stream on which nothing happens says every 15 s that it is there, and no more once it has ended', async (t) => {
  const clock = new ManualClock()
  let end = (): void => {}
  const ended = new Promise<void>((resolve) => (end = resolve))
  async function* values(): AsyncGenerator<{ id: number; value: object }> {
    yield { id: 1, value: {} }
    await ended
  }
  const server = http.createServer((_request, response) => {
    void answerStream(response, values(), { clock, encode: (value) => value, encodeFault: () => ({}) })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => new Promise((resolve) => server.close(resolve)))
  const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const chunks = (response.body as unknown as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]()
  let text = ''
  const until = async (wanted: string): Promise<void> => {
    while (!text.endsWith(wanted))
      text += Buffer.from(((await chunks.next()) as { value: Uint8Array }).value).toString('utf8')
  }
  await until('data: {}\n\n')
  clock.advance(HEARTBEAT_MS - 1)
  for (const beats of [1, 2, 3]) {
    clock.advance(beats === 1 ? 1 : HEARTBEAT_MS)
    await until(`data: {}\n\n${': still here\n\n'.repeat(beats)}`)
  }
  end()
  t.ok((await chunks.next()).done, 'nothing else came')
  clock.advance(10 * HEARTBEAT_MS)
  t.is(text.split('still here').length - 1, 3)
})
