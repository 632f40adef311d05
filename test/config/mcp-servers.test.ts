import { writeFileSync } from 'node:fs'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import type { ConfigFault } from '../../src/config/candidate.js'
import { type LoadedConfig, loadConfig } from '../../src/config/load.js'
import { allSettings, shownConfig } from '../../src/config/settings.js'
import { secretPlaces } from '../../src/config/mcp-servers.js'
import { NodeError } from '../../src/kit/errors.js'
import { run } from '../cli/command-line.js'
import { tempDir } from '../support/tmp.js'

async function load(t: Assert, lines: readonly string[], env: Record<string, string> = {}): Promise<LoadedConfig> {
  const file = path.join(await tempDir(t), 'config.yaml')
  writeFileSync(file, `${lines.join('\n')}\n`)
  return await loadConfig({ file, env })
}

/** `line key: reason` of each fault. */
async function faults(t: Assert, lines: readonly string[], env: Record<string, string> = {}): Promise<string[]> {
  try {
    await load(t, lines, env)
  } catch (error) {
    if (!(error instanceof NodeError)) throw error
    return (error.data as { faults: ConfigFault[] }).faults.map(
      ({ line, key, reason }) => `${line ?? 'env'} ${key}: ${reason}`
    )
  }
  return []
}

const SERVERS = ['mcp:', '  servers:']

test('a server is a program or an address, and everything else has a default', async (t: Assert) => {
  const { config } = await load(t, [
    ...SERVERS,
    '    time: { command: [time-server, --utc] }',
    '    web: { url: "https://host/mcp", headers: { x-key: env:KEY }, timeout: 10s, maxOutput: 64KiB }'
  ])
  t.alike(config.mcp.servers['time'], {
    command: ['time-server', '--utc'],
    env: {},
    cwd: null,
    url: null,
    headers: {},
    tier: null,
    sandbox: null,
    timeoutMs: 60_000,
    tools: null,
    idempotent: [],
    sideEffect: 'exec',
    concurrency: 4,
    maxOutputBytes: 10_485_760,
    pin: null
  })
  const web = config.mcp.servers['web']
  t.alike(
    [web?.url, web?.headers, web?.timeoutMs, web?.maxOutputBytes, web?.command],
    ['https://host/mcp', { 'x-key': 'env:KEY' }, 10_000, 65_536, null]
  )
})

test('each fault is reported with its line, and without the value', async (t: Assert) => {
  const found = await faults(t, [
    ...SERVERS,
    '    Upper: { command: [a] }',
    '    both:',
    '      command: [a]',
    '      url: http://host/',
    '    none:',
    '      tier: L1',
    '    wrong:',
    '      command: { program: a }',
    '      timeout: soon',
    '      sideEffect: lots',
    '      colour: red',
    '    web:',
    '      url: ftp://secret-host/',
    '      headers: { authorization: [secret] }',
    '      pin: abc',
    '    login: { url: "https://user:secret@host/" }',
    '    operator: { command: [a] }'
  ])
  const has = (start: string): void =>
    t.ok(
      found.some((one) => one.startsWith(start)),
      `${start} in ${JSON.stringify(found)}`
    )
  has('3 mcp.servers.Upper: must be a name')
  has('6 mcp.servers.both.url: excludes command')
  has('7 mcp.servers.none: needs command')
  has('10 mcp.servers.wrong.command: must be a program, or a list')
  has('11 mcp.servers.wrong.timeout: must be a duration')
  has('12 mcp.servers.wrong.sideEffect: must be none')
  has('13 mcp.servers.wrong.colour: no such key')
  has('15 mcp.servers.web.url: must be an http')
  has('16 mcp.servers.web.headers.authorization: must be text')
  has('17 mcp.servers.web.pin: must be a sha256')
  has('18 mcp.servers.login.url: must not hold a password')
  has('19 mcp.servers.operator: is reserved')
  t.absent(JSON.stringify(found).includes('secret'))
})

test('servers are bounded in number, and are no list', async (t: Assert) => {
  const many = Array.from({ length: 33 }, (_, i) => `    s${i}: { command: [a] }`)
  t.ok(/has more than 32 servers/.test((await faults(t, [...SERVERS, ...many])).join()))
  t.ok(/must be a mapping of server names/.test((await faults(t, ['mcp:', '  servers: [a]'])).join()))
})

test('the environment cannot name a program to run', async (t: Assert) => {
  t.alike(await faults(t, [], { A2A_NODE_MCP_SERVERS: '{"x":{"command":["evil"]}}' }), [
    'env A2A_NODE_MCP_SERVERS: can only be set in the config file'
  ])
})

test('arguments with a secret are hidden in every usual form, and others are shown', async (t: Assert) => {
  const hidden = [
    ['--header', 'Authorization: Bearer s3cret'],
    ['-H', 'X-Team:s3cret'],
    ['--header=X-Api-Key: s3cret'],
    ['postgresql://app:s3cret@localhost/db'],
    ['--dsn=redis://:s3cret@host'],
    ['https://host/sse?code=s3cret'],
    ['--pat', 's3cret'],
    ['--db-pass', 's3cret'],
    ['--connect', 'Server=x;Password=s3cret'],
    ['{"apiKey": "s3cret"}']
  ]
  const shown = [
    ['--header', 'Authorization: Bearer ${KEY}'],
    ['-H', 'Authorization:${env:KEY}'],
    ['--api-key', '${KEY}'],
    ['--token=${KEY}'],
    ['--path', '/srv'],
    ['https://host/sse'],
    ['ghcr.io/team/keycloak:1.0'],
    ['--auth', '--port']
  ]
  for (const args of [...hidden, ...shown]) {
    const { config } = await load(t, ['mcp:', '  servers:', `    one: { command: run, args: ${JSON.stringify(args)} }`])
    const isHidden = hidden.includes(args)
    const text = JSON.stringify(shownConfig(config)['mcp']?.['servers'])
    t.is(text.includes('(hidden)'), isHidden, args.join(' '))
    t.absent(text.includes('s3cret'), args.join(' '))
    t.alike(Object.values(config.mcp.servers).flatMap(secretPlaces), isHidden ? ['args'] : [], args.join(' '))
  }
})

