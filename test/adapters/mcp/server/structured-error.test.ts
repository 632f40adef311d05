import test, { type Assert } from 'brittle'
import { createError, structuredErrorOf } from '../../../../src/adapters/mcp/server/structured-error.js'
import { ERROR_CODES, NodeError, type ErrorCode } from '../../../../src/kit/errors.js'

const KNOWN = new Set(
  'INVALID_ARGUMENT NOT_FOUND TIMEOUT RESOURCE_EXHAUSTED INTERNAL UNAUTHORIZED PEER_OFFLINE TASK_FAILED INVALID_OUTPUT CANCELED'.split(
    ' '
  )
)

test('every error of the node is one of the codes of tools, and keeps its own in the details', (t: Assert) => {
  for (const code of Object.keys(ERROR_CODES) as ErrorCode[]) {
    const { code: structured, details } = structuredErrorOf(new NodeError(code, 'x'))
    t.ok(KNOWN.has(structured) && details?.['code'] === code, `${code}: ${structured}`)
  }
  const rows: readonly (readonly [ErrorCode, string])[] = [
    ['INVALID_INPUT', 'INVALID_ARGUMENT'],
    ['AGENT_NOT_FOUND', 'NOT_FOUND'],
    ['TIMEOUT', 'TIMEOUT'],
    ['OVERLOADED', 'RESOURCE_EXHAUSTED'],
    ['TIER_VIOLATION', 'UNAUTHORIZED'],
    ['TASK_FAILED', 'TASK_FAILED'],
    ['INVALID_OUTPUT', 'INVALID_OUTPUT'],
    ['PEER_OFFLINE', 'PEER_OFFLINE'],
    ['CHANNEL_CLOSED', 'PEER_OFFLINE'],
    ['CANCELED', 'CANCELED'],
    ['STORE_DAMAGED', 'INTERNAL']
  ]
  for (const [code, structured] of rows) t.is(structuredErrorOf(new NodeError(code, 'x')).code, structured, code)
})

test('of any other thrown value only its message is reported, cut', (t: Assert) => {
  t.alike(structuredErrorOf(new TypeError('x')), { code: 'INTERNAL', message: 'x' })
  t.alike(structuredErrorOf('text'), { code: 'INTERNAL', message: 'text' })
  t.is(structuredErrorOf(new Error('x'.repeat(10_000))).message.length, 4096)
  t.alike(createError('NOT_FOUND', 'x', { a: 1 }), { code: 'NOT_FOUND', message: 'x', details: { a: 1 } })
})
