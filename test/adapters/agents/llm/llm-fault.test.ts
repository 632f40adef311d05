import test from 'brittle'
import fc from 'fast-check'
import { faultOutcome, LlmFault, wordsOf } from '../../../../src/adapters/agents/llm/llm-fault.js'
import { holds } from '../../../support/holds.js'
import { SHAPES } from '../../../support/llm/shapes.js'

test('the words of an error are found in every form, and are short and safe to show', async (t) => {
  for (const { name, refusals } of SHAPES) {
    for (const { body } of Object.values(refusals)) t.absent(wordsOf(body).includes('{'), `${name}: ${wordsOf(body)}`)
  }
  t.is(wordsOf('{"detail":"Not Found"}'), 'Not Found')
  t.is(wordsOf('upstream timed out'), 'upstream timed out')
  t.is(wordsOf('{"a":1}'), '')
  const body = fc.oneof(fc.string({ unit: 'binary', maxLength: 500 }), fc.json({ maxDepth: 40 }))
  await holds(
    t,
    fc.property(body, (text) => {
      const words = wordsOf(text)
      return words.length <= 300 && !/\p{Cc}/u.test(words)
    })
  )
})

test('an outcome describes the fault, within the rights of its caller', async (t) => {
  const kind = fc.constantFrom('unreachable', 'refused', 'failed', 'stalled', 'dropped', 'too-large', 'unreadable')
  const status = fc.option(fc.integer({ min: 300, max: 599 }))
  const errorText = fc.constantFrom(
    '',
    'Incorrect API key provided: sk-1',
    '{"type":"authentication_error"}',
    'slow down'
  )
  const property = fc.property(
    kind,
    status,
    errorText,
    fc.boolean(),
    fc.boolean(),
    (one, code, text, isBegun, hasActed) => {
      const refusal = one === 'refused' || one === 'failed' ? { status: code, retryAfter: null, errorText: text } : null
      const outcome = faultOutcome(new LlmFault(one, 'said: the key sk-1', refusal), {
        provider: 'local',
        isBegun,
        hasActed
      })
      if (outcome.ok) return false
      const isAboutKey = refusal !== null && (code === 401 || (code === 403 && text === '') || /key|auth/.test(text))
      if (isAboutKey && (outcome.message.includes('sk-1') || outcome.retryable !== false)) return false
      return !(isBegun && outcome.code === 'LLM_INIT_FAILED') && !(hasActed && outcome.retryable === true)
    }
  )
  await holds(t, property, 500)
})

test('an error that names a key because there are too many requests with it passes, and its words stay here', (t) => {
  const texts = [
    'Rate limit reached for API key sk-1 in organization org-2',
    'Too many requests for this api_key sk-1: try again later',
    '{"type":"overloaded_error","message":"requests of the authenticated key sk-1 are at capacity"}'
  ]
  for (const errorText of texts)
    for (const status of [429, 503, 529, null]) {
      const fault = new LlmFault('failed', `failed: ${errorText}`, { status, retryAfter: 7, errorText })
      const outcome = faultOutcome(fault, { provider: 'local', isBegun: false, hasActed: false })
      t.ok(
        !outcome.ok && outcome.retryable === true && !outcome.message.includes('sk-1'),
        `${status}: ${JSON.stringify(outcome)}`
      )
    }
  const bad = new LlmFault('refused', 'said: sk-1', { status: 401, retryAfter: null, errorText: texts[0] ?? '' })
  const outcome = faultOutcome(bad, { provider: 'local', isBegun: false, hasActed: false })
  t.alike(!outcome.ok && [outcome.code, outcome.retryable], ['LLM_INIT_FAILED', false], 'no key at all is no load')
})

test('a long error of repeated words is judged within some milliseconds', (t) => {
  const words = [
    ...['monthly_', 'monthly ', 'quota is ', 'spending ', 'billing hard ', 'budget has been ', 'insufficient_'],
    ...['context ', 'prompt is too ', 'too many input ', 'api ', 'permission ', 'try again ', ' ', '_', 'a']
  ]
  const before = process.cpuUsage()
  for (const word of words) {
    const errorText = word.repeat(65_536 / word.length)
    t.is(new LlmFault('failed', 'failed', { status: 500, retryAfter: null, errorText }).meaning, 'passing')
  }
  t.ok(process.cpuUsage(before).user < 200_000, 'some milliseconds of CPU each')
})
