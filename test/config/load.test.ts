import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import fc from 'fast-check'
import test, { type Assert } from 'brittle'
import type { ConfigFault } from '../../src/config/candidate.js'
import { loadConfig, type LoadOptions } from '../../src/config/load.js'
import { allSettings, envName, isFileOnly } from '../../src/config/settings.js'
import { NodeError } from '../../src/kit/errors.js'
import { holds } from '../support/holds.js'

function configFile(t: Assert, text: string): string {
  const dir = mkdtempSync(path.join(os.tmpdir(), 'config-'))
  t.teardown(() => rmSync(dir, { recursive: true }))
  const file = path.join(dir, 'config.yaml')
  writeFileSync(file, text)
  return file
}

async function faultsOf(options: LoadOptions): Promise<readonly ConfigFault[]> {
  try {
    await loadConfig(options)
  } catch (error) {
    if (error instanceof NodeError && error.code === 'CONFIG_INVALID')
      return (error.data as { faults: ConfigFault[] }).faults
    throw error
  }
  return []
}

test('every default passes its own check and a start without settings is all defaults', async (t: Assert) => {
  for (const { path: name, setting } of allSettings()) t.ok(setting.schema.safeParse(setting.fallback).success, name)
  const { config } = await loadConfig({ file: '/nowhere/config.yaml', env: {} })
  t.is(config.given.size, 0)
  t.is(config.network.kind, 'public')
  t.is(config.node.shutdownTimeoutMs, 5000)
  t.is(config.swarm.leaseMs, 5000)
})

test('flags have precedence over environment over file over defaults, for any values', async (t: Assert) => {
  const values = fc.record({
    flag: fc.option(fc.integer({ min: 1, max: 2048 })),
    env: fc.option(fc.integer({ min: 1, max: 2048 })),
    file: fc.option(fc.integer({ min: 1, max: 2048 }))
  })
  const file = configFile(t, '')
  await holds(
    t,
    fc.asyncProperty(values, async (given) => {
      writeFileSync(file, given.file === null ? '' : `tasks:\n  maxInFlight: ${given.file}\n`)
      const { config, origins } = await loadConfig({
        file,
        env: given.env === null ? {} : { A2A_NODE_TASKS_MAX_IN_FLIGHT: String(given.env) },
        flags: given.flag === null ? [] : [{ path: 'tasks.maxInFlight', flag: '--x', value: given.flag }]
      })
      const wanted = given.flag ?? given.env ?? given.file
      const source =
        given.flag !== null ? 'flag' : given.env !== null ? 'env' : given.file !== null ? 'file' : 'default'
      return (
        config.tasks.maxInFlight === (wanted ?? 2048) &&
        origins.get('tasks.maxInFlight')?.source === source &&
        config.given.has('tasks.maxInFlight') === (wanted !== null)
      )
    })
  )
})

/** For settings that take less than others of their form. */
const OWN_SAMPLES: Readonly<Record<string, string>> = {
  'swarm.leaseMs': '9s',
  'http.origins': 'https://a.example,http://b:1',
  'http.publicUrl': 'https://a.example',
  'tcp.addresses': '10.0.0.5:7422',
  'websocket.urls': 'wss://a.example,ws://b:1',
  'websocket.via': 'wss://a.example'
}

test('every setting but those of the file alone can be given by its variable', async (t: Assert) => {
  const samples: Record<string, string> = {
    text: 'h:1',
    number: '7',
    duration: '2s',
    boolean: 'false',
    list: 'a:1,b:2',
    directories: '/a,/b'
  }
  for (const { path: name, setting } of allSettings()) {
    if (isFileOnly(setting.form)) continue
    const choice = setting.allowed.includes(' | ') ? setting.allowed.split(' | ').at(-1) : samples[setting.form]
    const value = OWN_SAMPLES[name] ?? choice ?? ''
    const { config } = await loadConfig({ file: '/nowhere', env: { [envName(name)]: value } })
    t.ok(config.given.has(name), `${envName(name)}=${value}`)
  }
})

test('the port of the local network has a short variable of its own, which wins', async (t: Assert) => {
  const { config } = await loadConfig({
    file: '/nowhere',
    env: { A2A_NODE_NETWORK_LOCAL_PORT: '1000', A2A_NODE_LOCAL_PORT: '2000' }
  })
  t.is(config.network.localPort, 2000)
})

test('durations may be written as people write them', async (t: Assert) => {
  const file = configFile(t, 'swarm:\n  deadlineMs: 5m\nledger: { defaultTtlMs: 60000 }\n')
  const { config } = await loadConfig({ file, env: {} })
  t.is(config.swarm.deadlineMs, 300_000)
  t.is(config.ledger.defaultTtlMs, 60_000)
})

test('directories of a file belong to the file, never to the current directory', async (t: Assert) => {
  const file = configFile(t, 'agents:\n  dirs: [more, /abs, ~/own]\n')
  const { config } = await loadConfig({
    file,
    env: {},
    flags: [{ path: 'agents.grants', flag: '--grants', value: ['here'] }]
  })
  t.alike(config.agents.dirs, [path.join(path.dirname(file), 'more'), '/abs', path.join(os.homedir(), 'own')])
  t.alike(config.agents.grants, [path.resolve('here')])
  const [fault] = await faultsOf({ file: '/nowhere', env: { A2A_NODE_AGENTS_DIRS: 'relative' } })
  t.is(fault?.key, 'agents.dirs')
})

