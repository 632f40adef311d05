import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { type ErrorBody, NodeError } from '../../src/kit/errors.js'
import type { SwarmEvent, SwarmRequest } from '../../src/ports/swarm-api.js'
import { tempDir } from '../support/tmp.js'
import { fakeHome, type Ran, run as runCommand } from './command-line.js'
import { agent, swarm, swarmEvents, task } from './samples.js'

const RUN = ['swarm', 'run', 'count words', '--capability', 'text.stats'] as const

test('swarm run prints the events as lines of JSON, the last with its schema', async (t: Assert) => {
  const { run } = await fakeHome(t, { swarmEvents: swarmEvents() })
  const ran = await run([...RUN, '--items', '-', '--json'], { stdin: 'a.txt\nb.txt\n' })
  t.is(ran.code, 0)
  const lines = ran.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
  t.alike(lines.slice(0, -1), swarmEvents().slice(0, -1))
  t.is(lines.at(-1)?.['schema'], 'a2a-node/swarm@1')
  t.is(lines.at(-1)?.['status'], 'completed')
})

test('people see the agent and node of each item, the agents left out and the rule for it', async (t: Assert) => {
  const { run } = await fakeHome(t, { swarmEvents: swarmEvents() })
  const ran = await run([...RUN, '--items', '-'], { stdin: 'a.txt\nb.txt\n' })
  t.ok(/^swarm swarm_fake {3}completed {3}2 of 2 items done {3}4.2 s\n/.test(ran.stdout), ran.stdout)
  t.alike(stepsOf(ran), [], 'nothing failed, so nothing is to be typed again')
  t.ok(/\nlaptop {3}text {3}2 {5}- {7}-\n/.test(ran.stdout), ran.stdout)
  t.ok(/\ngpu-box {2}text {3}- {5}- {7}1\n/.test(ran.stdout), ran.stdout)
  t.ok(ran.stdout.includes('left out\n  text@phone  tier: L1 may open to L0, L1'))
  t.ok(ran.stdout.includes('text@cage  POLICY_DENIED  policy.yaml:3: deny'), 'also what its own node refused')
  t.ok(ran.stderr.includes('requeue b.txt  text@gpu-box  the node is offline'))
})

test('an item that waits for approval is shown as such while it is followed, by swarm show and by tasks', async (t: Assert) => {
  const [first, lease, ...others] = swarmEvents()
  if (first === undefined || lease?.type !== 'lease') throw new Error('the samples changed')
  const held = { type: 'waiting', item: lease.item, agent: lease.agent, attempt: 1 } as const
  const events = [
    first,
    lease,
    { ...held, waitingFor: 'approval' } as const,
    { ...held, waitingFor: null } as const,
    ...others
  ]
  const { run } = await fakeHome(t, {
    swarmEvents: events,
    swarms: [{ ...swarm('running'), running: 1, waitingForApproval: 2 }],
    tasks: [task('task_fake', { kind: 'swarm', state: 'submitted', waitingFor: 'approval' })]
  })
  const { stderr } = await run([...RUN, '--items', '-'], { stdin: 'a.txt\nb.txt\n' })
  t.ok(stderr.includes('waits   a.txt  text@laptop  waiting for approval\ngoes on a.txt  text@laptop\n'), stderr)
  t.ok((await run(['swarm', 'show', 'swarm_fake'])).stdout.includes('1 running, 2 waiting for approval'))
  t.ok((await run(['tasks'])).stdout.includes('  waiting for approval  '))
})

/** The events of a swarm of one item that fails. */
function failing(error: ErrorBody, item = 'b.txt'): SwarmEvent[] {
  return swarmEvents('partial').map((event) =>
    event.type === 'item' && event.status === 'failed' ? { ...event, item, error } : event
  )
}

/** What a swarm tells to type, and all it tells about an input. */
function stepsOf({ stdout }: Ran): string[] {
  return stdout.split('\n').filter((line) => /^ {2}(try:|expected:|given:|before)/.test(line))
}

