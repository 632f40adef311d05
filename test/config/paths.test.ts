import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import fc from 'fast-check'
import test, { type Assert } from 'brittle'
import { resolveHome, SOCKET_PATH_MAX } from '../../src/config/paths.js'
import { NodeError } from '../../src/kit/errors.js'
import { holds } from '../support/holds.js'

test('--home puts everything of a node under one directory', (t: Assert) => {
  const paths = resolveHome({ home: '/srv/n1', env: { HOME: '/home/me', A2A_NODE_HOME: '/elsewhere' } })
  t.is(paths.home, '/srv/n1')
  const { isChosen, ...places } = paths
  for (const one of Object.values(places)) t.ok(one.startsWith('/srv/n1'), one)
  t.ok(isChosen)
  t.is(paths.configFile, '/srv/n1/config.yaml')
  t.is(paths.socket, '/srv/n1/run/control.sock')
})

test('A2A_NODE_HOME stands in for the flag', (t: Assert) => {
  const { store, isChosen } = resolveHome({ env: { A2A_NODE_HOME: '/srv/n2' } })
  t.alike([store, isChosen], ['/srv/n2/store', true])
})

test('without a home the XDG directories are used, relative ones ignored', (t: Assert) => {
  const plain = resolveHome({ env: { HOME: '/home/me', XDG_DATA_HOME: 'relative' } })
  t.alike([plain.home, plain.isChosen], ['/home/me/.local/share/a2a-node/default', false])
  t.is(plain.configFile, '/home/me/.config/a2a-node/config.yaml')
  t.is(plain.agents, '/home/me/.config/a2a-node/agents')
  const moved = resolveHome({ env: { HOME: '/home/me', XDG_DATA_HOME: '/data', XDG_CONFIG_HOME: '/conf' } })
  t.is(moved.home, '/data/a2a-node/default')
  t.is(moved.configFile, '/conf/a2a-node/config.yaml')
})

test('a socket path never exceeds the limit of the system, and is the same for the same home', async (t: Assert) => {
  const segment = fc.string({ unit: fc.constantFrom('a', 'b', 'ü', '-'), minLength: 1, maxLength: 60 })
  await holds(
    t,
    fc.property(fc.array(segment, { minLength: 1, maxLength: 6 }), (parts) => {
      const home = `/${parts.join('/')}`
      const env = { TMPDIR: '/tmp' }
      const { socket } = resolveHome({ home, env })
      return Buffer.byteLength(socket) <= SOCKET_PATH_MAX && socket === resolveHome({ home, env }).socket
    }),
    200
  )
})

test('a long home gets a hashed socket that differs from that of another long home', (t: Assert) => {
  const env = { XDG_RUNTIME_DIR: '/run/user/1', TMPDIR: '/tmp' }
  const one = resolveHome({ home: `/${'x'.repeat(120)}`, env }).socket
  const two = resolveHome({ home: `/${'x'.repeat(121)}`, env }).socket
  t.ok(one.startsWith('/run/user/1/a2a-node/'))
  t.not(one, two)
})

test('a socket that is already there is found although the environment changed', (t: Assert) => {
  const dir = mkdtempSync(path.join(os.tmpdir(), 'paths-'))
  t.teardown(() => rmSync(dir, { recursive: true }))
  const home = `/${'y'.repeat(120)}`
  const served = resolveHome({ home, env: { TMPDIR: dir } }).socket
  mkdirSync(path.dirname(served), { recursive: true })
  writeFileSync(served, '')
  t.is(resolveHome({ home, env: { TMPDIR: dir, XDG_RUNTIME_DIR: path.join(dir, 'none') } }).socket, served)
})

test('a place in the shared directory that somebody else took, or that leads elsewhere, is no place for the socket', (t: Assert) => {
  const dir = mkdtempSync(path.join(os.tmpdir(), 'paths-'))
  t.teardown(() => rmSync(dir, { recursive: true }))
  const home = `/${'y'.repeat(120)}`
  const env = { TMPDIR: dir, XDG_CACHE_HOME: path.join(dir, 'cache') }
  const shared = path.dirname(resolveHome({ home, env }).socket)
  t.is(path.dirname(shared), dir)
  symlinkSync(dir, shared)
  t.ok(resolveHome({ home, env }).socket.startsWith(path.join(dir, 'cache', 'a2a-node', 'run')))
})

test('no short enough place for the socket is PATH_TOO_LONG', async (t: Assert) => {
  const env = {
    TMPDIR: `/${'t'.repeat(100)}`,
    XDG_RUNTIME_DIR: `/${'r'.repeat(100)}`,
    XDG_CACHE_HOME: `/${'c'.repeat(100)}`
  }
  try {
    resolveHome({ home: `/${'z'.repeat(120)}`, env })
    t.fail('accepted')
  } catch (error) {
    t.ok(error instanceof NodeError && error.code === 'PATH_TOO_LONG')
  }
})
