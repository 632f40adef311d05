import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { Threads } from '../../../src/domain/envelope/threads.js'
import { holds } from '../../support/holds.js'

interface Message {
  readonly id: string
  readonly correlationId?: string
  readonly timestamp: number
}

const arbMessages = fc
  .array(fc.record({ thread: fc.constantFrom('a', 'b', 'c'), timestamp: fc.nat({ max: 20 }) }), { maxLength: 60 })
  .map((rows) => rows.map(({ thread, timestamp }, i): Message => ({ id: `m${i}`, correlationId: thread, timestamp })))

test('Feature: a2a-mcp-protocols, Property 8: Correlation threading', async (t) => {
  await holds(
    t,
    fc.property(arbMessages, (messages) => {
      const threads = new Threads<Message>()
      for (const message of messages) threads.add(message)
      for (const id of ['a', 'b', 'c', 'unknown']) {
        // A stable sort of the arrivals is the plain model.
        const expected = messages.filter((one) => one.correlationId === id).sort((x, y) => x.timestamp - y.timestamp)
        assert.deepEqual(threads.thread(id), expected)
      }
    })
  )
})

test('a message without a correlation id opens the thread that its answers join', (t) => {
  const threads = new Threads<Message>()
  threads.add({ id: 'q', timestamp: 1 })
  threads.add({ id: 'r', correlationId: 'q', timestamp: 2 })
  t.alike(
    threads.thread('q').map((one) => one.id),
    ['q', 'r']
  )
})

test('the quietest thread is dropped for a new one, and a full thread drops its earliest message', (t) => {
  const threads = new Threads<Message>({ maxThreads: 2, maxMessages: 2 })
  for (const [i, correlationId] of ['a', 'b', 'a', 'c', 'a'].entries())
    threads.add({ id: `m${i}`, correlationId, timestamp: i })
  t.is(threads.size, 2)
  t.alike(threads.thread('b'), [])
  t.alike(
    threads.thread('a').map((one) => one.id),
    ['m2', 'm4']
  )
})
