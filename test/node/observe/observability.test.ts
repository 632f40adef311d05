import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { MESSAGE_TYPES } from '../../../src/domain/envelope/envelope.js'
import { A2AObservability, type A2ALogEvent } from '../../../src/node/observe/observability.js'
import { holds } from '../../support/holds.js'

const TYPES: readonly A2ALogEvent['type'][] = [
  'message-sent',
  'message-received',
  'routing-decision',
  'tool-invocation',
  'error'
]

const arbEvent: fc.Arbitrary<A2ALogEvent> = fc.record(
  {
    type: fc.constantFrom(...TYPES),
    messageType: fc.constantFrom(...MESSAGE_TYPES),
    routingPath: fc.constantFrom('local', 'remote', 'broadcast'),
    toolName: fc.constantFrom('a.read', 'a.write', '__proto__'),
    duration: fc.oneof(fc.nat(1000), fc.constantFrom(-1, Number.NaN, Number.POSITIVE_INFINITY)),
    success: fc.boolean(),
    timestamp: fc.nat()
  },
  { requiredKeys: ['type', 'timestamp'], noNullPrototype: true }
)

test('every sum and average follows from the events since the last reset', async (t: Assert) => {
  const property = fc.property(fc.array(arbEvent, { maxLength: 60 }), fc.nat(60), (events, resetAt) => {
    const observability = new A2AObservability()
    for (const [index, event] of events.entries()) {
      if (index === resetAt) observability.resetMetrics()
      observability.emit(event)
    }
    const counted = resetAt < events.length ? events.slice(resetAt) : events
    const of = (type: A2ALogEvent['type']): A2ALogEvent[] => counted.filter((one) => one.type === type)
    const messages = [...of('message-sent'), ...of('message-received').filter((one) => one.routingPath !== 'local')]
    const metrics = observability.getMetrics()
    const failed = counted.filter(
      (one) => one.type !== 'tool-invocation' && (one.type === 'error' || one.success === false)
    )
    const tools = new Map<string, A2ALogEvent[]>()
    for (const one of of('tool-invocation')) {
      const { toolName = 'unknown' } = one
      tools.set(toolName, [...(tools.get(toolName) ?? []), one])
    }
    return (
      metrics.totalMessagesSent === of('message-sent').length &&
      metrics.totalMessagesReceived === of('message-received').length &&
      MESSAGE_TYPES.every(
        (type) => metrics.messagesByType[type] === messages.filter((one) => one.messageType === type).length
      ) &&
      metrics.averageRoutingLatencyMs === mean(of('routing-decision')) &&
      metrics.averageToolDurationMs === mean(of('tool-invocation')) &&
      metrics.errorCount === failed.length &&
      metrics.totalToolInvocations === of('tool-invocation').length &&
      metrics.toolErrorCount === of('tool-invocation').filter((one) => one.success === false).length &&
      JSON.stringify(Object.entries(metrics.toolInvocationsByTool)) ===
        JSON.stringify([...tools].map(([name, calls]) => [name, calls.length])) &&
      metrics.tools.length === tools.size &&
      metrics.tools.every(({ tool, invocations, errors, averageDurationMs }) => {
        const calls = tools.get(tool) ?? []
        const failures = calls.filter((one) => one.success === false).length
        return invocations === calls.length && errors === failures && averageDurationMs === mean(calls)
      })
    )
  })
  await holds(t, property, 300)
})

function mean(events: readonly A2ALogEvent[]): number {
  const times = events.flatMap(({ duration = -1 }) => (Number.isFinite(duration) && duration >= 0 ? [duration] : []))
  return times.length === 0 ? 0 : times.reduce((sum, one) => sum + one, 0) / times.length
}

test('the newest events are given, oldest first, at most as many as asked for', async (t: Assert) => {
  const property = fc.property(
    fc.nat(2500),
    fc.option(fc.integer({ min: -5, max: 3000 }), { nil: undefined }),
    (count, limit) => {
      const observability = new A2AObservability()
      for (let timestamp = 0; timestamp < count; timestamp++) observability.emit({ type: 'error', timestamp })
      const most = Math.max(0, Math.min(count, 1000, limit ?? 1000))
      const expected = Array.from({ length: most }, (_, i) => count - most + i)
      return (
        JSON.stringify(observability.getRecentEvents(limit).map((one) => one.timestamp)) === JSON.stringify(expected)
      )
    }
  )
  await holds(t, property, 100)
})

test('a later change of an event by its caller changes nothing', (t: Assert) => {
  const observability = new A2AObservability()
  const event = { type: 'error' as const, sender: 'a@b', timestamp: 1 }
  observability.emit(event)
  event.sender = 'changed'
  t.is(observability.getRecentEvents()[0]?.sender, 'a@b')
})

test('texts of an event are safe to show, and an inapplicable field is no member of it', (t: Assert) => {
  const observability = new A2AObservability()
  observability.emit({
    type: 'error',
    sender: 'a\u001b[31m\n@b\u202e',
    recipient: undefined,
    hops: undefined,
    timestamp: 1
  })
  const [event] = observability.getRecentEvents()
  t.alike(event, { type: 'error', sender: 'a[31m @b', timestamp: 1 })
  t.is(observability.getRecentEvents()[0], event, 'and the same one however often it is read')
})

test('tools beyond a thousand names are counted together', (t: Assert) => {
  const observability = new A2AObservability()
  for (let i = 0; i < 1500; i++) observability.emit({ type: 'tool-invocation', toolName: `t${i}`, timestamp: 0 })
  const { toolInvocationsByTool, totalToolInvocations } = observability.getMetrics()
  t.is(Object.keys(toolInvocationsByTool).length, 1001)
  t.is(toolInvocationsByTool['other'], 500)
  t.is(totalToolInvocations, 1500)
})
