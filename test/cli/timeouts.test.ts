import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { NodeError } from '../../src/kit/errors.js'
import { longerStep, timeoutSteps } from '../../src/cli/timeouts.js'
import { tempDir } from '../support/tmp.js'
import { type FakeHome, fakeHome, run } from './command-line.js'

const LATE = {
  requestId: 'req_1',
  correlationId: 'req_1',
  agent: 'text@gpu-box',
  taskId: 'task_1',
  payload: null,
  latencyMs: 1,
  outcome: 'UNKNOWN',
  error: new NodeError('TIMEOUT', 'no answer within 30 s; the work may still run', {
    data: { timeoutMs: 30_000 }
  }).toBody()
} as const

const SHOWN = ['a2a-node tasks show task_1', 'a2a-node tasks cancel task_1']

function failing(error: NodeError): () => never {
  return () => {
    throw error
  }
}

/** The steps of a command that fails; checks that it exits as timed out. */
async function stepsOf(t: Assert, { run: cli }: Pick<FakeHome, 'run'>, args: readonly string[]): Promise<string[]> {
  const { code, stderr } = await cli(args)
  t.is(code, 6, stderr)
  return stderr.split('\n').flatMap((line) => (line.startsWith('  try: ') ? [line.slice('  try: '.length)] : []))
}

test('a command that timed out names the work that still runs and its option for more time', async (t: Assert) => {
  const home = await fakeHome(t, { calls: { 'message.call': () => LATE, 'message.send': () => LATE } })
  const cases: [string[], string][] = [
    [['call', 'text', 'text.stats', '{}'], "a2a-node call text text.stats '{}' --timeout 1m"],
    [['send', 'text', 'hi', '--timeout', '45s'], 'a2a-node send text hi --timeout 90s'],
    [['call', '-', 'text.stats', '{}', '--timeout=90s'], "a2a-node call - text.stats '{}' --timeout 3m"]
  ]
  for (const [args, longer] of cases) t.alike(await stepsOf(t, home, args), [...SHOWN, longer])
  const unnamed = await fakeHome(t, { calls: { 'message.call': () => ({ ...LATE, error: null }) } })
  t.alike(await stepsOf(t, unnamed, ['call', 'text', 'text.stats', '{}', '--timeout', '90s']), [
    ...SHOWN,
    "a2a-node call text text.stats '{}' --timeout 3m"
  ])
})

test('a longer time is twice the time, in the largest unit that is exact, at most 30 days', (t: Assert) => {
  const cases: [number | undefined, string][] = [
    [undefined, '1m'],
    [1, '2ms'],
    [750, '1500ms'],
    [45_000, '90s'],
    [12 * 3_600_000, '1d'],
    [29 * 86_400_000, '30d']
  ]
  for (const [givenMs, text] of cases) t.is(longerStep({ name: '--timeout', givenMs }, 30_000), `--timeout ${text}`)
})

test('a time of the caller is named only where it helps', (t: Assert) => {
  const option = { name: '--timeout', givenMs: 1000 } as const
  const steps = (
    code: 'TIMEOUT' | 'PEER_OFFLINE' | 'TASK_FAILED',
    data?: object,
    outcome: 'FAILED' | 'UNKNOWN' = 'FAILED'
  ) => timeoutSteps({ ...LATE, outcome, error: new NodeError(code, 'late', { data }).toBody() }, option)
  t.alike(
    steps('TIMEOUT', { limitMs: 5 }),
    ['a2a-node agents show text@gpu-box', SHOWN[0] ?? ''],
    'the agent has a limit of its own'
  )
  t.alike(steps('TIMEOUT'), [SHOWN[0] ?? '', '--timeout 2s'], 'it ended, so nothing is to be canceled')
  t.alike(
    steps('PEER_OFFLINE', { timeoutMs: 4000 }),
    ['a2a-node peers', SHOWN[0] ?? '', '--timeout 2s'],
    'it waited for the peer'
  )
  const byDefault = timeoutSteps(LATE, { name: '--deadline', givenMs: undefined })
  t.alike(byDefault, [...SHOWN, '--deadline 1m'], 'twice the time that the node waited')
  const longestMs = 30 * 86_400_000
  t.ok(steps('PEER_OFFLINE', { timeoutMs: longestMs }) !== null)
  for (const timeoutMs of ['9s', -1, 0, 1.5, Number.NaN, 1e300, longestMs + 1])
    t.is(steps('PEER_OFFLINE', { timeoutMs }), null, 'bytes of a peer')
  t.is(steps('PEER_OFFLINE'), null)
  t.is(steps('TASK_FAILED', {}, 'UNKNOWN'), null)
})

test('a change that may still be made after a timeout is shown by the list of its command', async (t: Assert) => {
  const late = failing(new NodeError('TIMEOUT', 'late', { data: { outcome: 'unknown' }, next: ['a2a-node peers'] }))
  const home = await fakeHome(t, {
    calls: {
      'invite.create': late,
      'peers.revoke': late,
      'documents.list': late,
      'tools.refresh': late,
      'peers.ping': late,
      'mesh.set': late
    }
  })
  const cases: [string[], string[]][] = [
    [['invite'], ['a2a-node invite ls', 'a2a-node peers']],
    [['peers', 'revoke', 'x'], ['a2a-node peers']],
    [
      ['tools', 'refresh'],
      ['a2a-node tools ls', 'a2a-node peers']
    ],
    [
      ['mesh', 'reset'],
      ['a2a-node mesh show', 'a2a-node peers']
    ],
    [['doc', 'ls'], ['a2a-node peers']],
    [['ping', 'x'], ['a2a-node peers']]
  ]
  for (const [args, expected] of cases)
    t.alike(await stepsOf(t, home, args), [...expected, `a2a-node ${args.join(' ')} --timeout 30s`], args.join(' '))
})

test('a run of an agent file that takes too long names the limit in the file', async (t: Assert) => {
  const file = path.join(await tempDir(t), 'slow.md')
  const runtime = "runtime: { type: command, command: [node, -e, 'setTimeout(() => {}, 60000)'] }"
  const capability = 'capabilities: [{ id: a.b, description: Waits., input: { type: object } }]'
  const limits = 'limits: { timeout: 200ms }'
  await writeFile(
    file,
    `---\nname: slow\ndescription: Waits.\na2a:\n  version: 0.1.0\n  ${capability}\n  ${runtime}\n  ${limits}\n---\n`
  )
  const { code, stderr } = await run(['agents', 'run', file, '{}'], { home: path.dirname(file) })
  t.is(code, 6)
  t.ok(
    stderr.includes(`the time limit of the agent; its work was ended (a2a.limits.timeout of ${file})  [TIMEOUT]`),
    stderr
  )
})
