import test from 'brittle'
import { MemoryTelemetry } from '../../../src/adapters/telemetry/memory-telemetry.js'
import { NodeError } from '../../../src/kit/errors.js'
import { LedgerQuota, type LedgerQuotaDeps } from '../../../src/node/ledger/quota.js'
import { ManualClock } from '../../support/manual-clock.js'

const MAX_BYTES = 1000

function quotaOf(ledger: LedgerQuotaDeps['ledger']): { readonly quota: LedgerQuota; weigh(): Promise<void> } {
  const clock = new ManualClock()
  const quota = new LedgerQuota({
    clock,
    telemetry: new MemoryTelemetry({ clock, level: null, format: 'text', write: () => {} }),
    ledger,
    maxBytes: MAX_BYTES
  })
  quota.start()
  const weigh = async (): Promise<void> => {
    clock.advance(5000)
    for (let tick = 0; tick < 4; tick++) await Promise.resolve()
  }
  return { quota, weigh }
}

test('a ledger over its quota refuses new requests until it is a tenth below it', async (t) => {
  let bytes = MAX_BYTES
  const { quota, weigh } = quotaOf({ size: () => Promise.resolve({ bytes, commits: 0 }) })
  await weigh()
  t.alike([quota.isFull, quota.refusal, quota.problems()], [false, null, []])
  bytes = MAX_BYTES + 1
  await weigh()
  t.alike([quota.isFull, quota.refusal?.code, quota.problems()[0]?.code], [true, 'OVERLOADED', 'OVERLOADED'])
  bytes = MAX_BYTES * 0.9 + 1
  await weigh()
  t.ok(quota.isFull)
  bytes = MAX_BYTES * 0.9
  await weigh()
  t.alike([quota.isFull, quota.refusal], [false, null])
  quota.stop()
  bytes = MAX_BYTES + 1
  await weigh()
  t.absent(quota.isFull, 'nothing is weighed after the stop')
})

test('a ledger that cannot be weighed counts as it did before, and one that cannot be written refuses', async (t) => {
  let bytes: number | null = MAX_BYTES + 1
  const ledger: { size: LedgerQuotaDeps['ledger']['size']; fault: NodeError | null } = {
    fault: null,
    size: () => (bytes === null ? Promise.reject(new Error('unreadable')) : Promise.resolve({ bytes, commits: 0 }))
  }
  const { quota, weigh } = quotaOf(ledger)
  await weigh()
  bytes = null
  await weigh()
  t.ok(quota.isFull)
  const messages = new Set([quota.refusal?.message])
  for (const code of ['DISK_FULL', 'NO_PERMISSION'] as const) {
    ledger.fault = new NodeError(code, 'it cannot be written')
    messages.add(quota.refusal?.message)
  }
  t.is(messages.size, 3, 'a full disk is distinguished from one that cannot be written')
})