test('secrets are never shown: values of variables and headers, queries, arguments that name themselves one', async (t: Assert) => {
  const lines = [
    ...SERVERS,
    '    prog: { command: [serve, --api-key, s3cret, --token=s3cret, --port, "80"], env: { KEY: s3cret, REF: env:KEY } }',
    '    web: { url: "https://host/mcp?key=s3cret", headers: { authorization: Bearer s3cret, x-ref: env:KEY } }'
  ]
  const { config } = await load(t, lines)
  const text = JSON.stringify(shownConfig(config))
  t.absent(text.includes('s3cret'))
  t.ok(text.includes('env:KEY') && text.includes('"80"') && text.includes('https://host/mcp?(hidden)'))
  t.is(shownConfig(config)['node']?.['shutdownTimeoutMs'], 5000)
  const home = await tempDir(t)
  writeFileSync(path.join(home, 'config.yaml'), `${lines.join('\n')}\n`)
  for (const args of [
    ['config', 'show'],
    ['config', 'show', '--json']
  ]) {
    const { stdout, code } = await run(args, { home })
    t.is(code, 0)
    t.ok(stdout.includes('env:KEY') && !stdout.includes('s3cret'))
  }
  t.ok(allSettings().some(({ path: name }) => name === 'mcp.servers'))
})

/** The command of each server, or its address. */
async function starts(t: Assert, servers: Readonly<Record<string, unknown>>): Promise<unknown[]> {
  const { config } = await load(t, [JSON.stringify({ mcp: { servers } })])
  return Object.values(config.mcp.servers).map(({ command, url }) => command ?? url)
}

test('a server is named and started as the files of MCP clients write it', async (t: Assert) => {
  const found = await starts(t, {
    my_files: { command: 'npx', args: ['-y', '@scope/server-files', 8080, true] },
    'a-b_c': { type: 'stdio', command: ['uvx', 'time'], args: ['--utc'] },
    spaces: { command: '/opt/My Tools/serve', args: [] },
    web: { type: 'http', url: 'https://host/mcp' },
    modern: { type: 'streamable-http', url: 'https://host/mcp', headers: { 'x-key': '${KEY}' } },
    camel: { type: 'streamableHttp', url: 'https://${HOST:-host}/mcp' }
  })
  t.alike(found, [
    ['npx', '-y', '@scope/server-files', '8080', 'true'],
    ['uvx', 'time', '--utc'],
    ['/opt/My Tools/serve'],
    'https://host/mcp',
    'https://host/mcp',
    'https://${HOST:-host}/mcp'
  ])
  const wrong = await faults(t, [
    ...SERVERS,
    '    line: { command: npx -y @scope/server }',
    '    old: { type: sse, url: "https://host/sse" }',
    '    pipe: { type: websocket, url: "https://host/" }',
    '    Git Hub: { command: a }'
  ])
  const rules = [
    '3 mcp.servers.line.command: must be a program alone',
    '4 mcp.servers.old.type: is a transport that MCP has replaced'
  ]
  rules.push('5 mcp.servers.pipe.type: must be stdio, http', '6 mcp.servers.Git Hub: must be a name of a-z')
  for (const [i, rule] of rules.entries()) t.ok(wrong[i]?.startsWith(rule), wrong[i])
  t.ok(wrong[3]?.endsWith('; write git-hub'))
  t.ok(/type: http needs url/.test((await faults(t, [...SERVERS, '    x: { type: http, command: a }'])).join()))
  t.ok(/args: goes with command/.test((await faults(t, [...SERVERS, '    x: { url: "http://h/", args: [a] }'])).join()))
  t.ok(
    /a-b: differs from a_b in - and _/.test(
      (await faults(t, [...SERVERS, '    a_b: { command: a }', '    a-b: { command: a }'])).join()
    )
  )
})

test('a reference that no environment can resolve is refused where it is written', async (t: Assert) => {
  const lines = [
    '    args: { command: node, args: ["--key=${input:api-key}"] }',
    '    env: { command: node, env: { ROOT: "${workspaceFolder}/data" } }',
    '    cwd: { command: node, cwd: "${workspaceFolder:app}" }',
    '    list: { command: [node, "${open"] }',
    '    url: { url: "https://host/${config:mcp.path}" }',
    '    head: { url: "https://host/", headers: { x-key: "Bearer ${A B s3cret}" } }'
  ]
  const found = await faults(t, [...SERVERS, ...lines])
  t.alike(
    found.map((one) => one.split(': ')[0]),
    ['3 mcp.servers.args.args.0', '4 mcp.servers.env.env.ROOT', '5 mcp.servers.cwd.cwd'].concat([
      '6 mcp.servers.list.command.1',
      '7 mcp.servers.url.url',
      '8 mcp.servers.head.headers.x-key'
    ])
  )
  t.ok(found.every((one) => one.includes('write ${NAME}')) && !found.join().includes('s3cret'))
  const model = ['llm:', '  providers:', '    local: { url: "http://${HOST}/v1", headers: { x-key: "${input:key}" } }']
  t.is((await faults(t, model)).length, 2, 'other addresses and headers neither pass it on')
})
