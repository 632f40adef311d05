import test from 'brittle'
import { websocketUrl } from '../../../src/kit/net/websocket-url.js'

test('URLs of people become the WebSocket of a node; no user, query or other scheme passes', (t) => {
  const cases: readonly (readonly [string, string | null])[] = [
    ['wss://node.example.org', 'wss://node.example.org/mesh'],
    ['https://Node.example.org/', 'wss://node.example.org/mesh'],
    ['ws://10.0.0.5:07421/x/mesh', 'ws://10.0.0.5:7421/x/mesh'],
    ['http://[fd00::1]:80', 'ws://[fd00::1]:80/mesh'],
    ['wss://a:65535', 'wss://a:65535/mesh'],
    ['wss://a:65536', null],
    ['wss://a:0', null],
    ['ftp://a', null],
    ['wss://me@a', null],
    ['wss://a/mesh?x=1', null],
    ['wss://a/#x', null],
    ['wss://', null],
    ['a.example.org', null],
    [`wss://a/${'x'.repeat(600)}`, null]
  ]
  for (const [text, expected] of cases) {
    t.is(websocketUrl(text), expected, text)
    if (expected !== null) t.is(websocketUrl(expected), expected, 'the same again')
  }
})
