import test, { type Assert } from 'brittle'
import { fakeHome } from './command-line.js'

test('a2a token create prints the token alone on stdout, and its rights on stderr', async (t: Assert) => {
  const { run, fake, home } = await fakeHome(t, { http: 'http://127.0.0.1:7420' })
  const ran = await run([
    'a2a',
    'token',
    'create',
    '--name',
    'editor',
    '--tier',
    'L2',
    '--sandbox',
    'ci',
    '--scope',
    'send,read',
    '--ttl',
    '12h'
  ])
  t.is(ran.code, 0)
  t.ok(/^a2a_[A-Za-z0-9_-]{43}\n$/.test(ran.stdout), ran.stdout)
  t.ok(ran.stderr.includes('(editor: tier L2 in sandbox ci, scopes read and send, for 12 h)'), ran.stderr)
  t.ok(ran.stderr.includes('a2a-node a2a token revoke tok_'))
  t.absent(ran.stderr.includes('a2a_'), 'the token is not on stderr')
  t.absent(ran.stderr.includes('serves no HTTP'))
  t.alike(fake.seen.find(({ name }) => name === 'token.create')?.params, {
    name: 'editor',
    tier: 2,
    sandboxId: 'ci',
    scopes: ['read', 'send'],
    ttlMs: 43_200_000
  })
  const listed = await run(['--home', home, 'a2a', 'token', 'ls'])
  t.is(listed.code, 0)
  t.ok(/^tok_\S+ +editor +L2 +ci +read,send +active +in 12 h +never$/m.test(listed.stdout), listed.stdout)
})

test('without flags nothing is asked of the node but a token; a node without HTTP says so', async (t: Assert) => {
  const { run, fake } = await fakeHome(t)
  const ran = await run(['a2a', 'token', 'create'])
  t.is(ran.code, 0)
  t.alike(fake.seen.find(({ name }) => name === 'token.create')?.params, {})
  t.ok(ran.stderr.includes('(token: tier L1, scopes read and send, for 90 d)'), ran.stderr)
  t.ok(ran.stderr.includes('This node serves no HTTP: start it with a2a-node start --http'), ran.stderr)
})

test('a2a token speaks JSON as its contract says', async (t: Assert) => {
  const { run } = await fakeHome(t)
  const made = JSON.parse((await run(['a2a', 'token', 'create', '--json'])).stdout) as Record<string, unknown>
  t.is(made['schema'], 'a2a-node/token@1')
  t.ok(typeof made['id'] === 'string' && String(made['token']).startsWith('a2a_'))
  t.alike([made['tier'], made['scopes'], typeof made['expiresAt']], ['L1', ['read', 'send'], 'string'])
  const lasting = JSON.parse((await run(['a2a', 'token', 'create', '--ttl', 'never', '--json'])).stdout) as Record<
    string,
    unknown
  >
  t.is(lasting['expiresAt'], null)
  await run(['a2a', 'token', 'revoke', String(lasting['id'])])
  const { stdout } = await run(['a2a', 'token', 'ls', '--json'])
  const listed = JSON.parse(stdout) as { schema: string; tokens: { id: string }[] }
  t.alike([listed.schema, listed.tokens.map(({ id }) => id)], ['a2a-node/tokens@1', [made['id']]])
  t.absent(stdout.includes('a2a_'), 'a list never holds a token')
  const gone = JSON.parse((await run(['a2a', 'token', 'revoke', String(made['id']), '--json'])).stdout) as Record<
    string,
    unknown
  >
  t.alike([gone['schema'], gone['id']], ['a2a-node/token-info@1', made['id']])
  for (const verb of [['ls'], ['list'], []]) t.is((await run(['a2a', 'token', ...verb])).stdout, 'no tokens\n')
})

test('wrong words about tokens are usage, and reach no node', async (t: Assert) => {
  const { run, fake } = await fakeHome(t)
  const wrong = [
    ['create', '--tier', 'L4'],
    ['create', '--scope', 'all'],
    ['create', '--scope', 'read,,send'],
    ['create', '--scope', ''],
    ['create', '--ttl', 'soon'],
    ['create', '--ttl', '0s'],
    ['create', '--ttl', '367d'],
    ['create', '--sandbox', '../x'],
    ['create', '--name', ''],
    ['create', '--name', 'x'.repeat(65)],
    ['create', 'extra'],
    ['revoke'],
    ['revoke', '']
  ]
  for (const args of wrong) {
    const ran = await run(['a2a', 'token', ...args])
    t.is(ran.code, 2, args.join(' '))
    t.ok(ran.stderr.includes('[USAGE]'), ran.stderr)
  }
  t.is((await run(['a2a', 'tokn'])).code, 2)
  t.alike(fake.seen, [])
})

test('a token that is not there is exit 4, a node that does not run exit 3', async (t: Assert) => {
  const { run, close } = await fakeHome(t)
  const ran = await run(['a2a', 'token', 'revoke', 'tok_nothing'])
  t.is(ran.code, 4)
  t.ok(ran.stderr.includes('[TOKEN_NOT_FOUND]\n  try: a2a-node a2a token ls'), ran.stderr)
  await close()
  t.is((await run(['a2a', 'token', 'ls'])).code, 3)
})