test('after failed items, the suggestion is this command line with the missing items', async (t: Assert) => {
  const next = ['a2a-node agents show text@laptop']
  const unfit = new NodeError('INVALID_INPUT', 'it does not fit', {
    data: { expected: '{"text": string}' },
    next
  }).toBody()
  const [createdAt, deadlineAt] = ['2026-11-29T10:00:00.000Z', '2026-11-29T10:45:00.000Z']
  let swarms = [{ ...swarm(), createdAt, deadlineAt }]
  const run = async (error: ErrorBody, args: readonly string[], item?: string): Promise<Ran> => {
    const { home, close } = await fakeHome(t, { swarmEvents: failing(error, item), swarms })
    const ran = await runCommand(args, { home, stdin: "a.txt\nb.txt\nit's\n" })
    await close()
    return ran
  }
  const lines = [...RUN, '--items', '-']
  const typed = "a2a-node swarm run 'count words' --capability text.stats"
  const shape = '  expected: {"text": string}'
  t.alike(stepsOf(await run(unfit, lines)), [
    shape,
    '  given: {"item":"b.txt"}',
    `  try: ${typed} --items - --input '{"<member>":"{item}"}'`
  ])
  const own = await run(unfit, [...lines, '--input', '{"txt":"{item}"}'])
  t.alike(stepsOf(own), [
    shape,
    '  given: {"txt":"b.txt"}',
    `  try: ${typed} --items - --input '{"<member>":"{item}"}'`
  ])
  t.alike(stepsOf(await run(unfit, RUN)), [shape, '  given: {}', `  try: ${typed} --input '<json as expected>'`])
  t.alike(stepsOf(await run(unfit, ['swarm', 'watch', 'swarm_fake'])), [shape, `  try: ${next[0]}`])
  const failed = new NodeError('TASK_FAILED', 'exit code 3').toBody()
  const again = `  try: printf '%s\\n' 'it'\\''s' | ${typed} --items -`
  const checked = '  before you run the failed items again, check what they did: a part of their work may be done'
  t.alike(stepsOf(await run(failed, lines, "it's")), [checked, again])
  t.alike(stepsOf(await run({ ...failed, retryable: true }, lines, "it's")), [again], 'nothing was done')
  t.alike(
    stepsOf(await run(failed, [...RUN, '--items', 'src/cli/*.ts'])),
    [checked, '  try: a2a-node swarm retry swarm_fake'],
    'files are not lines'
  )
  const late = new NodeError('TIMEOUT', 'not finished by the deadline').toBody()
  t.alike(stepsOf(await run(late, [...RUN, '--deadline=90m'])), [`  try: ${typed} --deadline 3h`])
  t.alike(stepsOf(await run(late, RUN)), [`  try: ${typed} --deadline 90m`], 'twice the default of the node')
  swarms = []
  t.alike(stepsOf(await run(late, RUN)), [`  try: ${typed} --deadline '<longer>'`], 'no time is guessed')
  swarms = [swarm()]
  const slow = new NodeError('TIMEOUT', 'no result within 5 s', { data: { limitMs: 5000 } }).toBody()
  t.alike(
    stepsOf(await run(slow, [...RUN, '--deadline=1h'])),
    ['  try: a2a-node agents show text@laptop'],
    'no deadline helps'
  )
  t.is((await run(failed, lines)).stdout.split('exit code 3').length, 2, 'the reason is reported once')
})

test('results are counted as people count', async (t: Assert) => {
  const result = {
    item: 'a',
    agent: 'text@b',
    attempt: 1,
    status: 'completed',
    result: 1,
    error: null,
    durationMs: 1
  } as const
  for (const [count, text] of [
    [1, '1 result, swarm completed'],
    [2, '2 results, swarm completed']
  ] as const) {
    const results = Array.from({ length: count }, () => result)
    const { run } = await fakeHome(t, {
      calls: { 'swarm.results': ({ id }) => ({ id, status: 'completed', results }) }
    })
    t.is((await run(['swarm', 'results', 'x'])).stderr, `${text}\n`)
  }
})

