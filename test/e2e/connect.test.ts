import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, realpathSync } from 'node:fs'
import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { parse } from 'yaml'
import { stableProgram } from '../../src/cli/clients/entry.js'
import { type Ran, REPOSITORY, run as runIn, spawned } from '../cli/command-line.js'
import { tempDir } from '../support/tmp.js'

const BIN = path.join(REPOSITORY, 'bin', 'a2a-node.js')
const NODE = stableProgram(process.execPath, (file) => (existsSync(file) ? realpathSync(file) : null))
/** The entry of a client without flags. */
function started(client: string): { readonly command: string; readonly args: readonly string[] } {
  return { command: NODE, args: [BIN, 'mcp', 'serve', '--as', client, '--tier', 'L1'] }
}

/** What `connect <client> --json` tells. */
interface Told {
  readonly schema: string
  readonly client: string
  readonly file: string
  readonly action: string
  readonly dryRun: boolean
  readonly backup: string | null
  readonly diff: string
}

/** A home directory of a person with some clients. */
interface Person {
  readonly home: string
  run(...args: readonly string[]): Promise<Ran>
  /** The same in a process whose directory is the home. */
  runThere(...args: readonly string[]): Promise<Ran>
  told(...args: readonly string[]): Promise<Told>
  at(...parts: readonly string[]): string
}

async function person(t: Assert, env: Readonly<Record<string, string>> = {}): Promise<Person> {
  const home = await tempDir(t)
  const before = process.env['HOME']
  process.env['HOME'] = home
  t.teardown(() => {
    process.env['HOME'] = before
  })
  const run = (...args: readonly string[]): Promise<Ran> => runIn(args, { env: { HOME: home, ...env } })
  return {
    home,
    run,
    runThere: (...args) => spawned(args, { env: { HOME: home, ...env }, cwd: home }),
    at: (...parts) => path.join(home, ...parts),
    async told(...args) {
      const { code, stdout, stderr } = await run('connect', ...args, '--json')
      if (code !== 0) throw new Error(`${code}: ${stderr}`)
      return JSON.parse(stdout) as Told
    }
  }
}

/** The clients of Linux and where their files lie below a home directory; macOS has two of them elsewhere. */
const APPS = process.platform === 'darwin' ? ['Library', 'Application Support'] : ['.config']
const FILES: readonly (readonly [client: string, ...file: string[]])[] = [
  ['claude', '.claude.json'],
  ['claude-desktop', ...APPS, 'Claude', 'claude_desktop_config.json'],
  ['codex', '.codex', 'config.toml'],
  ['gemini', '.gemini', 'settings.json'],
  ['cursor', '.cursor', 'mcp.json'],
  ['vscode', ...APPS, 'Code', 'User', 'mcp.json'],
  ['windsurf', '.codeium', 'windsurf', 'mcp_config.json'],
  ['zed', '.config', 'zed', 'settings.json'],
  ['qwen', '.qwen', 'settings.json'],
  ['amp', '.config', 'amp', 'settings.json'],
  ['opencode', '.config', 'opencode', 'opencode.json'],
  ['cline', ...APPS, 'Code', 'User', 'globalStorage', 'saoudrizwan.claude-dev', 'settings', 'cline_mcp_settings.json'],
  ['goose', '.config', 'goose', 'config.yaml'],
  ['junie', '.junie', 'mcp', 'mcp.json']
]
/** The object of the servers in a file, where it is not `mcpServers`. */
const CONTAINERS: Readonly<Record<string, string>> = {
  vscode: 'servers',
  zed: 'context_servers',
  amp: 'amp.mcpServers'
}

/** Files of a person, where they are no JSON with comments and trailing commas. */
const OWN_TEXTS: Readonly<Record<string, string>> = {
  claude: '{\n  "a": [1,2]\n}\n',
  'claude-desktop': '{"a": [1,2]}',
  cline: '{"a": [1,2]}',
  junie: '{"a": [1,2]}',
  goose: '# mine\nGOOSE_MODEL: x\nextensions:\n    # more\n    memory: { type: builtin, enabled: true }\n',
  codex: 'model = "x" # mine\r\n'
}

