import test, { type Assert } from 'brittle'
import type { ImportedServerInfo } from '../../../../src/ports/imported-tools.js'
import { fakeHome, run } from '../../command-line.js'

const SERVER: ImportedServerInfo = {
  name: 'web',
  agent: 'web',
  transport: 'http',
  url: null,
  state: 'failed',
  tools: [],
  pinned: null,
  pinnedBy: null,
  listed: null,
  change: null,
  lastError: 'connect ECONNREFUSED 127.0.0.1:9',
  lastListedAt: null,
  restarts: 0
}

test('tools call of a server that has no tools now says why, as tools ls does', async (t: Assert) => {
  const rows = [
    [SERVER, 'it offers none now (failed: connect ECONNREFUSED 127.0.0.1:9)'],
    [{ ...SERVER, state: 'starting', lastError: null }, 'it offers none now (starting)'],
    [{ ...SERVER, state: 'ready', lastError: null }, 'it offers none now']
  ] as const
  for (const [server, words] of rows) {
    const { home } = await fakeHome(t, { calls: { 'tools.list': () => ({ servers: [server] }) } })
    const { stderr } = await run(['tools', 'call', 'web', 'x', '{}', '--home', home])
    t.is(/it offers none now[^\n]*?(?=  \[|$)/m.exec(stderr)?.[0], words, stderr)
  }
})
