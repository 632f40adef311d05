import test, { type Assert } from 'brittle'
import { NodeError } from '../../src/kit/errors.js'
import { fakeHome } from './command-line.js'

const REPLY = {
  requestId: 'req_1',
  correlationId: 'req_1',
  agent: 'text@gpu-box',
  taskId: 'task_1',
  payload: { words: 2 },
  error: null,
  latencyMs: 12
} as const

const TOOK = { agent: 'a', outcome: 'COMPLETED', rule: null } as const

test('send and call exit by the outcome', async (t: Assert) => {
  const error = new NodeError('TIER_VIOLATION', 'L1 may not open to L2').toBody()
  const partly = new NodeError('DELIVERY_FAILED', 'partly done: it failed at 1 of 2 agents').toBody()
  const replies = [
    { reply: { ...REPLY, outcome: 'COMPLETED' }, code: 0 },
    { reply: { ...REPLY, outcome: 'FAILED', payload: null, error }, code: 5 },
    { reply: { ...REPLY, outcome: 'FAILED', payload: null }, code: 1 },
    { reply: { ...REPLY, outcome: 'UNKNOWN', payload: null }, code: 6 },
    { reply: { ...REPLY, outcome: 'QUEUED', payload: null }, code: 0 },
    {
      reply: {
        ...REPLY,
        outcome: 'FAILED',
        payload: null,
        error: partly,
        agent: '*',
        targets: [TOOK, { agent: 'b', outcome: 'TASK_FAILED', rule: null }]
      },
      code: 8
    },
    {
      reply: {
        ...REPLY,
        outcome: 'FAILED',
        payload: null,
        error,
        agent: '*',
        targets: [{ agent: 'b', outcome: 'TASK_FAILED', rule: null }]
      },
      code: 5
    },
    {
      reply: {
        ...REPLY,
        outcome: 'COMPLETED',
        agent: '*',
        targets: [{ agent: 'a', outcome: 'REFUSED', rule: 'tier' }]
      },
      code: 0
    }
  ] as const
  for (const { reply, code } of replies) {
    const { run: cli, close } = await fakeHome(t, { calls: { 'message.call': () => reply } })
    const json = await cli(['call', 'text', 'text.stats', '{}', '--json'])
    t.is(json.code, code, reply.outcome)
    t.is((JSON.parse(json.stdout) as { outcome: string }).outcome, reply.outcome)
    const text = await cli(['call', 'text', 'text.stats', '{}'])
    t.is(text.code, code)
    t.is(text.stderr.includes('partly done'), code === 8, 'the text says what the code says')
    await close()
  }
})

test('send and call read stdin for -, and pass their flags', async (t: Assert) => {
  const { run: cli, fake } = await fakeHome(t, {
    calls: {
      'message.call': () => ({ ...REPLY, outcome: 'COMPLETED' }),
      'message.send': () => ({ ...REPLY, outcome: 'QUEUED' })
    }
  })
  const called = await cli(['call', '-', 'text.stats', '-', '--timeout', '5s', '--justification', 'urgent'], {
    stdin: '{"text":"hi"}'
  })
  t.is(called.stdout, '{\n  "words": 2\n}\n')
  const sent = await cli(['send', '*', '-', '--type', 'notification', '--no-wait', '--all'], { stdin: 'hello\n' })
  t.is(sent.stdout, 'task_1\n')
  t.alike(
    fake.seen.map((one) => one.params),
    [
      { agent: null, capability: 'text.stats', input: { text: 'hi' }, justification: 'urgent', timeoutMs: 5000 },
      { agent: '*', text: 'hello\n', type: 'notification', all: true, wait: false }
    ]
  )
})

test('a notification was sent, which is all that is known of it', async (t: Assert) => {
  const sent = { ...REPLY, outcome: 'COMPLETED', taskId: null, payload: null } as const
  const { run: cli } = await fakeHome(t, { calls: { 'message.send': () => sent } })
  const ran = await cli(['send', 'text', 'hi', '--type', 'notification'])
  t.alike([ran.code, ran.stdout, ran.stderr], [0, '', 'text@gpu-box: sent; nothing says whether it arrived\n'])
  const asked = await cli(['send', 'text', 'hi'])
  t.absent(asked.stderr.includes('nothing says'))
})

test('the next step after a failure is printed once: the task where it is the task, else the repair', async (t: Assert) => {
  const unfit = new NodeError('INVALID_INPUT', 'it does not fit', {
    data: { expected: '{"text": string}' },
    next: ['a2a-node agents show text@gpu-box']
  }).toBody()
  const failed = new NodeError('TASK_FAILED', 'exit code 3').toBody()
  const reply = { ...REPLY, outcome: 'FAILED', payload: null } as const
  const { run: cli } = await fakeHome(t, {
    calls: { 'message.call': () => ({ ...reply, error: unfit }), 'message.send': () => ({ ...reply, error: failed }) }
  })
  const called = await cli(['call', 'text', 'text.stats', '{"txt":1}'])
  const expected = ['error: it does not fit  [INVALID_INPUT]', '  expected: {"text": string}', '  given: {"txt":1}']
  t.alike(called.stderr.trimEnd().split('\n'), [...expected, '  try: a2a-node agents show text@gpu-box'])
  const sent = await cli(['send', 'text', 'hi'])
  t.alike(sent.stderr.trimEnd().split('\n'), ['error: exit code 3  [TASK_FAILED]', '  try: a2a-node tasks show task_1'])
  const json = await cli(['send', 'text', 'hi', '--json'])
  t.alike((JSON.parse(json.stdout) as { error: { next: string[] } }).error.next, ['a2a-node tasks show task_1'])
})

