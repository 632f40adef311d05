import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import http from 'node:http'
import path from 'node:path'
import test from 'brittle'
import { connect } from '../../src/client.js'
import { ROOT, testMesh, untilOnline, untilTrue, type TestNode } from '../support/nodes.js'

function post(node: TestNode, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = http.request(
      {
        socketPath: node.info.socket,
        path: '/v0/call/node.info',
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers }
      },
      (response) => {
        response.resume()
        resolve(response.statusCode ?? 0)
      }
    )
    request.on('error', reject)
    request.end('{}')
  })
}

test('the control socket is for this user only, and no web page gets through it; refusals are on record', async (t) => {
  const mesh = await testMesh(t)
  const a = await mesh.start('a')
  const socket = await fs.stat(a.info.socket)
  const dir = await fs.stat(path.dirname(a.info.socket))
  t.is(socket.mode & 0o777, 0o600)
  t.is(dir.mode & 0o777, 0o700)
  t.is(await post(a, { host: 'a2a-node' }), 200)
  t.is(await post(a, { host: 'localhost' }), 403)
  t.is(await post(a, { host: 'a2a-node.evil.example' }), 403)
  t.is(await post(a, { host: 'a2a-node', origin: 'http://localhost' }), 403)
  t.is(await post(a, { host: 'a2a-node', origin: 'null' }), 403)
  t.is(await post(a, { host: 'a2a-node', 'sec-fetch-site': 'same-origin' }), 403)
  t.is(await post(a, { host: 'a2a-node', 'content-type': 'text/plain' }), 415)
  const file = path.join(a.home, 'audit', 'audit.ndjson')
  await untilTrue(
    async () => (await fs.readFile(file, 'utf8')).includes('"rule":"origin"'),
    'the refusals are in the audit log'
  )
  t.is((await fs.stat(file)).mode & 0o777, 0o600)
})

test('a clean stop leaves no process, no socket and no temporary file', async (t) => {
  const mesh = await testMesh(t)
  const a = await mesh.start('a')
  t.is((await a.cli(['stop'])).code, 0)
  const { code, signal } = await a.exited
  t.is(code, 0)
  t.is(signal, null)
  await t.exception(fs.stat(a.info.socket), /ENOENT/)
  t.alike((await fs.readdir(path.join(a.home, 'run'))).toSorted(), [], 'nothing in run')
  const b = await mesh.start('a', { home: a.home })
  b.kill('SIGINT')
  t.is((await b.exited).code, 130, 'Ctrl-C is a clean stop too')
  await t.exception(fs.stat(b.info.socket), /ENOENT/)
})

test('a node goes on when nobody reads what it says any more, and still stops cleanly', async (t) => {
  const mesh = await testMesh(t)
  const home = path.join(await mesh.dir(), 'a')
  // With the log at its fullest each line is a write to nobody.
  const env = { A2A_NODE_LOG_LEVEL: 'debug' }
  const bin = path.join(ROOT, 'bin', 'a2a-node.js')
  const a = spawn(process.execPath, [bin, '--home', home, 'start', '--name', 'a'], {
    env: { ...process.env, ...mesh.env, ...env }
  })
  const exited = once(a, 'exit')
  t.teardown(async () => {
    a.kill('SIGKILL')
    await exited
  })
  for (const stream of [a.stdout, a.stderr]) stream.destroy()
  const api = connect({ home })
  const answers = (): Promise<boolean> =>
    api.call('node.info', {}).then(
      () => true,
      () => a.exitCode !== null
    )
  await untilTrue(answers, 'the node answers')
  const { code } = await api.call('invite.create', { trust: 'mine' })
  await untilOnline(await mesh.start('b', { env, join: code }), 1)
  a.kill('SIGTERM')
  t.alike(await exited, [143, null])
  t.alike(await fs.readdir(path.join(home, 'run')), [], 'nothing in run, not even the socket')
})
