import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { AUDIT_CHAINS } from '../../../../src/adapters/storage/audit/audit-chains.js'
import type { AuditEntry } from '../../../../src/adapters/storage/audit/audit-line.js'
import { MAX_OF_PEER, RepeatWindows } from '../../../../src/adapters/storage/audit/audit-repeats.js'
import type { AuditEvent } from '../../../../src/ports/audit.js'
import { holds } from '../../../support/holds.js'

/** Members that tell events apart; events that differ in one of them never share a line, unless they vary too much. */
const TELLING = [
  'kind',
  'code',
  'rule',
  'peer',
  'sender',
  'recipient',
  'messageType',
  'sourceTier',
  'targetTier'
] as const

const few = (...texts: readonly string[]): fc.Arbitrary<string> => fc.constantFrom(...texts)

const arbEvent = fc.record(
  {
    kind: fc.constantFrom('refusal' as const, 'strike' as const),
    code: few('c1', 'c2'),
    rule: few('r1', 'r2'),
    peer: few('p1', 'p2'),
    sender: few('s1', 's2'),
    recipient: few('r1', 'r2'),
    messageType: few('request', 'notification'),
    sourceTier: fc.constantFrom('L0' as const, 'L1' as const),
    targetTier: fc.constantFrom('L2' as const, 'L3' as const)
  },
  { requiredKeys: ['kind', 'code'], noNullPrototype: true }
)

const arbWaitMs = few('0', '1', '900', '70000').map(Number)
const arbKinds = fc.array(arbEvent, { minLength: 1, maxLength: MAX_OF_PEER })
/** Events of so few kinds that none is folded. */
const arbStream = arbKinds.chain((kinds) =>
  fc.array(fc.record({ event: fc.constantFrom(...kinds), waitMs: arbWaitMs }), { maxLength: 80 })
)

