import test, { type Assert } from 'brittle'
import type { ContextExchange } from '../../../src/domain/gateway/conversation-turns.js'
import { AnswerLog } from '../../../src/node/gateway/answer-log.js'
import { MemoryTelemetry } from '../../../src/adapters/telemetry/memory-telemetry.js'
import { ManualClock } from '../../support/manual-clock.js'
import { createMemoryLedger } from '../../support/memory-ledger.js'

const exchangeOf = (text: string): ContextExchange => [
  { at: 1, message: { messageId: 'm', role: 'user', parts: [{ text }] } },
  { at: 2, message: { messageId: 'n', role: 'agent', parts: [{ text }] } }
]

test('many first answers of a caller, or large ones, replace its own and none of another caller', async (t: Assert) => {
  for (const [count, text] of [
    [5000, 'short'],
    [40, 'x'.repeat(300_000)]
  ] as const) {
    const clock = new ManualClock()
    const telemetry = new MemoryTelemetry({ clock, level: 'warn', format: 'text', write: () => {} })
    const log = new AnswerLog({ clock, ledger: createMemoryLedger(), telemetry })
    const place = (owner: string, contextId: string) => ({ owner, contextId, agent: 'a@n' })
    log.remember(place('token:quiet', 'first'), exchangeOf('a'))
    for (let at = 0; at < count; at++) log.remember(place('token:busy', `c${at}`), exchangeOf(text))
    t.alike(await log.of(place('token:quiet', 'first')), [exchangeOf('a')])
    const counts = [place('token:busy', 'c0'), place('token:busy', `c${count - 1}`)].map((one) => log.of(one))
    t.alike(
      (await Promise.all(counts)).map(({ length }) => length),
      [0, 1]
    )
  }
})

test('an answer in memory is for its caller and agent alone', async (t: Assert) => {
  const clock = new ManualClock()
  const telemetry = new MemoryTelemetry({ clock, level: 'warn', format: 'text', write: () => {} })
  const log = new AnswerLog({ clock, ledger: createMemoryLedger(), telemetry })
  const place = { owner: 'token:one', contextId: 'c', agent: 'a@n' }
  log.remember(place, exchangeOf('a'))
  t.alike(await log.of({ ...place, owner: 'token:two' }), [])
  t.alike(await log.of({ ...place, agent: 'b@n' }), [])
  t.alike(await log.of(place), [exchangeOf('a')])
})
