import type { Client } from '@modelcontextprotocol/client'
import test, { type Assert } from 'brittle'
import { ContextConnection } from '../../../../src/adapters/mcp/imported/context-connection.js'
import { ContextWatches, WATCH_LEASE_MS } from '../../../../src/adapters/mcp/imported/context-watches.js'
import { ManualClock } from '../../../support/manual-clock.js'

const URI = 'notes://one'

interface Opened {
  readonly uris: readonly string[]
  isClosed: boolean
  /** Ends it as the server does. */
  end(): void
}

/** A server as its client sees it. `mayListen` decides each request to listen. */
class FakeServer {
  readonly opened: Opened[] = []
  mayListen = true
  /** Unsubscriptions that wait for an answer. */
  unanswered = 0
  readonly context: ContextConnection
  readonly watches: ContextWatches
  readonly clock = new ManualClock()

  constructor(era: 'legacy' | 'modern') {
    const client = {
      setNotificationHandler: () => {},
      getProtocolEra: () => era,
      listen: async ({ resourceSubscriptions: uris }: { resourceSubscriptions: string[] }) => this.#listen(uris),
      subscribeResource: async () => ({}),
      unsubscribeResource: async () => {
        this.unanswered++
        return await new Promise(() => {})
      }
    } as unknown as Client
    const { clock } = this
    this.context = new ContextConnection({
      client,
      clock,
      read: (run) => run(),
      ask: async (answer) => await answer,
      onChanged: () => {},
      onNote: () => {}
    })
    this.watches = new ContextWatches(clock)
  }

  async revision(uri = URI): Promise<string | null | undefined> {
    const [revision] = await this.watches.watch({ context: this.context, peer: 'p', uris: [uri] })
    return revision
  }

  #listen(uris: readonly string[]): unknown {
    if (!this.mayListen) throw new Error('not now')
    let close = (): void => {}
    const closed = new Promise<void>((resolve) => (close = resolve))
    const end = (): void => {
      one.isClosed = true
      close()
    }
    const one: Opened = { uris, isClosed: false, end }
    this.opened.push(one)
    return { honoredFilter: { resourceSubscriptions: uris }, closed, close: async () => end() }
  }
}

test('a resource whose lease ended has another revision, since its changes were not reported', async (t: Assert) => {
  const server = new FakeServer('modern')
  const first = await server.revision()
  t.is(typeof first, 'string')
  t.is(await server.revision(), first)
  server.clock.advance(WATCH_LEASE_MS + 1)
  t.not(await server.revision(), first)
})

test('a stream of changes that its server ends is opened again, with other revisions', async (t: Assert) => {
  const server = new FakeServer('modern')
  const first = await server.revision()
  server.opened[0]?.end()
  await Promise.resolve()
  const second = await server.revision()
  t.not(second, first)
  t.is(typeof second, 'string')
  t.is(server.opened.length, 2)
})

test('a stream of changes that cannot be widened goes on, and is closed after the next one is open', async (t: Assert) => {
  const server = new FakeServer('modern')
  const first = await server.revision()
  server.mayListen = false
  await t.exception(server.revision('notes://two'), /not now/)
  t.is(server.opened[0]?.isClosed, false)
  server.mayListen = true
  t.is(await server.revision(), first)
  t.alike(
    server.opened.map(({ uris, isClosed }) => [uris, isClosed]),
    [
      [[URI], true],
      [[URI, 'notes://two'], false]
    ]
  )
})

test('resources that are followed no more are given up together, so that a deaf server delays once', async (t: Assert) => {
  const server = new FakeServer('legacy')
  for (const at of [1, 2, 3]) await server.revision(`notes://${at}`)
  server.clock.advance(WATCH_LEASE_MS + 1)
  void server.revision()
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
  t.is(server.unanswered, 3)
})
