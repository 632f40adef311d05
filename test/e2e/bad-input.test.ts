import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import { localMesh, testMesh, untilTrue, type CommandResult } from '../support/nodes.js'

/** The code of an error under --json. */
function codeOf(result: CommandResult): string {
  // A request that was refused is a reply on stdout; everything else is an error on stderr.
  if (result.stdout.startsWith('{')) return (JSON.parse(result.stdout) as { error: { code: string } }).error.code
  const line =
    result.stderr
      .trim()
      .split('\n')
      .find((one) => one.startsWith('{"error"')) ?? '{}'
  return (JSON.parse(line) as { error?: { code: string; next: string[] } }).error?.code ?? `none in: ${result.stderr}`
}

test('wrong words on the command line: usage, and nothing starts', async (t) => {
  const mesh = await localMesh(t)
  const home = path.join(await mesh.dir(), 'h')
  for (const args of [
    ['peeers'],
    ['start', '--no-such-flag'],
    ['ping'],
    ['invite', '--tier', 'L9'],
    ['swarm', 'run', 'goal'],
    ['start', '--network', 'moon']
  ]) {
    const result = await mesh.run(['--home', home, ...args])
    t.is(result.code, 2, args.join(' '))
    t.ok(/error:.+\[USAGE\]/s.test(result.stderr), 'it says what is wrong')
  }
  t.ok(/peers/.test((await mesh.run(['--home', home, 'peeers'])).stderr), 'and the suggestion')
  await t.exception(fs.stat(home), /ENOENT/, 'no home was made')
})

test('without a node every other command says so, exit 3, with the next step', async (t) => {
  const mesh = await localMesh(t)
  const home = path.join(await mesh.dir(), 'h')
  for (const args of [['peers'], ['agents'], ['status'], ['invite'], ['send', 'x', 'y'], ['swarm', 'ls'], ['tasks']]) {
    const result = await mesh.run(['--home', home, ...args, '--json'])
    t.is(result.code, 3, args.join(' '))
    t.is(codeOf(result), 'NODE_NOT_RUNNING')
  }
})

test('unknown peers, agents, capabilities, tasks and swarms; a wrong input', async (t) => {
  const mesh = await localMesh(t)
  const a = await mesh.start('a')
  const cases: [string[], number, string][] = [
    [['ping', 'nobody'], 4, 'PEER_NOT_FOUND'],
    [['peers', 'show', 'nobody'], 4, 'PEER_NOT_FOUND'],
    [['send', 'nobody', 'hi'], 4, 'AGENT_NOT_FOUND'],
    [['call', 'text@nobody', 'text.stats', '{}'], 4, 'AGENT_NOT_FOUND'],
    [['call', 'text', 'no.such', '{}'], 4, 'CAPABILITY_NOT_FOUND'],
    [['call', '-', 'no.such', '{}'], 4, 'CAPABILITY_NOT_FOUND'],
    [['tasks', 'show', 'task_none'], 4, 'TASK_NOT_FOUND'],
    [['swarm', 'show', 'swarm_none'], 4, 'SWARM_NOT_FOUND'],
    [['invite', 'revoke', 'none'], 4, 'INVITE_NOT_FOUND'],
    [['call', 'text', 'text.stats', '{"txt":1}'], 2, 'INVALID_INPUT'],
    [['call', 'text', 'text.stats', 'not json'], 2, 'USAGE'],
    [['swarm', 'run', 'x', '--capability', 'text.stats', '--items', '/no/such/*.file'], 2, 'USAGE']
  ]
  for (const [args, exit, code] of cases) {
    const result = await a.cli([...args, '--json'])
    t.is(result.code, exit, args.join(' '))
    t.is(codeOf(result), code)
  }
  const near = await a.cli(['send', 'txt', 'hi'])
  t.ok(/did you mean text@a/.test(near.stderr), 'the nearest agent is named')
})

