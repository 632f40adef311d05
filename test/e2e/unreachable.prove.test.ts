import test from 'brittle'
import type { Problem } from '../../src/ports/node-api.js'
import { type TestNode, testMesh, until, untilOnline, untilTrue } from '../support/nodes.js'

const PRIVATE = { A2A_NODE_NETWORK_KIND: undefined }

async function codes(node: TestNode): Promise<string[]> {
  return (await node.json<{ problems: Problem[] }>(['status'])).problems.map(({ code }) => code)
}

test('a private network whose bootstrap node is off is named by start, status, doctor and invite, and the problem ends with it', async (t) => {
  const mesh = await testMesh(t, { commandsHere: true })
  const address = `127.0.0.1:${mesh.port}`
  const home = await mesh.dir()
  const at = Date.now()
  const a = await mesh.start('a', { home, env: PRIVATE, args: ['--network', 'private', '--bootstrap', address] })
  const shown = (await a.cli(['status'])).stdout
  t.ok(Date.now() - at < 15_000, 'the first verdict comes soon')
  const words = `no bootstrap node of this private network answers since 20`
  const outputs = {
    banner: (await a.cli(['start'])).stdout,
    status: shown,
    doctor: (await a.cli(['doctor'])).stdout,
    invite: (await a.cli(['invite'])).stderr
  }
  for (const [name, text] of Object.entries(outputs)) {
    t.ok(
      text.includes(words) && text.includes(`(${address})`) && text.includes('BOOTSTRAP_OFFLINE'),
      `${name}: ${text}`
    )
    t.ok(
      text.includes(`try: a2a-node start --network private --serve-bootstrap ${address}   # on the machine 127.0.0.1`),
      `${name}: ${text}`
    )
  }
  const { problems } = await a.json<{ problems: Problem[] }>(['invite'])
  t.alike(
    problems.map(({ code }) => code),
    ['BOOTSTRAP_OFFLINE'],
    'invite --json'
  )
  const b = await mesh.start('b', { env: PRIVATE, args: ['--network', 'private', '--serve-bootstrap', address] })
  t.alike(await codes(b), [], 'a node that serves the bootstrap node itself has no problem')
  await until(a.api, 'node.status', {}, (now) => now.problems.length === 0)
  t.ok(a.errors().includes('other nodes can be found again'), a.errors())
})

test('a private network without a bootstrap node is a problem whose next step works', async (t) => {
  const mesh = await testMesh(t, { commandsHere: true })
  const home = await mesh.dir()
  const a = await mesh.start('a', { home, env: PRIVATE, args: ['--network', 'private'] })
  const [problem] = (await a.json<{ problems: Problem[] }>(['status'])).problems
  t.is(problem?.code, 'BOOTSTRAP_MISSING', problem?.message)
  const banner = (await a.cli(['start'])).stdout
  t.ok(banner.includes('BOOTSTRAP_MISSING') && banner.includes('start --serve-bootstrap'), banner)
  await a.stop()
  const served = await mesh.start('a', { home, env: PRIVATE, args: ['--serve-bootstrap', `127.0.0.1:${mesh.port}`] })
  t.alike(await codes(served), [])
  const { code } = await served.json<{ code: string }>(['invite'])
  const b = await mesh.start('b', { env: PRIVATE, join: code })
  await untilOnline(b, 1)
  t.alike(await codes(b), [])
  await served.stop()
  await untilTrue(async () => (await codes(b)).includes('BOOTSTRAP_OFFLINE'), 'the member misses its bootstrap node')
})
