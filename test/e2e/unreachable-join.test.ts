import test from 'brittle'
import type { Problem } from '../../src/ports/node-api.js'
import { freePort, type TestNode, testMesh } from '../support/nodes.js'

const PRIVATE = { A2A_NODE_NETWORK_KIND: undefined }

async function codes(node: TestNode): Promise<string[]> {
  return (await node.json<{ problems: Problem[] }>(['status'])).problems.map(({ code }) => code)
}

test('a join without a reachable bootstrap node says so while it waits, and names it in its error', async (t) => {
  const mesh = await testMesh(t, { commandsHere: true })
  const address = `127.0.0.1:${await freePort()}`
  const a = await mesh.start('a', { env: PRIVATE, args: ['--network', 'private', '--serve-bootstrap', address] })
  const { code } = await a.json<{ code: string }>(['invite'])
  await a.stop()
  const home = await mesh.dir()
  for (const how of [[], ['--detach']]) {
    const words = ['--home', home, 'start', '--join', code, '--timeout', '4s', '--network', 'private', ...how]
    const { code: exit, stderr } = await mesh.run(words, { env: { A2A_NODE_NETWORK_KIND: 'private' } })
    t.is(exit, 6, stderr)
    const [noted, error] = [
      stderr.indexOf(`(${address})`),
      stderr.indexOf('error: no bootstrap node of this private network')
    ]
    t.ok(noted >= 0 && noted < error, `the note comes before the error: ${stderr}`)
    t.ok(
      stderr.includes('[BOOTSTRAP_OFFLINE]') && stderr.includes(`start --network private --serve-bootstrap ${address}`),
      stderr
    )
    t.absent(stderr.includes('no admin of the mesh answered'), stderr)
  }
})

test('a bootstrap node outside a private network is refused, in the background as well, and the next step works', async (t) => {
  const mesh = await testMesh(t, { commandsHere: true })
  const address = `127.0.0.1:${await freePort()}`
  const home = await mesh.dir()
  for (const how of [[], ['--detach']]) {
    const { code, stderr } = await mesh.run(['--home', home, 'start', '--serve-bootstrap', address, ...how])
    t.is(code, 2, stderr)
    t.ok(stderr.includes(`a bootstrap node on ${address} is for a private network, and this one is local`), stderr)
    t.ok(stderr.includes(`start --network private --serve-bootstrap ${address}`), stderr)
  }
  const a = await mesh.start('a', { home, env: PRIVATE, args: ['--network', 'private', '--serve-bootstrap', address] })
  t.alike(await codes(a), [])
})
