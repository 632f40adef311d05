import test from 'brittle'
import HyperDHT from 'hyperdht'
import type { Problem } from '../../src/ports/node-api.js'
import { type TestNode, testMesh, untilOnline } from '../support/nodes.js'

const PRIVATE = { A2A_NODE_NETWORK_KIND: undefined }

async function codes(node: TestNode): Promise<string[]> {
  return (await node.json<{ problems: Problem[] }>(['status'])).problems.map(({ code }) => code)
}

test('members of a private network meet again without its bootstrap node, by the addresses of their last links', async (t) => {
  const mesh = await testMesh(t, { commandsHere: true })
  const bootstrap = HyperDHT.bootstrapper(mesh.port, '127.0.0.1', { host: '127.0.0.1' })
  t.teardown(() => bootstrap.destroy())
  await bootstrap.fullyBootstrapped()
  const args = ['--network', 'private', '--bootstrap', `127.0.0.1:${mesh.port}`]
  const members = await mesh.meshWith({ env: PRIVATE, args }, 'a', 'b', 'c')
  await bootstrap.destroy()
  await Promise.all(members.map((one) => one.stop()))
  const again = await Promise.all(members.map(({ name, home }) => mesh.start(name, { home, env: PRIVATE })))
  await Promise.all(again.map((one) => untilOnline(one, 2)))
  for (const one of again) t.alike(await codes(one), ['BOOTSTRAP_OFFLINE'], one.name)
})
