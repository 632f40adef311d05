import test from 'brittle'
import { AddressLimit } from '../../../src/adapters/http/address-limit.js'
import { Authority, type HttpRefusal } from '../../../src/adapters/http/authority.js'
import { CallerGate } from '../../../src/adapters/http/caller-gate.js'
import { HttpError } from '../../../src/adapters/http/http-error.js'
import { ALICE } from '../../support/gateway.js'
import { ManualClock } from '../../support/manual-clock.js'

test('a caller is admitted by host, origin and token; an address that is refused too often gets 429, no valid token ever', async (t) => {
  const refusals: HttpRefusal[] = []
  const rate = { perSecond: 1, burst: 4 }
  const gate = new CallerGate({
    authority: new Authority({ port: 7421, bound: ['127.0.0.1'], hosts: ['grpc.example.org:443'], origins: [] }),
    addressLimit: new AddressLimit(
      { anonymous: rate, wrongToken: { ...rate, burst: 1 } },
      { clock: new ManualClock(), onRefused: () => {} }
    ),
    admit: (token) => (token === 'good' ? { principal: ALICE, onEnd: () => () => {} } : null),
    onRefusal: (refusal) => void refusals.push(refusal)
  })
  const place = { remoteAddress: '192.0.2.1', localAddress: '127.0.0.1' }
  const asked = async (authorizations: string[], host = '127.0.0.1:7421', origins: string[] = []): Promise<unknown> => {
    try {
      return (await gate.admit({ hosts: [host], origins, authorizations }, place)).principal
    } catch (error) {
      return error instanceof HttpError ? error.status : error
    }
  }
  t.is(await asked(['Bearer good']), ALICE)
  t.is(await asked(['Bearer good'], 'grpc.example.org:443'), ALICE)
  t.is(await asked(['Bearer good'], 'evil.example.org:7421'), 403)
  t.is(await asked(['Bearer good'], '127.0.0.1:7421', ['http://evil.example.org']), 403)
  t.is(await asked([]), 401)
  t.is(await asked(['Bearer bad']), 401)
  t.is(await asked(['Bearer bad']), 429)
  t.is(await asked([]), 429)
  t.is(await asked(['Bearer good']), ALICE)
  t.alike(
    refusals.map(({ rule }) => rule),
    ['http-host', 'http-origin', 'http-token', 'http-token'],
    'refusals beyond the limit do not fill the audit log'
  )
})
