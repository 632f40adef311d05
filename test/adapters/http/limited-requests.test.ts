import test from 'brittle'
import { LimitedRequests } from '../../../src/adapters/http/limited-requests.js'
import { ManualClock } from '../../support/manual-clock.js'

const MINUTE_MS = 60_000

test('each limit has a problem of its own, with its own count, until ten minutes after its last refusal', (t) => {
  const clock = new ManualClock()
  const counted: string[] = []
  const lines: unknown[] = []
  const telemetry = {
    count: (_: string, rule?: string) => counted.push(rule ?? ''),
    log: (...line: unknown[]) => lines.push(line)
  }
  const limited = new LimitedRequests({ clock, telemetry })
  const messages = (): string[] => limited.problems().map(({ message }) => message)
  t.alike(messages(), [])
  for (const address of ['loopback', '192.0.2.1', '192.0.2.2']) limited.add({ rule: 'anonymous', address })
  clock.advance(8 * MINUTE_MS)
  limited.add({ rule: 'wrong-token', address: '192.0.2.3' })
  t.alike(messages(), [
    'HTTP refused 3 requests: too many requests without a valid token from one address (the last: 192.0.2.2)',
    'HTTP refused 1 request: too many wrong tokens from one address (the last: 192.0.2.3)'
  ])
  t.alike(counted, ['anonymous', 'anonymous', 'anonymous', 'wrong-token'])
  t.is(lines.length, 2, 'a line a minute')
  clock.advance(3 * MINUTE_MS)
  t.is(messages().length, 1)
  limited.add({ rule: 'anonymous', address: 'loopback' })
  t.ok(
    messages().some((one) => one.startsWith('HTTP refused 1 request: too many requests')),
    'it counts anew'
  )
})