test('connect finds the clients of a machine, connects each, is idempotent, and takes itself out again', {
  timeout: 120_000
}, async (t: Assert) => {
  const { run, told, at } = await person(t)
  for (const [client, ...file] of FILES) {
    await fs.mkdir(path.dirname(at(...file)), { recursive: true })
    const text = OWN_TEXTS[client] ?? '{\n  // mine\n  "a": [1,2],\n}\n'
    await fs.writeFile(at(...file), text)
    const added = await told(client, '--yes')
    t.alike(
      [added.schema, added.client, added.file, added.action],
      ['a2a-node/connect@1', client, at(...file), 'added']
    )
    t.is(await fs.readFile(added.backup ?? '', 'utf8'), text, `${client}: a copy of the earlier file`)
    const now = await fs.readFile(at(...file), 'utf8')
    t.ok(now.includes(JSON.stringify(BIN)), `${client}: the script by its place`)
    const again = await told(client, '--yes')
    t.alike([again.action, again.backup, again.diff], ['none', null, ''], `${client}: nothing to do the second time`)
    t.is(await fs.readFile(at(...file), 'utf8'), now)
  }
  const { stdout } = await run('connect', '--json')
  const { clients } = JSON.parse(stdout) as {
    clients: { client: string; found: boolean; connected: boolean; file: string }[]
  }
  t.alike(
    clients.map(({ client, found, connected, file }) => [client, found, connected, file]),
    FILES.map(([client, ...file]) => [client, true, true, at(...file)])
  )
  for (const [client, ...file] of FILES) {
    const removed = await told(client, '--remove', '--yes')
    t.is(removed.action, 'removed')
    t.is(await fs.readFile(at(...file), 'utf8'), OWN_TEXTS[client] ?? '{\n  // mine\n  "a": [1,2],\n}\n', client)
    t.is((await told(client, '--remove', '--yes')).action, 'none')
  }
})

test('each client reads the files that connect writes', async (t: Assert) => {
  const { told, at, runThere } = await person(t)
  for (const [client, ...file] of FILES) {
    await fs.mkdir(path.dirname(at(...file)), { recursive: true })
    if (client === 'claude') await fs.mkdir(at('.claude'))
    await told(client, '--yes', '--server-name', 'mesh')
    const text = await fs.readFile(at(...file), 'utf8')
    const typed = ['claude', 'cursor', 'vscode'].includes(client)
      ? { type: 'stdio', ...started(client) }
      : started(client)
    if (client === 'codex') {
      t.is(
        text,
        `[mcp_servers.mesh]\ncommand = ${JSON.stringify(NODE)}\nargs = ${JSON.stringify(started('codex').args).replaceAll(',', ', ')}\n`
      )
    } else if (client === 'goose') {
      const { command: cmd, args } = started(client)
      t.alike(parse(text), { extensions: { mesh: { enabled: true, type: 'stdio', name: 'mesh', cmd, args } } })
    } else if (client === 'opencode') {
      const { command, args } = started(client)
      t.alike(JSON.parse(text), { mcp: { mesh: { type: 'local', command: [command, ...args] } } })
    } else t.alike(JSON.parse(text), { [CONTAINERS[client] ?? 'mcpServers']: { mesh: typed } }, client)
  }
  const named = await runThere('connect', 'cursor', '--yes', '--home', 'my node', '--portable')
  t.is(named.code, 0)
  const { mcpServers } = JSON.parse(await fs.readFile(at('.cursor', 'mcp.json'), 'utf8')) as {
    mcpServers: Record<string, unknown>
  }
  t.alike(mcpServers['a2a-node'], {
    type: 'stdio',
    command: 'a2a-node',
    args: ['mcp', 'serve', '--as', 'cursor', '--tier', 'L1', '--home', at('my node')]
  })
})

test('without a terminal connect shows the change and writes with --yes only; --dry-run never writes', async (t: Assert) => {
  const { run, at, home } = await person(t)
  await fs.mkdir(at('.cursor'))
  const text = '{ "mcpServers": { "a2a-node": { "url": "http://other" } } }'
  await fs.writeFile(at('.cursor', 'mcp.json'), text)
  const unasked = await run('connect', 'cursor')
  t.is(unasked.code, 2)
  t.ok(unasked.stdout.includes(`-${text}`) && unasked.stdout.includes(BIN), 'the change is on stdout')
  t.ok(unasked.stderr.includes('try: a2a-node connect cursor --yes'), unasked.stderr)
  const dry = await run('connect', 'cursor', '--dry-run')
  t.is(dry.code, 0)
  t.is(dry.stdout, unasked.stdout)
  t.absent(dry.stdout.includes('\u001b'), 'no colours without a terminal')
  t.ok((await run('connect', 'cursor', '--dry-run', '--color', 'always')).stdout.includes('\u001b[32m+'))
  const kept = await run('connect', 'cursor', '--remove', '--yes')
  t.is(kept.code, 9, 'another program of that name is not taken out')
  t.alike(await fs.readdir(at('.cursor')), ['mcp.json'])
  t.is(await fs.readFile(at('.cursor', 'mcp.json'), 'utf8'), text)
  t.is((await run('connect', 'cursor', '--yes')).code, 0)
  t.absent((await fs.readFile(at('.cursor', 'mcp.json'), 'utf8')).includes('http://other'), 'replaced with --yes')
  t.alike((await fs.readdir(home)).sort(), ['.cursor'])
})

