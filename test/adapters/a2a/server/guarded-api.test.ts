import test, { type Assert } from 'brittle'
import { guardedApi, guardedChooser } from '../../../../src/adapters/a2a/server/guarded-api.js'
import { Guardrails } from '../../../../src/adapters/a2a/server/guardrails.js'
import { NodeError } from '../../../../src/kit/errors.js'
import type { ToolChoice, ToolChooser } from '../../../../src/ports/agent-tools.js'
import type { CallName, NodeApi, WatchName } from '../../../../src/ports/node-api.js'
import { failsWith } from '../../../support/fails.js'

const RULES = { maxLength: 200, deny: ['secret', 'sec"ret'] }
const OPEN = { maxLength: 200, deny: [] }
const said = { text: 'my secret' }
const failure = new NodeError('TASK_FAILED', 'it knows a secret').toBody()
const reply = { outcome: 'COMPLETED', payload: said, error: null }
const task = { id: 'task_1', state: 'completed', result: said, error: null }
const failedTask = { ...task, state: 'failed', result: null, error: failure }
const events = [
  { generation: 1, type: 'state', state: 'working' },
  { generation: 2, type: 'progress', data: { message: 'a sec' } }
]

/** A guarded API over one that gives the same to every call and watch, and counts what reaches it. */
function guarded(
  gives: unknown,
  rules: { input?: typeof RULES; output?: typeof RULES } = {}
): { api: NodeApi; asked: () => number } {
  let asked = 0
  const inner = {
    call: () => Promise.resolve(++asked > 0 ? gives : null),
    watch: async function* () {
      asked++
      yield gives
    }
  } as unknown as NodeApi
  return {
    api: guardedApi(inner, new Guardrails({ input: rules.input ?? OPEN, output: rules.output ?? RULES })),
    asked: () => asked
  }
}

const call = (name: CallName, gives: unknown): Promise<unknown> => guarded(gives).api.call(name, {})

async function firstOf(items: AsyncIterable<unknown>): Promise<unknown> {
  for await (const item of items) return item
}

const watch = (name: WatchName, gives: unknown): Promise<unknown> => firstOf(guarded(gives).api.watch(name, {}))

