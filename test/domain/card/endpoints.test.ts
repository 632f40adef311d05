import test from 'brittle'
import { websocketUrlsOf } from '../../../src/domain/card/endpoints.js'

test('of the endpoints of a card at most four valid WebSocket URLs count', (t) => {
  const ws = (address: string) => ({ transport: 'websocket' as const, address })
  const endpoints = [
    { transport: 'hyperswarm' as const, address: 'key' },
    ws('javascript:alert(1)'),
    { transport: 'websocket' as const },
    ...[1, 2, 3, 4, 5].map((n) => ws(`wss://h${n}`))
  ]
  t.alike(
    websocketUrlsOf({ endpoints }),
    [1, 2, 3, 4].map((n) => `wss://h${n}/mesh`)
  )
})
