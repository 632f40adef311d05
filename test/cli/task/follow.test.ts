import test, { type Assert } from 'brittle'
import { NodeError } from '../../../src/kit/errors.js'
import type { TaskEventInfo, TaskInfo } from '../../../src/ports/task-api.js'
import { fakeHome, type FakeHome } from '../command-line.js'
import { task } from '../samples.js'

const at = '2026-01-02T03:04:05.000Z'
const EVENTS: readonly TaskEventInfo[] = [
  { generation: 1, at, type: 'state', state: 'submitted' },
  { generation: 2, at, type: 'state', state: 'working' },
  { generation: 3, at, type: 'progress', data: { message: 'half' } },
  { generation: 4, at, type: 'result', result: { words: 2 } }
]

/** A home with one task, which has one more event at each look, and ends as given. */
async function changing(t: Assert, end: Partial<TaskInfo>): Promise<FakeHome> {
  let looks = 0
  const home = await fakeHome(t, {
    calls: {
      'tasks.show': ({ id }) => {
        if (id !== 'task_a' && id !== 'task_abcd') throw new NodeError('TASK_NOT_FOUND', `no task "${id}" on this node`)
        const events = EVENTS.slice(0, Math.min(EVENTS.length, 1 + looks++))
        const isOver = events.length === EVENTS.length
        return { ...task('task_abcd', isOver ? end : { state: 'working', result: null, error: null }), events }
      }
    }
  })
  home.fake.watch = async function* (name: string) {
    if (name !== 'tasks.list') throw new Error(name)
    for (let n = 0; n < EVENTS.length; n++) yield { tasks: [], more: 0 }
  }
  return home
}

const COMPLETED = { state: 'completed', result: { words: 2 }, error: null } as const

test('tasks watch prints each event once, then the result, and exits 0', async (t: Assert) => {
  const { run } = await changing(t, COMPLETED)
  const { code, stdout } = await run(['tasks', 'watch', 'task_a'])
  t.is(code, 0)
  const [events, result] = [stdout.split('\n').slice(0, 4), stdout.split('\n').slice(4).join('\n')]
  t.alike(
    events.map((line) => line.slice(28)),
    ['submitted', 'working', 'progress: {"message":"half"}', 'completed']
  )
  t.alike(JSON.parse(result), { words: 2 })
})

test('tasks watch --json prints a line for each event, and last the task', async (t: Assert) => {
  const { run } = await changing(t, COMPLETED)
  const { code, stdout } = await run(['tasks', 'watch', 'task_a', '--json'])
  t.is(code, 0)
  const lines = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
  t.alike(lines.slice(0, -1), [...EVENTS])
  t.alike([lines.at(-1)?.['schema'], lines.at(-1)?.['state']], ['a2a-node/task@1', 'completed'])
})

test('tasks wait prints the result alone, as call does', async (t: Assert) => {
  const { run } = await changing(t, COMPLETED)
  const { code, stdout, stderr } = await run(['tasks', 'wait', 'task_a'])
  t.alike([code, stdout, stderr], [0, '{\n  "words": 2\n}\n', ''])
  const text = await changing(t, { ...COMPLETED, result: 'plain' })
  t.is((await text.run(['tasks', 'wait', 'task_a'])).stdout, 'plain\n')
})

test('tasks watch and wait exit with the code of the outcome', async (t: Assert) => {
  const ends = [
    ['failed', 'TASK_FAILED', 1],
    ['failed', 'TIER_VIOLATION', 5],
    ['failed', 'TIMEOUT', 6],
    ['failed', 'PEER_OFFLINE', 7],
    ['rejected', 'POLICY_DENIED', 5],
    ['canceled', 'CANCELED', 1],
    ['unknown', 'TIMEOUT', 6],
    ['failed', null, 1],
    ['unknown', null, 6]
  ] as const
  for (const [state, errorCode, code] of ends) {
    const error = errorCode === null ? null : new NodeError(errorCode, 'because').toBody()
    for (const verb of ['watch', 'wait']) {
      const { run, close } = await changing(t, { state, result: null, error })
      const text = await run(['tasks', verb, 'task_a'])
      t.is(text.code, code, `${verb} ${state} ${errorCode}`)
      t.ok(text.stderr.startsWith('error: '), text.stderr)
      await close()
    }
  }
})

test('an unknown id is exit 4, and a wrong time exit 2', async (t: Assert) => {
  const { run } = await changing(t, COMPLETED)
  for (const verb of ['watch', 'wait']) {
    const none = await run(['tasks', verb, 'nothing'])
    t.is(none.code, 4)
    t.ok(none.stderr.includes('TASK_NOT_FOUND'), none.stderr)
    t.is((await run(['tasks', verb, 'task_a', '--timeout', 'soon'])).code, 2)
    t.is((await run(['tasks', verb])).code, 2)
  }
})

/** A home whose task never ends. */
async function endless(t: Assert): Promise<FakeHome> {
  const home = await fakeHome(t, { tasks: [task('task_abcd', { state: 'working', result: null, error: null })] })
  return home
}

test('a task that does not end in time is exit 6: the task runs on, and the next steps name it', async (t: Assert) => {
  const { run, fake } = await endless(t)
  const { code, stderr } = await run(['tasks', 'wait', 'task_abcd', '--timeout', '300ms'])
  t.is(code, 6)
  t.ok(stderr.includes('it runs on  [TIMEOUT]') && stderr.includes('try: a2a-node tasks show task_abcd'), stderr)
  t.ok(stderr.includes('tasks wait task_abcd --timeout 600ms'), stderr)
  t.absent(fake.seen.some(({ name }) => name === 'tasks.cancel'))
})

test('Ctrl-C ends the command with 130, and the task runs on', async (t: Assert) => {
  const working = task('task_abcd', { state: 'working', result: null, error: null })
  const { run, fake } = await fakeHome(t, {
    calls: { 'tasks.show': () => ({ ...working, events: [{ generation: 1, at, type: 'state', state: 'working' }] }) }
  })
  let sent = false
  const ran = await run(['tasks', 'watch', 'task_abcd'], {
    onStdout: (text, kill) => {
      if (sent || !text.includes('working')) return
      sent = true
      kill('SIGINT')
    }
  })
  t.is(ran.code, 130)
  t.ok(/the task runs on: a2a-node .*tasks cancel task_abcd cancels it\n$/.test(ran.stderr), ran.stderr)
  t.absent(fake.seen.some(({ name }) => name === 'tasks.cancel'))
})

test('a node that stops meanwhile is exit 3', async (t: Assert) => {
  const { run, fake } = await endless(t)
  fake.watch = async function* () {
    yield { tasks: [], more: 0 }
  } as typeof fake.watch
  const { code, stderr } = await run(['tasks', 'wait', 'task_abcd'])
  t.is(code, 3)
  t.ok(stderr.includes('the node stopped before task task_abcd ended'), stderr)
})
