import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { runFault, type WireEvent, type WireInterrupt } from '../support/agui.js'
import { ask, type GatewayNode, gatewayNode, streamed } from '../support/a2a.js'
import { localMesh, testMesh, untilTrue } from '../support/nodes.js'

let said = 0
/** A message of a user: an object goes to the agent as it is. */
const user = (input: unknown, id = `m${++said}`): object => ({
  id,
  role: 'user',
  content: typeof input === 'string' ? input : JSON.stringify(input)
})

/** What a client sends for a run. */
function inputOf(threadId: string, messages: readonly object[], more: object = {}): Record<string, unknown> {
  return {
    threadId,
    runId: `run${++said}`,
    protocolVersion: '1.0',
    messages,
    state: {},
    tools: [],
    context: [],
    forwardedProps: {},
    ...more
  }
}

/** The events of one run, which are legal. */
async function runOf(t: Assert, node: GatewayNode, json: object, place = '/agents/talk/agui'): Promise<WireEvent[]> {
  const events: WireEvent[] = []
  for await (const { data } of streamed(node, place, { json, headers: { accept: 'text/event-stream' } }))
    events.push(data as WireEvent)
  t.is(runFault(events), null, 'the run is legal')
  return events
}

function textOf(events: readonly WireEvent[]): string {
  return events.map(({ delta }) => delta ?? '').join('')
}

/** What the run waits for. */
function questionOf(events: readonly WireEvent[]): WireInterrupt | undefined {
  return events.at(-1)?.outcome?.interrupts?.[0]
}

function taskOf(events: readonly WireEvent[]): string {
  const value = events.find(({ name }) => name === 'a2a.task')?.['value'] as { taskId: string } | undefined
  return value?.taskId ?? ''
}

test('a run of AG-UI streams the life of its task, by agent, by forwardedProps and by skill', async (t) => {
  const node = await gatewayNode(await localMesh(t), 'a')
  const input = inputOf('thread', [user('earlier'), { id: 'a1', role: 'assistant', content: 'x' }, user('hello')])
  const events = await runOf(t, node, input)
  const task = taskOf(events)
  t.alike(
    events.map(({ type, stepName }) => [type, stepName].filter((one) => one !== undefined).join(' ')),
    [
      'RUN_STARTED',
      'CUSTOM',
      'STEP_STARTED submitted',
      'STEP_FINISHED submitted',
      'STEP_STARTED working',
      'TEXT_MESSAGE_START',
      'TEXT_MESSAGE_CONTENT',
      'TEXT_MESSAGE_END',
      'STEP_FINISHED working',
      'RUN_FINISHED'
    ]
  )
  const { runId } = input
  t.alike(events[0], { type: 'RUN_STARTED', threadId: 'thread', runId, protocolVersion: '1.0' })
  t.alike(events.at(-1), {
    type: 'RUN_FINISHED',
    threadId: 'thread',
    runId,
    outcome: { type: 'success' },
    result: 'you said hello'
  })
  t.is(textOf(events), 'you said hello')
  t.is(
    (await ask(node, `/agents/talk/tasks/${task}`)).body['contextId'],
    'thread',
    'it is a task of the A2A gateway like any other'
  )
  for (const forwardedProps of [{ agent: 'talk', theme: 'dark' }, { skill: 'talk.once' }, { skill: 'talk/talk.say' }])
    t.is(textOf(await runOf(t, node, inputOf('other', [user('hi')], { forwardedProps }), '/agui')), 'you said hi')
  const again = await runOf(t, node, input)
  t.alike([taskOf(again), again], [task, events], 'the same message is done once, and reported as before')
})

test('a run of a weaker token justifies a request to a stronger agent in forwardedProps, and the error says so', async (t) => {
  const node = await gatewayNode(await localMesh(t), 'a')
  const { token } = await node.node.json<{ token: string }>(['a2a', 'token', 'create', '--tier', 'L3'])
  const weak = { ...node, token }
  const refused = (await runOf(t, weak, inputOf('why', [user('hi')]))).at(-1)
  t.alike([refused?.type, refused?.['code']], ['RUN_ERROR', 'TASK_REJECTED'])
  t.ok(String(refused?.['message']).includes('in forwardedProps.justification'), String(refused?.['message']))
  const forwardedProps = { justification: 'the report is due' }
  t.is(textOf(await runOf(t, weak, inputOf('why', [user('hi')], { forwardedProps }))), 'you said hi')
})

