import test, { type Assert } from 'brittle'
import {
  type ServerEntry,
  serverEntry,
  serverName,
  stableProgram,
  stateOf,
  warningsOf
} from '../../../src/cli/clients/entry.js'
import { failsWith } from '../../support/fails.js'

const SOURCES = {
  execPath: '/opt/node/bin/node',
  bin: '/opt/a2a/bin/a2a-node.js',
  home: null,
  isPortable: false,
  caller: []
}
const ENTRY: ServerEntry = serverEntry({ isTyped: false }, SOURCES)

test('an entry names Node.js and the script by their places, and the home that was named', (t: Assert) => {
  t.alike(ENTRY, { command: '/opt/node/bin/node', args: ['/opt/a2a/bin/a2a-node.js', 'mcp', 'serve'] })
  t.alike(serverEntry({ isTyped: true }, { ...SOURCES, home: '/srv/node 2' }), {
    type: 'stdio',
    command: '/opt/node/bin/node',
    args: ['/opt/a2a/bin/a2a-node.js', 'mcp', 'serve', '--home', '/srv/node 2']
  })
  t.alike(serverEntry({ isTyped: false }, { ...SOURCES, isPortable: true }), {
    command: 'a2a-node',
    args: ['mcp', 'serve']
  })
})

test('an entry is ours when it starts a2a-node mcp serve, wherever that lies', (t: Assert) => {
  const outdated = [
    { command: 'a2a-node', args: ['mcp', 'serve'] },
    {
      command: 'C:\\Program Files\\nodejs\\node.exe',
      args: ['C:\\apps\\a2a-node.js', 'mcp', 'serve', '--home', 'D:\\node']
    },
    { command: 'npx', args: ['-y', 'a2a-node', 'mcp', 'serve'] },
    { ...ENTRY, args: [...ENTRY.args, '--home', '/srv'] }
  ]
  for (const one of outdated) t.is(stateOf(one, ENTRY), 'outdated', JSON.stringify(one))
  const foreign = [
    null,
    'a2a-node mcp serve',
    [],
    { url: 'https://a2a-node.example/mcp/serve' },
    { command: 'a2a-node' },
    { command: 'a2a-node', args: 'mcp serve' },
    { command: 'a2a-node', args: ['serve', 'mcp'] },
    { command: 'other', args: ['mcp', 'serve', 'a2a-node'] },
    { command: 'my-a2a-node', args: ['mcp', 'serve'] }
  ]
  for (const one of foreign) t.is(stateOf(one, ENTRY), 'foreign', JSON.stringify(one))
  t.is(stateOf(undefined, ENTRY), 'absent')
  t.is(stateOf({ ...ENTRY, env: { A: '1' } }, ENTRY), 'same', 'further keys are no difference')
})

test('Node.js of Homebrew is named by the place that an upgrade keeps', (t: Assert) => {
  const [version, stable] = ['/opt/homebrew/Cellar/node@22/22.9.0/bin/node', '/opt/homebrew/opt/node@22/bin/node']
  t.is(
    stableProgram(version, (file) => (file === stable ? version : null)),
    stable
  )
  t.is(
    stableProgram(version, () => '/opt/homebrew/Cellar/node@22/22.9.1/bin/node'),
    version,
    'which leads to another version'
  )
  t.is(
    stableProgram(version, () => null),
    version,
    'which is not there'
  )
  t.is(
    stableProgram('/usr/bin/node', (file) => file),
    '/usr/bin/node'
  )
})

const INSTALL = 'npm install --global /p/a2a-node-0.1.0.tgz'

test('a copy in the cache of npx is warned of', (t: Assert) => {
  t.is(warningsOf(ENTRY, INSTALL).length, 0)
  for (const bin of [
    '/home/ada/.npm/_npx/1f/node_modules/a2a-node/bin/a2a-node.js',
    'C:\\npm\\_npx\\1f\\bin\\a2a-node.js'
  ]) {
    t.is(warningsOf(serverEntry({ isTyped: false }, { ...SOURCES, bin }), INSTALL)[0]?.includes(INSTALL), true, bin)
  }
})

test('a server has a name that every client takes', async (t: Assert) => {
  for (const name of ['a2a-node', 'home_2', 'X']) t.is(serverName(name), name)
  for (const name of ['', 'a b', 'a.b', '__proto__', '-a', 'a"b', 'ä', 'x'.repeat(65)]) {
    await failsWith(t, 'USAGE', () => serverName(name))
  }
})
