import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { tempDir } from '../support/tmp.js'
import { NodeError } from '../../src/kit/errors.js'
import { fakeHome, run } from './command-line.js'
import { swarm, swarmEvents, task } from './samples.js'

test('suggestions name the home that was typed, also when the command line was not understood', async (t: Assert) => {
  const home = await tempDir(t)
  for (const args of [
    ['--home', home, 'peers'],
    ['peers', `--home=${home}`]
  ]) {
    const { stderr } = await run(args)
    t.ok(stderr.includes(`  try: a2a-node --home ${home} start\n`), stderr)
  }
  const wrong = await run(['--home', home, 'peers', '--frob', '--json'])
  t.alike((JSON.parse(wrong.stderr) as { error: { next: string[] } }).error.next, [
    `a2a-node --home ${home} peers --help`
  ])
})

test('a problem of the node is reported with a command for its home', async (t: Assert) => {
  const { home } = await fakeHome(t, {
    status: { problems: [{ code: 'NO_ADMIN_ONLINE', message: 'no admin', next: 'a2a-node peers' }] }
  })
  t.ok((await run(['status', '--home', home])).stdout.includes(`  try: a2a-node --home ${home} peers\n`))
  const json = JSON.parse((await run(['status', '--json', '--home', home])).stdout) as { problems: { next: string }[] }
  t.is(json.problems[0]?.next, `a2a-node --home ${home} peers`)
})

test('an agent that fails under agents run --json is an error on stderr and nothing on stdout', async (t: Assert) => {
  const home = await tempDir(t)
  const file = path.join(home, 'broken.md')
  const runtime = "runtime: { type: command, command: [node, -e, 'process.exit(3)'] }"
  const capability = 'capabilities: [{ id: break.it, description: Breaks., input: { type: object } }]'
  await writeFile(
    file,
    `---\nname: broken\ndescription: Breaks.\na2a:\n  version: 0.1.0\n  ${capability}\n  ${runtime}\n---\n`
  )
  const ran = await run(['agents', 'run', file, '{}', '--json'], { home })
  t.is(ran.code, 1)
  t.is(ran.stdout, '')
  const { error } = JSON.parse(ran.stderr) as { error: { code: string; retryable: boolean; next: string[] } }
  t.is(error.code, 'TASK_FAILED')
  t.is(error.retryable, false)
  t.alike(error.next, [`a2a-node agents check ${file}`])
})

test('where a justification is missing, the suggestion is the command as it was typed, with one', async (t: Assert) => {
  const refuse = (): never => {
    throw new NodeError('ESCALATION_REQUIRED', 'the justification is missing')
  }
  const { run: cli } = await fakeHome(t, {
    calls: { 'message.send': refuse, 'message.call': refuse, 'swarm.start': refuse }
  })
  const cases: [string[], string][] = [
    [['send', 'text@b', "it's"], `a2a-node send text@b 'it'\\''s' --justification '<why>'`],
    [['call', '-', 'text.stats', '{}'], `a2a-node call - text.stats '{}' --justification '<why>'`],
    [['swarm', 'run', 'count', '--capability', 'c'], `a2a-node swarm run count --capability c --justification '<why>'`],
    [['send', '--', 'text@b', '-v'], `a2a-node send --justification '<why>' -- text@b -v`]
  ]
  for (const [args, expected] of cases) {
    const text = await cli(args)
    t.is(text.code, 5)
    t.ok(text.stderr.endsWith(`[ESCALATION_REQUIRED]\n  try: ${expected}\n`), text.stderr)
  }
  const json = await cli(['call', '-', 'text.stats', '{}', '--json'])
  t.alike((JSON.parse(json.stderr) as { error: { next: string[] } }).error.next, [
    `a2a-node call - text.stats '{}' --json --justification '<why>'`
  ])
  t.absent((await cli(['send', 'a', 'b', '--justification', 'x'])).stderr.includes('--justification x --justification'))
})

test('every command that is shown is for the home that was typed, in text and JSON; of a swarm JSON is what every node has', async (t: Assert) => {
  const error = new NodeError('INVALID_INPUT', 'it does not fit', { next: ['a2a-node agents show text@b'] }).toBody()
  const events = swarmEvents('partial').map((event) =>
    event.type === 'item' && event.status === 'failed' ? { ...event, error } : event
  )
  const row = {
    item: 'b.txt',
    agent: 'text@b',
    attempt: 1,
    status: 'failed',
    result: null,
    error,
    durationMs: 1
  } as const
  const told = {
    at: '2026-01-02T03:04:05.000Z',
    type: 'approval',
    message: 'a message waits for approval: a2a-node approvals ls',
    data: {}
  }
  const { home } = await fakeHome(t, {
    swarms: [swarm('partial')],
    swarmEvents: events,
    tasks: [task('task_abcd', { state: 'failed', error })],
    events: [told],
    calls: { 'swarm.results': () => ({ id: 'swarm_fake', status: 'partial', results: [row] }) }
  })
  const shown = async (...args: string[]): Promise<string> => (await run([...args, '--home', home])).stdout
  t.ok(
    (await shown('swarm', 'run', 'g', '--capability', 'c')).includes(
      `results: a2a-node --home ${home} swarm results swarm_fake\n`
    )
  )
  t.ok((await shown('start')).includes(`(code: a2a-node --home ${home} invite)`))
  const json = JSON.parse(await shown('events', '--json')) as { message: string }
  t.ok(json.message.endsWith(`: a2a-node --home ${home} approvals ls`), json.message)
  t.ok((await shown('events')).includes(`: a2a-node --home ${home} approvals ls\n`))
  const expected = JSON.stringify([`a2a-node --home ${home} agents show text@b`])
  const kept = JSON.stringify(error.next)
  for (const [args, next] of [
    ['swarm results swarm_fake', kept],
    ['swarm run g --capability c', kept],
    ['tasks show task_abcd', expected],
    ['tasks', expected]
  ] as const) {
    t.ok((await shown(...args.split(' '), '--json')).includes(`"next":${next}`), args)
  }
})

test('doc access of a name that is no document names --create, and only where it says who may', async (t: Assert) => {
  const missing = (): never => {
    throw new NodeError('DOCUMENT_NOT_FOUND', 'no document "nope"')
  }
  const { run: cli } = await fakeHome(t, { calls: { 'documents.show': missing } })
  const changed = await cli(['doc', 'access', 'nope', '--write', 'L1'])
  t.is(changed.code, 4)
  t.ok(changed.stderr.includes('  try: a2a-node doc access nope --write L1 --create\n'), changed.stderr)
  t.absent((await cli(['doc', 'access', 'nope'])).stderr.includes('--create'))
})

test('the next step after the error of a whole swarm is printed when it ends, and by swarm show', async (t: Assert) => {
  const error = new NodeError('TASK_FAILED', 'vote: no majority', {
    next: ['a2a-node swarm results swarm_fake']
  }).toBody()
  const swarmEventsOf = swarmEvents().map((event) =>
    event.type === 'done' ? { ...event, status: 'failed' as const, error } : event
  )
  const { home } = await fakeHome(t, { swarmEvents: swarmEventsOf, swarms: [{ ...swarm('failed'), error }] })
  for (const args of [
    ['swarm', 'run', 'g', '--capability', 'c'],
    ['swarm', 'watch', 'swarm_fake'],
    ['swarm', 'show', 'swarm_fake']
  ]) {
    const { stdout } = await run([...args, '--home', home])
    t.ok(stdout.includes(`  try: a2a-node --home ${home} swarm results swarm_fake\n`), stdout)
  }
})