test('chunks stream as one message as they come; a client that hangs up leaves the task at work', async (t) => {
  const node = await gatewayNode(await localMesh(t), 'a')
  const gate = path.join(node.dir, 'gate-')
  const input = inputOf('thread', [user({ chunks: ['one ', 'two ', 'three'], gate })])
  let heard = ''
  let task = ''
  for await (const { data } of streamed(node, '/agents/talk/agui', { json: input })) {
    if (data['name'] === 'a2a.task') task = (data['value'] as { taskId: string }).taskId
    heard += (data as WireEvent).delta ?? ''
    if (heard === 'one ') await fs.writeFile(`${gate}1`, '')
    if (heard === 'one two ') break
  }
  await fs.writeFile(`${gate}2`, '')
  await untilTrue(async () => {
    const { body } = await ask(node, `/agents/talk/tasks/${task}`)
    return (body['status'] as { state: string }).state === 'TASK_STATE_COMPLETED'
  }, 'the task is completed')
  const whole = await runOf(t, node, input)
  t.alike([textOf(whole), whole.filter(({ type }) => type === 'TEXT_MESSAGE_START').length], ['one two three', 1])
})

test('an agent asks back: the run is interrupted, and the next one answers, by resume or by a message', async (t) => {
  const node = await gatewayNode(await localMesh(t), 'a')
  const question = user({ ask: 'Which one?' })
  const asked = await runOf(t, node, inputOf('resumed', [question]))
  const interrupt = questionOf(asked)
  t.alike([interrupt?.reason, interrupt?.message, textOf(asked)], ['input-required', 'Which one?', 'Which one?'])
  const resume = [{ interruptId: interrupt?.id, status: 'resolved', payload: { text: 'that one' } }]
  const answer = inputOf('resumed', [question], { resume })
  const answered = await runOf(t, node, answer, '/agui')
  t.alike([taskOf(answered), textOf(answered)], [taskOf(asked), 'you said that one'])
  t.alike(await runOf(t, node, answer, '/agui'), answered, 'an answer is given once')
  const other = await ask(node, '/agui', { json: { ...answer, resume: [{ ...resume[0], payload: 'another one' }] } })
  t.is(other.status, 400, 'of one question there is one answer')
  const first = await runOf(t, node, inputOf('chat', [user({ ask: 'And here?' })]))
  const spoken = await runOf(t, node, inputOf('chat', [user('this one')]))
  t.alike(
    [taskOf(spoken), textOf(spoken)],
    [taskOf(first), 'you said this one'],
    'front ends that know no interrupts just say it'
  )
  const again = await runOf(t, node, inputOf('resumed', [question]))
  t.alike(
    [taskOf(again), textOf(again)],
    [taskOf(asked), 'Which one?you said that one'],
    'a repeated question is answered to its end'
  )
})

test('an abandoned question ends its task; another message begins a new one', async (t) => {
  const node = await gatewayNode(await localMesh(t), 'a')
  const question = user({ ask: 'Which one?' })
  const asked = await runOf(t, node, inputOf('thread', [question]))
  const resume = [
    { interruptId: questionOf(asked)?.id, status: 'cancelled' },
    { interruptId: 'none', status: 'resolved' }
  ]
  const input = inputOf('thread', [question], { resume })
  for (const time of ['once', 'and again']) {
    const ended = await runOf(t, node, input)
    t.alike([taskOf(ended), ended.at(-1)?.outcome], [taskOf(asked), { type: 'cancelled' }], time)
    t.is(ended.filter(({ name }) => name === 'a2a.warning').length, 1, 'an event without a listener is reported')
  }
  const next = await runOf(t, node, inputOf('thread', [user({ ask: 'Sure?' })]))
  const instead = inputOf('thread', [user('never mind')], {
    resume: [{ interruptId: questionOf(next)?.id, status: 'cancelled' }]
  })
  const begun = await runOf(t, node, instead)
  t.alike([taskOf(begun) === taskOf(next), textOf(begun)], [false, 'you said never mind'])
  const { body } = await ask(node, `/agents/talk/tasks/${taskOf(next)}`)
  t.is((body['status'] as { state: string }).state, 'TASK_STATE_CANCELED')
})

test('a task that fails or is canceled ends its run so; data is sent as a custom event', async (t) => {
  const node = await gatewayNode(await localMesh(t), 'a')
  const failed = await runOf(t, node, inputOf('a', [user({ fail: 'no way' })]))
  const { type, code, message }: Partial<WireEvent> = failed.at(-1) ?? {}
  t.alike([type, code], ['RUN_ERROR', 'TASK_FAILED'])
  t.ok(String(message).includes('no way'))
  const events: WireEvent[] = []
  for await (const { data } of streamed(node, '/agents/talk/agui', {
    json: inputOf('b', [user({ until: path.join(node.dir, 'never') })])
  })) {
    events.push(data as WireEvent)
    if (data['type'] === 'STEP_STARTED' && data['stepName'] === 'working')
      await ask(node, `/agents/talk/tasks/${taskOf(events)}:cancel`, { json: {} })
  }
  t.is(runFault(events), null)
  t.alike(events.at(-1)?.outcome, { type: 'cancelled' })
  const custom = await runOf(t, node, inputOf('c', [user({ ask: { choice: [1, 2] } })]))
  const { value }: Partial<WireEvent> = custom.find(({ name }) => name === 'a2a.message') ?? {}
  t.alike((value as { parts: object[] }).parts, [{ data: { choice: [1, 2] }, mediaType: 'application/json' }])
})