test('at a terminal connect asks; anything but yes writes nothing', async (t: Assert) => {
  if (process.platform !== 'linux' || spawnSync('script', ['--version']).status !== 0)
    return t.comment('no script(1) here to make a terminal')
  const { at, home } = await person(t)
  await fs.mkdir(at('.cursor'))
  /** Answers each question when it is there; the first one is whether the client starts the node. */
  const answer = async (...lines: readonly string[]): Promise<{ status: number | null; stdout: string }> => {
    const child = spawn('script', ['-qec', `${process.execPath} ${BIN} connect cursor`, '/dev/null'], {
      env: { HOME: home, PATH: process.env['PATH'], TERM: 'xterm' }
    })
    let stdout = ''
    let asked = 0
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
      const questions = stdout.match(/\[Y\/n\]|\[y\/N\]/g)?.length ?? 0
      while (asked < questions) child.stdin.write(lines[asked++] ?? '\u0004')
    })
    const [status] = (await once(child, 'close')) as [number | null]
    return { status, stdout }
  }
  for (const last of ['n\n', '\n', '\u0004']) {
    const no = await answer('\n', last)
    t.ok(no.stdout.includes('[y/N]') && no.stdout.includes('CANCELED'), no.stdout)
    t.is(no.status, 1)
    t.absent(no.stdout.includes('"--no-start"'), 'without an answer it starts the node')
  }
  t.alike(await fs.readdir(at('.cursor')), [])
  const yes = await answer('n\n', 'y\n')
  t.is(yes.status, 0, yes.stdout)
  t.ok((await fs.readFile(at('.cursor', 'mcp.json'), 'utf8')).includes('"--no-start"'))
  t.alike(await fs.readdir(at('.cursor')), ['mcp.json'])
})

test('a client that is not there, a file that is broken and a name that is none end with their codes', async (t: Assert) => {
  const { run, at } = await person(t)
  const missing = await run('connect', 'codex', '--yes', '--json')
  t.is(missing.code, 4)
  const { error } = JSON.parse(missing.stderr) as { error: { code: string; next: string[] } }
  t.alike([error.code, error.next], ['CLIENT_NOT_FOUND', ['a2a-node connect']])
  t.is((await run('connect', 'codex', '--remove', '--yes')).code, 0, 'nothing to take out')
  await fs.mkdir(at('.codex'))
  t.ok((await run('connect', 'codex', '--remove', '--yes')).stdout.startsWith('nothing to do'), 'without a file too')
  t.alike(await fs.readdir(at('.codex')), [])
  await fs.writeFile(at('.codex', 'config.toml'), 'a = 1\nb =\n')
  const broken = await run('connect', 'codex', '--yes')
  t.is(broken.code, 78)
  t.ok(broken.stderr.includes(`${at('.codex', 'config.toml')}: line 2`), broken.stderr)
  const list = await run('connect')
  t.is(list.code, 0)
  t.ok(/^codex +Codex +yes +unreadable /m.test(list.stdout) && list.stderr.includes('line 2'), list.stdout)
  const unknown = await run('connect', 'cursr')
  t.is(unknown.code, 2)
  t.ok(unknown.stderr.includes('did you mean cursor?'), unknown.stderr)
  t.is((await run('connect', 'codex', '--server-name', 'a b', '--dry-run')).code, 2)
  t.alike(await fs.readdir(at('.codex')), ['config.toml'])
})

test('an entry of another home is outdated in the list, and brought up to date', async (t: Assert) => {
  const { run, told, at } = await person(t)
  await fs.mkdir(at('.gemini'))
  await told('gemini', '--yes', '--home', at('old'))
  t.ok(/^gemini +Gemini CLI +yes +outdated /m.test((await run('connect')).stdout))
  t.ok(/^gemini +Gemini CLI +yes +yes /m.test((await run('connect', '--home', at('old'))).stdout))
  t.is((await told('gemini', '--yes')).action, 'changed')
  t.ok(/^gemini +Gemini CLI +yes +yes /m.test((await run('connect')).stdout))
})

