import { once } from 'node:events'
import { mkdir, open, readFile, stat, writeFile } from 'node:fs/promises'
import net from 'node:net'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { startControlServer } from '../../../src/adapters/control/server.js'
import { startAny } from '../../../src/cli/commands/start.js'
import { commandContext } from '../../../src/cli/context.js'
import { Output } from '../../../src/cli/terminal/output.js'
import type { RunningNode, StartOptions } from '../../../src/compose/compose.js'
import { A2AObservability } from '../../../src/node/observe/observability.js'
import { type ErrorCode, NodeError } from '../../../src/kit/errors.js'
import { FakeNodeApi } from '../../contracts/node-api-fake.js'
import { codeOf } from '../../contracts/node-api.js'
import { tempDir } from '../../support/tmp.js'
import { fakeHome, run } from '../command-line.js'

test('start prints the node that runs already and exits 0', async (t: Assert) => {
  const { run: cli } = await fakeHome(t, { pid: 4711 })
  for (const flags of [[], ['--detach']]) {
    const ran = await cli(['start', '--json', ...flags])
    t.is(ran.code, 0)
    const { schema, pid, node, mesh, http } = JSON.parse(ran.stdout) as Record<string, unknown>
    t.alike({ schema, pid, http }, { schema: 'a2a-node/start@1', pid: 4711, http: null })
    t.alike(node, { id: 'y'.repeat(52), name: 'laptop', tier: 'L0' })
    t.alike(mesh, { id: 'b'.repeat(52), name: 'home' })
  }
  const { stdout } = await cli(['start'])
  t.ok(stdout.startsWith('a2a-node 0.1.0   node laptop (yyyy...yyyy)   L0   mesh home\n  store     '), stdout)
  t.ok(stdout.includes('  network   public DHT, 0 peers yet\n'))
  t.ok(stdout.includes('It runs already (pid 4711)'))
})

test('flags that the running node does not follow are reported on stderr, with the next step', async (t: Assert) => {
  const { run: cli } = await fakeHome(t, { status: { network: 'local' } })
  const ran = await cli([
    'start',
    '--json',
    '--name',
    'other',
    '--network',
    'private',
    '--bootstrap',
    'h:1',
    '--agents',
    'x'
  ])
  t.is(ran.code, 0)
  t.is((JSON.parse(ran.stdout) as { schema: string }).schema, 'a2a-node/start@1')
  t.ok(ran.stderr.includes('this node is called laptop, not other'), ran.stderr)
  t.ok(ran.stderr.includes('--network, --bootstrap, --agents are not applied'), ran.stderr)
  t.ok(ran.stderr.includes('  try: a2a-node stop\n'), ran.stderr)
  const same = await cli(['start', '--name', 'laptop', '--network', 'local'])
  t.is(same.stderr, '', 'a known effect changes nothing')
  t.ok(
    same.stdout.includes('Another node on this machine:\n  a2a-node --home <other directory> start --join -'),
    same.stdout
  )
  t.absent(same.stdout.includes('npm i -g'))
})

test('bootstrap nodes beside a network that asks none are USAGE', async (t: Assert) => {
  const ran = await run(['start', '--network', 'local', '--bootstrap', 'h:1'], { home: await tempDir(t) })
  t.is(ran.code, 2)
  t.ok(ran.stderr.includes('--bootstrap is for a private network, and this one is local'), ran.stderr)
})

test('--join to a home whose node runs is ALREADY_IN_MESH, exit 9', async (t: Assert) => {
  const { run: cli } = await fakeHome(t)
  const ran = await cli(['start', '--join', 'somecode'])
  t.is(ran.code, 9)
  t.ok(ran.stderr.includes('[ALREADY_IN_MESH]'))
})

test('a node that holds its socket without answering is exit 9 after two seconds, or the time of --timeout', async (t: Assert) => {
  const home = await tempDir(t)
  await mkdir(path.join(home, 'run'), { mode: 0o700 })
  const sockets = new Set<net.Socket>()
  const silent = net.createServer((socket) => sockets.add(socket.on('error', () => {})))
  silent.listen(path.join(home, 'run', 'control.sock'))
  await once(silent, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    silent.close()
  })
  await writeFile(
    path.join(home, 'run', 'node.pid'),
    JSON.stringify({ pid: 4711, socket: path.join(home, 'run', 'control.sock') })
  )
  const start = async (...words: string[]) => {
    const ran = await run(['start', '--json', ...words], { home })
    const { code, message, next } = (
      JSON.parse(ran.stderr) as { error: Record<'code' | 'message', string> & { next: string[] } }
    ).error
    return { exit: ran.code, code, message, next }
  }
  const { exit, code, next } = await start()
  t.alike([exit, code, next], [9, 'ALREADY_RUNNING', ['kill -9 4711']])
  const impatient = await start('--timeout', '30ms')
  t.ok(impatient.exit === 9 && impatient.message.includes('has not answered in 30 ms'), impatient.message)
  t.ok(impatient.next.every((step) => !step.includes('kill')) && impatient.next.some((step) => step.includes('60ms')))
  const patient = await start('--timeout', '2100ms')
  t.ok(patient.message.includes('has not answered in 2.1 s'), patient.message)
  t.alike(patient.next, ['kill -9 4711'])
})

