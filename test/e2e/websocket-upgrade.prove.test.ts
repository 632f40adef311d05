import fs from 'node:fs'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import HyperDHT from 'hyperdht'
import { type LocalNode, untilAgent, untilTrue } from '../support/nodes.js'
import { type CutNetwork, cutNetwork, pathTo, stats } from '../support/websocket-network.js'

/** Calls that are under way at once, and numbered messages. */
const LANES = 6

/** An agent that writes the number of each of its messages into a file, and may not be asked twice. */
const COUNTER = [
  '---',
  'name: counter',
  'description: counts',
  'a2a:',
  '  version: 0.1.0',
  '  capabilities:',
  '    - { id: count.add, description: d, sideEffect: write, idempotent: false }',
  '  runtime: { type: module, path: ./counter.mjs }',
  '---',
  ''
].join('\n')

interface Scene {
  readonly net: CutNetwork
  readonly a: LocalNode
  readonly b: LocalNode
}

/** Lets UDP pass: from then on a bootstrap node answers. */
function openUdp(t: Assert, { net }: Scene): void {
  const { host, port } = net.bootstrap
  const bootstrap = HyperDHT.bootstrapper(port, host, { host })
  t.teardown(() => bootstrap.destroy({ force: true }))
}

/** Gives each node the TCP address of the other. */
async function openTcp({ a, b }: Scene): Promise<void> {
  const [toA, toB] = await Promise.all([a, b].map(async (node) => (await node.api.call('node.status', {})).tcp))
  await b.api.call('peers.address', { peer: 'a', address: String(toA) })
  await a.api.call('peers.address', { peer: 'b', address: String(toB) })
}

/** Numbers that an agent of `a` writes down, each handed in once by `b`, which waits for no answer. */
function addCounter({ a }: Scene): () => readonly number[] {
  const log = path.join(a.home, 'numbers')
  fs.writeFileSync(log, '')
  const agents = path.join(a.home, 'agents')
  fs.mkdirSync(agents, { recursive: true })
  fs.writeFileSync(
    path.join(agents, 'counter.mjs'),
    `import fs from 'node:fs'
export default { async run({ input }) { fs.appendFileSync(${JSON.stringify(log)}, input.n + '\\n'); return null } }`
  )
  fs.writeFileSync(path.join(agents, 'counter.md'), COUNTER)
  return () => fs.readFileSync(log, 'utf8').split('\n').filter(Boolean).map(Number)
}

/** Keeps calls and numbered messages under way both while the link moves and after that. */
async function underLoad(t: Assert, scene: Scene, move: () => Promise<void>): Promise<void> {
  const { a, b } = scene
  const numbers = addCounter(scene)
  await untilAgent(b, 'counter@a')
  const outcomes: string[] = []
  let isOver = false
  let sent = 0
  const calls = async (node: LocalNode, agent: string): Promise<void> => {
    while (!isOver) outcomes.push(await stats(node, agent).catch(String))
  }
  const messages = async (): Promise<void> => {
    while (!isOver) {
      const input = { n: sent++ }
      await b.api.call('message.call', { agent: 'counter@a', capability: 'count.add', input, wait: false })
    }
  }
  const lanes = Array.from({ length: LANES }, (_, n) => (n % 2 === 0 ? calls(b, 'text@a') : calls(a, 'text@b')))
  lanes.push(messages(), messages())
  await move()
  const [enough, more] = [outcomes.length + 5 * LANES, sent + 20]
  await untilTrue(async () => outcomes.length >= enough && sent >= more, 'calls and messages go on')
  isOver = true
  await Promise.all(lanes)
  t.alike([...new Set(outcomes)], ['COMPLETED'])
  await untilTrue(async () => new Set(numbers()).size === sent, 'every number came')
  t.is(numbers().length, sent, 'and none twice')
}

async function untilPath({ a, b }: Scene, wanted: string): Promise<void> {
  for (const [node, peer] of [
    [b, 'a'],
    [a, 'b']
  ] as const)
    await untilTrue(async () => (await pathTo(node, peer)) === wanted, `${node.name} has a link by ${wanted}`)
}

async function linked(t: Assert): Promise<Scene> {
  const net = await cutNetwork(t)
  const a = await net.start('a', net.serving)
  const { code } = await a.api.call('invite.create', { trust: 'mine' })
  const b = await net.start('b', net.dialling, code)
  await Promise.all([untilAgent(a, 'text@b'), untilAgent(b, 'text@a')])
  t.is(await pathTo(b, 'a'), 'websocket')
  return { net, a, b }
}

test('a link over a WebSocket moves to UDP and from there to TCP when these pass later, under load, and no call or message is lost or run twice', async (t) => {
  const scene = await linked(t)
  await underLoad(t, scene, async () => {
    openUdp(t, scene)
    await untilPath(scene, 'local')
    await openTcp(scene)
    await untilPath(scene, 'tcp')
  })
})

test('a link over a WebSocket moves to TCP when that passes later, under load, and no call or message is lost or run twice', async (t) => {
  const scene = await linked(t)
  await underLoad(t, scene, async () => {
    await openTcp(scene)
    await untilPath(scene, 'tcp')
  })
})
