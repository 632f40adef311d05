import test, { type Assert } from 'brittle'
import { NodeError } from '../../../../src/kit/errors.js'
import { failureText, resultOf } from '../../../support/agents/open-agent.js'
import { recordedRun } from '../../../support/agents/task.js'
import { llmAgent, toolsThat } from '../../../support/llm/llm-agent.js'
import { llmServer, refusing, streaming } from '../../../support/llm/llm-server.js'
import { SHAPES } from '../../../support/llm/shapes.js'
import { ask, HELLO, PIECES, tokensOf, usageOf } from '../../../support/llm/llm-ask.js'

for (const shape of SHAPES) {
  test(`${shape.name}: the text of an answer is the result, its pieces are progress and its tokens are counted`, async (t: Assert) => {
    const server = await llmServer(t, streaming([...shape.text(PIECES), shape.usage(21, 7)]))
    const run = recordedRun()
    const agent = llmAgent(t, server.url, { provider: { apiKey: 'sk-secret', headers: { 'x-team': 'a' } } })
    t.is(resultOf(await agent.run(HELLO, run)), 'Hello, wörld 👋')
    t.is(tokensOf(run), 'Hello, wörld 👋')
    t.alike(usageOf(run), { turns: 1, inputTokens: 21, outputTokens: 7, isEstimated: false })
    const [{ path, headers, body }] = server.seen
    t.is(path, '/v1/chat/completions')
    t.is(headers.authorization, 'Bearer sk-secret')
    t.is(headers['x-team'], 'a')
    t.is(body.model, 'qwen3:8b')
    t.alike([body.stream, body.max_tokens], [true, 4096])
    t.alike(body.messages, [
      { role: 'system', content: 'You are terse.' },
      { role: 'user', content: 'Say hello.' }
    ])
    t.absent(body.tools, 'no mesh, no tools')
  })

  test(`${shape.name}: tools are called with their arguments, and their results go back to the model`, async (t: Assert) => {
    const calls = [
      { name: 'weather', pieces: ['{"ci', 'ty":"Hi', 'lo"}'] },
      { name: 'clock', pieces: ['{"city":"Oslo"}'] }
    ]
    const server = await llmServer(
      t,
      streaming([...shape.calls(calls), shape.usage(50, 20)]),
      streaming([...shape.text(['Rain.']), shape.usage(80, 2)])
    )
    const called: unknown[] = []
    const tools = toolsThat(['weather', 'clock'], (name, args) => {
      called.push([name, args])
      if (name === 'clock') throw new NodeError('TIER_VIOLATION', 'not for you')
      return { sky: 'rain' }
    })
    const run = recordedRun()
    t.is(resultOf(await llmAgent(t, server.url, { tools }).run(HELLO, run)), 'Rain.')
    t.alike(called, [
      ['weather', { city: 'Hilo' }],
      ['clock', { city: 'Oslo' }]
    ])
    const { body } = server.seen[1]
    t.alike(
      body.tools?.map((one) => one.function.name),
      ['weather', 'clock']
    )
    const { parameters } = body.tools?.[0]?.function ?? {}
    t.alike(
      parameters,
      { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
      'the schema goes along as it is'
    )
    const [, , asked, ...answered] = body.messages
    t.is(asked.role, 'assistant')
    const ids = (asked.tool_calls as { id: string; function: { name: string; arguments: string } }[]).map((one) => {
      t.alike(JSON.parse(one.function.arguments), { city: one.function.name === 'weather' ? 'Hilo' : 'Oslo' })
      return one.id
    })
    t.alike(answered, [
      { role: 'tool', tool_call_id: ids[0], content: '{"sky":"rain"}' },
      { role: 'tool', tool_call_id: ids[1], content: 'TIER_VIOLATION: not for you' }
    ])
    t.alike(usageOf(run), { turns: 2, inputTokens: 130, outputTokens: 22, isEstimated: false })
  })

  test(`${shape.name}: an unknown model and a refused key are LLM_INIT_FAILED, and keys are not disclosed`, async (t: Assert) => {
    const { unknownModel, badKey, other } = shape.refusals
    t.ok(/not (found|exist)/.test(failureText(t, 'LLM_INIT_FAILED', await ask(t, [refusing(unknownModel)]))))
    const lines: string[] = []
    const refused = await ask(t, [refusing(badKey)], { lines })
    const words = failureText(t, 'LLM_INIT_FAILED', refused)
    t.ok(
      /^the LLM provider local refuses this node \(HTTP 401\): [\w ]+; see its key in the config$/.test(words),
      words
    )
    t.is(refused.ok ? null : refused.retryable, false)
    t.ok(lines.some((line) => line.startsWith('warn an LLM provider failed') && line.includes('HTTP 401')))
    const reason = failureText(t, 'TASK_FAILED', await ask(t, [refusing(other)]))
    t.ok(/context size|does not support tools|auto/.test(reason), reason)
  })

  test(`${shape.name}: without usage the tokens are estimated and marked as estimates`, async (t: Assert) => {
    const run = recordedRun()
    await ask(t, [streaming(shape.text(['x'.repeat(400)]))], {}, run)
    const usage = usageOf(run) as { inputTokens: number; outputTokens: number; isEstimated: boolean }
    t.ok(
      usage.isEstimated && usage.outputTokens >= 100 && usage.outputTokens < 110 && usage.inputTokens > 20,
      JSON.stringify(usage)
    )
  })
}
