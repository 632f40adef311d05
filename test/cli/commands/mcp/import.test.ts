import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { expandReferences } from '../../../../src/config/references.js'
import { loadConfig } from '../../../../src/config/load.js'
import type { McpServerSetting } from '../../../../src/config/mcp-servers.js'
import { tempDir } from '../../../support/tmp.js'
import { run } from '../../command-line.js'

interface Report {
  readonly backup: string | null
  readonly hasSecrets?: boolean
  readonly servers: readonly {
    readonly from: string
    readonly name: string | null
    readonly status: string
    readonly reason: string | null
    readonly secrets: readonly string[]
    readonly variables: readonly { readonly name: string }[]
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
      'Search & Find': {
        type: 'http',
        url: 'https://${HOST}/mcp',
        headers: { authorization: 'Bearer ${KEY}' },
        oauth: {}
      },
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
  t.alike(
    [github?.command, github?.env, github?.cwd],
    [['npx', '-y', 'server'], { TOKEN: '${TOKEN}', A: '${B:-b}' }, claude.project]
  )
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

test('values of a file that may be secrets make the config private, and the report names their places', async (t) => {
  const cases: readonly (readonly [server: object, secrets: readonly string[]])[] = [
    [{ command: 'x', env: { TOKEN: 'sk-1', OTHER: '${OTHER}' } }, ['env.TOKEN']],
    [{ command: 'x', env: { TOKEN: '${TOKEN:-sk-1}' } }, ['env.TOKEN']],
    [{ url: 'https://h/', headers: { authorization: 'Bearer sk-1' } }, ['headers.authorization']],
    [{ url: 'https://h/?key=sk-1' }, ['url']],
    [{ command: 'x', args: ['--api-key', 'sk-1'] }, ['args']],
    [{ command: 'x', args: ['-v'], env: { TOKEN: '${TOKEN}' } }, []],
    [{ url: 'https://h/', headers: { authorization: 'Bearer ${KEY}' } }, []]
  ]
  for (const [server, secrets] of cases) {
    const home = await tempDir(t)
    const [file, target] = [path.join(home, 'a.json'), path.join(home, 'config.yaml')]
    await fs.writeFile(file, JSON.stringify({ mcpServers: { x: server } }))
    await fs.writeFile(target, '# mine\n', { mode: 0o644 })
    const dry = await run(['mcp', 'import', file, '--dry-run', '--json'], { home })
    const { servers, hasSecrets } = JSON.parse(dry.stdout) as Report
    t.alike([servers[0]?.secrets, hasSecrets], [secrets, secrets.length > 0])
    const { stdout } = await run(['mcp', 'import', file], { home })
    t.is((await fs.stat(target)).mode & 0o777, secrets.length > 0 ? 0o600 : 0o644, JSON.stringify(server))
    t.is(stdout.includes('mode 600'), secrets.length > 0)
    t.ok(secrets.every((place) => stdout.includes(place)) && !stdout.includes('sk-1'), stdout)
  }
})

test('a text means in the config what it meant for the client, or its server is refused', async (t) => {
  const servers = {
    escaped: { command: 'x', args: ['$${HOME}'] },
    value: { command: 'x', env: { A: 'env:HOME' } },
    header: { url: 'https://h/', headers: { a: 'env:HOME' } },
    argument: { command: 'x', args: ['env:HOME', '$HOME', '$$'] },
    question: { command: 'x', env: { A: '${input:path}', B: '${input:api-key}', C: '${input:\u043a}' } }
  }
  const { done, servers: config } = await imports(t, '.mcp.json', { mcpServers: servers })
  t.alike(
    done.servers.map(({ from, status }) => `${from} ${status}`),
    ['escaped refused', 'value refused', 'header refused', 'argument imported', 'question imported']
  )
  t.ok(done.servers.slice(0, 3).every(({ reason }) => reason?.endsWith('in another form')))
  const { argument, question } = await config()
  t.alike(argument?.command, ['x', 'env:HOME', '$HOME', '$$'])
  t.alike(
    Object.values(question?.env ?? {}),
    ['${INPUT_PATH}', '${API_KEY}', '${INPUT__}'],
    'an answer is no variable of a shell'
  )

  const gemini = await imports(t, '.gemini/settings.json', {
    mcpServers: {
      a: { command: 'x', args: ['$A', '${B}', '$1'], env: { TOKEN: '$TOKEN' } },
      b: { command: 'x', args: ['$$A'] }
    }
  })
  const { a } = await gemini.servers()
  t.alike([a?.command, a?.env], [['x', '${A}', '${B}', '$1'], { TOKEN: '${TOKEN}' }], 'Gemini CLI replaces $NAME too')
  t.is(gemini.done.servers[1]?.status, 'refused')

  const odd = await imports(t, '$${X} ${Y}/.mcp.json', {
    mcpServers: { a: { command: '${workspaceFolder}/x' }, b: { command: 'x', cwd: 'sub' } }
  })
  const project = path.join(odd.project, '$${X} ${Y}')
  const { a: one, b: two } = await odd.servers()
  const expanded = [one?.command?.[0], one?.cwd, two?.cwd].map((text) => expandReferences(text ?? '', {}))
  t.alike(
    expanded.map((text) => text.ok && text.text),
    [path.join(project, 'x'), project, path.join(project, 'sub')],
    'no part of a path is a reference'
  )
})

test('a file of the user belongs to no project, and the projects in the file of Claude Code are their own', async (t) => {
  const home = await tempDir(t)
  for (const [name, isOfUser] of [
    ['.cursor/mcp.json', true],
    ['project/.cursor/mcp.json', false]
  ] as const) {
    const file = path.join(home, name)
    await fs.mkdir(path.dirname(file), { recursive: true })
    await fs.writeFile(
      file,
      JSON.stringify({ mcpServers: { x: { command: 'x' }, y: { command: '${workspaceFolder}/y' } } })
    )
    const ran = await run(['mcp', 'import', file, '--json'], {
      home: path.join(home, `node-${isOfUser}`),
      env: { HOME: home }
    })
    t.alike(
      (JSON.parse(ran.stdout) as Report).servers.map(({ status }) => status),
      isOfUser ? ['imported', 'refused'] : ['imported', 'imported']
    )
    const { config } = await loadConfig({ file: path.join(home, `node-${isOfUser}`, 'config.yaml'), env: {} })
    t.is(config.mcp.servers['x']?.cwd, isOfUser ? null : path.join(home, 'project'))
  }
  const claude = await imports(t, 'claude.json', {
    mcpServers: {},
    mcp: { servers: { inner: { command: 'x' } } },
    projects: {
      '/a': { mcpServers: { one: { command: 'x' } } },
      '/b': { mcpServers: { one: { command: 'y' }, constructor: { command: 'z' } } },
      '/c': {}
    }
  })
  t.alike(
    claude.done.servers.map(({ from, status }) => `${from} ${status}`),
    ['inner imported', 'one imported', 'one refused', 'constructor imported']
  )
  t.is((await claude.servers())['one']?.cwd, '/a')
})

test('an import of which nothing could be taken fails, and one that took a part is partly done', async (t) => {
  const [good, bad, off] = [{ command: 'x' }, { type: 'sse', url: 'https://h/' }, { command: 'x', disabled: true }]
  for (const [mcpServers, code] of [
    [{ bad }, 78],
    [{ bad, worse: 1 }, 78],
    [{ bad, off }, 78],
    [{ bad, good }, 8],
    [{ off }, 0],
    [{ good, off }, 0],
    [{}, 0]
  ] as const) {
    const one = await imports(t, 'a.json', { mcpServers })
    t.is(one.done.code, code, JSON.stringify(mcpServers))
    t.is((await one.again()).code, code, 'the second time too')
    const isThere = await fs.stat(one.target).then(
      () => true,
      () => false
    )
    t.is(isThere, 'good' in mcpServers, 'without a server nothing is written')
  }
})

test('a config that takes no further servers is left as it is, with a next step', async (t) => {
  const config = 'node: { name: ann }\n...\n'
  const one = await imports(t, 'a.json', { mcpServers: { x: { command: 'x' } } }, config)
  t.ok(one.done.code === 78 && one.done.stderr.includes('add them by hand'), one.done.stderr)
  t.is(await fs.readFile(one.target, 'utf8'), config)
})

test('a server that is nested too deeply is refused, and the others are imported', async (t) => {
  const deep = `${'['.repeat(3000)}${']'.repeat(3000)}`
  const { done } = await imports(
    t,
    'deep.json',
    `{"mcpServers":{"deep":{"command":"x","args":${deep}},"flat":{"command":"x"}}}`
  )
  t.alike(
    done.servers.map(({ status }) => status),
    ['refused', 'imported']
  )
})

test('a server that another program adds during an import stays', async (t) => {
  const { again, target, project } = await imports(t, 'one.json', { mcpServers: { one: { command: 'x' } } }, '')
  const file = path.join(project, 'one.json')
  const theirs = 'mcp: { servers: { one: { command: theirs } } }\n'
  await fs.writeFile(target, '')
  const realpath = fs.realpath
  t.teardown(() => {
    fs.realpath = realpath
  })
  // The file of the client is read after the config was loaded.
  fs.realpath = (async (place: string) => {
    if (place === file) await fs.writeFile(target, theirs)
    return await realpath(place)
  }) as typeof fs.realpath
  const { code, stderr } = await again()
  t.ok(code !== 0 && stderr.includes('CONFLICT'), stderr)
  t.is(await fs.readFile(target, 'utf8'), theirs)
})

test('a reference of one client is resolved in its file, literal in files of others, and else refused', async (t) => {
  const entry = { command: 'node', args: ['s.js', '$GVAR'], env: { FOO: '$GVAR' } }
  const [literal, resolved] = [
    ['node', 's.js', '$GVAR'],
    ['node', 's.js', '${GVAR}']
  ]
  for (const [name, expected] of [
    ['.gemini/settings.json', resolved],
    ['.mcp.json', literal],
    ['.cursor/mcp.json', literal],
    ['.vscode/mcp.json', literal],
    ['servers.json', null],
    ['settings.json', null]
  ] as const) {
    const { done, servers } = await imports(t, name, { mcpServers: { gem: entry } })
    t.is(done.servers[0]?.status, expected === null ? 'refused' : 'imported', name)
    if (expected === null) t.ok(done.servers[0]?.reason?.includes('write ${NAME}'), done.servers[0]?.reason ?? name)
    t.alike((await servers())['gem']?.command, expected ?? undefined, name)
  }
  for (const [text, status] of [
    ['$lower', 'refused'],
    ['Bearer $KEY', 'refused'],
    ['$HOME/x', 'refused'],
    ['--key=$A_1', 'refused'],
    ['pa$WORD', 'imported'],
    ['$1', 'imported'],
    ['$$', 'imported'],
    ['a $5 b', 'imported'],
    ['${KEY}', 'imported']
  ] as const)
    for (const more of [{ args: [text] }, { env: { A: text } }]) {
      const { done } = await imports(t, 'servers.json', { mcpServers: { x: { command: 'x', ...more } } })
      t.is(done.servers[0]?.status, status, text)
    }
})

test('a predefined variable of VS Code that only the editor resolves is refused by its name', async (t) => {
  for (const [text, named] of [
    ['${file}', 'file'],
    ['--at=${fileBasename}', 'fileBasename'],
    ['${fileExtname}', 'fileExtname'],
    ['${cwd}/x', 'cwd'],
    ['${lineNumber}', 'lineNumber'],
    ['${selectedText}', 'selectedText'],
    ['${execPath}', 'execPath'],
    ['${relativeFile}', 'relativeFile'],
    ['${fileWorkspaceFolder:app}', 'fileWorkspaceFolder'],
    ['${env:file}', null],
    ['${file:-x}', null],
    ['${files}', null],
    ['${FILE}', null],
    ['${userHome}', null],
    ['${workspaceFolder}', null]
  ] as const)
    for (const more of [{ args: [text] }, { env: { A: text } }]) {
      const { done } = await imports(t, '.vscode/mcp.json', { servers: { x: { command: 'x', ...more } } })
      const [one] = done.servers
      t.is(one?.status, named === null ? 'imported' : 'refused', text)
      if (named !== null) t.ok(one?.reason?.includes(`\${${named}}`), one?.reason ?? text)
    }
})

test('a member of a server that is null is as one that is absent, in the files of every client', async (t) => {
  const rest = {
    cwd: null,
    disabled: null,
    enabled: null,
    envFile: null,
    timeout: null,
    excludeTools: null,
    gallery: null
  }
  const local = { ...rest, type: null, command: 'x', args: null, env: null, url: null, httpUrl: null, headers: null }
  const remote = { ...rest, type: 'http', command: null, args: null, env: null, url: 'https://x.example/mcp' }
  for (const [name, key] of [
    ['servers.json', 'mcpServers'],
    ['.vscode/mcp.json', 'servers'],
    ['.gemini/settings.json', 'mcpServers'],
    ['.codex/servers.json', 'mcp_servers']
  ] as const) {
    const servers = { a: local, b: { ...remote, headers: { 'x-a': null, 'x-b': 'c' } }, c: null }
    const { done, servers: written } = await imports(t, name, { [key]: servers })
    t.alike(
      done.servers.map(({ from, status }) => [from, status]),
      [
        ['a', 'imported'],
        ['b', 'imported'],
        ['c', 'skipped']
      ],
      JSON.stringify(done.servers)
    )
    const { a, b } = await written()
    t.alike([a?.command, a?.url, b?.url, b?.headers], [['x'], null, 'https://x.example/mcp', { 'x-b': 'c' }])
  }
})
