import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import {
  CONTROL_SCHEMAS,
  decodeControl,
  isControlName,
  type ControlMessage
} from '../../../src/domain/channel/control.js'
import { holds } from '../../support/holds.js'

const KEY = 'y'.repeat(52)

const good: ControlMessage[] = [
  { name: 'cards', body: { cards: [{ any: 'thing' }], all: ['host'] } },
  { name: 'cards-removed', body: { agents: [{ id: 'host', revision: 3 }] } },
  { name: 'heartbeat', body: { requests: ['r1', 'r2'], waiting: [] } },
  { name: 'cancel', body: { requestId: 'r1' } },
  { name: 'answer', body: { requestId: 'r1', id: 1, answer: { action: 'decline' } } },
  { name: 'approval', body: { requests: ['r1#1'] } },
  { name: 'lookup', body: { id: 'l1', agentId: null, capability: 'text.stats' } },
  { name: 'found', body: { id: 'l1', cards: [] } },
  { name: 'way', body: { id: 'w1', to: KEY, isFurther: true } },
  { name: 'way-found', body: { id: 'w1', further: null } },
  { name: 'linked', body: { id: 'l1' } },
  { name: 'linked-to', body: { id: 'l1', nodes: [KEY] } },
  { name: 'presence', body: { document: KEY, message: { payload: 'AA==' } } },
  { name: 'undelivered', body: { origin: KEY, to: KEY, id: 'm1', code: 'PEER_OFFLINE', rule: 'hops: a way', left: 8 } },
  { name: 'greet', body: { lanes: [{ source: 'host', target: 'text', base: 3 }] } },
  { name: 'ack', body: { lanes: [{ source: 'host', target: 'text', ack: 0, messageId: null }] } },
  { name: 'swarm-document', body: { swarm: 'swarm_1' } },
  { name: 'coordination', body: { kind: 'ask', swarm: 'swarm_1', run: 'run_1', round: 1, epoch: 1 } },
  { name: 'swarm', body: { kind: 'follow', swarm: 'swarm_1', have: 0, from: 0 } },
  { name: 'swarm', body: { kind: 'cancel', swarm: 'swarm_1' } }
]

test('every control message of the table is taken as it was sent', (t) => {
  t.alike(new Set(good.map((one) => one.name)), new Set(Object.keys(CONTROL_SCHEMAS)))
  for (const one of good) t.alike(decodeControl(one.name, one.body), { ok: true, ...one })
})

test('a body that misses a member or breaks a bound is refused', (t) => {
  for (const one of good) t.is(decodeControl(one.name, {}).ok, false, one.name)
  t.is(decodeControl('heartbeat', { requests: Array.from({ length: 1001 }, () => 'r') }).ok, false)
  t.is(decodeControl('cancel', { requestId: 'r'.repeat(141) }).ok, false)
  for (const id of [0, 65, 1.5, '1']) t.is(decodeControl('answer', { requestId: 'r1', id, answer: null }).ok, false)
  t.is(decodeControl('cards-removed', { agents: [{ id: 'a', revision: -1 }] }).ok, false)
  t.is(decodeControl('way', { id: 'w1', to: 'no key', isFurther: true }).ok, false)
  t.is(decodeControl('way-found', { id: 'w1', further: 8 }).ok, false)
  t.is(decodeControl('linked-to', { id: 'l1', nodes: ['no key'] }).ok, false)
  t.is(decodeControl('linked-to', { id: 'l1', nodes: Array.from({ length: 257 }, () => KEY) }).ok, false)
  const word = { origin: KEY, to: KEY, id: 'm1', code: 'PEER_OFFLINE', rule: '', left: 1 }
  t.is(decodeControl('undelivered', word).ok, true)
  for (const change of [{ code: 'INTERNAL' }, { left: 9 }, { rule: 'r'.repeat(257) }])
    t.is(decodeControl('undelivered', { ...word, ...change }).ok, false)
  for (const source of ['a>b@c', 'a/b', 'A', 'a b', ''])
    t.is(decodeControl('greet', { lanes: [{ source, target: 'b', base: 1 }] }).ok, false, 'it becomes part of a key')
  t.is(decodeControl('ack', { lanes: [{ source: 'a', target: 'b', ack: 0.5, messageId: null }] }).ok, false)
  t.is(
    decodeControl('greet', { lanes: Array.from({ length: 501 }, () => ({ source: 'a', target: 'b', base: 1 })) }).ok,
    false
  )
})

test('names of the prototype are no control messages', (t) => {
  for (const name of ['constructor', 'toString', '__proto__', '']) {
    t.is(isControlName(name), false)
    t.is(decodeControl(name, {}).ok, false)
  }
})

test('no body makes the check throw', async (t) => {
  await holds(
    t,
    fc.property(fc.constantFrom(...Object.keys(CONTROL_SCHEMAS)), fc.jsonValue(), (name, body) => {
      const read = decodeControl(name, body)
      assert.ok(read.ok || read.reason.length > 0)
    })
  )
})
