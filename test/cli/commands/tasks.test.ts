import test, { type Assert } from 'brittle'
import { NodeError } from '../../../src/kit/errors.js'
import type { TaskEventInfo } from '../../../src/ports/task-api.js'
import { fakeHome, run } from '../command-line.js'
import { task } from '../samples.js'

const at = '2026-01-02T03:04:05.000Z'

test('tasks show gives the commands that follow from an unknown outcome whole, however long they are', async (t: Assert) => {
  const again = `a2a-node call text@b text.send '{"to":"${'x'.repeat(300)}"}' --allow-repeat`
  const error = {
    ...new NodeError('TIMEOUT', 'nobody can say', { next: ['a2a-node tasks', again] }).toBody(),
    retryable: false
  }
  const shown = task('task_abcd', { state: 'unknown', result: null, error })
  const { home } = await fakeHome(t, { calls: { 'tasks.show': () => ({ ...shown, events: [] }) } })
  const { stdout } = await run(['tasks', 'show', 'task_abcd', '--home', home])
  t.ok(stdout.includes(`  try: ${again.replace('a2a-node', `a2a-node --home ${home}`)}\n`), stdout)
  const json = JSON.parse((await run(['tasks', 'show', 'task_abcd', '--home', home, '--json'])).stdout) as {
    error: { retryable: boolean }
  }
  t.is(json.error.retryable, false)
})

test('tasks show describes the progress in words, and the next step after the end', async (t: Assert) => {
  const error = new NodeError('INVALID_INPUT', 'it does not fit', {
    next: ['a2a-node agents show text@b', 'a2a-node tasks']
  }).toBody()
  const events: TaskEventInfo[] = [
    { generation: 1, at, type: 'state', state: 'submitted' },
    { generation: 2, at, type: 'state', state: 'submitted', waitingFor: 'peer' },
    { generation: 3, at, type: 'state', state: 'submitted', waitingFor: 'slot' },
    { generation: 4, at, type: 'state', state: 'submitted', waitingFor: 'approval' },
    { generation: 5, at, type: 'attempt', attempt: 2 },
    { generation: 6, at, type: 'progress', data: { done: '\u001b[31m5' } },
    { generation: 7, at, type: 'result', result: { secret: 1 } },
    { generation: 8, at, type: 'error', error, state: 'rejected' },
    { generation: 9, at, type: 'error', error }
  ]
  const shown = task('task_abcd', { state: 'failed', result: null, error })
  const { home } = await fakeHome(t, { calls: { 'tasks.show': () => ({ ...shown, events }) } })
  const { stdout } = await run(['tasks', 'show', 'task_abcd', '--home', home])
  const [facts = '', told = ''] = stdout.split('what happened\n')
  t.ok(facts.endsWith(`  try: a2a-node --home ${home} agents show text@b\n`), 'the general step says nothing new')
  t.alike(
    told
      .trimEnd()
      .split('\n')
      .map((line) => line.slice(28)),
    [
      'submitted',
      'submitted, waiting for the other node',
      'submitted, waiting for a free slot',
      'submitted, waiting for approval',
      'attempt 2',
      'progress: {"done":"\\u001b[31m5"}',
      'completed',
      'rejected: it does not fit  [INVALID_INPUT]',
      'failed: it does not fit  [INVALID_INPUT]'
    ]
  )
  const json = JSON.parse((await run(['tasks', 'show', 'task_abcd', '--home', home, '--json'])).stdout) as {
    events: { error?: unknown }[]
  }
  t.alike(json.events.at(-1)?.error, {
    ...error,
    next: [`a2a-node --home ${home} agents show text@b`, `a2a-node --home ${home} tasks`]
  })
  t.is(json.events.length, events.length)
})

test('tasks --context shows a conversation with sanitized texts, and takes no option of the list', async (t: Assert) => {
  const turn = { at, agent: 'text@b', taskId: 'task_abcd', state: 'completed' } as const
  const turns = [
    { ...turn, role: 'user', caller: 'token tok_1', text: 'hi\nthere' },
    { ...turn, role: 'agent', caller: 'token tok_1', text: 'a\u001b[31mb', taskId: null, state: null }
  ] as const
  const found = { id: 'ctx_abcd', turns, more: true }
  const { home } = await fakeHome(t, { calls: { 'context.show': () => found } })
  for (const command of [['tasks'], ['tasks', 'ls']]) {
    const { code, stdout } = await run([...command, '--context', 'ctx_ab', '--home', home])
    const lines = stdout.trimEnd().split('\n')
    t.alike(
      [code, lines.length, lines[0], lines[1]],
      [0, 7, 'context ctx_abcd', 'older messages, or some in between, are left out']
    )
    t.ok(lines[2]?.endsWith('  token tok_1 to text@b  task_abcd completed'), lines[2])
    t.alike([lines[3], lines[4]], ['  hi', '  there'])
    t.ok(lines[5]?.endsWith('  text@b'), lines[5])
    t.absent(stdout.includes('\u001b'))
  }
  const json = JSON.parse((await run(['tasks', '--context', 'ctx_ab', '--home', home, '--json'])).stdout) as object
  t.alike(json, { schema: 'a2a-node/context@1', ...found })
  t.is((await run(['tasks', '--context', 'ctx_ab', '--all', '--home', home])).code, 2)
})
