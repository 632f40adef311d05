import fc from 'fast-check'
import test, { type Assert } from 'brittle'
import {
  ImportedFault,
  failedCall,
  faultOf,
  retryAfterText,
  type ImportedFaultKind,
  type FaultScene
} from '../../../../src/adapters/mcp/imported/imported-fault.js'
import { retryAfterSeconds } from '../../../../src/adapters/mcp/imported/imported-http.js'
import { outcomeOf } from '../../../../src/adapters/mcp/imported/imported-result.js'
import { holds } from '../../../support/holds.js'

const MAX = 10_000
const text = (value: string): object => ({ type: 'text', text: value })

test('a result is its structured content, else its text as JSON when it parses, else what it holds', (t: Assert) => {
  const resultOf = (result: object): unknown => {
    const outcome = outcomeOf(result, MAX)
    return outcome.ok ? outcome.result : outcome
  }
  t.alike(resultOf({ content: [text('{"a":2}')], structuredContent: { a: 1 } }), { a: 1 })
  t.alike(resultOf({ content: [text('{"a":2}')] }), { a: 2 })
  t.is(resultOf({ content: [text('plain words')] }), 'plain words')
  t.is(resultOf({ content: [] }), null)
  t.is(resultOf({}), null)
  const image = { type: 'image', data: 'AAAA', mimeType: 'image/png' }
  t.alike(resultOf({ content: [image] }), { content: [image] })
  t.alike(resultOf({ content: [text('a'), text('b')] }), { content: [text('a'), text('b')] })
})

test('a tool error is TASK_FAILED with its text and retryAfter', (t: Assert) => {
  const outcome = outcomeOf({ isError: true, content: [text('the disk\nis full')], _meta: { retryAfter: 7 } }, MAX)
  t.alike(outcome, {
    ok: false,
    code: 'TASK_FAILED',
    message: 'the disk is full',
    data: { retryAfter: 7 },
    content: [text('the disk\nis full')]
  })
  const silent = outcomeOf({ isError: true, _meta: { retryAfter: 'soon' } }, MAX)
  t.alike(silent, { ok: false, code: 'TASK_FAILED', message: 'the tool failed and does not say why' })
})

test('a result in the form of MCP is kept whole beside its value, without members of the protocol', (t: Assert) => {
  const wholeOf = (result: object): unknown => {
    const outcome = outcomeOf(result, MAX)
    return outcome.ok ? outcome.content : outcome
  }
  const given = { content: [text(' {"a": 1.0} ')], structuredContent: { a: 1 }, _meta: { cost: 3 } }
  const meta = { ...given._meta, 'io.modelcontextprotocol/serverInfo': { name: 'demo' } }
  t.alike(wholeOf({ ...given, _meta: meta, resultType: 'complete' }), given)
  t.alike(wholeOf({}), { content: [] })
  t.is(wholeOf({ content: [{ type: 'hologram', data: 'AAAA' }] }), undefined, 'an unknown kind has its value alone')
  t.is(wholeOf({ content: [{ type: 'image', data: 'AAAA' }] }), undefined, 'as has one without a needed member')
  const twice = { content: [text('x'.repeat(MAX - 100))], structuredContent: { text: 'x'.repeat(MAX - 100) } }
  t.is(wholeOf(twice), undefined, 'and one that is too large with both')
})

test('results are bounded in bytes and depth', (t: Assert) => {
  const large = outcomeOf({ content: [text('x'.repeat(MAX))] }, MAX)
  t.is(large.ok ? '' : large.code, 'PAYLOAD_TOO_LARGE')
  const deep = outcomeOf({ structuredContent: JSON.parse(`${'{"a":'.repeat(60)}1${'}'.repeat(60)}`) as unknown }, MAX)
  t.is(deep.ok ? '' : deep.code, 'INVALID_OUTPUT')
  const poisoned = outcomeOf({ content: [text('{"__proto__":{"admin":true}}')] }, MAX)
  t.is(poisoned.ok ? '' : poisoned.code, 'INVALID_OUTPUT')
})

