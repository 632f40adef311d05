import test, { type Assert } from 'brittle'
import { failureText } from '../../../support/agents/open-agent.js'
import { ask } from '../../../support/llm/llm-ask.js'
import { refusing, streaming } from '../../../support/llm/llm-server.js'
import { SHAPES, VLLM } from '../../../support/llm/shapes.js'

test('the reason of a server is in the outcome, in each form, with advice on the key where it is about the key', async (t: Assert) => {
  const low = '{"error":{"message":"Your credit balance is too low"}}'
  const place = '{"error":{"code":"unsupported_country","message":"Country not supported"}}'
  const key = '{"error":{"message":"Incorrect API key provided: sk-12. See https://llm.example/keys"}}'
  const refused = 'refused the question'
  const rows: readonly (readonly [status: number, body: string, text: string, retryable: boolean])[] = [
    [403, low, `${refused} (HTTP 403): Your credit balance is too low`, false],
    [403, place, `${refused} (HTTP 403): Country not supported`, false],
    [403, '', 'refuses this node (HTTP 403): see its key in the config', false],
    [403, key, 'refuses this node (HTTP 403): Incorrect API key provided; see its key in the config', false],
    [401, key, 'refuses this node (HTTP 401): Incorrect API key provided; see its key in the config', false],
    [401, '{"error":"no_entry sk-12"}', 'refuses this node (HTTP 401): see its key in the config', false],
    [
      429,
      '{"message":"Rate limit reached for API key sk-12"}',
      'takes no request of this node now (HTTP 429): Rate limit reached for API key',
      true
    ],
    [400, '[{"error":{"message":"tools is no list"}}]', `${refused} (HTTP 400): tools is no list`, false],
    [422, '{"detail":[{"loc":["body"],"msg":"Field required"}]}', `${refused} (HTTP 422): Field required`, false],
    [400, '{"error":"","errors":[{"message":"too hot"}]}', `${refused} (HTTP 400): too hot`, false],
    [
      429,
      '{"error":{"message":"You reached your monthly spending limit"}}',
      `${refused} (HTTP 429): You reached your monthly spending limit`,
      false
    ],
    [429, '{"error":"Your quota is exhausted"}', `${refused} (HTTP 429): Your quota is exhausted`, false],
    [429, '{"error":"Budget has been exceeded"}', `${refused} (HTTP 429): Budget has been exceeded`, false],
    [200, '[{"error":{"message":"too hot"}}]', 'failed: too hot', true],
    [200, '{"errors":[{"message":"too hot"}]}', 'failed: too hot', true],
    [200, 'data: [{"error":{"message":"too hot"}}]', 'failed: too hot', true],
    [200, 'error: {"code":500,"message":"too hot"}\n\n', 'failed: too hot', true],
    [200, `data: ${VLLM.text(['a'])[1]}\n\nerror: {"error":{"code":400,"message":"too hot"}}`, 'failed: too hot', false]
  ]
  for (const [status, body, text, retryable] of rows) {
    const outcome = await ask(t, [refusing({ status, body })])
    t.alike(
      outcome.ok ? outcome : [outcome.message, outcome.retryable],
      [`the LLM provider local ${text}`, retryable],
      body
    )
  }
  const refusal = { role: 'assistant', content: null, refusal: 'I will not' }
  const whole = JSON.stringify({ choices: [{ index: 0, finish_reason: 'stop', message: refusal }] })
  const frame = JSON.stringify({ choices: [{ index: 0, finish_reason: 'stop', delta: refusal }] })
  for (const answer of [refusing({ status: 200, body: whole }), streaming([frame])])
    t.is(failureText(t, 'TASK_FAILED', await ask(t, [answer])), 'the model refuses to answer: I will not')
})

test('an error with HTTP 200 is reported with the text of the server', async (t: Assert) => {
  for (const { refusals } of SHAPES) {
    const outcome = await ask(t, [refusing({ status: 200, body: refusals.other.body })])
    t.ok(/context size|does not support tools|auto/.test(failureText(t, 'TASK_FAILED', outcome)))
  }
})

test('an error is tried again by its meaning: a used quota and a question that is too long are not, an overload is', async (t: Assert) => {
  const retryable = async (status: number, error: object): Promise<unknown> => {
    const outcome = await ask(t, [refusing({ status, body: JSON.stringify({ error }) })])
    return outcome.ok ? null : outcome.retryable
  }
  t.is(await retryable(429, { message: 'You exceeded your current quota', code: 'insufficient_quota' }), false)
  t.is(
    await retryable(500, {
      message: 'the request exceeds the available context size',
      type: 'exceed_context_size_error'
    }),
    false
  )
  t.is(await retryable(402, { message: 'Insufficient credits' }), false)
  t.is(await retryable(400, { message: "This model's maximum context length is 8192 tokens" }), false)
  t.is(await retryable(429, { message: 'Rate limit reached for requests' }), true)
  t.is(await retryable(529, { message: 'Overloaded' }), true)
  t.is(await retryable(400, { message: 'The model is overloaded, try again later' }), true)
  t.is(await retryable(400, { message: 'tools is no array' }), false)
  const paid =
    'Rate limit reached. Add a payment method at https://llm.example/account/billing, or see https://llm.example/api-keys'
  t.is(await retryable(429, { message: paid }), true, 'an address in a text decides nothing')
})

test('a secret of this node in any error of a server is hidden in the outcome and the log', async (t: Assert) => {
  const apiKey = 'hunter.two.hunter.two'
  const tenant = 'Zq81-tenant-secret'
  const provider = { apiKey, headers: { 'x-tenant': `Bearer ${tenant}` } }
  const lines: string[] = []
  for (const secret of [apiKey, tenant]) {
    const messages = [`Invalid token ${secret} here`, `${'long '.repeat(57)}${secret}`]
    for (const message of messages) {
      const body = JSON.stringify({ error: { message } })
      for (const answer of [
        ...[400, 403, 429, 500].map((status) => refusing({ status, body })),
        ...[body, message].map((text) => refusing({ status: 403, body: text })),
        refusing({ status: 200, body }),
        streaming([VLLM.text(['a'])[1] ?? '', body])
      ]) {
        const outcome = await ask(t, [answer], { provider, lines })
        const text = outcome.ok ? '' : outcome.message
        t.ok(/Invalid token \*\*\* here|long \*\*\*$/.test(text), text)
      }
    }
    t.absent(lines.some((line) => line.includes(secret.slice(0, 4))))
  }
  t.ok(lines.length > 0)
})
