import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { addressFault, allowedHost, judgeAddress } from '../../../../src/adapters/a2a/net/address-guard.js'
import { holds } from '../../../support/holds.js'
import { REFUSED } from '../../../support/a2a/refused-addresses.js'

const NONE = { allowed: [] }
const listed = (...texts: string[]): { allowed: NonNullable<ReturnType<typeof allowedHost>>[] } => ({
  allowed: texts.flatMap((text) => allowedHost(text) ?? [])
})

test('each of more than 60 forms of an address that leads inside, or nowhere, is refused with its reason', (t: Assert) => {
  t.ok(REFUSED.length >= 60, `${REFUSED.length} forms`)
  for (const [text, reason] of REFUSED) {
    const verdict = judgeAddress(text, NONE)
    t.ok(
      !verdict.ok && reason.test(verdict.reason),
      `${JSON.stringify(text.slice(0, 60))}: ${verdict.ok ? 'let through' : verdict.reason}`
    )
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
  const policy = listed(
    '127.0.0.1:4100',
    '[::1]',
    'box.lan',
    '169.254.169.254',
    '[fd00:ec2::254]',
    '[::ffff:127.0.0.1]'
  )
  const ok = (text: string): boolean => judgeAddress(text, policy).ok
  t.alike(['http://127.0.0.1:4100/', 'http://[::1]:4100/', 'http://[0::1]:9000/', 'http://BOX.lan/'].map(ok), [
    true,
    true,
    true,
    true
  ])
  t.alike(['http://127.0.0.1:4101/', 'http://127.1:4100/', 'http://127.0.0.2:4100/', 'http://sub.box.lan/'].map(ok), [
    false,
    false,
    false,
    false
  ])
  t.alike(['http://169.254.169.254/', 'http://[fd00:ec2::254]/', 'http://[::ffff:127.0.0.1]/'].map(ok), [
    false,
    false,
    false
  ])
  t.absent(ok('http://[::1]:22/'), 'its port has to be named')
  t.ok(judgeAddress('http://127.0.0.1:22/', listed('127.0.0.1:22')).ok)
  t.alike(
    ['127.0.0.1', '[::1]:80', 'host:1', 'a b', 'host:0', 'host:70000', 'http://x', '', '::1'].map(
      (text) => allowedHost(text) !== null
    ),
    [true, true, true, false, false, false, false, false, false]
  )
})

test('the addresses of a name are judged as strictly: private addresses only for hosts that the config names', (t: Assert) => {
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

test('no text makes the guard throw, and every text that passes is a public literal or a name with a dot', async (t: Assert) => {
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