test('wrong flags are exit 2, a wrong config or variable 78, a home too long 78', async (t: Assert) => {
  const home = await tempDir(t)
  const codeFor = async (args: string[], env: Record<string, string> = {}): Promise<[number | null, string]> => {
    const ran = await run(['start', ...args], { home, env })
    return [ran.code, /\[([A-Z_]+)\]/.exec(ran.stderr)?.[1] ?? ran.stderr]
  }
  t.alike(await codeFor(['--bootstrap', 'nowhere']), [2, 'USAGE'])
  t.alike(await codeFor(['--serve-bootstrap', 'x:y']), [2, 'USAGE'])
  t.alike(await codeFor(['--name', 'a@b']), [2, 'USAGE'])
  t.alike(await codeFor(['--join', '-']), [2, 'USAGE'])
  t.alike(await codeFor([], { A2A_NODE_LOG_LEVEL: 'loud' }), [78, 'CONFIG_INVALID'])
  await writeFile(path.join(home, 'config.yaml'), 'netwrok: {}\n')
  t.alike(await codeFor([]), [78, 'CONFIG_INVALID'])
  const long = {
    A2A_NODE_HOME: `/tmp/${'x'.repeat(120)}`,
    TMPDIR: `/tmp/${'y'.repeat(100)}`,
    XDG_CACHE_HOME: `/tmp/${'c'.repeat(100)}`
  }
  t.alike(await codeFor([], long), [78, 'PATH_TOO_LONG'])
})

test('a background start where no directory can be made ends with NO_PERMISSION', {
  skip: process.platform !== 'linux'
}, async (t: Assert) => {
  const ran = await run(['start', '--detach', '--network', 'local'], { home: '/proc/a2a-node-test/home' })
  t.is(ran.code, 78)
  t.ok(/\[NO_PERMISSION\]\n {2}try: a2a-node start --home <.+>/.test(ran.stderr), ran.stderr)
})

test('a home that is a file is refused in plain words, in the foreground, in the background and by doctor', async (t: Assert) => {
  const file = path.join(await tempDir(t), 'in-the-way')
  await writeFile(file, '')
  for (const args of [['start'], ['start', '--detach']]) {
    const ran = await run(args, { home: file })
    t.is(ran.code, 78)
    const next = `a2a-node start --home <directory>${args.includes('--detach') ? ' --detach' : ''}`
    t.is(ran.stderr, `error: ${file} is not a directory  [CONFIG_INVALID]\n  try: ${next}\n`)
  }
  const { stdout } = await run(['doctor'], { home: file })
  t.ok(
    stdout.includes(`${file} is not a directory`) && stdout.includes('try: a2a-node start --home <directory>'),
    stdout
  )
  t.absent(/ENOTDIR/.test(stdout), stdout)
  const backup = await run(['backup', `${file}.backup`], { home: file })
  t.ok(backup.stderr.startsWith(`error: ${file} is not a directory  [CONFIG_INVALID]`), backup.stderr)
})

/** Starts with a fake composition root in this process. */
async function started(
  t: Assert,
  node: (options: StartOptions) => Promise<RunningNode>,
  options: Record<string, unknown> = {}
) {
  const home = typeof options['home'] === 'string' ? options['home'] : await tempDir(t)
  const text = { out: '', err: '' }
  const sink = (name: 'out' | 'err') => ({ write: (part: string) => (text[name] += part) })
  const output = new Output({
    json: options['json'] === true,
    color: 'never',
    out: sink('out'),
    err: sink('err'),
    env: {}
  })
  const context = commandContext({ output, home, env: { A2A_NODE_NODE_SHUTDOWN_TIMEOUT_MS: '200' } })
  return { home, text, ended: startAny(context, options, node) }
}

function fakeNode(stopped: Promise<NodeError | null>, close = async () => {}): RunningNode {
  const info = {
    node: { id: 'y'.repeat(52), name: 'laptop', tier: 'L0' },
    mesh: { id: 'b'.repeat(52), name: 'home' },
    pid: 1,
    socket: '/s',
    http: null
  } as const
  const attach = (): Promise<never> => Promise.reject(new Error('no agents are attached here'))
  return {
    info,
    stopped,
    close,
    attach,
    observability: new A2AObservability(),
    reload: () => Promise.reject(new Error('start reloads nothing by itself')),
    apiFor: () => new FakeNodeApi(),
    get layer(): never {
      throw new Error('start needs no layer')
    }
  }
}

test('a fresh node says how another machine joins, then waits for its end', async (t: Assert) => {
  let asked: StartOptions | null = null
  const { text, ended, home } = await started(
    t,
    async (options) => {
      asked = options
      options.onProgress?.('joining mesh home ...')
      return fakeNode(Promise.resolve(null))
    },
    { name: 'laptop', join: ' code ', network: 'local', agents: ['/more'] }
  )
  t.is(await ended, 0)
  t.ok(text.out.endsWith('(code: a2a-node invite)\nCtrl-C stops the node. Log follows.\n'), text.out)
  t.ok(text.err.includes('joining mesh home ...'))
  const options = asked as StartOptions | null
  t.is(options?.name, 'laptop')
  t.is(options?.join, 'code')
  t.is(options?.home.home, home)
  t.alike(options?.extraAgentDirs, ['/more'])
  t.is(options?.config.network.kind, 'local')
  t.ok(options?.config.given.has('network.kind'))
})

