import fc from 'fast-check'
import test, { type Assert } from 'brittle'
import { refusalOf } from '../../../src/adapters/control/guard.js'
import { holds } from '../../support/holds.js'

const GOOD = ['Host', 'a2a-node', 'Content-Type', 'application/json']

function ruleOf(rawHeaders: string[], method = 'POST'): string | null {
  return refusalOf({ method, rawHeaders })?.rule ?? null
}

test('the client of this package passes', (t: Assert) => {
  t.is(ruleOf(GOOD), null)
  t.is(ruleOf(['host', 'a2a-node', 'content-type', 'application/json; charset=utf-8']), null)
})

test('a Host that is not exactly ours is refused', (t: Assert) => {
  for (const host of ['localhost', 'a2a-node:80', 'A2A-NODE', 'a2a-node.evil.example', '127.0.0.1', '', ' a2a-node']) {
    t.is(ruleOf(['host', host, 'content-type', 'application/json']), 'host', host)
  }
  t.is(ruleOf(['content-type', 'application/json']), 'host', 'none')
  t.is(ruleOf([...GOOD, 'host', 'a2a-node']), 'host', 'twice')
})

test('every header of a browser is refused: any Origin, any Sec-Fetch', (t: Assert) => {
  for (const origin of ['null', 'http://localhost', 'http://a2a-node', ''])
    t.is(ruleOf([...GOOD, 'Origin', origin]), 'origin')
  for (const name of ['Sec-Fetch-Site', 'sec-fetch-mode', 'SEC-FETCH-DEST'])
    t.is(ruleOf([...GOOD, name, 'none']), 'sec-fetch')
})

test('only POST with JSON is served', (t: Assert) => {
  for (const method of ['GET', 'HEAD', 'PUT', 'OPTIONS', 'DELETE', 'PATCH']) t.is(ruleOf(GOOD, method), 'method')
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/json, text/plain', '']) {
    t.is(ruleOf(['host', 'a2a-node', 'content-type', type]), 'content-type', type)
  }
  t.is(ruleOf(['host', 'a2a-node']), 'content-type')
})

test('no set of headers makes the guard throw, and none with an Origin passes', async (t: Assert) => {
  const name = fc.constantFrom('host', 'Host', 'origin', 'ORIGIN', 'sec-fetch-site', 'content-type', 'x')
  const text = fc.constantFrom('a2a-node', 'application/json', 'null', '')
  await holds(
    t,
    fc.property(fc.array(fc.tuple(name, text), { maxLength: 8 }), (pairs) => {
      const refused = ruleOf(pairs.flat()) !== null
      return refused || !pairs.some(([one]) => one.toLowerCase() === 'origin' || one.startsWith('sec-'))
    }),
    500
  )
})
