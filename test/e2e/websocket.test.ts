import test from 'brittle'
import HyperDHT from 'hyperdht'
import type { Problem } from '../../src/ports/node-api.js'
import {
  freePort,
  localMesh,
  type LocalNode,
  type TestMesh,
  untilAgent,
  untilOnline,
  untilTrue
} from '../support/nodes.js'

/** Calls that are under way at once. */
const LANES = 6

/** A private network whose one bootstrap node does not answer. */
interface Cut {
  readonly mesh: TestMesh<LocalNode>
  readonly bootstrap: { readonly host: string; readonly port: number }
  /** Words of a node that serves WebSockets. */
  readonly serving: readonly string[]
  /** Words of a node that dials it. */
  readonly dialling: readonly string[]
  start(name: string, args: readonly string[], join?: string): Promise<LocalNode>
}

async function cut(t: Parameters<typeof localMesh>[0]): Promise<Cut> {
  const mesh = await localMesh(t)
  const [host, port, served] = ['127.0.0.1', await freePort(), await freePort()]
  const network = ['--network', 'private', '--bootstrap', `${host}:${port}`]
  return {
    mesh,
    bootstrap: { host, port },
    serving: [...network, '--websocket', `${host}:${served}`],
    dialling: ['--via', `ws://${host}:${served}`],
    start: (name, args, join) =>
      mesh.start(name, { args, env: { A2A_NODE_NETWORK_KIND: undefined }, ...(join === undefined ? {} : { join }) })
  }
}

async function pathTo(node: LocalNode, name: string): Promise<string | null> {
  const { peers } = await node.api.call('peers.list', {})
  return peers.find((one) => one.name === name)?.path ?? null
}

async function codes(node: LocalNode): Promise<string[]> {
  return (await node.json<{ problems: Problem[] }>(['status'])).problems.map(({ code }) => code)
}

async function stats(node: LocalNode, agent: string): Promise<string> {
  return (await node.api.call('message.call', { agent, capability: 'text.stats', input: { text: 'a b' } })).outcome
}

test('where UDP does not pass, nodes join by a WebSocket, reach each other through its node, and come back after its restart', async (t) => {
  const net = await cut(t)
  const a = await net.start('a', net.serving)
  const { code } = await a.api.call('invite.create', { trust: 'mine', uses: 2 })
  const b = await net.start('b', net.dialling, code)
  const c = await net.start('c', net.dialling, code)
  await Promise.all([untilOnline(b, 1), untilAgent(b, 'text@c')])
  t.is(await pathTo(b, 'a'), 'websocket')
  t.is(await stats(b, 'text@a'), 'COMPLETED')
  t.is(await stats(b, 'text@c'), 'COMPLETED')
  const { stdout } = await a.cli(['status'])
  t.ok(/websocket\s+ws:\/\/127\.0\.0\.1:\d+\/mesh \(this machine and its reverse proxy alone\)/.test(stdout), stdout)
  t.absent((await codes(b)).includes('WEBSOCKET_OFFLINE'))
  await a.stop()
  await untilTrue(async () => (await codes(b)).includes('WEBSOCKET_OFFLINE'), 'b misses the node at its URL')
  // The flags of the first start are those of the next.
  await net.start('a', [])
  await Promise.all([untilOnline(b, 1), untilOnline(c, 1)])
  await untilTrue(async () => !(await codes(b)).includes('WEBSOCKET_OFFLINE'), 'b reaches it again')
})

test('a link over a WebSocket moves to UDP when that passes later, under load, and no call is lost or run twice', async (t) => {
  const net = await cut(t)
  const a = await net.start('a', net.serving)
  const { code } = await a.api.call('invite.create', { trust: 'mine' })
  const b = await net.start('b', net.dialling, code)
  await Promise.all([untilAgent(a, 'text@b'), untilAgent(b, 'text@a')])
  t.is(await pathTo(b, 'a'), 'websocket')
  const outcomes: string[] = []
  let isOver = false
  const lane = async (node: LocalNode, agent: string): Promise<void> => {
    while (!isOver) outcomes.push(await stats(node, agent).catch(String))
  }
  const lanes = Array.from({ length: LANES }, (_, n) => (n % 2 === 0 ? lane(b, 'text@a') : lane(a, 'text@b')))
  const { host, port } = net.bootstrap
  const bootstrap = HyperDHT.bootstrapper(port, host, { host })
  t.teardown(() => bootstrap.destroy({ force: true }))
  for (const [node, peer] of [
    [b, 'a'],
    [a, 'b']
  ] as const)
    await untilTrue(async () => (await pathTo(node, peer)) === 'local', `${node.name} has a link by UDP`)
  const enough = outcomes.length + 5 * LANES
  await untilTrue(async () => outcomes.length >= enough, 'calls go on')
  isOver = true
  await Promise.all(lanes)
  t.alike([...new Set(outcomes)], ['COMPLETED'])
})

test('a join by a wrong URL names the URL and the cause', async (t) => {
  const net = await cut(t)
  const a = await net.start('a', net.serving)
  const { code } = await a.api.call('invite.create', { trust: 'guest' })
  const dead = `ws://127.0.0.1:${await freePort()}`
  const words = ['--home', await net.mesh.dir(), 'start', '--join', code, '--via', dead, '--timeout', '3s']
  const { code: exit, stderr } = await net.mesh.run(words, { env: { A2A_NODE_NETWORK_KIND: 'private' } })
  t.is(exit, 6, stderr)
  t.ok(stderr.includes(`no member is reached by WebSocket at ${dead}/mesh: connect ECONNREFUSED`), stderr)
  t.ok(stderr.includes('[WEBSOCKET_OFFLINE]'), stderr)
  const wrong = await net.mesh.run(['--home', await net.mesh.dir(), 'start', '--via', 'ftp://x'])
  t.is(wrong.code, 2, wrong.stderr)
  t.ok(wrong.stderr.includes('a list of wss:// or ws:// URLs'), wrong.stderr)
})
