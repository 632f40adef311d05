import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import ipaddr from 'ipaddr.js'
import {
  AddressLimit,
  type AddressRates,
  countedAddress,
  type LimitedAddress,
  MAX_ADDRESSES
} from '../../../src/adapters/http/address-limit.js'
import { healthRoute, type HttpRoute } from '../../../src/adapters/http/route.js'
import { holds } from '../../support/holds.js'
import { ManualClock } from '../../support/manual-clock.js'
import {
  ask,
  echoRoute,
  errorOf,
  head,
  listening,
  RawConnection,
  statusesOf,
  statusOf,
  WITH_TOKEN
} from './raw-http.js'

const RATES: AddressRates = { anonymous: { perSecond: 1, burst: 5 }, wrongToken: { perSecond: 0.5, burst: 2 } }
const WRONG = `Authorization: Bearer a2a_${'w'.repeat(43)}`
const PAGE = 'https://page.example'

const openRoute: HttpRoute = {
  path: '/open',
  methods: ['GET'],
  isPublic: true,
  handle: (_request, response) => void response.writeHead(200, { 'content-length': 2 }).end('{}')
}

/** A listener with a limit, whose clock stands still. */
async function scene(
  t: Assert,
  { rates = RATES, slow }: { rates?: AddressRates; slow?: (token: string) => Promise<boolean> | null } = {}
) {
  const clock = new ManualClock()
  const limited: LimitedAddress[] = []
  const addressLimit = new AddressLimit(rates, { clock, onRefused: (one) => limited.push(one) })
  const at = await listening(t, [openRoute, echoRoute(), healthRoute()], {
    addressLimit,
    origins: [PAGE],
    ...(slow === undefined ? {} : { slow })
  })
  const send = (line: string, ...headers: string[]): Promise<string> =>
    ask(t, at.port, head(line, { port: at.port, headers: ['Connection: close', ...headers] }))
  return { ...at, clock, limited, addressLimit, send }
}

test('requests without a valid token are refused beyond the limit of their address, for any content, until its time is over', async (t: Assert) => {
  const kinds: readonly (readonly [what: string, line: string, headers: readonly string[], before: number])[] = [
    ['a public path', 'GET /open', [], 200],
    ['a public path with a wrong token', 'GET /open', [WRONG], 200],
    ['a public path with the secret of a client', 'GET /open', ['Authorization: Basic eDp5'], 200],
    ['no token', 'POST /echo', [], 401],
    ['no route', 'GET /nothing', [], 401],
    ['a method that is not served', 'DELETE /open', [], 405],
    ['an expectation of no meaning', 'GET /open', ['Expect: a miracle'], 417],
    ['the same on a path with a token', 'POST /echo', ['Expect: a miracle'], 401],
    ['a body after 100 Continue', 'POST /echo', ['Expect: 100-continue', 'Content-Length: 0'], 401],
    ['an upgrade', 'GET /open', ['Connection: upgrade', 'Upgrade: websocket'], 200],
    ['a page of another origin', 'GET /open', ['Origin: https://evil.example'], 403],
    ['a preflight', 'OPTIONS /echo', [`Origin: ${PAGE}`, 'Access-Control-Request-Method: POST'], 204],
    [
      'other addresses in headers of a proxy',
      'GET /open',
      ['X-Forwarded-For: 192.0.2.9', 'Forwarded: for=192.0.2.8', 'X-Real-IP: 192.0.2.7'],
      200
    ]
  ]
  for (const [what, line, headers, before] of kinds) {
    const { send, clock, limited, refusals } = await scene(t)
    for (let sent = 0; sent < 5; sent++) t.is(statusOf(await send(line, ...headers)), before, what)
    const audited = refusals.length
    const refused = await send(line, ...headers)
    t.is(statusOf(refused), 429, what)
    t.ok(/\r\nretry-after: 1\r\n/i.test(refused) && /\r\nconnection: close\r\n/i.test(refused), what)
    t.alike(errorOf(refused), {
      code: 'RATE_LIMITED',
      message: 'too many requests without a valid token from this address: try again in 1 s'
    })
    t.alike(limited, [{ rule: 'anonymous', address: 'loopback' }])
    t.is(refusals.length, audited, 'the audit log does not grow')
    clock.advance(1000)
    t.alike([statusOf(await send(line, ...headers)), statusOf(await send(line, ...headers))], [before, 429], what)
  }
})