test('a broken agent file is reported with its line, the last good version stays, and a repair takes effect', async (t) => {
  const mesh = await localMesh(t)
  const dir = path.join(await mesh.dir(), 'agents')
  await fs.mkdir(dir)
  const file = path.join(dir, 'echo.md')
  const good = (word: string): string =>
    `---\nname: echo\ndescription: Says it.\na2a:\n  capabilities:\n    - id: echo.say\n      description: Says ${word}\n      input: { type: object }\n  runtime: { type: command, command: [node, -p, "JSON.stringify('${word}')"] }\n---\n`
  await fs.writeFile(file, good('one'))
  const a = await mesh.start('a', { args: ['--agents', dir] })
  const say = async (): Promise<unknown> =>
    (await a.json<{ payload: unknown }>(['call', 'echo', 'echo.say', '{}'])).payload
  t.is(await say(), 'one')

  await fs.writeFile(file, good('two').replace('  runtime:', '  runtimes:'))
  await untilTrue(async () => (await a.api.call('node.status', {})).problems.length > 0, 'the fault is noticed')
  const { problems } = await a.api.call('node.status', {})
  t.is(problems[0]?.code, 'AGENT_FILE_INVALID')
  t.ok(
    problems.some((one) => one.message.includes('echo.md:9')),
    problems[0]?.message
  )
  t.is(await say(), 'one', 'the last good version stays')
  const check = await mesh.run(['agents', 'check', file])
  t.is(check.code, 78)
  t.ok(/:9/.test(check.stdout + check.stderr) && /runtimes/.test(check.stdout + check.stderr), 'line and reason')

  await fs.writeFile(file, good('three'))
  await untilTrue(async () => (await a.api.call('node.status', {})).problems.length === 0, 'it is mended')
  t.is(await say(), 'three')
})

test('a second start on one home prints the node that runs; --join on a home in a mesh is refused', async (t) => {
  const mesh = await testMesh(t, { commandsHere: true })
  const a = await mesh.start('a')
  const again = await mesh.run(['--home', a.home, 'start', '--json'])
  t.is(again.code, 0)
  t.is((JSON.parse(again.stdout) as { pid: number }).pid, a.info.pid)
  const other = await mesh.start('other')
  const { code } = await other.api.call('invite.create', { trust: 'mine' })
  const join = await mesh.run(['--home', a.home, 'start', '--json', '--join', code])
  t.is(join.code, 9)
  t.is(codeOf(join), 'ALREADY_IN_MESH')
  await a.stop()
  const stopped = await mesh.run(['--home', a.home, 'start', '--json', '--join', code])
  t.is(stopped.code, 9, 'also when it does not run')
  t.is(codeOf(stopped), 'ALREADY_IN_MESH')
})

test('a home whose node hangs is exit 9, not a second node', async (t) => {
  const mesh = await testMesh(t, { commandsHere: true })
  const a = await mesh.start('a')
  a.kill('SIGSTOP')
  const second = await mesh.run(['--home', a.home, 'start', '--json'])
  a.kill('SIGCONT')
  t.is(second.code, 9)
  t.is(codeOf(second), 'ALREADY_RUNNING')
})

test('a path that is too long, or not writable, is reported and leaves nothing behind', async (t) => {
  const mesh = await localMesh(t)
  const dir = await mesh.dir()
  const long = await mesh.run(['--home', path.join(dir, 'x'.repeat(90)), 'start', '--json'], {
    env: {
      XDG_RUNTIME_DIR: path.join(dir, 'y'.repeat(120)),
      TMPDIR: path.join(dir, 'z'.repeat(120)),
      XDG_CACHE_HOME: path.join(dir, 'c'.repeat(120))
    }
  })
  t.is(long.code, 78)
  t.is(codeOf(long), 'PATH_TOO_LONG')
  const file = path.join(dir, 'file')
  await fs.writeFile(file, '')
  const under = await mesh.run(['--home', path.join(file, 'home'), 'start', '--json'])
  t.is(under.code, 78, under.stderr)
  t.alike((await fs.readdir(dir)).toSorted(), ['file'])
})

test('a bootstrap port in use is reported', async (t) => {
  const mesh = await testMesh(t, { commandsHere: true })
  await mesh.start('a')
  const home = path.join(await mesh.dir(), 'h')
  const result = await mesh.run([
    '--home',
    home,
    'start',
    '--json',
    '--network',
    'private',
    '--serve-bootstrap',
    `127.0.0.1:${mesh.port}`
  ])
  t.is(result.code, 9, result.stderr)
  t.is(codeOf(result), 'PORT_IN_USE')
})
