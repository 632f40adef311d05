import { spawn } from 'node:child_process'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { connectControl } from '../../src/adapters/control/client.js'
import { checkedApi } from '../../src/adapters/control/contract.js'
import { NodeError } from '../../src/kit/errors.js'
import type { NodeApi } from '../../src/ports/node-api.js'
import { failsWith } from '../support/fails.js'
import { tempDir } from '../support/tmp.js'
import { fakeHome, REPOSITORY, run } from './command-line.js'
import { agent, peer, task } from './samples.js'

function errorOf(stderr: string): { code: string; message: string; next: string[] } {
  return (JSON.parse(stderr) as { error: { code: string; message: string; next: string[] } }).error
}

test('without a running node every client command exits 3 and says what to do', async (t: Assert) => {
  const home = await tempDir(t)
  const commands = [
    'status',
    'id',
    'peers',
    'invite',
    'ping x',
    'agents',
    'send a b',
    'call - c {}',
    'swarm ls',
    'tasks',
    'events',
    'metrics',
    'doc ls',
    'doc get x',
    'doc set x y',
    'stop'
  ]
  for (const command of commands) {
    const ran = await run(command.split(' '), { home })
    t.is(ran.code, 3, command)
    t.ok(ran.stderr.includes('[NODE_NOT_RUNNING]') && ran.stderr.includes('try: a2a-node start'), command)
    t.is(ran.stdout, '')
  }
})

