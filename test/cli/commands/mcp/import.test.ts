import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { loadConfig } from '../../../../src/config/load.js'
import type { McpServerSetting } from '../../../../src/config/mcp-servers.js'
import { tempDir } from '../../../support/tmp.js'
import { run } from '../../command-line.js'

interface Report {
  readonly backup: string | null
  readonly servers: readonly {
    readonly from: string
    readonly name: string | null
    readonly status: string
    readonly reason: string | null
  }[]
}

/** Imports a file of that name and content into a fresh home. */
async function imports(t: Assert, name: string, content: unknown, config: string | null = null) {
  const home = await tempDir(t)
  const file = path.join(home, 'project', name)
  await fs.mkdir(path.dirname(file), { recursive: true })
  await fs.writeFile(file, typeof content === 'string' ? content : JSON.stringify(content))
  const target = path.join(home, 'config.yaml')
  if (config !== null) await fs.writeFile(target, config)
  const again = async (...more: string[]) => {
    const { code, stdout, stderr } = await run(['mcp', 'import', file, '--json', ...more], { home })
    return { code, stderr, ...((stdout === '' ? { servers: [], backup: null } : JSON.parse(stdout)) as Report) }
  }
  const servers = async (): Promise<Readonly<Record<string, McpServerSetting>>> =>
    (await loadConfig({ file: target, env: {} })).config.mcp.servers
  return { project: path.join(home, 'project'), target, again, servers, done: await again() }
}

test('servers of the files of every client become entries of the config', async (t) => {
  const claude = await imports(t, '.mcp.json', {
    mcpServers: {
      GitHub: { command: 'npx', args: ['-y', 'server'], env: { TOKEN: '${TOKEN}', A: '${B:-b}' } },
      'Search & Find': { type: 'http', url: 'https://${HOST}/mcp', headers: { authorization: 'Bearer ${KEY}' }, oauth: {} },
      me: { type: 'stdio', command: '/usr/bin/node', args: ['/opt/a2a-node.js', 'mcp', 'serve'] },
      off: { command: 'x', disabled: true }
    }
  })
  t.is(claude.done.code, 0, claude.done.stderr)
  t.alike(
    claude.done.servers.map(({ name, status }) => [name, status]),
    [
      ['github', 'imported'],
      ['search-find', 'imported'],
      [null, 'skipped'],
      [null, 'skipped']
    ]
  )
  const { github, 'search-find': search } = await claude.servers()
  t.alike([github?.command, github?.env, github?.cwd], [['npx', '-y', 'server'], { TOKEN: '${TOKEN}', A: '${B:-b}' }, claude.project])
  t.alike([search?.url, search?.headers], ['https://${HOST}/mcp', { authorization: 'Bearer ${KEY}' }])

  const inputs = '"inputs": [{ "type": "promptString", "id": "api-key", "password": true }],'
  const code = await imports(
    t,
    '.vscode/mcp.json',
    `{ // of VS Code\n ${inputs} "servers": { "my_db": { "type": "stdio", "command": "\${workspaceFolder}/db", "env": { "K": "\${input:api-key}" } }, } }`
  )
  const { my_db: db } = await code.servers()
  t.alike([db?.command, db?.env], [[`${code.project}/db`], { K: '${API_KEY}' }])

  const codex = await imports(
    t,
    'config.toml',
    '[mcp_servers.docs]\ncommand = "docs"\nenv_vars = ["TOKEN"]\ntool_timeout_sec = 5\n[mcp_servers.web]\nurl = "https://h/"\nbearer_token_env_var = "T"\n'
  )
  const { docs, web } = await codex.servers()
  t.alike([docs?.env, docs?.timeoutMs, web?.headers], [{ TOKEN: '${TOKEN}' }, 5000, { authorization: 'Bearer ${T}' }])
})

test('an import keeps comments and entries of the config, says what it refuses, and changes nothing the second time', async (t) => {
  const config = '# mine\nnode: { name: ann }\nmcp:\n  servers:\n    files: { command: [old] } # keep\n'
  const one = await imports(
    t,
    '.cursor/mcp.json',
    {
      mcpServers: {
        files: { command: 'new' },
        old: { type: 'sse', url: 'https://h/sse' },
        open: { command: 'a', args: ['${config:x}'] },
        less: { command: 'a', disabled_tools: ['rm'] },
        'A B': { command: 'a' },
        'a-b': { command: 'b' },
        a_b: { command: 'c' }
      }
    },
    config
  )
  t.is(one.done.code, 8)
  t.alike(
    one.done.servers.map(({ from, status }) => `${from} ${status}`),
    ['files skipped', 'old refused', 'open refused', 'less refused', 'A B imported', 'a-b refused', 'a_b refused']
  )
  t.is(await fs.readFile(one.done.backup ?? '', 'utf8'), config)
  const text = await fs.readFile(one.target, 'utf8')
  t.ok(text.includes('# mine') && text.includes('# keep'))
  t.alike((await one.servers())['files']?.command, ['old'])
  const second = await one.again()
  t.is(second.servers.find(({ from }) => from === 'A B')?.status, 'unchanged')
  t.is(await fs.readFile(one.target, 'utf8'), text)
})

test('an import writes nothing for a dry run, and a file without servers is an error', async (t) => {
  const one = await imports(t, 'a.json', { mcpServers: { x: { command: 'x' } } })
  await fs.rm(one.target)
  t.alike(
    (await one.again('--dry-run')).servers.map(({ status }) => status),
    ['imported']
  )
  t.is(await fs.stat(one.target).catch(() => null), null)
  for (const [name, content] of [
    ['b.json', '{"a": 1}'],
    ['c.json', '{"servers": '],
    ['d.toml', 'x = ']
  ] as const) {
    const { done } = await imports(t, name, content)
    t.ok(done.code !== 0 && done.stderr.includes('CONFIG_INVALID') && done.stderr.includes(name), done.stderr)
  }
})
