import test from 'brittle'
import { addressesOn, endpointsOf } from '../../../src/domain/card/endpoints.js'

test('of the endpoints of a card at most four valid addresses of each transport count', (t) => {
  const ws = (address: string) => ({ transport: 'websocket' as const, address })
  const tcp = (address: string) => ({ transport: 'hyperswarm' as const, address })
  const endpoints = [
    tcp('key'),
    tcp('tcp://10.0.0.1'),
    tcp('tcp://10.0.0.1:70000'),
    ws('javascript:alert(1)'),
    ws('tcp://10.0.0.1:7000'),
    { transport: 'websocket' as const },
    { transport: 'hyperswarm' as const },
    ...[1, 2, 3, 4, 5].flatMap((n) => [ws(`wss://h${n}`), tcp(`tcp://10.0.0.${n}:7000`)])
  ]
  const addresses = {
    tcp: [1, 2, 3, 4].map((n) => `10.0.0.${n}:7000`),
    websocket: [1, 2, 3, 4].map((n) => `wss://h${n}/mesh`)
  }
  t.alike(addressesOn({ endpoints }), addresses)
  t.alike(addressesOn({ endpoints: endpointsOf(addresses) }), addresses)
})
