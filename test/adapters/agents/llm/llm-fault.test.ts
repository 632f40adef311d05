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

test('an outcome tells what went wrong, and no more than its caller may know', async (t) => {
  const kind = fc.constantFrom('unreachable', 'refused', 'failed', 'stalled', 'dropped', 'too-large', 'unreadable')
  const status = fc.option(fc.integer({ min: 300, max: 599 }))
  const errorText = fc.constantFrom('', 'Incorrect API key provided: sk-1', '{"type":"authentication_error"}', 'slow down')
  const property = fc.property(kind, status, errorText, fc.boolean(), fc.boolean(), (one, code, text, isBegun, hasActed) => {
    const refusal = one === 'refused' || one === 'failed' ? { status: code, retryAfter: null, errorText: text } : null
    const outcome = faultOutcome(new LlmFault(one, 'said: the key sk-1', refusal), { provider: 'local', isBegun, hasActed })
    if (outcome.ok) return false
    const isAboutKey = refusal !== null && (code === 401 || code === 403 || /key|auth/.test(text))
    if (isAboutKey && (outcome.message.includes('sk-1') || outcome.retryable !== false)) return false
    return !(isBegun && outcome.code === 'LLM_INIT_FAILED') && !(hasActed && outcome.retryable === true)
  })
  await holds(t, property, 500)
})