test('a row of a broadcast says why it failed', async (t: Assert) => {
  const targets = [
    TOOK,
    { agent: 'b', outcome: 'TASK_FAILED', rule: null, reason: 'exit code\n3', payload: null }
  ] as const
  const { run: cli } = await fakeHome(t, {
    calls: { 'message.send': () => ({ ...REPLY, outcome: 'COMPLETED', agent: '*', targets }) }
  })
  t.ok(/\nb {6}TASK_FAILED {2}- {5}exit code 3\n/.test((await cli(['send', '*', 'hi'])).stdout))
})

test('a broadcast names how many agents were left out for their side effects, and the flag that includes them', async (t: Assert) => {
  const row = (agent: string, outcome: string, rule: string | null) => ({ agent, outcome, rule })
  const targets = [row('a@b', 'COMPLETED', null), row('c@b', 'SIDE_EFFECT', 'r'), row('d@b', 'SIDE_EFFECT', 'r')]
  const { run: cli } = await fakeHome(t, {
    calls: { 'message.send': () => ({ ...REPLY, outcome: 'COMPLETED', agent: '*', targets }) }
  })
  const ran = await cli(['send', '*', 'x'])
  t.is(ran.code, 0)
  t.ok(ran.stderr.includes('left out: 2 agents with side effects (write, exec); --all includes them'), ran.stderr)
})

const PROGRESS = [
  { type: 'waiting', waitingFor: 'slot', agent: 'text@b', taskId: 'task_1' },
  { type: 'progress', agent: 'text@b', taskId: 'task_1', progress: 1, total: 2, message: 'half' }
] as const

test('progress goes to stderr with --follow alone, and stdout stays the same byte for byte', async (t: Assert) => {
  const done = { ...REPLY, outcome: 'COMPLETED', payload: { done: true } } as const
  const { run: cli } = await fakeHome(t, {
    waiting: PROGRESS,
    calls: { 'message.call': () => done, 'message.send': () => done }
  })
  for (const words of [
    ['call', 'text', 'text.stats', '{}'],
    ['send', 'text', 'hi']
  ]) {
    const plain = await cli(words)
    t.absent(plain.stderr.includes('half'), 'no progress in a script')
    const followed = await cli([...words, '--follow'])
    t.is(followed.stdout, plain.stdout)
    t.ok(followed.stderr.startsWith('text@b  waiting for a free slot\ntext@b  1 of 2  half\n'), followed.stderr)
    const json = await cli([...words, '--json', '--follow'])
    t.is(json.stdout, (await cli([...words, '--json', '--quiet'])).stdout)
    t.alike(
      json.stderr
        .trim()
        .split('\n')
        .map((line) => (JSON.parse(line) as { type: string }).type),
      ['waiting', 'progress']
    )
    t.is((await cli([...words, '--quiet'])).stdout, plain.stdout)
  }
})

test('--follow excludes --quiet and --no-wait, before anything is sent', async (t: Assert) => {
  const { run: cli, fake } = await fakeHome(t, {})
  for (const words of [
    ['call', 'text', 'text.stats', '{}'],
    ['send', 'text', 'hi']
  ])
    for (const flag of ['--quiet', '--no-wait'])
      t.is((await cli([...words, '--follow', flag])).code, 2, `${words[0]} ${flag}`)
  t.is((await cli(['tools', 'call', 'time', 'now', '{}', '--follow', '--quiet'])).code, 2)
  t.is(fake.seen.length, 0)
})

test('Ctrl-C while a call is followed gives it up, names its task, and exits 130', async (t: Assert) => {
  const { run: cli, fake } = await fakeHome(t, {
    waiting: PROGRESS,
    calls: {
      'message.call': (_params: unknown, signal?: AbortSignal) =>
        new Promise((_, reject) => signal?.addEventListener('abort', () => reject(new NodeError('CANCELED', 'gone'))))
    }
  })
  let sent = false
  const ran = await cli(['call', 'text', 'text.stats', '{}', '--follow'], {
    onStderr: (text, kill) => {
      if (sent || !text.includes('half')) return
      sent = true
      kill('SIGINT')
    }
  })
  t.alike([ran.code, ran.stdout], [130, ''])
  t.ok(/given up; the node cancels the work: a2a-node .*tasks show task_1 shows it\n$/.test(ran.stderr), ran.stderr)
  t.ok(
    fake.signals.every((signal) => signal.aborted),
    'the node learns that its caller hung up'
  )
})
