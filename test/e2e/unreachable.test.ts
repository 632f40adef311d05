import test from 'brittle'
import HyperDHT from 'hyperdht'
import type { Problem } from '../../src/ports/node-api.js'
import { freePort, type TestNode, testMesh, until, untilOnline, untilTrue } from '../support/nodes.js'

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
      text.includes(`try: a2a-node start --serve-bootstrap ${address}   # on the machine 127.0.0.1`),
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
    t.ok(noted >= 0 && noted < error, `it is said before the error: ${stderr}`)
    t.ok(stderr.includes('[BOOTSTRAP_OFFLINE]') && stderr.includes(`start --serve-bootstrap ${address}`), stderr)
    t.absent(stderr.includes('no admin of the mesh answered'), stderr)
  }
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