test('wrong usage exits 2 with the usage line and names what was meant', async (t: Assert) => {
  const cases: [string[], RegExp][] = [
    [['peer'], /unknown command 'peer' \(did you mean peers\?\)/],
    [['peer', '--follow'], /unknown command 'peer' \(did you mean peers\?\)/],
    [['connect', 'claud', '--dry-run'], /unknown command 'claud' \(did you mean claude or/],
    [['connect', '--dry-run', 'claude'], /unknown option '--dry-run'/],
    [['peers', 'shw'], /unknown command 'shw' \(did you mean show\?\)/],
    [['peers', '--al'], /unknown option '--al' \(did you mean --all\?\)/],
    [['peers', 'show'], /missing required argument 'peer'/],
    [['start', '--network', 'space'], /Allowed choices are public, private, local/],
    [['mesh'], /which one: show, set, reset\?/],
    [['swarm', 'run', 'x', '--items', 'a', 'b'], /too many arguments.*must be quoted/],
    [['help', 'swarm', 'resutls'], /unknown command 'resutls' \(did you mean results\?\)/]
  ]
  for (const [args, expected] of cases) {
    const ran = await run(args)
    t.is(ran.code, 2, args.join(' '))
    t.ok(expected.test(ran.stderr) && /\[USAGE\]\n {2}usage: a2a-node/.test(ran.stderr), ran.stderr)
  }
})

test('words of other programs are answered with the command that does it here', async (t: Assert) => {
  const cases: [string, string][] = [
    ['join', 'a2a-node start --join <code>'],
    ['init', 'a2a-node start'],
    ['restart', 'a2a-node start --detach'],
    ['ls', 'a2a-node peers'],
    ['run', 'a2a-node swarm run --help'],
    ['update', 'a2a-node --version']
  ]
  for (const [word, expected] of cases) {
    const ran = await run([word])
    t.is(ran.code, 2, word)
    t.ok(
      ran.stderr.includes(`there is no command '${word}'`) && ran.stderr.includes(`  try: ${expected}\n`),
      ran.stderr
    )
  }
  t.ok(errorOf((await run(['join', '--json'])).stderr).next.includes('a2a-node start --join <code>'))
})

test('a list is the same without a verb, with ls and with list', async (t: Assert) => {
  const { run: cli, fake } = await fakeHome(t, { peers: [peer('gpu-box')], agents: [agent('text', 'laptop')] })
  for (const [noun, ...flags] of [
    ['peers', '--all'],
    ['agents', '--remote'],
    ['tasks', '--limit', '5'],
    ['swarm'],
    ['approvals']
  ]) {
    const seen: unknown[] = []
    const said: string[] = []
    for (const verb of [[], ['ls'], ['list']]) {
      const before = fake.seen.length
      const { code, stdout, stderr } = await cli([noun ?? '', ...verb, ...flags, '--json'])
      t.is(code, 0, stderr)
      seen.push(fake.seen.slice(before))
      said.push(stdout)
    }
    t.alike(seen[1], seen[0], noun)
    t.alike(seen[2], seen[0], noun)
    t.is(new Set(said).size, 1, noun)
  }
})

test('wrong usage under --json is an object on stderr', async (t: Assert) => {
  const ran = await run(['peers', '--frob', '--json'])
  t.is(ran.code, 2)
  t.is(errorOf(ran.stderr).code, 'USAGE')
  t.alike(errorOf(ran.stderr).next, ['a2a-node peers --help'])
  t.is(ran.stdout, '')
})

test('values of flags are checked before anything is asked of the node', async (t: Assert) => {
  const { run: cli, fake } = await fakeHome(t)
  for (const args of [
    ['invite', '--tier', 'L9'],
    ['invite', '--ttl', 'soon'],
    ['invite', '--uses', '0'],
    ['ping', 'p', '-c', 'many'],
    ['peers', 'tier', 'p', '5'],
    ['call', '-', 'c', '{broken'],
    ['send', 'a', 'b', '--timeout', '5 parsecs'],
    ['agents', '--local', '--remote']
  ]) {
    t.is((await cli(args)).code, 2, args.join(' '))
  }
  t.is(fake.seen.length, 0)
})

test('the command line and the control API have the same bounds of counts', async (t: Assert) => {
  const { run: cli, fake } = await fakeHome(t, { peers: [peer('gpu-box')] })
  const api = checkedApi(fake)
  for (const [args, max, ask] of [
    [
      ['ping', 'gpu-box', '-c'],
      1000,
      async (count: number) => await api.call('peers.ping', { peer: 'gpu-box', count })
    ],
    [['tasks', '--limit'], 5000, async (limit: number) => await api.call('tasks.list', { limit })],
    [['invite', '--uses'], 1000, async (uses: number) => await api.call('invite.create', { trust: 'mine', uses })]
  ] as const) {
    for (const wrong of [0, max + 1]) {
      await failsWith(t, 'USAGE', () => ask(wrong))
      const calls = fake.seen.length
      t.is((await cli([...args, String(wrong)])).code, 2, `${args.join(' ')} ${wrong}`)
      t.is(fake.seen.length, calls)
    }
    await ask(max)
    t.is((await cli([...args, String(max)])).code, 0, `${args.join(' ')} ${max}`)
  }
})

test('help and version go to stdout and exit 0', async (t: Assert) => {
  const help = await run(['--help'])
  t.is(help.code, 0)
  for (const name of ['start', 'peers', 'swarm', 'completion']) t.ok(help.stdout.includes(`\n  ${name}`), name)
  for (const args of [[], ['help'], ['--json']]) t.alike(await run(args), help, args.join(' '))
  const rename = await run(['peers', 'rename', '--help'])
  t.is(rename.code, 0)
  for (const args of [
    ['help', 'peers', 'rename'],
    ['peers', 'help', 'rename']
  ])
    t.alike(await run(args), rename, args.join(' '))
  for (const word of ['--version', '-V', '-v', 'version'])
    t.ok(/^\d+\.\d+\.\d+\n$/.test((await run([word])).stdout), word)
})

test('peers is a table for people and typed JSON for scripts', async (t: Assert) => {
  const offline = peer('phone', {
    id: `h3y1${'n'.repeat(44)}0aa2`,
    tier: 'L3',
    status: 'offline',
    path: null,
    rttMs: null,
    agents: []
  })
  const { run: cli } = await fakeHome(t, { peers: [peer('gpu-box'), offline] })
  const text = await cli(['peers'])
  t.is(text.code, 0)
  t.is(
    text.stdout,
    [
      'NAME     ID           TIER  TRUST  STATUS   PATH    RTT    AGENTS',
      'gpu-box  x4m1...77be  L1    mine   online   direct  12 ms  host, text',
      'phone    h3y1...0aa2  L3    mine   offline  -       -      -',
      ''
    ].join('\n')
  )
  const json = JSON.parse((await cli(['peers', '--json'])).stdout) as {
    schema: string
    peers: { name: string; rttMs: number | null }[]
  }
  t.is(json.schema, 'a2a-node/peers@1')
  t.is(json.peers[0]?.rttMs, 12.4)
  t.is(json.peers[1]?.rttMs, null)
})

test('names of others cannot colour or break the terminal', async (t: Assert) => {
  const { run: cli } = await fakeHome(t, { peers: [peer('evil\u001b[2J\u009b1m\nname')] })
  for (const args of [['peers'], ['peers', '--json'], ['peers', 'show', 'evil\u001b[2J\u009b1m\nname']]) {
    const { stdout } = await cli(args)
    t.absent(/\p{Cc}/u.test(stdout.replaceAll('\n', '')), args[1])
  }
})

test('a mistyped name is answered with the one that was meant, and exit 4', async (t: Assert) => {
  const { run: cli } = await fakeHome(t, { peers: [peer('gpu-box')], agents: [agent('text', 'laptop')] })
  const ran = await cli(['ping', 'gpu-bxo'])
  t.is(ran.code, 4)
  t.ok(ran.stderr.includes('did you mean gpu-box?'), ran.stderr)
  t.ok((await cli(['call', '-', 'text.stat', '{}'])).stderr.includes('did you mean text.stats?'))
  for (const text of ['texx', 'hi']) {
    const { code, stderr } = await cli(['send', 'nobody', text])
    t.is(code, 4)
    t.absent(stderr.includes('did you mean'), 'the text of a message is no name')
  }
})

test('an ambiguous name lists the candidates and exits 4', async (t: Assert) => {
  const { run: cli } = await fakeHome(t, {
    calls: {
      'peers.show': () => {
        throw new NodeError('AMBIGUOUS_NAME', 'gpu is two nodes', { data: { candidates: ['gpu-1', 'gpu-2'] } })
      }
    }
  })
  const ran = await cli(['peers', 'show', 'gpu'])
  t.is(ran.code, 4)
  t.ok(ran.stderr.includes('one of: gpu-1') && ran.stderr.includes('one of: gpu-2'))
})

test('a node shown by itself is called that, and times of a revocation are those of the clock on the wall', async (t: Assert) => {
  const revoked = { by: { id: 'y'.repeat(52), name: 'laptop' }, at: '2026-01-02T03:04:05.000Z', reason: '' }
  const { run: cli } = await fakeHome(t, {
    peers: [peer('me', { self: true }), peer('out', { status: 'revoked', revoked })]
  })
  const self = (await cli(['peers', 'show', 'me'])).stdout
  t.ok(/^me {3}L1 {3}this node\n/.test(self), self)
  t.absent(self.includes('last seen'))
  const out = (await cli(['peers', 'show', 'out'])).stdout
  t.ok(/by laptop, 2026-01-0[123] \d\d:\d\d:\d\d: no reason given/.test(out), out)
})

test('a swarm among the tasks is called so, and has no agent', async (t: Assert) => {
  const { run: cli } = await fakeHome(t, { tasks: [task('task_1', { kind: 'swarm', agent: '*' }), task('task_2')] })
  const { stdout } = await cli(['tasks'])
  t.ok(/^task_1 +swarm .* \* +text.stats$/m.test(stdout) && /^task_2 +asked .*text@gpu-box/m.test(stdout), stdout)
})

test('Ctrl-C on a call that waits hangs up, says so and exits 130', async (t: Assert) => {
  let isGone = false
  let tellAsked: () => void = () => {}
  const asked = new Promise<void>((resolve) => (tellAsked = resolve))
  const untilGone = (signal: AbortSignal | undefined): Promise<never> =>
    new Promise((_, reject) => {
      signal?.addEventListener('abort', () => {
        isGone = true
        reject(new NodeError('CANCELED', 'gone'))
      })
      tellAsked()
    })
  const { home } = await fakeHome(t, { calls: { 'message.call': (_params, signal) => untilGone(signal) } })
  const args = [path.join(REPOSITORY, 'bin', 'a2a-node.js'), 'call', 'text@b', 'text.stats', '{}', '--home', home]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  const ended = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)))
  await asked
  child.kill('SIGINT')
  t.is(await ended, 130)
  t.ok(stderr.includes('given up; the node cancels the work'), stderr)
  t.ok(isGone)
})

