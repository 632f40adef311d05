import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { judgePush, MAX_RETRY_AFTER_MS, PUSH_POLICY, webhookAnswer } from '../../../src/domain/gateway/push-verdict.js'
import { holds } from '../../support/holds.js'

const NOW = 1_700_000_000_000

test('a status is taken, final or worth another try', (t: Assert) => {
  const kind = (status: number): string => webhookAnswer({ status, retryAfter: null }, NOW).type
  for (const status of [200, 201, 202, 204, 299]) t.is(kind(status), 'taken', `${status}`)
  for (const status of [400, 401, 403, 404, 405, 409, 413, 415, 422, 451, 499])
    t.is(kind(status), 'refused', `${status}`)
  t.is(kind(410), 'gone')
  for (const status of [304, 408, 425, 429, 500, 502, 503, 504, 599]) t.is(kind(status), 'failed', `${status}`)
})

test('Retry-After is obeyed as seconds or a date, within its bound, and nonsense is nothing', (t: Assert) => {
  const dueAfter = (retryAfter: string): number => {
    const verdict = judgePush(webhookAnswer({ status: 503, retryAfter }, NOW), { tries: 0, now: NOW, chance: 0 })
    return verdict.type === 'again' ? verdict.dueAt - NOW : -1
  }
  t.is(dueAfter('120'), 120_000)
  t.is(dueAfter(new Date(NOW + 90_000).toUTCString()), 90_000)
  t.is(dueAfter(new Date(NOW - 90_000).toUTCString()), 0)
  t.is(dueAfter('999999999'), MAX_RETRY_AFTER_MS)
  for (const text of ['', 'soon', '-5', '1e9', '9'.repeat(100), 'x'.repeat(100)]) t.is(dueAfter(text), 0, text)
})

test('each wait is within its bound, which grows, and the last try is the last', async (t: Assert) => {
  const retryAfterMs = fc.option(fc.nat(20_000_000), { nil: null })
  await holds(
    t,
    fc.property(fc.nat(9), fc.double({ min: 0, max: 0.9999, noNaN: true }), retryAfterMs, (tries, chance, after) => {
      const verdict = judgePush({ type: 'failed', reason: 'x', retryAfterMs: after }, { tries, now: NOW, chance })
      if (tries + 1 >= PUSH_POLICY.maxAttempts) return verdict.type === 'dead' && verdict.tries === tries + 1
      if (verdict.type !== 'again') return false
      const most = Math.min(PUSH_POLICY.maxDelayMs, PUSH_POLICY.baseDelayMs * PUSH_POLICY.backoffMultiplier ** tries)
      const asked = Math.min(after ?? 0, MAX_RETRY_AFTER_MS)
      const wait = verdict.dueAt - NOW
      return wait >= asked && wait <= Math.max(most, asked) && verdict.tries === tries + 1
    })
  )
})