test('swarm run exits by the status of the swarm', async (t: Assert) => {
  for (const [status, code] of [
    ['completed', 0],
    ['partial', 8],
    ['failed', 1],
    ['canceled', 1]
  ] as const) {
    const { run, close } = await fakeHome(t, { swarmEvents: swarmEvents(status), swarms: [swarm()] })
    t.is((await run([...RUN, '--items', '-', '--json'], { stdin: 'a\n' })).code, code, status)
    const watched = await run(['swarm', 'watch', 'swarm_fake'])
    t.is(watched.code, code, `watch ${status}`)
    if (status === 'partial') t.ok(watched.stdout.includes('failed  b.txt  exit code 3  [TASK_FAILED]'), watched.stdout)
    await close()
  }
})

test('the request is made of the flags: items of a glob with contents, each alone, templates', async (t: Assert) => {
  const { run, fake } = await fakeHome(t, { swarmEvents: swarmEvents() })
  const cwd = await tempDir(t)
  await writeFile(path.join(cwd, 'a.txt'), 'hello')
  await writeFile(path.join(cwd, 'b.bin'), new Uint8Array([255]))
  const asked = async (...args: string[]): Promise<SwarmRequest> => {
    fake.seen.length = 0
    await run([...RUN, ...args], { cwd, stdin: '{"text":"x"}\nplain\n' })
    return fake.seen[0]?.params as SwarmRequest
  }
  const base = { goal: 'count words', capability: 'text.stats' }
  t.alike(await asked('--items', '*', '--attach'), {
    ...base,
    strategy: 'map',
    items: [
      { item: 'a.txt', input: { file: 'a.txt', text: 'hello' } },
      { item: 'b.bin', input: { file: 'b.bin', bytes: new Uint8Array([255]) } }
    ]
  })
  t.alike((await asked('--items', '-')).items, [
    { item: '{"text":"x"}', input: { text: 'x' } },
    { item: 'plain', input: { item: 'plain' } }
  ])
  t.alike((await asked('--items', '*.txt', '--input', '{"path":"{file}"}')).items, [
    { item: 'a.txt', input: { path: 'a.txt' } }
  ])
  t.alike(await asked(), { ...base, strategy: 'each' })
  t.alike(
    await asked(
      '--input',
      '{"a":1}',
      '--max-parallel',
      '3',
      '--retries',
      '0',
      '--deadline',
      '2m',
      '--justification',
      'why'
    ),
    {
      ...base,
      strategy: 'each',
      input: { a: 1 },
      maxParallel: 3,
      retries: 0,
      deadlineMs: 120_000,
      justification: 'why'
    }
  )
})

test('flags that do not go together are USAGE before the node is asked', async (t: Assert) => {
  const { run, fake } = await fakeHome(t, { swarmEvents: swarmEvents() })
  const wrong = [
    ['swarm', 'run', 'x', '--items', '-'],
    ['swarm', 'run', ' ', '--capability', 'c'],
    [...RUN, '--strategy', 'map'],
    [...RUN, '--strategy', 'each', '--items', '-'],
    [...RUN, '--strategy', 'quick'],
    [...RUN, '--strategy', 'race', '--items', '-'],
    [...RUN, '--judge', 'j'],
    [...RUN, '--answers', '2'],
    [...RUN, '--capability', 'other', '--strategy', 'vote'],
    [...RUN, '--plan', 'plan.yaml'],
    [...RUN, '--max-rounds', '2'],
    [...RUN, '--until', 'true', '--detach'],
    [...RUN, '--until', 'true', '--idempotency-key', 'k'],
    [...RUN, '--attach'],
    [...RUN, '--items', 'no/such/*'],
    [...RUN, '--input', '{"x":"{item}"}'],
    [...RUN, '--input', 'not json'],
    [...RUN, '--retries', '-1'],
    [...RUN, '--max-parallel', '0']
  ]
  for (const args of wrong) t.is((await run(args)).code, 2, args.join(' '))
  t.is(fake.seen.length, 0)
})