test('parameters that are too long are reported with sizes and the next step', async (t: Assert) => {
  const { socket } = await fakeHome(t)
  const error = await failsWith(t, 'USAGE', () =>
    connectControl(socket).call('peers.show', { peer: 'x'.repeat(2_000_000) })
  )
  t.is(error.message, 'the input has 2 MiB, more than the limit of 1 MiB: give a shorter input')
})

test('global flags stand before or after the command', async (t: Assert) => {
  const { home } = await fakeHome(t)
  for (const args of [
    ['--home', home, '--json', 'id'],
    ['id', '--home', home, '--json'],
    ['--json', 'id', `--home=${home}`]
  ]) {
    t.is((JSON.parse((await run(args)).stdout) as { schema: string }).schema, 'a2a-node/id@1')
  }
})

test('colours come with --color always and go with NO_COLOR', async (t: Assert) => {
  const { run: cli } = await fakeHome(t, { peers: [peer('gpu-box')] })
  t.ok((await cli(['peers', '--color', 'always'])).stdout.includes('\u001b[32monline'))
  t.absent((await cli(['peers'])).stdout.includes('\u001b'))
})

test('invite prints the code alone on stdout', async (t: Assert) => {
  const { run: cli, fake } = await fakeHome(t)
  const ran = await cli(['invite', '--tier', 'L2', '--ttl', '5m', '--uses', '3', '--admin', '--sandbox', 'ci', '--qr'])
  t.is(ran.stdout, `${'code'.repeat(15)}\n`)
  t.is((await cli(['invite', '--long'])).stdout, `${'code'.repeat(26)}\n`)
  t.ok(ran.stderr.includes('█') && ran.stderr.includes('start --join'))
  t.alike(fake.seen[0]?.params, { tier: 2, admin: true, ttlMs: 300_000, uses: 3, sandboxId: 'ci' })
  const json = JSON.parse((await cli(['invite', '--json'])).stdout) as Record<string, unknown>
  t.is(json['schema'], 'a2a-node/invite@1')
  t.is(json['tier'], 'L1')
  t.ok(ran.stderr.includes('On another machine, with a copy of '), ran.stderr)
  t.ok(ran.stderr.includes('as L2 in sandbox ci, may invite'), ran.stderr)
  t.is(json['sandboxId'], null)
  t.is(
    (JSON.parse((await cli(['invite', '--sandbox', 'ci', '--json'])).stdout) as Record<string, unknown>)['sandboxId'],
    'ci'
  )
})

