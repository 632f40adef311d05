import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { Authority, type AuthorityRules, callerHeaders, targetOf } from '../../../src/adapters/http/authority.js'
import { holds } from '../../support/holds.js'

const PORT = 7420
const RULES: AuthorityRules = { port: PORT, bound: ['127.0.0.1'], hosts: [], origins: [] }

interface Asked {
  readonly host?: readonly string[]
  readonly origin?: readonly string[]
  readonly url?: string
  readonly localAddress?: string
}

/** The rule that refuses a request; null for none. */
function ruleOf(
  { host = [`localhost:${PORT}`], origin = [], url = '/', localAddress = '127.0.0.1' }: Asked,
  rules: Partial<AuthorityRules> = {}
): string | null {
  const rawHeaders = [...host.flatMap((value) => ['HoSt', value]), ...origin.flatMap((value) => ['oRiGiN', value])]
  return (
    new Authority({ ...RULES, ...rules }).admit(callerHeaders({ rawHeaders }), { url, localAddress }).refusal?.rule ??
    null
  )
}

test('the loopback names and the bound address pass, with the port and in any case', (t: Assert) => {
  for (const host of ['localhost:7420', '127.0.0.1:7420', '[::1]:7420', 'LocalHost:7420'])
    t.is(ruleOf({ host: [host] }), null, host)
  t.is(ruleOf({ host: ['box.lan:7420'] }, { bound: ['box.lan', '192.168.1.5'] }), null)
  t.is(ruleOf({ host: ['192.168.1.5:7420'] }, { bound: ['box.lan', '192.168.1.5'] }), null)
  t.is(ruleOf({ host: ['[fe80::1]:7420'] }, { bound: ['FE80::1'] }), null)
})

test('other names, ports and spellings of the same address are refused', (t: Assert) => {
  const odd = [
    '',
    'localhost',
    '127.0.0.1',
    'localhost:',
    'localhost:7421',
    'localhost:07420',
    'localhost:7420:7420',
    'localhost.:7420',
    ' localhost:7420'
  ]
  const spelled = [
    '127.1:7420',
    '2130706433:7420',
    '0x7f.1:7420',
    '0177.0.0.1:7420',
    '[::ffff:127.0.0.1]:7420',
    '[0:0:0:0:0:0:0:1]:7420',
    '::1:7420',
    '0.0.0.0:7420'
  ]
  const rebinding = [
    'evil.example:7420',
    'localhost.evil.example:7420',
    '127.0.0.1.nip.io:7420',
    'user@localhost:7420',
    'localhost:7420@evil.example',
    'localhost:7420,evil.example'
  ]
  for (const host of [...odd, ...spelled, ...rebinding])
    t.is(ruleOf({ host: [host] }), 'http-host', JSON.stringify(host))
  t.is(ruleOf({ host: [] }), 'http-host', 'none')
  t.is(ruleOf({ host: ['localhost:7420', 'localhost:7420'] }), 'http-host', 'two, though equal')
})

test('a URL in absolute form must name a host of ours too', (t: Assert) => {
  t.is(ruleOf({ url: 'http://127.0.0.1:7420/health' }), null)
  t.is(ruleOf({ url: 'HTTP://LOCALHOST:7420' }), null)
  for (const url of [
    'http://evil.example/',
    'http://evil.example:7420/',
    'http://',
    'http://localhost:7420@evil.example/'
  ])
    t.is(ruleOf({ url }), 'http-host', url)
})

test('on a wildcard the address at which the connection came in passes, no other', (t: Assert) => {
  const rules = { bound: ['0.0.0.0', '0.0.0.0'] }
  t.is(ruleOf({ host: ['10.0.0.7:7420'], localAddress: '10.0.0.7' }, rules), null)
  t.is(ruleOf({ host: ['10.0.0.7:7420'], localAddress: '::ffff:10.0.0.7' }, rules), null)
  t.is(ruleOf({ host: ['[fd00::7]:7420'], localAddress: 'fd00::7' }, rules), null)
  t.is(ruleOf({ host: ['10.0.0.8:7420'], localAddress: '10.0.0.7' }, rules), 'http-host')
  t.is(ruleOf({ host: [':7420'], localAddress: '' }, rules), 'http-host', 'a connection that is gone')
  t.is(ruleOf({ host: ['10.0.0.7:7420'], localAddress: '10.0.0.7', origin: ['http://10.0.0.7:7420'] }, rules), null)
})

test('names of the config pass: with the port of the listener, or with their own, which may be left out when it is 80 or 443', (t: Assert) => {
  const rules = { hosts: ['Box.lan', 'mcp.example.org:443', 'other.example.org:8443'] }
  for (const host of ['box.lan:7420', 'mcp.example.org:443', 'mcp.example.org', 'other.example.org:8443'])
    t.is(ruleOf({ host: [host] }, rules), null, host)
  for (const host of ['box.lan', 'mcp.example.org:80', 'mcp.example.org:7420', 'other.example.org'])
    t.is(ruleOf({ host: [host] }, rules), 'http-host', host)
  t.is(ruleOf({ host: ['localhost'] }, { port: 80 }), null)
})

