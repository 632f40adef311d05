import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { AUDIT_CHAINS } from '../../../src/adapters/storage/audit-chains.js'
import type { AuditEntry } from '../../../src/adapters/storage/audit-line.js'
import { RepeatWindows } from '../../../src/adapters/storage/audit-repeats.js'
import type { AuditEvent } from '../../../src/ports/audit.js'
import { holds } from '../../support/holds.js'

/** Members that tell events of a chain apart; events that differ in one of them never share a line. */
const TELLING = {
  audit: ['kind', 'code', 'rule', 'peer'],
  exchanges: ['code', 'rule', 'peer', 'sourceTier', 'targetTier', 'messageType']
} as const

const few = (...texts: readonly string[]): fc.Arbitrary<string> => fc.constantFrom(...texts)

const arbEvent = fc.record(
  {
    kind: fc.constantFrom('refusal' as const, 'strike' as const),
    code: few('c1', 'c2'),
    rule: few('r1', 'r2'),
    peer: few('p1', 'p2'),
    sender: few('s1', 's2'),
    messageType: few('request', 'notification'),
    sourceTier: fc.constantFrom('L0' as const, 'L1' as const),
    targetTier: fc.constantFrom('L2' as const, 'L3' as const)
  },
  { requiredKeys: ['kind', 'code'], noNullPrototype: true }
)

const arbStream = fc.array(fc.record({ event: arbEvent, waitMs: few('0', '1', '900', '70000').map(Number) }), { maxLength: 80 })

test('events that a chain tells apart never share a line, those of a window do, and each is counted once', async (t: Assert) => {
  const arbName = fc.constantFrom('audit' as const, 'exchanges' as const)
  const property = fc.property(arbName, arbStream, (name, stream) => {
    const chain = AUDIT_CHAINS.find((one) => one.name === name)
    if (chain === undefined) throw new Error('no such chain')
    const windows = new RepeatWindows(chain)
    const keyOf = (event: AuditEvent): string => TELLING[name].map((member) => event[member] ?? '-').join(' ')
    const lines: AuditEntry[] = []
    const events = new Map<string, number>()
    // Lines that may be: two a window, and windows are opened by the first event that comes after the last one ended.
    const bounds = new Map<string, number>()
    const ends = new Map<string, number>()
    let now = 0
    for (const { event, waitMs } of stream) {
      now += waitMs
      lines.push(...windows.take(event, now))
      const key = keyOf(event)
      events.set(key, (events.get(key) ?? 0) + 1)
      if ((ends.get(key) ?? 0) > now) continue
      ends.set(key, now + chain.windowMs)
      bounds.set(key, (bounds.get(key) ?? 0) + 2)
    }
    lines.push(...windows.ended(Number.POSITIVE_INFINITY))
    const of = (key: string): AuditEntry[] => lines.filter((one) => keyOf(one) === key)
    const counts = [...events].every(([key, count]) => of(key).reduce((sum, one) => sum + (one.count ?? 1), 0) === count)
    return counts && [...bounds].every(([key, most]) => of(key).length <= most) && windows.nextEnd === null
  })
  await holds(t, property, 300)
})

test('a line names a sender only while all its events have the same one', (t: Assert) => {
  const [chain] = AUDIT_CHAINS
  if (chain === undefined) return t.fail()
  const windows = new RepeatWindows(chain)
  const event = { kind: 'refusal', code: 'c', rule: 'r', peer: 'p', sender: 's1', recipient: 'x' } as const
  for (const sender of ['s1', 's1', 's2']) windows.take({ ...event, sender }, 1)
  const [line, ...others] = windows.ended(Number.POSITIVE_INFINITY)
  t.alike([line?.count, line?.sender, line?.recipient, others.length], [2, undefined, 'x', 0])
})