test('the code of a local network is marked as valid on this machine only', async (t: Assert) => {
  const { run: cli } = await fakeHome(t, { status: { network: 'local' } })
  const { stderr } = await cli(['invite'])
  t.ok(stderr.includes('works on this machine only:\n  a2a-node --home <other directory> start --join -\n'), stderr)
  t.absent(stderr.includes('other machine'))
  t.is((JSON.parse((await cli(['invite', '--json'])).stdout) as Record<string, unknown>)['network'], 'local')
})

test('a rename reports the rules of this node that named the old name', async (t: Assert) => {
  const renamed = [
    { file: '/config/policy.yaml', line: 12, name: 'gpu-box', means: null },
    { file: '/config/policy.yaml', line: 14, name: 'gpu-box', means: 'phone' }
  ]
  const { run: cli } = await fakeHome(t, { peers: [peer('gpu-box')], renamed })
  const { code, stdout, stderr } = await cli(['peers', 'rename', 'gpu-box', 'big'])
  t.alike([code, stdout], [0, 'gpu-box is now called big\n'])
  t.is(
    stderr,
    'warning  /config/policy.yaml:12: "gpu-box" means no node now: the rule no longer matches it\n' +
      'warning  /config/policy.yaml:14: "gpu-box" means phone now, another node\n'
  )
})

test('membership commands pass the typed arguments and print the effect', async (t: Assert) => {
  const { run: cli, fake } = await fakeHome(t, { peers: [peer('gpu-box')] })
  t.is((await cli(['peers', 'rename', 'gpu-box', 'big'])).stdout, 'gpu-box is now called big\n')
  t.is((await cli(['peers', 'tier', 'gpu-box', 'l2'])).stdout, 'gpu-box is L2 now\n')
  t.ok((await cli(['peers', 'revoke', 'gpu-box', '--reason', 'sold'])).stdout.includes('is out of the mesh for good'))
  t.alike(
    fake.seen.map((one) => one.params),
    [
      { peer: 'gpu-box', name: 'big' },
      { peer: 'gpu-box', tier: 2 },
      { peer: 'gpu-box', reason: 'sold' }
    ]
  )
})

test('a second revocation of a node reports the time of the first', async (t: Assert) => {
  const revoked = { by: { id: 'y'.repeat(52), name: 'laptop' }, at: '2026-01-02T03:04:05.000Z', reason: 'sold' }
  const { run: cli } = await fakeHome(t, { peers: [peer('phone', { status: 'revoked', revoked })] })
  const ran = await cli(['peers', 'revoke', 'phone', '--reason', 'sold'])
  t.is(ran.code, 0)
  t.ok(
    /^phone \(x4m1\.\.\.77be\) was out of the mesh before, by laptop, 2026-01-0\d .*: sold; nothing was changed\n$/.test(
      ran.stdout
    ),
    ran.stdout
  )
  t.is(
    (JSON.parse((await cli(['peers', 'revoke', 'phone', '--json'])).stdout) as { wasRevoked: boolean }).wasRevoked,
    true
  )
})

