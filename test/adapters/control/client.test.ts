import test, { type Assert } from 'brittle'
import { connectControl } from '../../../src/adapters/control/client.js'
import { NodeError } from '../../../src/kit/errors.js'
import { fakeHome } from '../../cli/command-line.js'

test('parameters that are nested too deep are USAGE at the client, of calls and of watches, before anything goes through them', async (t: Assert) => {
  const { socket, fake } = await fakeHome(t)
  const api = connectControl(socket)
  const input: unknown = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`)
  const params = { agent: 'a', capability: 'c', input }
  const watched = api.watch('message.call', params)[Symbol.asyncIterator]().next()
  for (const failed of [api.call('message.call', params), watched]) {
    const error = await failed.then(null, (thrown: unknown) => thrown)
    t.ok(
      error instanceof NodeError && error.code === 'USAGE' && error.message === 'the parameters: nested deeper than 36',
      String(error)
    )
  }
  t.is(fake.seen.length, 0)
})

test('a watch whose parameters have no JSON form fails with why: its node did not end', async (t: Assert) => {
  const api = connectControl((await fakeHome(t)).socket)
  const input = { count: 1n }
  const watched = api.watch('message.call', { agent: 'a', capability: 'c', input })[Symbol.asyncIterator]().next()
  const error = await watched.then(null, (thrown: unknown) => thrown)
  t.ok(error instanceof TypeError, String(error))
})
