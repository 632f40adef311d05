import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { MESSAGE_TYPES } from '../../../src/domain/envelope/envelope.js'
import { askedWork, namedCapabilities } from '../../../src/domain/policy/requested-work.js'
import { capability } from '../../support/fake-agents.js'
import { holds } from '../../support/holds.js'

const CARD = { capabilities: [capability('text.stats', { sideEffect: 'none' }), capability('text.wipe')] }

test('the side effect is that of the card of the target; an absent one counts as exec', (t) => {
  t.alike(askedWork(CARD, 'text.stats'), { capability: 'text.stats', sideEffect: 'none' })
  t.alike(askedWork(CARD, 'text.wipe'), { capability: 'text.wipe', sideEffect: 'exec' })
  t.alike(askedWork(CARD, 'made.up'), { capability: 'made.up', sideEffect: 'exec' })
  t.alike(askedWork(undefined, 'made.up'), { capability: 'made.up', sideEffect: 'exec' })
})

test('a message that names no capability asks for the default one', (t) => {
  t.alike(askedWork(CARD, null), { capability: 'text.stats', sideEffect: 'none' })
  t.alike(askedWork({ capabilities: [] }, null), { capability: null, sideEffect: null })
})

test('every capability of a proposal is looked at, the one of a request, and none of anything else', (t) => {
  t.alike(namedCapabilities('task-proposal', { requiredCapabilities: ['a', 'b'] }), ['a', 'b'])
  t.alike(namedCapabilities('task-proposal', { requiredCapabilities: [] }), [null])
  t.alike(namedCapabilities('request', { capability: 'a' }), ['a'])
  t.alike(namedCapabilities('request', { capability: null }), [null])
  t.alike(namedCapabilities('notification', { capability: 'a' }), [null])
})

test('no payload makes it throw', async (t) => {
  await holds(
    t,
    fc.property(fc.constantFrom(...MESSAGE_TYPES), fc.anything(), (type, payload) => {
      const named = namedCapabilities(type, payload)
      assert.ok(named.length >= 1 && named.length <= 64)
    })
  )
})
