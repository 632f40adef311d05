import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { addressFault, allowedHost, judgeAddress, MAX_ADDRESS } from '../../../src/adapters/a2a/address-guard.js'
import { holds } from '../../support/holds.js'

const NONE = { allowed: [] }
const listed = (...texts: string[]): { allowed: NonNullable<ReturnType<typeof allowedHost>>[] } => ({
  allowed: texts.flatMap((text) => allowedHost(text) ?? [])
})

/** Each is refused, with a reason in which these words are. */
const REFUSED: readonly (readonly [string, RegExp])[] = [
  // Loopback, private and special networks of IPv4.
  ['http://127.0.0.1/', /loopback/],
  ['http://127.0.0.1:8080/a', /loopback/],
  ['http://127.255.255.254/', /loopback/],
  ['http://0.0.0.0/', /unspecified/],
  ['http://0.1.2.3/', /unspecified/],
  ['http://10.0.0.1/', /private/],
  ['http://172.16.0.1/', /private/],
  ['http://172.31.255.255/', /private/],
  ['http://192.168.1.1/', /private/],
  ['http://100.64.0.1/', /carrierGradeNat/],
  ['http://169.254.169.254/latest/meta-data/', /linkLocal/],
  ['http://169.254.170.2/', /linkLocal/],
  ['http://100.100.100.200/', /secrets/],
  ['http://168.63.129.16/', /secrets/],
  ['http://192.0.0.192/', /secrets/],
  ['http://192.0.2.1/', /reserved/],
  ['http://198.18.0.1/', /reserved/],
  ['http://198.51.100.7/', /reserved/],
  ['http://203.0.113.9/', /reserved/],
  ['http://192.88.99.1/', /reserved/],
  ['http://224.0.0.1/', /multicast/],
  ['http://239.255.255.250/', /multicast/],
  ['http://240.0.0.1/', /reserved/],
  ['http://255.255.255.255/', /broadcast/],
  // Other ways to write IPv4, of public hosts too.
  ['http://2130706433/', /plain form/],
  ['http://134744072/', /plain form/],
  ['http://0x7f000001/', /plain form/],
  ['http://0x7f.0.0.1/', /plain form/],
  ['http://017700000001/', /plain form/],
  ['http://0177.0.0.01/', /plain form/],
  ['http://127.1/', /plain form/],
  ['http://127.0.1/', /plain form/],
  ['http://0/', /plain form/],
  ['http://127.0.0.1./', /plain form/],
  ['http://%31%32%37.0.0.1/', /plain form/],
  ['http://127.0.0.0x1/', /plain form/],
  ['http://①②⑦.⓪.⓪.①/', /characters/],
  ['http://127。0。0。1/', /characters/],
  // IPv6, and IPv4 inside of it.
  ['http://[::1]/', /loopback/],
  ['http://[0:0:0:0:0:0:0:1]:8080/', /loopback/],
  ['http://[::]/', /unspecified/],
  ['http://[fe80::1]/', /linkLocal/],
  ['http://[fe80::1%25eth0]/', /no valid address/],
  ['http://[fec0::1]/', /deprecatedSiteLocal/],
  ['http://[fc00::1]/', /uniqueLocal/],
  ['http://[fd00:ec2::254]/', /secrets/],
  ['http://[fd20:ce::254]/', /secrets/],
  ['http://[ff02::1]/', /multicast/],
  ['http://[::ffff:127.0.0.1]/', /ipv4Mapped/],
  ['http://[::ffff:7f00:1]/', /ipv4Mapped/],
  ['http://[::ffff:8.8.8.8]/', /ipv4Mapped/],
  ['http://[::127.0.0.1]/', /reserved/],
  ['http://[::7f00:1]/', /reserved/],
  ['http://[::ffff:0:127.0.0.1]/', /rfc6145/],
  ['http://[64:ff9b::7f00:1]/', /rfc6052/],
  ['http://[64:ff9b:1::7f00:1]/', /rfc6052/],
  ['http://[2002:7f00:1::]/', /6to4/],
  ['http://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/', /teredo/],
  ['http://[2606:4700::5efe:7f00:1]/', /reserved/],
  ['http://[2001:db8::1]/', /reserved/],
  ['http://[100::1]/', /reserved|discard/],
  // Names that are not public.
  ['http://localhost/', /not a public name/],
  ['http://LOCALHOST:3000/', /not a public name/],
  ['http://localhost./', /no name/],
  ['http://a.localhost/', /not a public name/],
  ['http://printer/', /not a public name/],
  ['http://printer.local/', /not a public name/],
  ['http://metadata.google.internal/', /not a public name/],
  ['http://router.home.arpa/', /not a public name/],
  // Users, schemes, ports, and what a parser would make good.
  ['http://user@example.com/', /user or password/],
  ['http://example.com:80@127.0.0.1/', /user or password/],
  ['http://user:secret@example.com/', /user or password/],
  ['ftp://example.com/', /http or https/],
  ['file:///etc/passwd', /http or https/],
  ['gopher://example.com:70/_x', /http or https/],
  ['javascript:alert(1)', /http or https/],
  ['http:example.com', /http or https/],
  ['//example.com/', /http or https/],
  ['http:///127.0.0.1/', /no valid address/],
  ['http:\\\\127.0.0.1\\', /characters/],
  ['http://exam\tple.com/', /characters/],
  [' http://example.com/', /characters/],
  ['http://example.com/\r\nHost: x', /characters/],
  ['http://example.com:22/', /port 22/],
  ['http://example.com:25/', /port 25/],
  ['http://example.com:6379/', /port 6379/],
  ['https://example.com:11211/', /port 11211/],
  ['http://example.com:99999/', /no valid address/],
  ['http://example..com/', /no name/],
  ['http://xn--/', /./],
  [`http://example.com/${'a'.repeat(MAX_ADDRESS)}`, /longer/],
  ['', /characters/]
]

