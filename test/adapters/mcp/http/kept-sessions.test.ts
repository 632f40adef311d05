import test, { type Assert } from 'brittle'
import { HttpConnection, type McpExchange } from '../../../../src/adapters/mcp/http/http-connection.js'
import { HttpSessions, type SessionCaller } from '../../../../src/adapters/mcp/http/http-sessions.js'
import { KEPT_MS, KeptSessions, type SessionStore } from '../../../../src/adapters/mcp/http/kept-sessions.js'
import { serveMcp } from '../../../../src/adapters/mcp/server/serve.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { type Answer, CLAIM, initialize, McpScene, request } from '../../../support/mcp.js'

/** A store in memory, as JSON. */
class MemoryStore implements SessionStore {
  text = 'null'
  fault: Error | null = null

  read(): Promise<unknown> {
    return this.fault === null ? Promise.resolve(JSON.parse(this.text) as unknown) : Promise.reject(this.fault)
  }

  write(value: unknown): Promise<void> {
    if (this.fault !== null) return Promise.reject(this.fault)
    this.text = JSON.stringify(value)
    return Promise.resolve()
  }

  get sessions(): readonly { readonly id: string; readonly requests: readonly unknown[] }[] {
    return (JSON.parse(this.text) as { sessions: MemoryStore['sessions'] }).sessions
  }
}

/** Processes of one node, one after the other. */
class Processes {
  readonly clock = new ManualClock()
  readonly store = new MemoryStore()
  readonly notes: unknown[] = []
  readonly updated: string[] = []
  changed = (_uri: string | null): void => {}
  #ids = 0

  async start(t: Assert): Promise<HttpSessions> {
    const scene = new McpScene({
      resources: {
        list: () => [],
        read: () => Promise.resolve([{ uri: 'a:b', text: 'x' }]),
        onChange: (run) => {
          this.changed = run
          return () => {}
        }
      }
    })
    scene.tool('echo', (args) => Promise.resolve(args))
    const kept = await KeptSessions.open({
      store: this.store,
      clock: this.clock,
      note: (reason) => void this.notes.push(reason)
    })
    const sessions = new HttpSessions({
      clock: this.clock,
      newId: () => `id ${this.#ids++}`,
      kept,
      connect: () => {
        const connection = new HttpConnection()
        serveMcp(connection, scene.parts)
        return connection
      }
    })
    t.teardown(() => sessions.close())
    return sessions
  }
}

function caller(name: string): SessionCaller {
  return { principal: { kind: 'token', name, tier: 0, sandboxId: null, scopes: [] }, onTokenEnd: () => () => {} }
}

/** Sends a request in a session, as the route does. */
function ask(connection: HttpConnection, message: Record<string, unknown>): Promise<Answer> {
  return new Promise((resolve) => {
    const exchange: McpExchange = {
      note: () => true,
      answer: (answer) => resolve(answer as Answer),
      end: () => {}
    }
    connection.request(message as { id: string }, exchange)
  })
}

async function opened(
  sessions: HttpSessions,
  by: SessionCaller,
  more: readonly Record<string, unknown>[] = []
): Promise<string> {
  const session = sessions.open(by)
  if (session === null) throw new Error('no session')
  const { id, connection } = session
  for (const message of [initialize('init'), ...more]) {
    sessions.took(id, by, message)
    await ask(connection, message)
    if (message['method'] !== 'initialize') continue
    const notice = { jsonrpc: '2.0', method: 'notifications/initialized' }
    sessions.took(id, by, notice)
    connection.notify(notice)
  }
  return id
}

test('a session continues after a restart of its node, with its subscriptions, for its caller alone', async (t: Assert) => {
  const processes = new Processes()
  const first = await processes.start(t)
  const ann = caller('ann')
  const id = await opened(first, ann, [request(1, 'resources/subscribe', { uri: 'a:b' })])
  await first.close()

  const second = await processes.start(t)
  t.is(second.find(id, caller('bob')), null)
  t.is(second.find('id 99', ann), null)
  const connection = second.find(id, ann)
  if (connection === null) return t.fail('the session is lost')
  t.is(second.find(id, ann), connection)
  const { result, error } = await ask(connection, request('list', 'tools/list'))
  t.is(error, undefined)
  t.ok(JSON.stringify(result?.['tools']).includes('"echo"'))
  t.ok(second.isNewlyRenewed(connection))
  t.absent(second.isNewlyRenewed(connection), 'its client is notified once')
  const told: unknown[] = []
  connection.listen({
    note: (message) => told.push((message as Answer)['method']) > 0,
    answer: () => {},
    end: () => {}
  })
  processes.changed('a:b')
  processes.changed('a:other')
  await ask(connection, request('ping', 'ping'))
  t.alike(told, ['notifications/resources/updated'])
})

test('a session that ended does not come back, nor one that was not used for a day', async (t: Assert) => {
  const processes = new Processes()
  const first = await processes.start(t)
  const ann = caller('ann')
  const [ended, old] = [await opened(first, ann), await opened(first, ann)]
  t.ok(first.end(ended, ann))
  await first.close()
  const second = await processes.start(t)
  t.is(second.find(ended, ann), null)
  t.ok(second.end(old, ann), 'it ends also before it is used')
  t.is(second.find(old, ann), null)
  const late = await opened(second, ann)
  await second.close()
  processes.clock.advance(KEPT_MS)
  t.is((await processes.start(t)).find(late, ann), null)
})

test('the store has the last 256 sessions, 16,384 characters of each, and no secret of a caller', async (t: Assert) => {
  const processes = new Processes()
  const first = await processes.start(t)
  const ids: string[] = []
  for (let i = 0; i < 260; i++) {
    processes.clock.advance(1)
    ids.push(await opened(first, caller(`secret ${i}`)))
  }
  const large = Array.from({ length: 200 }, (_, i) =>
    request(i, 'resources/subscribe', { uri: `a:${i}${'x'.repeat(100)}` })
  )
  const last = await opened(first, caller('large'), large)
  await first.close()
  const { sessions, text } = processes.store
  t.ok(sessions.length >= 250 && sessions.length <= 256, `${sessions.length} sessions`)
  t.absent(sessions.some(({ id }) => id === last || id === ids[0]))
  t.ok(sessions.some(({ id }) => id === ids[259]))
  t.absent(text.includes('secret'))
})

test('a damaged store has no sessions, and one that fails costs only what it would have kept', async (t: Assert) => {
  const processes = new Processes()
  for (const text of [
    '7',
    '[]',
    '{"sessions":7}',
    '{"sessions":[7,null,{"id":1},{"id":"a","owner":"b","usedAt":1,"requests":[7]}]}'
  ]) {
    processes.store.text = text
    t.is((await processes.start(t)).find('a', caller('ann')), null, text)
  }
  processes.store.fault = new Error('disk')
  const sessions = await processes.start(t)
  const id = await opened(sessions, caller('ann'))
  t.ok(sessions.find(id, caller('ann')) !== null)
  await sessions.close()
  t.ok(processes.notes.length >= 2)
  t.ok(processes.notes.every((one) => one === processes.store.fault))
})

test('messages that claim their version change no session', async (t: Assert) => {
  const processes = new Processes()
  const first = await processes.start(t)
  const ann = caller('ann')
  const id = await opened(first, ann)
  first.took(id, ann, request(1, 'resources/subscribe', { uri: 'a:b', _meta: CLAIM }))
  await first.close()
  t.is(processes.store.sessions[0]?.requests.length, 1)
})
