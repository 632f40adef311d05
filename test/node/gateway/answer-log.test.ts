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
    log.remember('token:quiet', 'first', exchangeOf('a'))
    for (let at = 0; at < count; at++) log.remember('token:busy', `c${at}`, exchangeOf(text))
    t.is((await log.of('first')).length, 1)
    t.alike([(await log.of('c0')).length, (await log.of(`c${count - 1}`)).length], [0, 1])
  }
})