test('an unknown key is named with file, line and the nearest known one', async (t: Assert) => {
  const file = configFile(t, 'network:\n  kind: local\n  bootstrp: []\nswram:\n  leaseMs: 1\n')
  const faults = await faultsOf({ file, env: {} })
  t.is(faults.length, 2)
  t.is(faults[0]?.line, 3)
  t.alike(faults[0]?.nearest, ['network.bootstrap'])
  t.is(faults[1]?.key, 'swram')
  t.alike(faults[1]?.nearest, ['swarm'])
})

test('a value of a wrong type or out of bounds is reported with its line and the allowed values', async (t: Assert) => {
  const file = configFile(
    t,
    'node:\n  shutdownTimeoutMs: 1h\nlog:\n  level: loud\nagents: yes please\nnetwork:\n  bootstrap: [nowhere]\n'
  )
  const faults = await faultsOf({ file, env: { A2A_NODE_AGENTS_STARTERS: 'maybe' } })
  t.alike(faults.map((one) => one.key).sort(), [
    'agents',
    'agents.starters',
    'log.level',
    'network.bootstrap',
    'node.shutdownTimeoutMs'
  ])
  const level = faults.find((one) => one.key === 'log.level')
  t.is(level?.where, `${file}:4`)
  t.is(level?.allowed, 'debug | info | warn | error')
  t.is(faults.find((one) => one.key === 'agents.starters')?.where, 'A2A_NODE_AGENTS_STARTERS')
})

test('the URL from outside is kept as URLs are spelled; a URL that clients cannot reach is refused', async (t: Assert) => {
  const good = {
    'https://node.example.org': 'https://node.example.org',
    'HTTPS://Node.Example.org:443/': 'https://node.example.org',
    'http://10.0.0.5:8421': 'http://10.0.0.5:8421',
    'https://example.org/mesh/node//': 'https://example.org/mesh/node',
    'http://[fd00::7]:8421/': 'http://[fd00::7]:8421'
  }
  for (const [text, kept] of Object.entries(good)) {
    const { config } = await loadConfig({ file: '/nowhere', env: { A2A_NODE_HTTP_PUBLIC_URL: text } })
    t.is(config.http.publicUrl, kept, text)
  }
  const schemes = [
    'node.example.org',
    'node.example.org:8421',
    '/node',
    'ftp://node.example.org',
    'https:',
    'https:///node',
    'https://'
  ]
  const parts = [
    'https://x?a',
    'https://x#a',
    'https://me@x',
    'https://me:pw@x/',
    'https://x/a b',
    'https://x\\a',
    `https://x/${'a'.repeat(512)}`
  ]
  const nowhere = ['http://0.0.0.0:8421', 'http://[::]:8421', 'http://0:8421', 'https://x:0', 'https://x:70000']
  for (const text of [...schemes, ...parts, ...nowhere]) {
    const [fault] = await faultsOf({ file: '/nowhere', env: { A2A_NODE_HTTP_PUBLIC_URL: text } })
    t.is(fault?.key, 'http.publicUrl', text)
    t.ok(fault?.allowed?.startsWith('http:// or https:// and a host'), text)
  }
})

test('a heartbeat longer than half a lease is refused', async (t: Assert) => {
  const [fault] = await faultsOf({ file: '/nowhere', env: { A2A_NODE_SWARM_LEASE_MS: '1500' } })
  t.is(fault?.key, 'swarm.heartbeatMs')
  t.is(fault?.where, 'A2A_NODE_SWARM_LEASE_MS')
})

test('a mistyped variable is refused, a foreign one ignored', async (t: Assert) => {
  t.is((await faultsOf({ file: '/nowhere', env: { A2A_NODE_NETWORK_KNID: 'local' } })).length, 1)
  t.is((await faultsOf({ file: '/nowhere', env: { A2A_NODE_NETWRK_KIND: 'local' } })).length, 1)
  t.is((await faultsOf({ file: '/nowhere', env: { A2A_NODE_IMAGE: 'x', A2A_NODE_HOME: '/x' } })).length, 0)
})

test('text that is no YAML mapping is CONFIG_INVALID with its line', async (t: Assert) => {
  for (const [text, line] of [
    ['node: [1,\n', 2],
    ['- a\n', 1],
    ['a: 1\na: 2\n', 2],
    ['just words\n', 1]
  ] as const) {
    const [fault] = await faultsOf({ file: configFile(t, text), env: {} })
    t.is(fault?.line, line, text)
  }
})

test('aliases cannot make a small file large', async (t: Assert) => {
  const file = configFile(t, 'agents:\n  dirs: &a [x, x, x]\n  grants: *a\n')
  const [fault] = await faultsOf({ file, env: {} })
  t.is(fault?.key, 'agents.grants')
})

test('no text of a config file throws anything but CONFIG_INVALID', async (t: Assert) => {
  const file = configFile(t, '')
  const part = fc.constantFrom(
    'node:',
    'network',
    ': ',
    '\n',
    '  ',
    '- ',
    'kind: local',
    '&a',
    '*a',
    '!!js/x',
    '{',
    '}',
    '[',
    ']',
    '"',
    '\u0000',
    '__proto__: 1'
  )
  await holds(
    t,
    fc.asyncProperty(fc.array(part, { maxLength: 30 }), async (parts) => {
      writeFileSync(file, parts.join(''))
      await faultsOf({ file, env: {} })
    }),
    300
  )
})
