import test, { type Assert } from 'brittle'
import { HttpConnection } from '../../../src/adapters/mcp/http-connection.js'
import { HttpSessions, SESSION_IDLE_MS } from '../../../src/adapters/mcp/http-sessions.js'
import type { Principal } from '../../../src/ports/node-api.js'
import { ManualClock } from '../../support/manual-clock.js'

const CALL = { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'a' } } as const
const NOBODY = { note: () => true, answer: () => {}, end: () => {} }

function caller(name: string): Principal {
  return { kind: 'token', name, tier: 0, sandboxId: null, scopes: [] }
}

function sessionsOf(t: Assert): { readonly clock: ManualClock; readonly sessions: HttpSessions } {
  const clock = new ManualClock()
  let made = 0
  const sessions = new HttpSessions({ clock, newId: () => `id ${made++}`, connect: () => new HttpConnection() })
  t.teardown(() => sessions.close())
  return { clock, sessions }
}

test('a session whose client went away is not idle while its call runs, and lives as long as any after it', async (t: Assert) => {
  const { clock, sessions } = sessionsOf(t)
  const { connection } = sessions.open(caller('one')) ?? t.fail()
  let running = ''
  connection.onmessage = (message) => void (running = String((message as { id?: unknown }).id))
  connection.request(CALL, NOBODY)()
  clock.advance(2 * SESSION_IDLE_MS)
  t.absent(connection.isClosed, 'its call is under way')
  await connection.send({ jsonrpc: '2.0', id: running, result: {} })
  clock.advance(SESSION_IDLE_MS - 1)
  t.absent(connection.isClosed)
  clock.advance(SESSION_IDLE_MS)
  t.ok(connection.isClosed, 'and is ended once it is idle')
})
