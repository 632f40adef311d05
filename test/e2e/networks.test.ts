import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import type { SwarmEvent } from '../../src/ports/swarm-api.js'
import { testMesh, untilOnline, untilPeer, untilTrue, untilAgent } from '../support/nodes.js'

test('a private network: one node serves the bootstrap, others join by the code alone and come back by their home', async (t) => {
  const mesh = await testMesh(t)
  const serve = ['--network', 'private', '--serve-bootstrap', `127.0.0.1:${mesh.port}`]
  const env = { A2A_NODE_NETWORK_KIND: undefined, A2A_NODE_LOCAL_PORT: undefined }
  const a = await mesh.start('a', { args: serve, env })
  const { code } = await a.api.call('invite.create', {})
  const b = await mesh.start('b', { join: code, env })
  await Promise.all([untilOnline(a, 1), untilOnline(b, 1)])
  t.is((await b.api.call('node.status', {})).network, 'private')
  await Promise.all([a.stop(), b.stop()])
  // The member is there before its bootstrap: it keeps looking.
  const b2 = await mesh.start('b', { home: b.home, env })
  const a2 = await mesh.start('a', { home: a.home, args: serve, env })
  await Promise.all([untilOnline(a2, 1), untilOnline(b2, 1)])
  t.is((await b2.json<{ outcome: string }>(['call', 'text@a', 'text.stats', '{"text":"x"}'])).outcome, 'COMPLETED')
})

test('on the local network a survivor takes the bootstrap over, and a newcomer still gets in', async (t) => {
  const mesh = await testMesh(t)
  const a = await mesh.start('a')
  const b = await mesh.start('b', { join: (await a.api.call('invite.create', { admin: true })).code })
  await Promise.all([untilOnline(a, 1), untilOnline(b, 1)])
  await untilTrue(async () => (await b.api.call('invite.list', {})).invites.some((one) => one.used === 1), 'b has the log')
  a.kill('SIGKILL')
  await untilPeer(b, 'a', 'offline')
  const c = await mesh.start('c', { join: (await b.api.call('invite.create', {})).code })
  await Promise.all([untilPeer(b, 'c', 'online'), untilPeer(c, 'b', 'online')])
  t.is((await c.json<{ peer: { name: string } }>(['ping', 'b'])).peer.name, 'b')
})

test('large attachments travel as bytes, whole and unchanged, also binary ones', async (t) => {
  const mesh = await testMesh(t)
  const [a, b] = await mesh.meshOf('a', 'b')
  await untilAgent(a, 'text@b')
  const dir = await mesh.dir()
  const bytes = Buffer.alloc(1024 * 1024, 0)
  for (let i = 0; i < bytes.length; i++) bytes[i] = (i * 31 + (i >> 8)) & 0xff
  await fs.writeFile(path.join(dir, 'binary.bin'), bytes)
  await fs.writeFile(path.join(dir, 'plain.txt'), 'zeile äöü\n'.repeat(80_000))
  const run = await a.cli(['swarm', 'run', 'count', '--capability', 'text.stats', '--items', `${dir}/*`, '--attach', '--json'])
  t.is(run.code, 0, run.stderr)
  const items = run.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as SwarmEvent)
    .filter((one) => one.type === 'item')
  const { createHash } = await import('node:crypto')
  for (const one of items) {
    const content = await fs.readFile(one.item)
    t.alike(
      { bytes: (one.result as { bytes: number }).bytes, sha256: (one.result as { sha256: string }).sha256 },
      { bytes: content.length, sha256: createHash('sha256').update(content).digest('hex') },
      path.basename(one.item)
    )
  }
  t.is(new Set(items.map((one) => one.agent)).size, 2, 'one of them crossed the network')
  await fs.writeFile(path.join(dir, 'too-large.bin'), Buffer.alloc(1024 * 1024 + 1))
  const tooLarge = await b.cli(['swarm', 'run', 'count', '--capability', 'text.stats', '--items', `${dir}/*`, '--attach'])
  t.is(tooLarge.code, 2)
  t.ok(/too-large\.bin/.test(tooLarge.stderr), 'the file is named')
})