test('a client gets rights of its own, which flags change; an entry of an earlier build stays ours', async (t: Assert) => {
  const { run, told, at } = await person(t)
  await fs.mkdir(at('.codex'))
  await fs.mkdir(at('.cursor'))
  const ran = await run('connect', 'cursor', '--dry-run')
  t.ok(ran.stderr.includes('a caller of its own: tier L1 at most, scopes read and send, all agents'), ran.stderr)
  const made = (await told('cursor', '--yes', '--tier', 'L0', '--sandbox', 'ci', '--agents', 'text,file*')) as Told & {
    rights: unknown
  }
  t.alike(made.rights, {
    name: 'cursor',
    tier: 'L0',
    sandboxId: 'ci',
    agents: ['text', 'file*'],
    scopes: ['read', 'send']
  })
  const { mcpServers } = JSON.parse(await fs.readFile(at('.cursor', 'mcp.json'), 'utf8')) as {
    mcpServers: Record<string, unknown>
  }
  const words = ['--as', 'cursor', '--tier', 'L0', '--sandbox', 'ci', '--agents', 'text,file*']
  t.alike(mcpServers['a2a-node'], { type: 'stdio', command: NODE, args: [BIN, 'mcp', 'serve', ...words] })
  await fs.writeFile(
    at('.codex', 'config.toml'),
    `[mcp_servers.a2a-node]\ncommand = "${NODE}"\nargs = ["${BIN}", "mcp", "serve"]\n`
  )
  const { stdout } = await run('connect', '--json')
  const { clients } = JSON.parse(stdout) as { clients: { client: string; state: string }[] }
  const stateFor = (client: string): string | undefined => clients.find((one) => one.client === client)?.state
  t.alike(
    [stateFor('cursor'), stateFor('codex')],
    ['same', 'outdated'],
    'other rights are no difference, an entry without rights is'
  )
  t.is((await told('codex', '--yes')).action, 'changed')
  for (const wrong of [
    ['--tier', 'L4'],
    ['--sandbox', '../x'],
    ['--agents', ''],
    ['--agents', 'a b']
  ])
    t.is((await run('connect', 'cursor', '--dry-run', ...wrong)).code, 2, wrong.join(' '))
})

test('a file that its client cannot read is named, one that is read-only is left alone, and an own file goes whole', async (t: Assert) => {
  const { run, told, at } = await person(t)
  await fs.mkdir(at('.claude'))
  for (const text of ['{ "a": 1, }', '{\n  // mine\n  "a": 1\n}', '/* mine */ {}']) {
    await fs.writeFile(at('.claude.json'), text)
    const { code, stderr } = await run('connect', 'claude', '--yes')
    t.is(code, 78, text)
    t.ok(stderr.includes('comment or a trailing comma'), stderr)
    t.is(await fs.readFile(at('.claude.json'), 'utf8'), text)
  }
  await fs.rm(at('.claude.json'))

  for (const [client, ...file] of FILES.filter(([one]) => one === 'codex' || one === 'gemini')) {
    await fs.mkdir(path.dirname(at(...file)), { recursive: true })
    await told(client, '--yes')
    await fs.chmod(at(...file), 0o400)
    const text = await fs.readFile(at(...file), 'utf8')
    const left = await run('connect', client, '--remove', '--yes')
    t.alike([left.code, left.stderr.includes('is read-only, and was left alone')], [78, true], left.stderr)
    t.is(await fs.readFile(at(...file), 'utf8'), text)
    await fs.chmod(at(...file), 0o600)
    t.is((await told(client, '--remove', '--yes')).action, 'removed')
    t.absent(existsSync(at(...file)), `${client}: the file was made for the entry`)
    // With a key of the user it is the user's file.
    await told(client, '--yes')
    const made = await fs.readFile(at(...file), 'utf8')
    const mine =
      client === 'codex'
        ? `${made}startup_timeout_sec = 20\n`
        : made.replace('"command"', '"timeout": 20,\n      "command"')
    await fs.writeFile(at(...file), mine)
    await told(client, '--yes', '--tier', 'L2')
    t.ok(/timeout/.test(await fs.readFile(at(...file), 'utf8')), `${client}: a key of the user stays`)
    await told(client, '--remove', '--yes')
    t.ok(existsSync(at(...file)), client)
  }
})

test('a choice to start no node stays when an entry is written again, and is no difference', async (t: Assert) => {
  const { run, told, at } = await person(t)
  await fs.mkdir(at('.gemini'))
  await told('gemini', '--yes', '--no-start')
  const words = async (): Promise<boolean> =>
    (await fs.readFile(at('.gemini', 'settings.json'), 'utf8')).includes('"--no-start"')
  t.ok(await words())
  t.ok(/^gemini +Gemini CLI +yes +yes /m.test((await run('connect')).stdout))
  t.is((await told('gemini', '--yes', '--tier', 'L2')).action, 'changed')
  t.ok(await words())
  t.ok((await run('connect', 'gemini', '--yes')).stderr.includes('does not trust'))
})
