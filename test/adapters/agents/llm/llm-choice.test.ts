import test, { type Assert } from 'brittle'
import { TokenDays } from '../../../../src/adapters/agents/llm/daily-usage.js'
import { LlmToolChooser } from '../../../../src/adapters/agents/llm/llm-choice.js'
import { NodeError } from '../../../../src/kit/errors.js'
import type { AgentTool, ToolChoice } from '../../../../src/ports/agent-tools.js'
import { type Answerer, begun, llmServer, type LlmServer, streaming } from '../../../support/llm/llm-server.js'
import { OLLAMA } from '../../../support/llm/shapes.js'
import { ManualClock } from '../../../support/manual-clock.js'

const ADD: AgentTool = { name: 'add', description: 'Adds.', inputSchema: { type: 'object' } }
const CALL = OLLAMA.calls([{ name: 'add', pieces: ['{"a":1}'] }])
const NEVER = new AbortController().signal

interface Scene {
  readonly llm: LlmServer
  readonly clock: ManualClock
  readonly lines: readonly string[]
  choose(tools?: readonly AgentTool[], signal?: AbortSignal): Promise<ToolChoice>
}

async function scene(
  t: Assert,
  answer: Answerer,
  { model = 'qwen3:8b', fault = null }: { readonly model?: string | null; readonly fault?: NodeError | null } = {}
): Promise<Scene> {
  const llm = await llmServer(t, answer)
  const clock = new ManualClock()
  const lines: string[] = []
  const provider = { url: llm.url, model, apiKey: 'secret', headers: {}, stallTimeoutMs: 290_000 }
  const chooser = new LlmToolChooser({
    llm: {
      provider: () => (fault === null ? provider : Promise.reject(fault)),
      tools: null,
      days: new TokenDays({ clock, store: null, onFault: () => {} }),
      fetch
    },
    provider: () => 'local',
    clock,
    log: (level, message, fields) => void lines.push(`${level} ${message} ${JSON.stringify(fields)}`)
  })
  return {
    llm,
    clock,
    lines,
    choose: (tools = [ADD], signal = NEVER) => chooser.choose({ prompt: 'one', tools }, signal)
  }
}

function reasonOf(choice: ToolChoice): string {
  return choice.ok ? '' : choice.reason
}

test('a model is asked once for a tool, and its request is passed on unchanged', async (t: Assert) => {
  const { choose, llm } = await scene(t, streaming(CALL))
  const choice = await choose()
  t.alike(choice.ok ? choice.calls.map(({ name, args, fault }) => ({ name, args, fault })) : choice, [
    { name: 'add', args: { a: 1 }, fault: null }
  ])
  const [{ body, headers }] = llm.seen
  t.alike([body.model, body.max_tokens, headers.authorization], ['qwen3:8b', 4096, 'Bearer secret'])
  t.alike(
    body.messages.map(({ role }) => role),
    ['system', 'user']
  )
})

test('choices end for the day when their tokens are used, and say when they go on', async (t: Assert) => {
  const { choose, llm, clock } = await scene(t, streaming([...CALL, OLLAMA.usage(999_000, 2000)]))
  t.ok((await choose()).ok)
  const spent = await choose()
  t.alike(spent, {
    ok: false,
    reason: 'choices have used their 1000000 tokens of today',
    retryAfter: 86_400 - ((clock.now() / 1000) % 86_400)
  })
  t.is(llm.seen.length, 1)
  clock.advance(86_400_000)
  t.ok((await choose()).ok, 'the next day')
})

test('of too many or too large tools a model sees those that fit and are nearest to the prompt, and which these are never varies', async (t: Assert) => {
  const { choose, llm } = await scene(t, streaming(CALL))
  const seen = (): readonly string[] => llm.seen.at(-1)?.body.tools?.map((one) => one.function.name) ?? []
  const many = Array.from({ length: 300 }, (_, at): AgentTool => ({ ...ADD, name: `t${at}` }))
  const near = [
    { ...ADD, name: 'number_one' },
    { ...ADD, name: 'last', description: 'Gives ONE.' }
  ]
  const all = [...many, ...near]
  const choice = await choose(all)
  t.is(choice.ok && choice.left, 238)
  t.alike(
    seen(),
    [...many.slice(0, 62), ...near].map(({ name }) => name)
  )
  await choose(all)
  t.alike(
    seen(),
    [...many.slice(0, 62), ...near].map(({ name }) => name)
  )
  const whole = await choose(many.slice(0, 64))
  t.alike([whole.ok && whole.left, seen().length], [0, 64])
  const large = (name: string, chars: number) => ({
    ...ADD,
    name,
    inputSchema: { type: 'object', description: 'x'.repeat(chars) }
  })
  await choose([large('a', 200_000), large('b', 100_000), large('one', 100_000), large('c', 300_000), ADD])
  t.alike(seen(), ['b', 'one', 'add'])
  const asked = llm.seen.length
  t.is(
    reasonOf(await choose([large('a', 262_144)])),
    'each tool has more than 262144 bytes, which is too much for a model'
  )
  t.is(llm.seen.length, asked)
})

test('a provider that is not set up is asked for no choice', async (t: Assert) => {
  const without = await scene(t, streaming(CALL), { model: null })
  t.ok(/names a model/.test(reasonOf(await without.choose())))
  const unset = await scene(t, streaming(CALL), { fault: new NodeError('CONFIG_INVALID', 'KEY is not set') })
  t.absent(reasonOf(await unset.choose()).includes('KEY'), 'the caller does not learn names of variables')
  t.ok(unset.lines.some((line) => line.includes('KEY is not set')))
  for (const one of [without, unset]) t.alike(one.llm.seen, [])
})

test('a model that writes on and on is given up after two minutes, and its connection ends', async (t: Assert) => {
  const { choose, llm, clock } = await scene(
    t,
    (response) => void begun(response).write(`data: ${OLLAMA.text(['x'])[0]}\n\n`)
  )
  const running = choose()
  const { closed } = await llm.question(0)
  clock.advance(119_999)
  clock.advance(1)
  t.is(reasonOf(await running), 'the LLM provider local did not choose in time')
  await closed
})

test('a server that cannot be reached is named without its address', async (t: Assert) => {
  const { choose, llm, lines } = await scene(t, (response) => void response.destroy())
  const reason = reasonOf(await choose())
  t.ok(reason.startsWith('the LLM provider local cannot be reached'), reason)
  t.absent(reason.includes(new URL(llm.url).host))
  t.is(lines.length, 1)
})
