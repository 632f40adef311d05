import test from 'brittle'
import { tcpAddress } from '../../../src/kit/net/tcp-address.js'

test('an address of TCP is a name or an address with a port, in one spelling; any other text is none', (t) => {
  t.is(tcpAddress(' Host.Example:7422 '), 'host.example:7422')
  t.is(tcpAddress('100.64.0.7:1'), '100.64.0.7:1')
  t.is(tcpAddress('10.example:1'), '10.example:1')
  t.is(tcpAddress('[FD7A::1]:65535'), '[fd7a::1]:65535')
  for (const text of [
    '',
    'a',
    'a:',
    ':1',
    'a:0',
    'a:65536',
    'fd7a::1:7',
    'a b:7',
    'a:7/x',
    'tcp://a:7',
    '10.0.0.256:7',
    '10.0.0:7',
    '[fd7a]:7',
    `${'a'.repeat(254)}:7`
  ])
    t.is(tcpAddress(text), null, text)
})
