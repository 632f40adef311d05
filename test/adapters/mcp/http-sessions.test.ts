import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { HttpConnection } from '../../../src/adapters/mcp/http-connection.js'
import { HttpSessions, MAX_SESSIONS, SESSION_IDLE_MS, type SessionCaller } from '../../../src/adapters/mcp/http-sessions.js'
import type { Principal } from '../../../src/ports/node-api.js'
import { holds } from '../../support/holds.js'
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

function asker(name: string): SessionCaller {
  return { principal: caller(name), onTokenEnd: () => () => {} }
}

function opened(sessions: HttpSessions, name: string): HttpConnection {
  const session = sessions.open(asker(name))
  if (session === null) throw new Error(`no session for ${name}`)
  return session.connection
}

test('a session whose client went away is not idle while its call runs, and lives as long as any after it', async (t: Assert) => {
  const { clock, sessions } = sessionsOf(t)
  const connection = opened(sessions, 'one')
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

test('who opens too many sessions loses its own, and nobody else does', (t: Assert) => {
  const { clock, sessions } = sessionsOf(t)
  const quiet = opened(sessions, 'quiet')
  const loud: HttpConnection[] = []
  for (let at = 0; at < 2 * MAX_SESSIONS; at++) {
    clock.advance(1)
    loud.push(opened(sessions, 'loud'))
  }
  t.absent(quiet.isClosed, 'the one that is idle longest is of another caller')
  t.alike([loud.filter(({ isClosed }) => !isClosed).length, loud.at(-1)?.isClosed], [MAX_SESSIONS - 1, false])
  const late = opened(sessions, 'late')
  t.alike([quiet.isClosed, late.isClosed, loud.filter(({ isClosed }) => !isClosed).length], [false, false, MAX_SESSIONS - 2])
  for (const connection of loud) if (!connection.isClosed) connection.request(CALL, NOBODY)
  t.is(sessions.open(asker('loud')), null, 'all of its own have calls under way')
  t.absent(quiet.isClosed)
})

test('no session is lost to a caller that has as many, whoever opens how many', async (t: Assert) => {
  const steps = fc.array(
    fc.record({ name: fc.constantFrom('a', 'b', 'c', 'd'), isBusy: fc.boolean(), count: fc.integer({ min: 1, max: 120 }) })
  )
  await holds(
    t,
    fc.asyncProperty(steps, async (all) => {
      let made = 0
      const sessions = new HttpSessions({ clock: new ManualClock(), newId: () => `id ${made++}`, connect: () => new HttpConnection() })
      const open = new Map<string, HttpConnection[]>(['a', 'b', 'c', 'd'].map((name) => [name, []]))
      const counts = (): number[] => [...open.values()].map((list) => list.filter(({ isClosed }) => !isClosed).length)
      for (const { name, isBusy } of all.flatMap((one) => Array.from({ length: one.count }, () => one))) {
        const names = [...open.keys()]
        const before = counts()
        const own = before[names.indexOf(name)] ?? 0
        const session = sessions.open(asker(name))
        if (session !== null) open.get(name)?.push(session.connection)
        if (isBusy) session?.connection.request(CALL, NOBODY)
        const lost = counts().flatMap((count, at) => (count < (before[at] ?? 0) ? [before[at] ?? 0] : []))
        if (lost.some((count) => count <= own) || counts().reduce((sum, count) => sum + count) > MAX_SESSIONS) return false
      }
      await sessions.close()
      return true
    }),
    100
  )
})
