import test, { type Assert } from 'brittle'
import type { JSONRPCMessage } from '@modelcontextprotocol/server'
import { type McpExchange, HttpConnection } from '../../../../src/adapters/mcp/http/http-connection.js'

/** An exchange that keeps what it is told; `takes`: can anything be told before the answer? */
function exchange({ takes = true } = {}): McpExchange & { readonly noted: unknown[]; readonly answered: unknown[] } {
  const [noted, answered]: [unknown[], unknown[]] = [[], []]
  return {
    noted,
    answered,
    note: (message) => {
      if (takes) noted.push(message)
      return takes
    },
    answer: (message) => void answered.push(message),
    end: () => {}
  }
}

/** A connection, the messages that its server got, and its last request's id there. */
function connected(): {
  readonly connection: HttpConnection
  readonly got: Record<string, unknown>[]
  lastId(): string
} {
  const connection = new HttpConnection()
  const got: Record<string, unknown>[] = []
  connection.onmessage = (message) => void got.push({ ...message })
  return { connection, got, lastId: () => String(got.findLast(({ method }) => method === 'tools/call')?.['id']) }
}

const CALL = { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'a' } } as const

function question(id: number): JSONRPCMessage {
  return { jsonrpc: '2.0', id, method: 'roots/list' }
}

test('a question goes out within the exchange that it belongs to, and nowhere else', async (t: Assert) => {
  const { connection, lastId } = connected()
  const [one, two, stream] = [exchange(), exchange(), exchange()]
  connection.listen(stream)
  connection.request(CALL, one)
  const first = lastId()
  connection.request(CALL, two)
  await connection.send(question(0), { relatedRequestId: first })
  t.alike([one.noted, two.noted, stream.noted], [[question(0)], [], []])
  await t.exception(() => connection.send(question(1)), /reads no stream/)
  await t.exception(() => connection.send(question(2), { relatedRequestId: 'request 99' }), /reads no stream/)
  t.alike([one.noted.length, two.noted.length, stream.noted.length], [1, 0, 0])
})

test('a client that reads no stream cannot be asked, and its server knows at once', async (t: Assert) => {
  const { connection, lastId } = connected()
  connection.request(CALL, exchange({ takes: false }))
  await t.exception(() => connection.send(question(0), { relatedRequestId: lastId() }), /reads no stream/)
})

test('a client that hangs up answers nothing more: the server gets one error for each open question', async (t: Assert) => {
  const { connection, got, lastId } = connected()
  const giveUp = connection.request(CALL, exchange())
  const id = lastId()
  await connection.send(question(0), { relatedRequestId: id })
  await connection.send(question(1), { relatedRequestId: id })
  got.length = 0
  giveUp()
  giveUp()
  const error = { code: -32_000, message: 'the client hung up' }
  t.alike(got, [
    { jsonrpc: '2.0', id: 0, error },
    { jsonrpc: '2.0', id: 1, error }
  ])
})