test('a node that stops says that the task continues; the same input gives the rest once it is back', async (t) => {
  const mesh = await testMesh(t)
  const before = await gatewayNode(mesh, 'a')
  const until = path.join(before.dir, 'until')
  const input = inputOf('thread', [user({ until, text: 'late' })])
  const events: WireEvent[] = []
  for await (const { data } of streamed(before, '/agents/talk/agui', { json: input })) {
    events.push(data as WireEvent)
    if (data['type'] === 'STEP_STARTED' && data['stepName'] === 'working') before.node.kill('SIGTERM')
  }
  t.is(runFault(events), null)
  t.alike([events.at(-1)?.type, events.at(-1)?.['code']], ['RUN_ERROR', 'STREAM_ENDED'])
  await before.node.exited
  await fs.writeFile(until, '')
  const after = await gatewayNode(mesh, 'a', { home: before.node.home, dir: before.dir, token: before.token })
  const rest = await runOf(t, after, input)
  t.alike([taskOf(rest), textOf(rest)], [taskOf(events), 'you said late'])
})

test('an agent that states an end ends the run: as an error, or as canceled', async (t) => {
  const node = await gatewayNode(await localMesh(t), 'a')
  const end = async (state: string): Promise<unknown[]> => {
    const last = (await runOf(t, node, inputOf(state, [user({ state, why: 'no' })]))).at(-1)
    return [last?.type, last?.['code'] ?? last?.outcome?.type, last?.['message']]
  }
  t.alike(await end('rejected'), ['RUN_ERROR', 'TASK_REJECTED', 'no'])
  t.alike(await end('TASK_STATE_FAILED'), ['RUN_ERROR', 'TASK_FAILED', 'no'])
  t.alike((await end('cancelled')).slice(0, 2), ['RUN_FINISHED', 'cancelled'])
})

test('an invalid run is refused before it begins, as JSON, and a token sees its own threads alone', async (t) => {
  const node = await gatewayNode(await localMesh(t), 'a')
  const good = inputOf('thread', [user('hi')])
  const cases: readonly (readonly [string, RequestInit & { readonly json?: unknown }, number, string])[] = [
    ['/agui', { json: good }, 400, 'neither agent nor skill'],
    ['/agui', { json: { ...good, forwardedProps: { agent: 'nobody' } } }, 400, 'an agent that is not there'],
    ['/agui', { json: { ...good, forwardedProps: { skill: 'no.skill' } } }, 400, 'a skill that nobody has'],
    ['/agents/nobody/agui', { json: good }, 400, 'no agent of the path'],
    ['/agents/talk/agui', { json: { ...good, messages: [] } }, 400, 'nothing said'],
    ['/agents/talk/agui', { json: { ...good, threadId: undefined } }, 400, 'no thread'],
    ['/agents/talk/agui', { json: [] }, 400, 'no object'],
    ['/agents/talk/agui', { method: 'POST', body: '{' }, 400, 'no JSON'],
    ['/agents/talk/agui', { method: 'POST', body: '' }, 400, 'nothing'],
    [
      '/agents/talk/agui',
      { method: 'POST', body: '{}', headers: { 'content-type': 'text/plain' } },
      415,
      'another type'
    ],
    ['/agents/talk/agui', {}, 404, 'a GET'],
    ['/agui', {}, 405, 'a GET'],
    ['/agui', { json: { ...good, state: 'x'.repeat(11_000_000) } }, 413, 'too much']
  ]
  for (const [place, init, status, what] of cases) {
    const answer = await ask(node, place, init)
    t.alike(
      [answer.status, answer.type.split(';')[0], typeof answer.body['error']],
      [status, 'application/json', 'object'],
      what
    )
  }
  const asked = await runOf(t, node, inputOf('mine', [user({ ask: 'Which one?' })]))
  const { token } = await node.node.json<{ token: string }>(['a2a', 'token', 'create', '--tier', 'L0'])
  const theirs = await runOf(t, { ...node, token }, inputOf('mine', [user('that one')]))
  t.not(taskOf(theirs), taskOf(asked), 'the thread of another token has nothing that waits')
})