test('the host of the URL from outside passes as a proxy passes it on, and so does its origin, no other', (t: Assert) => {
  const rules = { publicUrl: 'https://node.example.org/mesh' }
  for (const host of ['node.example.org', 'Node.Example.org:443']) t.is(ruleOf({ host: [host] }, rules), null, host)
  for (const host of ['node.example.org:80', 'node.example.org:7420', 'example.org', 'node.example.org/mesh'])
    t.is(ruleOf({ host: [host] }, rules), 'http-host', host)
  t.is(ruleOf({ host: ['10.0.0.5:8421'] }, { publicUrl: 'http://10.0.0.5:8421' }), null)
  t.is(ruleOf({ host: ['node.example.org'], origin: ['https://node.example.org'] }, rules), null)
  for (const origin of [
    'http://node.example.org',
    'https://node.example.org/mesh',
    'https://example.org',
    'http://node.example.org:443'
  ])
    t.is(ruleOf({ host: ['node.example.org'], origin: [origin] }, rules), 'http-origin', origin)
})

test('no Origin passes, its own passes, those of the config pass, all others do not', (t: Assert) => {
  t.is(ruleOf({}), null)
  for (const origin of ['http://localhost:7420', 'http://127.0.0.1:7420', 'http://[::1]:7420'])
    t.is(ruleOf({ origin: [origin] }), null, origin)
  const foreign = [
    'null',
    '',
    'http://localhost',
    'https://localhost:7420',
    'http://localhost:3000',
    'http://evil.example',
    'http://localhost:7420.evil.example',
    'http://localhost:7420/',
    '*',
    'file://',
    'HTTP://LOCALHOST:7420'
  ]
  for (const origin of foreign) t.is(ruleOf({ origin: [origin] }), 'http-origin', JSON.stringify(origin))
  t.is(ruleOf({ origin: ['http://localhost:7420', 'http://localhost:7420'] }), 'http-origin', 'two')
  t.is(ruleOf({ origin: ['https://app.example.org'] }, { origins: ['https://app.example.org'] }), null)
  t.is(ruleOf({ origin: ['https://app.example.org:443'] }, { origins: ['https://app.example.org'] }), 'http-origin')
})

test('any Host and Origin passes only when it is listed exactly', async (t: Assert) => {
  const names = ['localhost', '127.0.0.1', '[::1]', 'box.lan']
  const allowed = new Set(names.map((name) => `${name}:${PORT}`))
  const name = fc.oneof(
    fc.constantFrom(...names, 'evil.example', '127.1', 'localhost.'),
    fc.webAuthority(),
    fc.string({ maxLength: 12 })
  )
  const end = fc.oneof(
    fc.constantFrom(`:${PORT}`, '', ':80', `:0${PORT}`, `:${PORT}.`, `:${PORT}\u0000`, '\t'),
    fc.string({ maxLength: 4 })
  )
  const host = fc.tuple(name, end).map(([one, more]) => one + more)
  const origin = fc.option(
    fc.tuple(fc.constantFrom('http://', 'https://', 'HTTP://', '', 'null'), host).map(([scheme, one]) => scheme + one)
  )
  const property = fc.property(host, origin, (sent, from) => {
    const rule = ruleOf({ host: [sent], origin: from === null ? [] : [from] }, { hosts: ['box.lan'] })
    const isOurs = allowed.has(sent.toLowerCase())
    const mayCall = from === null || (from.startsWith('http://') && allowed.has(from.slice(7)))
    return rule === (isOurs ? (mayCall ? null : 'http-origin') : 'http-host')
  })
  await holds(t, property, 2000)
})

test('no list of headers makes it throw, and none without exactly one good Host passes', async (t: Assert) => {
  const header = fc.tuple(
    fc.constantFrom('host', 'HOST', 'origin', 'authorization', 'x', ''),
    fc.oneof(fc.constantFrom('localhost:7420', 'null'), fc.string())
  )
  const property = fc.property(fc.array(header, { maxLength: 6 }), fc.string(), (list, url) => {
    const headers = callerHeaders({ rawHeaders: list.flat() })
    const { refusal } = new Authority(RULES).admit(headers, { url, localAddress: '' })
    const hosts = list.filter(([name]) => name.toLowerCase() === 'host')
    return refusal !== null || (hosts.length === 1 && hosts[0]?.[1].toLowerCase() === 'localhost:7420')
  })
  await holds(t, property, 500)
})

test('the path of a request is used as it came; a text that is no path gives none', (t: Assert) => {
  t.alike(targetOf('/mcp?a=1?b'), { path: '/mcp', query: 'a=1?b' })
  t.alike(targetOf('http://localhost:7420/mcp?x'), { path: '/mcp', query: 'x' })
  t.alike(targetOf('http://localhost:7420?x'), { path: '/', query: 'x' })
  t.alike(targetOf('http://localhost:7420'), { path: '/', query: '' })
  t.alike(targetOf('/a/../mcp'), { path: '/a/../mcp', query: '' })
  t.alike(targetOf('/%6dcp'), { path: '/%6dcp', query: '' })
  for (const url of ['*', '', 'mcp', 'ftp://x/mcp', 'localhost:7420']) t.is(targetOf(url).path, '', url)
})
