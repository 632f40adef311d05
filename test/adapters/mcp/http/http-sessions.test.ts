import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { HttpConnection } from '../../../../src/adapters/mcp/http/http-connection.js'
import {
  HttpSessions,
  MAX_SESSIONS,
  SESSION_IDLE_MS,
  type SessionCaller
} from '../../../../src/adapters/mcp/http/http-sessions.js'
import type { Unsubscribe } from '../../../../src/kit/events.js'
import type { Principal } from '../../../../src/ports/node-api.js'
import { holds } from '../../../support/holds.js'
import { ManualClock } from '../../../support/manual-clock.js'

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

/** A caller whose token ends when `end` says so. */
function ending(name: string): SessionCaller & { readonly end: () => void; readonly listeners: Set<() => void> } {
  const listeners = new Set<() => void>()
  let hasEnded = false
  const end = (): void => {
    hasEnded = true
    for (const run of listeners) run()
  }
  const onTokenEnd = (run: () => void): Unsubscribe => {
    if (hasEnded) run()
    else listeners.add(run)
    return () => void listeners.delete(run)
  }
  return { principal: caller(name), onTokenEnd, end, listeners }
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

test('a client that opens too many sessions loses its own, and no other client does', (t: Assert) => {
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
  t.alike(
    [quiet.isClosed, late.isClosed, loud.filter(({ isClosed }) => !isClosed).length],
    [false, false, MAX_SESSIONS - 2]
  )
  for (const connection of loud) if (!connection.isClosed) connection.request(CALL, NOBODY)
  t.is(sessions.open(asker('loud')), null, 'all of its own have calls under way')
  t.absent(quiet.isClosed)
})

test('a shared connection ends with its token, however busy, and leaves its place', (t: Assert) => {
  const { sessions } = sessionsOf(t)
  const all = Array.from({ length: MAX_SESSIONS }, (_, at) => ending(`token ${at}`))
  const shared = all.map((one) => sessions.shared(one))
  for (const connection of shared) connection?.request(CALL, NOBODY)
  const [first, second] = all
  if (first === undefined || second === undefined) throw new Error('no callers')
  t.is(sessions.shared(first), shared[0], 'all messages of a token go to one')
  t.is(first.listeners.size, 1, 'which waits for its end once')
  t.is(sessions.shared(ending('late')), null, 'no place is left')
  first.end()
  t.alike([shared[0]?.isClosed, shared[1]?.isClosed, first.listeners.size], [true, false, 0])
  t.ok(sessions.shared(ending('late')), 'one is')
  second.end()
  t.ok(sessions.shared(second)?.isClosed, 'a message whose token ended on its way opens nothing')
  t.is(sessions.shared(ending('later'))?.isClosed, false, 'and holds no place')
})

test('a shared connection that was closed is replaced, and waited for no more', async (t: Assert) => {
  const { sessions } = sessionsOf(t)
  const one = ending('one')
  const first = sessions.shared(one)
  await first?.close()
  const second = sessions.shared(one)
  t.alike([second === first, second?.isClosed, one.listeners.size], [false, false, 1])
  one.end()
  t.ok(second?.isClosed)
})

test('no caller loses a session to another one with as many, for any number of sessions', async (t: Assert) => {
  const steps = fc.array(
    fc.record({
      name: fc.constantFrom('a', 'b', 'c', 'd'),
      isBusy: fc.boolean(),
      count: fc.integer({ min: 1, max: 120 })
    })
  )
  await holds(
    t,
    fc.asyncProperty(steps, async (all) => {
      let made = 0
      const sessions = new HttpSessions({
        clock: new ManualClock(),
        newId: () => `id ${made++}`,
        connect: () => new HttpConnection()
      })
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
        if (lost.some((count) => count <= own) || counts().reduce((sum, count) => sum + count) > MAX_SESSIONS)
          return false
      }
      await sessions.close()
      return true
    }),
    100
  )
})
