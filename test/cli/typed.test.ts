import test, { type Assert } from 'brittle'
import { fakeHome, run } from './command-line.js'
import { peer } from './samples.js'

test('a wrong value is refused in words of the command line, with its usage, before the node is asked', async (t: Assert) => {
  const { run: cli, fake } = await fakeHome(t)
  const cases: [string[], RegExp][] = [
    [['invite', '--tier', 'L9'], /--tier is one of L0, L1, L2, L3, not "L9"/],
    [['invite', '--ttl', 'abc'], /--ttl takes a duration such as 10s, 5m or 2h, from 1 s to 30 d, not "abc"/],
    [['invite', '--ttl', '100d'], /from 1 s to 30 d, not "100d"/],
    [['invite', '--ttl', '5ms'], /from 1 s to 30 d, not "5ms"/],
    [['invite', '--uses', '0'], /--uses takes a whole number from 1 to 1000, not "0"/],
    [['invite', '--sandbox', 'a b'], /--sandbox takes 1 to 64 letters, digits/],
    [['invite', '--sandbox', ''], /--sandbox must not be empty/],
    [['send', 'a', 'b', '--timeout', '31d'], /from 1 ms to 30 d, not "31d"/],
    [['peers', 'show', ''], /<peer> must not be empty/],
    [['peers', 'show', 'x'.repeat(257)], /<peer> takes at most 256 characters, not 257/],
    [['send', 'a', 'b', '--justification', 'é'.repeat(1024)], /--justification takes at most 1024 bytes, not 2048/],
    [['start', '--join', '--detach'], /--join has no value: --detach follows it/],
    [['send', 'a', 'b', '--timeout', '--no-wait'], /--timeout has no value: --no-wait follows it/],
    [['peers', 'rename', 'p', ''], /<name> must not be empty/],
    [['peers', 'rename', 'p', 'x'.repeat(65)], /a name has 1 to 64 characters/],
    [['peers', 'rename', 'p', 'me@home'], /U\+0040 at character 3 \(@\) has another meaning/],
    [['peers', 'rename', 'p', 'a\u001bb'], /U\+001B at character 2 is a control character.*did you mean ab\?/]
  ]
  for (const [args, expected] of cases) {
    const ran = await cli(args)
    t.is(ran.code, 2, args.join(' ').slice(0, 60))
    t.ok(expected.test(ran.stderr), ran.stderr)
    t.ok(
      ran.stderr.includes(`\n  usage: a2a-node ${args[0]}`) && ran.stderr.includes(`  try: a2a-node ${args[0]}`),
      ran.stderr
    )
  }
  t.is(fake.seen.length, 0)
})

test('an option without a value is named with the word that follows it, whichever that is and wherever it is read', async (t: Assert) => {
  const { run: cli, fake } = await fakeHome(t)
  const cases: [string[], string][] = [
    [['start', '--name', '--json'], '--name has no value: --json follows it'],
    [['start', '--name', '--detach'], '--name has no value: --detach follows it'],
    [['start', '--http', '--color', 'never'], '--http has no value: --color follows it'],
    [['invite', '--tier', '--json'], '--tier has no value: --json follows it'],
    [['ping', 'x', '-c', '--json'], '--count has no value: --json follows it'],
    [['events', '--json', '--about'], '--about has no value'],
    [['send', 'a', 'b', '--timeout', '--home', '/tmp'], '--timeout has no value: --home follows it'],
    [['peers', '--home'], '--home has no value']
  ]
  for (const [args, expected] of cases) {
    const { code, stderr } = await cli(args)
    const isJson = args.includes('--json')
    const message = isJson
      ? (JSON.parse(stderr) as { error: { message: string } }).error.message
      : stderr.split('\n')[0]
    t.alike([code, message], [2, isJson ? expected : `error: ${expected}  [USAGE]`], args.join(' '))
  }
  t.is(fake.seen.length, 0)
})

test('the help of a subcommand shows the options of every command, not those of its parent', async (t: Assert) => {
  const help = (await run(['peers', 'revoke', '--help'])).stdout
  t.ok(help.includes('--reason') && help.includes('--home') && help.includes('--json'), help)
  t.absent(/--watch|--all/.test(help), help)
})

test('events say whom they are about, and leave payloads out', async (t: Assert) => {
  const data = { peer: 'gpu-\u001bbox', tier: 1, payload: { secret: 'x' }, gone: null, long: 'y'.repeat(300) }
  const { run: cli } = await fakeHome(t, {
    events: [{ at: '2026-01-02T03:04:05.000Z', type: 'peer.online', message: 'a peer came', data }]
  })
  const { stdout } = await cli(['events'])
  t.ok(stdout.includes('a peer came  peer=gpu-box  tier=1  long=yyy'), stdout)
  t.absent(/payload|secret|gone|\p{Cc}/u.test(stdout.trimEnd()), stdout)
  t.ok(stdout.length < 200, 'a long value is cut')
})

test('the table of invites shows the sandbox', async (t: Assert) => {
  const { run: cli } = await fakeHome(t)
  await cli(['invite', '--sandbox', 'ci-1'])
  const { stdout } = await cli(['invite', 'ls'])
  t.ok(/ADMIN +TRUST +SANDBOX +USED/.test(stdout) && /no +guest +ci-1 +0\/1/.test(stdout), stdout)
})

test('a fault of an agent file is printed once', async (t: Assert) => {
  const status = {
    agents: { ready: [], faults: [{ file: '/a/x.md', line: 4, reason: 'unknown key' }] },
    problems: [{ code: 'AGENT_FILE_INVALID', message: '/a/x.md:4: unknown key', next: 'a2a-node agents check /a/x.md' }]
  }
  const { run: cli } = await fakeHome(t, { peers: [peer('gpu-box')], status })
  const { stdout } = await cli(['status'])
  t.is(stdout.split('unknown key').length, 2, stdout)
  t.ok(stdout.includes('try: a2a-node agents check /a/x.md'))
})