test('a goal without a capability is USAGE while nobody offers to plan; a planner does not begin unasked where nobody can be asked', async (t: Assert) => {
  const { run, fake } = await fakeHome(t, {})
  const none = await run(['swarm', 'run', 'x'])
  t.is(none.code, 2)
  t.ok(none.stderr.includes('--capability is required'), none.stderr)
  t.alike(
    fake.seen.map(({ name }) => name),
    ['agents.list']
  )
  const planner = agent('planner', 'laptop')
  const [first] = planner.capabilities
  if (first === undefined) throw new Error('the samples changed')
  const able = await fakeHome(t, { agents: [{ ...planner, capabilities: [{ ...first, id: 'swarm.plan' }] }] })
  const unasked = await able.run(['swarm', 'run', 'x'])
  t.is(unasked.code, 2)
  t.ok(unasked.stderr.includes('--yes'), unasked.stderr)
  t.alike(
    able.fake.seen.map(({ name }) => name),
    ['agents.list'],
    'not even a plan was made'
  )
  const named = await able.run(['swarm', 'run', 'x', '--strategy', 'plan'])
  t.ok(named.stderr.includes('--yes'), 'it is the same when the strategy is named')
})

test('the strategy plan without a plan names the ways to one', async (t: Assert) => {
  const { run } = await fakeHome(t, {})
  const none = await run(['swarm', 'run', 'x', '--strategy', 'plan'])
  t.is(none.code, 2)
  t.ok(none.stderr.includes('--plan <file>') && none.stderr.includes('swarm.plan'), none.stderr)
  t.ok(none.stderr.includes("  try: a2a-node swarm run x --strategy plan --plan '<file>'\n"), none.stderr)
})

test('nobody capable is exit 4 at once', async (t: Assert) => {
  const { run } = await fakeHome(t)
  const ran = await run([...RUN, '--json'])
  t.is(ran.code, 4)
  t.ok(ran.stderr.includes('"NO_CAPABLE_AGENT"'))
})

test('--detach prints the id and leaves the swarm alone', async (t: Assert) => {
  const { run, fake } = await fakeHome(t, { swarmEvents: swarmEvents() })
  t.is((await run([...RUN, '--detach'])).stdout, 'swarm_fake\n')
  t.is((JSON.parse((await run([...RUN, '--detach', '--json'])).stdout) as { id: string }).id, 'swarm_fake')
  t.alike(
    fake.seen.map((one) => one.name),
    ['swarm.start', 'swarm.start']
  )
})

test('Ctrl-C cancels the swarm, waits for its end and exits 130', async (t: Assert) => {
  let cancel: () => void = () => {}
  const canceled = new Promise<void>((resolve) => (cancel = resolve))
  const { run, fake } = await fakeHome(t, {
    swarmEvents: [],
    calls: {
      'swarm.cancel': () => {
        cancel()
        return swarm('canceled')
      }
    }
  })
  const events = swarmEvents('canceled')
  fake.watch = async function* () {
    yield events[0]
    await canceled
    yield events.slice(-1)[0]
  }
  let sent = false
  const ran = await run([...RUN], {
    onStderr: (text, kill) => {
      if (sent || !text.includes('swarm swarm_fake')) return
      sent = true
      kill('SIGINT')
    }
  })
  t.is(ran.code, 130)
  t.ok(ran.stderr.includes('canceling the swarm; Ctrl-C again quits'))
  t.ok(ran.stdout.includes('canceled'))
})