test('wrong tokens have a tighter limit, which leaves requests without a token alone', async (t: Assert) => {
  const { send, limited, clock } = await scene(t)
  const forms = [WRONG, 'Authorization: Bearer x', 'Authorization: Basic eDp5', `${WITH_TOKEN}\r\n${WITH_TOKEN}`]
  t.alike(
    [statusOf(await send('POST /echo', forms[0] ?? '')), statusOf(await send('POST /echo', forms[1] ?? ''))],
    [401, 401]
  )
  for (const form of forms) {
    const refused = await send('POST /echo', form)
    t.is(statusOf(refused), 429, form)
    t.ok(/\r\nretry-after: 2\r\n/i.test(refused), 'a token comes back in two seconds')
    t.is(errorOf(refused).message, 'too many wrong tokens from this address: try again in 2 s')
  }
  t.alike(new Set(limited.map(({ rule }) => rule)), new Set(['wrong-token']))
  t.alike([statusOf(await send('GET /open')), statusOf(await send('POST /echo'))], [200, 401])
  clock.advance(2000)
  t.is(statusOf(await send('POST /echo', WRONG)), 401)
})

test('a valid token is served for any other requests from its address, and is not counted', async (t: Assert) => {
  const slowToken = 'slow.token.of.oauth'
  const slow = (token: string): Promise<boolean> | null => (token === slowToken ? Promise.resolve(true) : null)
  const { send, limited } = await scene(t, { slow })
  const good = [WITH_TOKEN, `Authorization: Bearer ${slowToken}`]
  for (let sent = 0; sent < 20; sent++) for (const header of good) t.is(statusOf(await send('GET /open', header)), 200)
  for (let sent = 0; sent < 10; sent++) await send('POST /echo', WRONG)
  for (let sent = 0; sent < 10; sent++) await send('GET /open')
  t.is(limited.length, 15, '2 wrong tokens and 3 more requests were within the limits')
  for (const header of good) {
    t.is(statusOf(await send('GET /open', header)), 200, 'a public path')
    t.is(statusOf(await send('POST /echo', header, 'Content-Length: 0')), 200)
  }
  t.is(limited.length, 15)
})

test('requests behind a refused one on its connection are not answered; health always is', async (t: Assert) => {
  const { port, limited, send } = await scene(t)
  const one = head('GET /open', { port })
  const answers = await new RawConnection(t, port).write(one.repeat(50)).end()
  t.alike(statusesOf(answers), [200, 200, 200, 200, 200, 429])
  t.is(limited.length, 1)
  for (let sent = 0; sent < 10; sent++) t.is(statusOf(await send('GET /health')), 200)
})

test('requests that are no HTTP count too, and beyond the limit leave no line in the audit log', async (t: Assert) => {
  const { port, refusals, limited } = await scene(t)
  for (let sent = 0; sent < 8; sent++) t.is(statusOf(await ask(t, port, 'NO HTTP\r\n\r\n')), 400)
  t.alike([refusals.length, limited.length], [5, 3])
})

test('the table of addresses is bounded: further addresses share one count, and idle ones are forgotten', (t: Assert) => {
  const clock = new ManualClock()
  const limit = new AddressLimit(RATES, { clock, onRefused: () => {} })
  const passed = (address: string): boolean => limit.refusal(address, false) === null
  const first = Array.from({ length: MAX_ADDRESSES }, (_, one) => passed(`10.0.${one >> 8}.${one & 255}`))
  t.ok(first.every(Boolean))
  t.is(limit.size, MAX_ADDRESSES)
  const further = Array.from({ length: 50 }, (_, one) => passed(`192.0.2.${one}`))
  t.is(further.filter(Boolean).length, 5, 'they have the burst of one address')
  t.is(limit.size, MAX_ADDRESSES)
  t.ok(passed('10.0.0.0'), 'a counted address keeps its own')
  clock.advance(60_000)
  t.ok(passed('192.0.2.1') && limit.size < 10, `${limit.size} addresses`)
})

test('an IPv6 client is counted by its /64 however it is written, IPv4 by its address, and this machine once', async (t: Assert) => {
  const local = ['127.0.0.1', '127.8.9.10', '::1', '::ffff:127.0.0.1']
  t.alike(new Set(local.map(countedAddress)), new Set(['loopback']))
  t.is(countedAddress('::ffff:192.0.2.1'), countedAddress('192.0.2.1'))
  t.is(countedAddress('fe80::1%eth0'), countedAddress('FE80::2%eth1'))
  t.not(countedAddress('192.0.2.1'), countedAddress('192.0.2.2'))
  t.is(countedAddress('64:ff9b::192.0.2.1'), countedAddress('64:ff9b::c000:201'))
  const group = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 0xffff }))
  const address = fc
    .array(group, { minLength: 8, maxLength: 8 })
    .filter((parts) => parts.slice(0, 5).some((part) => part !== 0))
  await holds(
    t,
    fc.property(address, address, (one, other) => {
      const written = [new ipaddr.IPv6(one).toString(), new ipaddr.IPv6(one).toNormalizedString()].map(countedAddress)
      const isSame = one.slice(0, 4).every((part, at) => part === other[at])
      const neighbour = countedAddress(new ipaddr.IPv6([...one.slice(0, 4), ...other.slice(4)]).toString())
      const foreign = countedAddress(new ipaddr.IPv6(other).toString())
      return written[0] === written[1] && written[0] === neighbour && (written[0] === foreign) === isSame
    })
  )
})