/** Is nothing of it left, with the reason in its place? */
function isHidden(t: Assert, answer: unknown, what: string): void {
  const text = JSON.stringify(answer)
  t.absent(/secret|a sec|ret…/.test(text), `${what}: ${text}`)
  t.ok(
    /INVALID_OUTPUT|is denied|withheld by a guardrail|"message":null|"reason":""|"events":\[/.test(text),
    `${what}: ${text}`
  )
}

test('a text forbidden to a client with a token reaches no agent, by any call or watch', async (t: Assert) => {
  const { api, asked } = guarded({ ...reply, payload: 'fine' }, { input: RULES })
  const plan = { tasks: [{ id: 'a', capability: 'x', input: said }] }
  const sent: readonly (readonly [CallName, object])[] = [
    ['message.call', { agent: null, capability: 'a', input: said }],
    ['message.call', { agent: null, capability: 'a', input: 'x'.repeat(201) }],
    ['message.call', { agent: null, capability: 'a', input: {}, justification: 'a secret' }],
    ['message.send', { agent: 'a', text: 'secret' }],
    ['message.answer', { id: 'ask_1', answer: { ok: true, result: { action: 'accept', content: { a: 'secret' } } } }],
    ['message.send', { agent: 'a', text: '{"text": "s\\u0065cret"}' }],
    ['swarm.start', { goal: 'secret' }],
    ['swarm.start', { goal: 'g', input: said }],
    ['swarm.start', { goal: 'g', items: [{ item: '1', input: said }] }],
    ['swarm.start', { goal: 'g', items: [{ item: 'secret', input: {} }] }],
    ['swarm.preview', { goal: 'g', plan }]
  ]
  for (const [name, params] of sent) {
    await failsWith(t, 'INVALID_INPUT', () => api.call(name, params))
    if (name !== 'message.call' && name !== 'message.send') continue
    await failsWith(t, 'INVALID_INPUT', () => firstOf(api.watch(name, params as never)))
  }
  t.is(asked(), 0)
  t.alike(await api.call('message.call', { agent: null, capability: 'a', input: 'fine' }), {
    ...reply,
    payload: 'fine'
  })
  t.is(asked(), 1)
})

test('a text forbidden to agents is in no answer to a client with a token, by any call or watch', async (t: Assert) => {
  const item = { type: 'item', item: '1', status: 'completed', result: said, error: null }
  const calls: readonly (readonly [CallName, object])[] = [
    ['message.call', reply],
    ['message.send', { ...reply, outcome: 'FAILED', payload: null, error: failure }],
    [
      'message.send',
      { ...reply, payload: null, targets: [{ agent: 'a', outcome: 'COMPLETED', rule: null, payload: said }] }
    ],
    [
      'message.send',
      { ...reply, payload: null, targets: [{ agent: 'a', outcome: 'TASK_FAILED', rule: null, reason: 'secret' }] }
    ],
    [
      'message.send',
      {
        ...reply,
        payload: null,
        targets: [{ agent: 'a', outcome: 'COMPLETED', rule: null, payload: '{"a":"sec\\"ret…' }]
      }
    ],
    ['tasks.list', { tasks: [task, failedTask], more: 0 }],
    ['tasks.show', { ...task, events }],
    [
      'tasks.show',
      { ...task, result: 'ret', events: [...events, { generation: 3, type: 'progress', data: 'secret' }] }
    ],
    [
      'tasks.show',
      { ...task, result: 'fine', events: [...events.slice(0, 1), { generation: 2, type: 'error', error: failure }] }
    ],
    ['tasks.cancel', failedTask],
    ['swarm.list', { swarms: [{ id: 's', error: failure }] }],
    ['swarm.show', { id: 's', error: failure }],
    ['swarm.cancel', { id: 's', error: failure }],
    ['swarm.results', { id: 's', result: said, results: [item] }],
    ['swarm.results', { id: 's', results: [{ ...item, result: null, error: failure }] }]
  ]
  for (const [name, gives] of calls) isHidden(t, await call(name, gives), name)
  const watches: readonly (readonly [WatchName, object])[] = [
    ['message.call', { type: 'reply', reply }],
    ['message.send', { type: 'failed', error: failure }],
    ['message.send', { type: 'progress', progress: 1, total: 2, message: 'a sec' }],
    ['message.call', { type: 'progress', progress: null, total: null, message: null, text: 'a sec' }],
    ['message.call', { type: 'question', question: { id: 'ask_1', params: { message: 'my secret' } } }],
    ['message.send', { type: 'question', question: { id: 'ask_1', params: { requestedSchema: { title: 'secret' } } } }],
    ['message.call', { type: 'log', agent: 'a', line: { level: 'info', data: said } }],
    ['message.call', { type: 'log', agent: 'a', line: { level: 'info', data: 1, logger: 'secret' } }],
    ['tasks.list', { tasks: [task], more: 0 }],
    ['swarm.watch', item],
    ['swarm.watch', { type: 'released', item: '1', reason: 'secret' }],
    ['swarm.watch', { type: 'done', status: 'completed', result: said, error: null }],
    ['swarm.watch', { type: 'done', status: 'failed', error: failure }]
  ]
  for (const [name, gives] of watches) isHidden(t, await watch(name, gives), name)
})

test('progress of an agent is sent at its end where patterns are checked, and at once where none are', async (t: Assert) => {
  const working = { ...task, state: 'working', result: null, events }
  const { events: shown } = (await call('tasks.show', working)) as typeof working
  t.alike(shown, events.slice(0, 1))
  const without = guarded(working, { output: OPEN }).api
  t.alike(await without.call('tasks.show', { id: 'task_1' }), working)
})

test('an output without a fault passes unchanged, and so does every other call', async (t: Assert) => {
  const fine = { ...task, result: 'fine', events: [] }
  const bytes = { ...reply, payload: { file: new Uint8Array(10_000) } }
  for (const [name, gives] of [
    ['tasks.show', fine],
    ['message.call', bytes],
    ['peers.list', { peers: ['secret'] }]
  ] as const)
    t.alike(await call(name, gives), gives, name)
  t.alike(await watch('node.events', { message: 'secret' }), { message: 'secret' })
})

test('an error of the node keeps its code, its outcome and whether it may be tried again, however long it is', async (t: Assert) => {
  const error = new NodeError('TIMEOUT', 'x'.repeat(500), { retryable: true, data: { taskId: 'task_1' } }).toBody()
  const unknown = { ...reply, outcome: 'UNKNOWN', payload: null, error }
  t.alike(await call('message.call', unknown), unknown)
  const withSecret = (await call('message.call', {
    ...unknown,
    error: { ...error, message: 'a secret' }
  })) as typeof unknown
  t.alike([withSecret.outcome, withSecret.error.code, withSecret.error.retryable], ['UNKNOWN', 'TIMEOUT', true])
})

test('the beginning of a large answer counts once, and a failure of a broadcast keeps its code', async (t: Assert) => {
  const target = { agent: 'a', outcome: 'COMPLETED', rule: null, payload: `"${'x'.repeat(150)}…` }
  const broadcast = { ...reply, payload: null, targets: [target] }
  t.alike(await call('message.send', broadcast), broadcast)
  const failing = { ...broadcast, targets: [{ agent: 'a', outcome: 'TASK_FAILED', rule: null, reason: 'a secret' }] }
  const [shown] = ((await call('message.send', failing)) as typeof failing).targets
  t.alike([shown?.outcome, shown?.reason.includes('is denied')], ['TASK_FAILED', true])
})

test('a prompt that breaks a rule of input reaches no model, any other one does', async (t: Assert) => {
  const prompts: string[] = []
  const inner: ToolChooser = {
    choose: ({ prompt }) => {
      prompts.push(prompt)
      return Promise.resolve({ ok: true, calls: [], left: 0 })
    }
  }
  const chooser = guardedChooser(inner, new Guardrails({ input: RULES, output: OPEN }))
  const choose = (prompt: string): Promise<ToolChoice> =>
    chooser.choose({ prompt, tools: [] }, new AbortController().signal)
  for (const prompt of ['my secret', 'x'.repeat(201)]) {
    const choice = await choose(prompt)
    t.ok(!choice.ok && /allowed|denied/.test(choice.reason), prompt)
  }
  t.alike(await choose('fine'), { ok: true, calls: [], left: 0 })
  t.alike(prompts, ['fine'])
})