test('events that a chain distinguishes never share a line, those of a window do, and each is counted once', async (t: Assert) => {
  const arbName = fc.constantFrom('audit' as const, 'exchanges' as const)
  const property = fc.property(arbName, arbStream, (name, stream) => {
    const chain = AUDIT_CHAINS.find((one) => one.name === name)
    if (chain === undefined) throw new Error('no such chain')
    const windows = new RepeatWindows(chain)
    const keyOf = (event: AuditEvent): string => TELLING.map((member) => event[member] ?? '-').join(' ')
    const lines: AuditEntry[] = []
    const events = new Map<string, number>()
    // Lines that may be: two a window, and windows are opened by the first event that comes after the last one ended.
    const bounds = new Map<string, number>()
    const ends = new Map<string, number>()
    let now = 0
    for (const { event: any, waitMs } of stream) {
      // That chain holds events of one kind.
      const event = name === 'exchanges' ? { ...any, kind: 'cross-tier' as const } : any
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
    const counts = [...events].every(
      ([key, count]) => of(key).reduce((sum, one) => sum + (one.count ?? 1), 0) === count
    )
    return counts && [...bounds].every(([key, most]) => of(key).length <= most) && windows.nextEnd === null
  })
  await holds(t, property, 300)
})

test('while events go on, none of longer than nine seconds ago is without a line, and lines stay few', async (t: Assert) => {
  const arbWaits = fc.array(fc.integer({ min: 1, max: 4000 }), { minLength: 1, maxLength: 60, size: 'max' })
  const property = fc.property(fc.constantFrom('audit', 'exchanges'), arbWaits, (name, waits) => {
    const chain = AUDIT_CHAINS.find((one) => one.name === name)
    if (chain === undefined) throw new Error('no such chain')
    const windows = new RepeatWindows(chain)
    const came: number[] = []
    let [lines, counted] = [0, 0]
    const write = (entries: readonly AuditEntry[]): void => {
      lines += entries.length
      counted += entries.reduce((sum, { count = 1 }) => sum + count, 0)
    }
    let next = 0
    for (let now = 0; next < waits.length || windows.nextEnd !== null; now++) {
      if (now - (came.at(-1) ?? 0) === waits[next]) {
        next++
        write(windows.take(REFUSAL, now))
        came.push(now)
      }
      if (now % 1000 === 0) write([...windows.ended(now), ...windows.grown(now)])
      if (counted < came.length && (came[counted] ?? now) < now - 9000) return false
    }
    const spanMs = came.at(-1) ?? 0
    const most = chain.windowMs === 10_000 ? 6 : 12
    return counted === came.length && !windows.hasCounts && lines <= most * (1 + spanMs / chain.windowMs)
  })
  await holds(t, property, 100)
})

function someWindows(t: Assert): RepeatWindows {
  const [chain] = AUDIT_CHAINS
  if (chain === undefined) t.fail()
  return new RepeatWindows(chain ?? { windowMs: 0, repeats: null })
}

const REFUSAL = {
  kind: 'refusal',
  code: 'c',
  rule: 'r',
  peer: 'p',
  sender: 's',
  recipient: 'x',
  messageType: 'request'
} as const

test('different messages of one peer have lines of their own, and say all of themselves', (t: Assert) => {
  const some = someWindows(t)
  const events = [
    REFUSAL,
    { ...REFUSAL, recipient: 'y' },
    { ...REFUSAL, messageType: 'notification' },
    { ...REFUSAL, sender: 'z' }
  ] as const
  const lines = events.flatMap((event, index) => some.take(event, index))
  t.alike(
    lines.map(({ at: _at, ...rest }) => rest),
    events
  )
  t.alike(some.ended(Number.POSITIVE_INFINITY), [])
})

test('a line with a count has the time of the first that it counts', (t: Assert) => {
  const some = someWindows(t)
  for (const now of [1000, 2000, 3000]) some.take(REFUSAL, now)
  const [line, ...others] = some.ended(Number.POSITIVE_INFINITY)
  t.alike(
    [line?.count, line?.at, line?.recipient, line?.several, others.length],
    [2, '1970-01-01T00:00:02.000Z', 'x', undefined, 0]
  )
})

test('variations of a peer beyond a bound are one line that names the varied fields and the peer', (t: Assert) => {
  const some = someWindows(t)
  const many = 100
  const first = Array.from({ length: many }, (_, i) =>
    some.take({ ...REFUSAL, recipient: `x${i}`, reason: `${i}` }, i)
  ).flat()
  t.is(first.length, MAX_OF_PEER + 1, 'the first of the folded events has a line of its own too')
  some.take({ ...REFUSAL, peer: 'honest' }, many)
  const [line, ...others] = some.ended(Number.POSITIVE_INFINITY)
  t.alike([line?.peer, line?.sender, line?.recipient, line?.count], ['p', 's', undefined, many - MAX_OF_PEER - 1])
  t.alike([...(line?.several ?? [])].sort(), ['reason', 'recipient'])
  t.is(others.length, 0)
})

/** Of events of one peer, refused by one rule: all that they may differ in. */
const arbVaried: fc.Arbitrary<AuditEvent> = fc.record(
  {
    kind: fc.constant('refusal' as const),
    code: fc.constant('c'),
    rule: fc.constant('r'),
    peer: fc.constant('p'),
    reason: few('one', 'two'),
    by: few('one', 'two'),
    hops: few('one', 'two'),
    sender: few('one', 'two'),
    recipient: few('one', 'two'),
    messageType: few('request', 'notification'),
    sourceTier: fc.constantFrom('L0' as const, 'L1' as const),
    targetTier: fc.constantFrom('L2' as const, 'L3' as const)
  },
  { requiredKeys: ['kind', 'code', 'rule', 'peer'], noNullPrototype: true }
)

test('a line of folded events has their common fields, and names the fields that differ', async (t: Assert) => {
  const property = fc.property(fc.array(arbVaried, { minLength: 2, maxLength: 6 }), (events) => {
    const some = someWindows(t)
    for (let i = 0; i < MAX_OF_PEER; i++) some.take({ ...REFUSAL, recipient: `x${i}` }, 0)
    const [first, ...repeats] = events
    for (const event of events) some.take(event, 0)
    const [line] = some.ended(Number.POSITIVE_INFINITY)
    const names = Object.keys(REFUSAL).concat(
      'reason',
      'by',
      'hops',
      'sourceTier',
      'targetTier'
    ) as (keyof AuditEvent)[]
    const isShared = (name: keyof AuditEvent): boolean => repeats.every((one) => one[name] === first?.[name])
    return names.every((name) => {
      const several = line?.several?.includes(name) === true
      return isShared(name) ? !several && line?.[name] === first?.[name] : several && line?.[name] === undefined
    })
  })
  await holds(t, property, 500)
})