test('a second Ctrl-C quits without waiting', async (t: Assert) => {
  const { run, fake } = await fakeHome(t, { swarmEvents: [], calls: { 'swarm.cancel': () => new Promise(() => {}) } })
  fake.watch = async function* () {
    yield swarmEvents()[0]
    await new Promise(() => {})
  }
  const sent = new Set<string>()
  const ran = await run([...RUN], {
    onStderr: (text, kill) => {
      for (const cue of ['swarm swarm_fake', 'Ctrl-C again']) {
        if (text.includes(cue) && !sent.has(cue)) {
          sent.add(cue)
          kill('SIGINT')
        }
      }
    }
  })
  t.is(ran.code, 130)
  t.is(sent.size, 2)
})

test('the cancellation of a swarm that no node here can cancel reports its effect', async (t: Assert) => {
  const coordination = { coordinator: null, epoch: 3, participants: ['laptop', 'gpu-box'] }
  const wished = { ...swarm('stalled'), willBeCanceled: true, coordination } as const
  const { run, fake } = await fakeHome(t, {
    swarms: [wished],
    swarmEvents: [],
    calls: { 'swarm.cancel': () => wished }
  })
  const text = 'it will be canceled when a majority is back'
  const ran = await run(['swarm', 'cancel', 'swarm_fake'])
  t.alike([ran.code, ran.stdout], [0, `swarm swarm_fake is stalled: ${text}\n`])
  t.is(
    (JSON.parse((await run(['swarm', 'cancel', 'swarm_fake', '--json'])).stdout) as typeof wished).willBeCanceled,
    true
  )
  t.ok((await run(['swarm', 'show', 'swarm_fake'])).stdout.includes(text))
  let go: () => void = () => {}
  const told = new Promise<void>((resolve) => (go = resolve))
  const events = swarmEvents('canceled')
  fake.watch = async function* () {
    yield events[0]
    await told
    yield events.slice(-1)[0]
  }
  let sent = false
  const stopped = await run([...RUN], {
    onStderr: (line, kill) => {
      if (line.includes(text)) go()
      if (sent || !line.includes('swarm swarm_fake')) return
      sent = true
      kill('SIGINT')
    }
  })
  t.is(stopped.code, 130)
  t.ok(stopped.stderr.includes(text))
})

test('swarm ls, show, results and cancel', async (t: Assert) => {
  const { run } = await fakeHome(t, { swarms: [swarm()] })
  t.ok((await run(['swarm', 'ls'])).stdout.includes('swarm_fake  completed  2/2'))
  t.ok((await run(['swarm', 'show', 'swarm_fake'])).stdout.includes('capability  text.stats, strategy map'))
  t.is((await run(['swarm', 'cancel', 'swarm_fake'])).stdout, 'swarm swarm_fake is canceled\n')
  const results = JSON.parse((await run(['swarm', 'results', 'swarm_fake', '--json'])).stdout) as Record<
    string,
    unknown
  >
  t.alike(results, { schema: 'a2a-node/swarm-results@1', id: 'swarm_fake', status: 'completed', results: [] })
  t.is((await run(['swarm', 'show', 'other'])).code, 4)
})

test('items of which nobody knows whether they were done are shown as unknown, not as failed', async (t: Assert) => {
  const counts = { total: 4, completed: 1, failed: 3, unknown: 2 }
  const events = swarmEvents('partial').map((event): SwarmEvent => {
    if (event.type === 'done') return { ...event, counts }
    return event.type === 'item' && event.item === 'b.txt' ? { ...event, status: 'unknown' } : event
  })
  const { run } = await fakeHome(t, { swarmEvents: events, swarms: [{ ...swarm('partial'), counts }] })
  t.ok((await run(['swarm', 'show', 'swarm_fake'])).stdout.includes('1 of 4 done, 1 failed, 2 unknown, 0 running'))
  const watched = (await run(['swarm', 'watch', 'swarm_fake'])).stdout
  t.ok(watched.includes('1 of 4 items done, 1 failed, 2 unknown'), watched)
  t.ok(/NODE +AGENT +DONE +FAILED +UNKNOWN +REQUEUED/.test(watched), watched)
  t.ok(/laptop +text +1 +- +1 +-/.test(watched), watched)
})