test('each of more than 60 forms of an address that leads inside, or nowhere, is refused with its reason', (t: Assert) => {
  t.ok(REFUSED.length >= 60, `${REFUSED.length} forms`)
  for (const [text, reason] of REFUSED) {
    const verdict = judgeAddress(text, NONE)
    t.ok(!verdict.ok && reason.test(verdict.reason), `${JSON.stringify(text.slice(0, 60))}: ${verdict.ok ? 'let through' : verdict.reason}`)
  }
})

test('addresses of the public internet are let through as they are', (t: Assert) => {
  for (const text of [
    'https://example.com/.well-known/agent-card.json',
    'http://agents.example.com:8080/a2a?x=1',
    'https://Example.COM/',
    'https://8.8.8.8/',
    'https://[2606:4700:4700::1111]/',
    'https://xn--bcher-kva.example/'
  ]) {
    const verdict = judgeAddress(text, NONE)
    t.ok(verdict.ok && !verdict.isAllowed && verdict.url.href === new URL(text).href, text)
  }
})

test('a host that the config names may be private, on its port alone where it names one, and never where clouds keep secrets', (t: Assert) => {
  const policy = listed('127.0.0.1:4100', '[::1]', 'box.lan', '169.254.169.254', '[fd00:ec2::254]', '[::ffff:127.0.0.1]')
  const ok = (text: string): boolean => judgeAddress(text, policy).ok
  t.alike(['http://127.0.0.1:4100/', 'http://[::1]:4100/', 'http://[0::1]:9000/', 'http://BOX.lan/'].map(ok), [true, true, true, true])
  t.alike(['http://127.0.0.1:4101/', 'http://127.1:4100/', 'http://127.0.0.2:4100/', 'http://sub.box.lan/'].map(ok), [
    false,
    false,
    false,
    false
  ])
  t.alike(['http://169.254.169.254/', 'http://[fd00:ec2::254]/', 'http://[::ffff:127.0.0.1]/'].map(ok), [false, false, false])
  t.absent(ok('http://[::1]:22/'), 'its port has to be named')
  t.ok(judgeAddress('http://127.0.0.1:22/', listed('127.0.0.1:22')).ok)
  t.alike(
    ['127.0.0.1', '[::1]:80', 'host:1', 'a b', 'host:0', 'host:70000', 'http://x', '', '::1'].map((text) => allowedHost(text) !== null),
    [true, true, true, false, false, false, false, false, false]
  )
})

test('what a name stands for is judged as strictly: private addresses only of hosts that the config names', (t: Assert) => {
  t.is(addressFault('93.184.216.34', false), null)
  for (const address of ['127.0.0.1', '10.1.2.3', '::1', 'fd12::1']) {
    t.ok(addressFault(address, false) !== null, address)
    t.is(addressFault(address, true), null, address)
  }
  for (const address of [
    '169.254.169.254',
    'fe80::1',
    'fe80::1%eth0',
    '224.0.0.1',
    '0.0.0.0',
    '::',
    '::ffff:10.0.0.1',
    '64:ff9b::a00:1',
    '',
    'nonsense'
  ])
    t.ok(addressFault(address, true) !== null, address)
})

test('no text makes the guard throw, and what it lets through is a public literal or a name with a dot', async (t: Assert) => {
  const odd = fc.oneof(
    fc.string({ maxLength: 80 }),
    fc.webUrl(),
    fc.tuple(fc.ipV4Extended(), fc.nat(70_000)).map(([ip, port]) => `http://${ip}:${port}/`),
    fc.ipV6().map((ip) => `https://[${ip}]/`),
    fc.nat(0xff_ff_ff_ff).map((number) => `http://${number}/`)
  )
  await holds(
    t,
    fc.property(odd, (text) => {
      const verdict = judgeAddress(text, NONE)
      if (!verdict.ok) return verdict.reason !== ''
      const host = verdict.url.hostname.replace(/^\[|\]$/g, '')
      return /^[0-9.]+$|:/.test(host) ? addressFault(host, false) === null : host.includes('.')
    }),
    500
  )
})