test('no answer of a server makes the mapping throw', async (t: Assert) => {
  await holds(
    t,
    fc.property(
      fc.oneof(
        fc.jsonValue(),
        fc.record({
          content: fc.jsonValue(),
          structuredContent: fc.jsonValue(),
          isError: fc.boolean(),
          _meta: fc.jsonValue()
        })
      ),
      (value) => {
        const outcome = outcomeOf(value, MAX)
        return outcome.ok || outcome.message.length <= 4096
      }
    )
  )
})

test('an error leaves open whether the call ran unless it says otherwise', (t: Assert) => {
  const scene: FaultScene = { hasSession: false }
  const kindOf = (error: object, more: Partial<FaultScene> = {}): string =>
    faultOf(Object.assign(new Error('x'), error), { ...scene, ...more }).kind
  t.is(kindOf({}), 'unknown')
  t.is(kindOf({ code: 'CONNECTION_CLOSED' }), 'unknown')
  t.is(kindOf({ code: 'REQUEST_TIMEOUT' }), 'unknown')
  t.is(kindOf({ code: 'SEND_FAILED' }), 'unknown')
  t.is(kindOf({ code: 'NOT_CONNECTED' }), 'unsent')
  t.is(kindOf({ code: -32_602 }), 'answered')
  t.is(kindOf({ cause: { code: 'ECONNREFUSED' } }), 'unsent')
  t.is(kindOf({ cause: { code: 'ECONNRESET' } }), 'unknown')
  const status = (code: number, statusText = ''): object => ({
    code: 'CLIENT_HTTP_NOT_IMPLEMENTED',
    data: { status: code, statusText }
  })
  t.is(kindOf(status(404)), 'refused')
  t.is(kindOf(status(404), { hasSession: true }), 'session')
  t.is(kindOf(status(401)), 'refused')
  t.is(kindOf(status(429)), 'busy')
  t.is(kindOf(status(500)), 'unknown')
  t.is(kindOf(status(503)), 'unknown')
  t.is(kindOf(status(503, retryAfterText(1))), 'busy')
})

test('a call that may have run is marked so, and states when to retry', (t: Assert) => {
  const lost = failedCall('demo', new ImportedFault('unknown', 'its program was ended by SIGKILL'))
  t.ok(!lost.ok && lost.isUnknown === true && /it may have run, and is not repeated/.test(lost.message))
  const limited = failedCall('demo', new ImportedFault('busy', 'too many', { retryAfter: 30 }))
  t.ok(!limited.ok && /nothing was done/.test(limited.message))
  t.alike(limited.ok ? null : limited.data, { retryAfter: 30 })
  const requiredCapabilities = { sampling: { tools: {} }, elicitation: {}, unknown: {} }
  const unable = faultOf({ code: -32_021, message: 'no', data: { requiredCapabilities } }, { hasSession: false })
  const failed = failedCall('demo', unable)
  t.alike(failed.ok ? null : failed.data, { missing: ['form', 'sampling', 'tools'] })
  const malformed = faultOf({ code: -32_021, message: 'no', data: { requiredCapabilities: 7 } }, { hasSession: false })
  t.alike(malformed.missing, [])
})

test('only what did nothing and may succeed later is to be tried again', (t: Assert) => {
  const isRetryable = (kind: ImportedFaultKind): boolean => {
    const outcome = failedCall('demo', new ImportedFault(kind, 'x'))
    return !outcome.ok && outcome.retryable === true
  }
  for (const kind of ['unsent', 'session', 'busy'] as const) t.ok(isRetryable(kind), kind)
  for (const kind of ['refused', 'answered', 'unknown'] as const) t.absent(isRetryable(kind), kind)
})

test('Retry-After is read as seconds or as a date', (t: Assert) => {
  const now = Date.parse('2026-01-02T03:04:05Z')
  t.is(retryAfterSeconds('30', now), 30)
  t.is(retryAfterSeconds('Fri, 02 Jan 2026 03:05:05 GMT', now), 60)
  t.is(retryAfterSeconds('Fri, 02 Jan 2026 03:00:00 GMT', now), 0)
  for (const value of [null, '', 'soon', '-5', '999999']) t.is(retryAfterSeconds(value, now), null, String(value))
})