test('a problem is printed once: by the log of a node in the foreground, else by start; that of the network with its next step', async (t: Assert) => {
  const problems = [
    { code: 'NETWORK_OFFLINE', message: 'nothing answers', next: 'ping -c 3 1.2.3.4' },
    { code: 'AGENT_FILE_INVALID', message: '/a/x.md:4: unknown key', next: 'a2a-node agents check /a/x.md' }
  ]
  const { text, ended } = await started(t, async () => {
    const node = fakeNode(Promise.resolve(null))
    node.apiFor = () => new FakeNodeApi({ status: { problems } })
    return node
  })
  t.is(await ended, 0)
  t.absent(text.out.includes('/a/x.md'))
  t.ok(text.out.includes('  problem: nothing answers  [NETWORK_OFFLINE]\n    try: ping -c 3 1.2.3.4\n'), text.out)
  const { run: cli } = await fakeHome(t, { status: { problems } })
  const { stdout } = await cli(['start'])
  t.ok(
    stdout.includes(
      '  problem: /a/x.md:4: unknown key  [AGENT_FILE_INVALID]\n    try: a2a-node agents check /a/x.md\n'
    ),
    stdout
  )
})

test('a node that stops by itself gives its reason and exit code', async (t: Assert) => {
  for (const [code, exit] of [
    ['REVOKED', 5],
    ['INVITE_USED', 5],
    ['DISK_FULL', 78]
  ] as [ErrorCode, number][]) {
    const { text, ended } = await started(t, async () => fakeNode(Promise.resolve(new NodeError(code, 'it is over'))), {
      json: true
    })
    t.is(await ended, exit)
    t.ok(text.err.includes(code))
    t.is((JSON.parse(text.out) as { schema: string }).schema, 'a2a-node/start@1')
  }
})

test('a start that fails fails with the error of the node', async (t: Assert) => {
  const { ended } = await started(t, async () => {
    throw new NodeError('NO_ADMIN_ONLINE', 'nobody answered')
  })
  t.is(await codeOf(ended), 'NO_ADMIN_ONLINE')
})

test('a start that finds the store locked prints the node that got there first', async (t: Assert) => {
  const { text, ended } = await started(
    t,
    async ({ home }) => {
      const server = await startControlServer({
        path: home.socket,
        tier: () => 0,
        apiFor: () => new FakeNodeApi({ pid: 4711 })
      })
      t.teardown(() => server.close())
      throw new NodeError('STORE_LOCKED', 'locked')
    },
    { json: true }
  )
  t.is(await ended, 0)
  t.is((JSON.parse(text.out) as { pid: number }).pid, 4711)
})

test('a background node begins its log anew when it is too long, and keeps the one before', async (t: Assert) => {
  const home = await tempDir(t)
  const old = Buffer.alloc(16 * 1024 * 1024 + 1, 'old line\n')
  const log = await open(path.join(home, 'node.log'), 'a', 0o600)
  t.teardown(() => log.close())
  await log.appendFile(old)
  const { ended } = await started(
    t,
    async () => {
      await log.appendFile('new line\n')
      return fakeNode(Promise.resolve(null))
    },
    { home, reportReady: true }
  )
  t.is(await ended, 0)
  t.is(await readFile(path.join(home, 'node.log'), 'utf8'), 'new line\n')
  const kept = await stat(path.join(home, 'node.log.1'))
  t.alike([kept.size, kept.mode & 0o777], [old.byteLength, 0o600])
})

test('a store that stays locked is STORE_LOCKED', async (t: Assert) => {
  const { ended } = await started(t, async () => {
    throw new NodeError('STORE_LOCKED', 'locked')
  })
  t.is(await codeOf(ended), 'STORE_LOCKED')
})

test('the first signal closes the node and gives 130 or 143', async (t: Assert) => {
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143]
  ] as const) {
    let closed = 0
    const { ended, text } = await started(t, async () => {
      setImmediate(() => process.emit(signal, signal))
      return fakeNode(new Promise(() => {}), async () => void closed++)
    })
    t.is(await ended, code)
    t.is(closed, 1)
    t.ok(text.err.includes('stopping'))
  }
})

test('a node that does not close is left after the limit', async (t: Assert) => {
  const { ended, text } = await started(t, async () => {
    setImmediate(() => process.emit('SIGTERM', 'SIGTERM'))
    return fakeNode(new Promise(() => {}), () => new Promise(() => {}))
  })
  t.is(await ended, 143)
  t.ok(text.err.includes('leaving all the same'))
})

test('a signal before the node is up ends the start', async (t: Assert) => {
  const { ended } = await started(t, () => {
    setImmediate(() => process.emit('SIGINT', 'SIGINT'))
    return new Promise(() => {})
  })
  t.is(await ended, 130)
})
