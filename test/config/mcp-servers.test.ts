import { writeFileSync } from 'node:fs'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import type { ConfigFault } from '../../src/config/candidate.js'
import { type LoadedConfig, loadConfig } from '../../src/config/load.js'
import { allSettings, shownConfig } from '../../src/config/settings.js'
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
    return (error.data as { faults: ConfigFault[] }).faults.map(({ line, key, reason }) => `${line ?? 'env'} ${key}: ${reason}`)
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

test('each fault is told with the line where it stands, and without the value', async (t: Assert) => {
  const found = await faults(t, [
    ...SERVERS,
    '    Upper: { command: [a] }',
    '    both:',
    '      command: [a]',
    '      url: http://host/',
    '    none:',
    '      tier: L1',
    '    wrong:',
    '      command: a program',
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
  has('10 mcp.servers.wrong.command: must be a list')
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