test('{goal}, {round} and {check} are filled in the input of every strategy', async (t: Assert) => {
  const { run, fake } = await fakeHome(t, { swarmEvents: swarmEvents(), swarms: [swarm()] })
  const base = [
    'swarm',
    'run',
    'a letter',
    '--input',
    '{"about":"{goal}","n":"{round}","said":"<{check}>"}',
    '--capability',
    'text.stats'
  ]
  const filled = { about: 'a letter', n: 1, said: '<>' }
  const asked = (): SwarmRequest | undefined =>
    fake.seen.findLast(({ name }) => name === 'swarm.start')?.params as SwarmRequest | undefined
  for (const more of [[], ['--strategy', 'race'], ['--strategy', 'pipeline'], ['--capability', 'text.other']]) {
    await run([...base, ...more])
    t.alike(asked()?.input, filled, more.join(' '))
  }
  await run([...base, '--items', '-'], { stdin: 'a.txt\nb.txt\n' })
  t.alike(asked()?.items?.[0], { item: 'a.txt', input: filled })
})

test('running items are not shown where they are not known', async (t: Assert) => {
  const { run } = await fakeHome(t, { swarms: [{ ...swarm('running'), running: null, waitingForApproval: null }] })
  const { stdout } = await run(['swarm', 'show', 'swarm_fake'])
  t.ok(/items +\d+ of \d+ done(?:, \d+ failed)?\n/.test(stdout), stdout)
})

test('an agent that came later and did some items is not among those left out', async (t: Assert) => {
  const late = { agent: 'text@laptop', rule: 'offline' }
  const events = swarmEvents().map(
    (event): SwarmEvent => (event.type === 'swarm' ? { ...event, leftOut: [...event.leftOut, late] } : event)
  )
  const { run } = await fakeHome(t, { swarmEvents: events, swarms: [swarm()] })
  const { stdout } = await run(['swarm', 'watch', 'swarm_fake'])
  t.ok(stdout.includes('left out\n  text@phone'), stdout)
  t.absent(stdout.includes('text@laptop  offline'))
})

test('the key and the permission to repeat are sent; work that may have been done is shown as unknown, and not suggested again', async (t: Assert) => {
  const events = swarmEvents('partial').map((event): SwarmEvent => {
    if (event.type !== 'item' || event.status !== 'failed') return event
    return { ...event, status: 'unknown', error: new NodeError('DELIVERY_FAILED', 'nobody can say').toBody() }
  })
  const { run, fake } = await fakeHome(t, { swarmEvents: events, swarms: [swarm()] })
  const ran = await run([...RUN, '--items', '-', '--idempotency-key', 'k', '--allow-repeat'], {
    stdin: 'a.txt\nb.txt\n'
  })
  const asked = fake.seen[0]?.params as SwarmRequest | undefined
  t.alike([asked?.idempotencyKey, asked?.allowRepeat], ['k', true])
  t.is(ran.code, 8)
  t.ok(ran.stdout.includes('unknown  b.txt  nobody can say  [DELIVERY_FAILED]'), ran.stdout)
  t.absent(ran.stdout.includes('printf'))
  t.absent((await run([...RUN, '--items', '-'], { stdin: 'a.txt\nb.txt\n' })).stdout.includes('printf'))
})

test('a swarm that nobody coordinates is followed until its time is over, then the command says so', async (t: Assert) => {
  const { fake, run } = await fakeHome(t, { swarms: [swarm('stalled')] })
  let isLeft = false
  fake.watch = async function* (_name, _params, options) {
    yield { type: 'status', status: 'stalled', reason: 'no majority' } as never
    await new Promise<void>((resolve) =>
      (options as { signal?: AbortSignal }).signal?.addEventListener('abort', () => resolve())
    )
    isLeft = true
  }
  const ran = await run(['swarm', 'watch', 'swarm_fake'])
  t.is(ran.code, 6)
  t.ok(ran.stderr.includes('it has no coordinator'), ran.stderr)
  t.ok(isLeft)
})
