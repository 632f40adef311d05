import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { MESSAGE_TYPES } from '../../../src/domain/envelope/envelope.js'
import { EnvelopeFactory, threadOf, type EnvelopeParts } from '../../../src/domain/envelope/factory.js'
import { headerFault } from '../../../src/domain/envelope/header.js'
import { NodeError } from '../../../src/kit/errors.js'
import { arbAddress } from '../../../src/testing.js'
import { holds } from '../../support/holds.js'
import { countingIds } from '../../support/counting-ids.js'

function factory(now = 1000): EnvelopeFactory {
  return new EnvelopeFactory(countingIds(), { now: () => now })
}

const request: EnvelopeParts = { sender: 'a@n', recipient: 'b@m', type: 'request', payload: { text: 'hi' } }

const arbParts: fc.Arbitrary<EnvelopeParts> = fc.record({
  sender: arbAddress(),
  recipient: arbAddress(),
  type: fc.constantFrom(...MESSAGE_TYPES),
  payload: fc.jsonValue()
})

test('Feature: a2a-mcp-protocols, Property 6: A2A Envelope structure and uniqueness', async (t) => {
  await holds(
    t,
    fc.property(
      fc.array(arbParts, { minLength: 1, maxLength: 30 }),
      fc.integer({ min: 1, max: 2 ** 45 }),
      (parts, now) => {
        const make = factory(now)
        const made = parts.map((one) => make.create(one))
        assert.equal(new Set(made.map((one) => one.id)).size, made.length)
        for (const [i, one] of made.entries()) {
          assert.equal(headerFault(one), null)
          assert.ok(one.timestamp > 0 && one.timestamp === now)
          assert.deepEqual({ ...parts[i], schemaVersion: one.schemaVersion }, pick(one))
        }
      }
    )
  )
})

function pick(one: EnvelopeParts & { schemaVersion: number }): unknown {
  const { sender, recipient, type, payload, schemaVersion } = one
  return { sender, recipient, type, payload, schemaVersion }
}

test('an answer goes back to the sender in the thread of the request', (t) => {
  const make = factory()
  const opened = make.create(request)
  const answer = make.reply(opened, { type: 'response', payload: 1 })
  t.alike([answer.sender, answer.recipient, answer.correlationId], ['b@m', 'a@n', opened.id])
  const inThread = make.create({ ...request, correlationId: 'c1' })
  t.is(make.reply(inThread, { type: 'error', payload: 1 }).correlationId, 'c1')
})

test('a proposal, its acceptance and all that follows share one thread', (t) => {
  const make = factory()
  const proposal = make.create({ ...request, type: 'task-proposal' })
  const accept = make.reply(proposal, { type: 'task-accept', payload: {} })
  const work = make.create({ ...request, correlationId: threadOf(proposal) })
  const response = make.reply(work, { type: 'response', payload: {} })
  t.is(proposal.correlationId, proposal.id)
  t.is(new Set([proposal, accept, work, response].map((one) => one.correlationId)).size, 1)
})

test('an answer to a broadcast or a capability must name who answers', async (t) => {
  const make = factory()
  const broadcast = make.create({ ...request, recipient: '*' })
  const toCapability = make.create({
    ...request,
    recipient: 'text.stats',
    metadata: { tier: 1, routingHint: 'capability' }
  })
  for (const one of [broadcast, toCapability]) {
    await t.exception(() => make.reply(one, { type: 'response', payload: 1 }), NodeError)
    t.is(make.reply(one, { type: 'response', payload: 1, sender: 'me@here' }).sender, 'me@here')
  }
})

test('an envelope that may not be sent is not made', (t) => {
  const make = factory()
  const parts: unknown[] = [
    null,
    'x',
    { ...request, type: 'nope' },
    { ...request, sender: '' },
    { ...request, recipient: undefined },
    { ...request, metadata: { tier: 9 } }
  ]
  for (const one of parts)
    t.is(
      codeOf(() => make.create(one as EnvelopeParts)),
      'INVALID_ENVELOPE'
    )
  const envelope = make.create(request)
  for (const one of [null, { payload: 1 }])
    t.is(
      codeOf(() => make.reply(envelope, one as { type: 'response'; payload: unknown })),
      'INVALID_ENVELOPE'
    )
  t.is(
    codeOf(() => make.reply(null as unknown as typeof envelope, { type: 'response', payload: 1 })),
    'INVALID_ENVELOPE'
  )
})

function codeOf(run: () => unknown): string {
  try {
    run()
    return 'none'
  } catch (error) {
    return error instanceof NodeError ? error.code : String(error)
  }
}
