import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import HyperDHT from 'hyperdht'
import { openNodeStore } from '../../src/adapters/storage/home/node-store.js'
import type { Problem } from '../../src/ports/node-api.js'
import { freePort, type TestMesh, testMesh, untilOnline } from '../support/nodes.js'

const PRIVATE = { A2A_NODE_NETWORK_KIND: undefined }

/** A home whose node had a port before that no other test uses: on its return it must get that again. */
async function homeWithPort(mesh: TestMesh): Promise<string> {
  const home = path.join(await mesh.dir(), 'home')
  await fs.mkdir(home, { mode: 0o700 })
  await openNodeStore(home).write('addresses', { port: await freePort(), peers: [] })
  return home
}

test('members of a private network meet again without its bootstrap node, by the addresses of their last links', async (t) => {
  const mesh = await testMesh(t, { commandsHere: true })
  const bootstrap = HyperDHT.bootstrapper(mesh.port, '127.0.0.1', { host: '127.0.0.1' })
  t.teardown(() => bootstrap.destroy())
  await bootstrap.fullyBootstrapped()
  const args = ['--network', 'private', '--bootstrap', `127.0.0.1:${mesh.port}`]
  const a = await mesh.start('a', { home: await homeWithPort(mesh), env: PRIVATE, args })
  const { code } = await a.api.call('invite.create', { uses: 2 })
  const [bHome, cHome] = [await homeWithPort(mesh), await homeWithPort(mesh)]
  const b = await mesh.start('b', { home: bHome, env: PRIVATE, join: code })
  const c = await mesh.start('c', { home: cHome, env: PRIVATE, join: code })
  const members = [a, b, c]
  await Promise.all(members.map((one) => untilOnline(one, 2)))
  await bootstrap.destroy()
  await Promise.all(members.map((one) => one.stop()))
  const again = await Promise.all(members.map(({ name, home }) => mesh.start(name, { home, env: PRIVATE })))
  await Promise.all(again.map((one) => untilOnline(one, 2)))
  for (const one of again) {
    const { problems } = await one.json<{ problems: Problem[] }>(['status'])
    t.alike(
      problems.map((problem) => problem.code),
      ['BOOTSTRAP_OFFLINE'],
      one.name
    )
  }
})