test('status shows faults and problems with the next step', async (t: Assert) => {
  const status = {
    agents: { ready: ['text'], faults: [{ file: '/a/x.md', line: 4, reason: 'unknown key' }] },
    problems: [{ code: 'NO_ADMIN_ONLINE', message: 'no admin is online', next: 'a2a-node peers' }]
  }
  const { run: cli } = await fakeHome(t, { status })
  const { stdout } = await cli(['status'])
  t.ok(stdout.includes('fault     /a/x.md:4: unknown key'), stdout)
  t.ok(stdout.includes('problem: no admin is online  [NO_ADMIN_ONLINE]\n  try: a2a-node peers'))
  const json = JSON.parse((await cli(['status', '--json'])).stdout) as { schema: string; problems: unknown[] }
  t.is(json.schema, 'a2a-node/status@1')
  t.is(json.problems.length, 1)
  const agents = await cli(['agents'])
  t.ok(
    agents.stderr.includes('problem: no admin is online  [NO_ADMIN_ONLINE]\n  try: a2a-node peers'),
    'so does the list of agents'
  )
  t.is(agents.stdout, 'no agents\n')
  t.alike((JSON.parse((await cli(['agents', '--json'])).stdout) as { problems: unknown[] }).problems, json.problems)
})

test('tasks, agents, events, metrics and ping print their JSON shapes', async (t: Assert) => {
  const events = [{ at: '2026-01-02T03:04:05.000Z', type: 'peer', message: 'gpu-box is online', data: {} }]
  const { run: cli } = await fakeHome(t, {
    peers: [peer('gpu-box')],
    agents: [agent('text', 'gpu-box')],
    tasks: [task('task_1')],
    events
  })
  const schemas: Record<string, string> = {
    'tasks --json': 'tasks@1',
    'tasks show task_1 --json': 'task@1',
    'tasks cancel task_1 --json': 'task@1',
    'agents --remote --json': 'agents@1',
    'agents show text --json': 'agent@1',
    'events --json': 'event@1',
    'metrics --json': 'metrics@1',
    'ping gpu-box -c 2 --json': 'ping@1',
    'peers show gpu-box --json': 'peer@1',
    'invite ls --json': 'invites@1'
  }
  for (const [args, schema] of Object.entries(schemas)) {
    const ran = await cli(args.split(' '))
    t.is((JSON.parse(ran.stdout) as { schema: string }).schema, `a2a-node/${schema}`, args)
    t.is((await cli(args.replace(' --json', '').split(' '))).code, 0)
  }
  t.ok((await cli(['metrics', '--prometheus'])).stdout.includes('messages_sent_total{'))
})

test('tasks shows the newest 50, says how many more there are, and takes a limit', async (t: Assert) => {
  const { run: cli } = await fakeHome(t, { tasks: Array.from({ length: 60 }, (_, i) => task(`task_${i}_`)) })
  const rows = async (...words: string[]): Promise<string[]> =>
    (await cli(['tasks', ...words])).stdout.trimEnd().split('\n').slice(1)
  const shown = await rows()
  t.alike([shown.length, shown[0]?.slice(0, 7), shown[50]], [51, 'task_0_', 'and 10 older: a2a-node tasks --all'])
  t.alike([(await rows('--limit', '2'))[2], (await rows('--all')).length], ['and 58 older: a2a-node tasks --all', 60])
  const json = JSON.parse((await cli(['tasks', '--json'])).stdout) as { tasks: unknown[]; more: number }
  t.alike([json.tasks.length, json.more], [50, 10])
  for (const words of [
    ['--limit', '0'],
    ['--limit', '2', '--all']
  ])
    t.is((await cli(['tasks', ...words])).code, 2)
})

test('a watch prints one object a line and ends with exit 3 when the node stops', async (t: Assert) => {
  const { run: cli, fake, close } = await fakeHome(t, { peers: [peer('gpu-box')] })
  const watched = watchBegun(fake)
  const watching = cli(['peers', '-w', '--json'])
  await watched
  await close()
  const ran = await watching
  t.is(ran.code, 3)
  t.is((JSON.parse(ran.stdout) as { schema: string }).schema, 'a2a-node/peers@1')
  t.is(errorOf(ran.stderr).code, 'NODE_NOT_RUNNING')
})

/** Resolves when the first item of a watch was taken by the server. */
function watchBegun(fake: NodeApi): Promise<void> {
  return new Promise((resolve) => {
    const watch = fake.watch.bind(fake)
    fake.watch = async function* (name, params, options) {
      for await (const item of watch(name, params, options)) {
        yield item
        resolve()
      }
    }
  })
}
