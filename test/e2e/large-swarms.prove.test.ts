import test, { type Assert } from 'brittle'
import { giveListAgent, type ListAgent } from '../support/list-agent.js'
import { localMesh, type LocalNode, untilAgent, untilOnline } from '../support/nodes.js'

const AGENT: ListAgent = {
  capabilities: ['list.echo', 'list.make'],
  module: `export default {
  async run({ capability, input }) {
    return capability === 'list.make' ? { list: Array.from({ length: input.length }, (_, at) => at) } : input
  }
}`
}

interface Results {
  readonly status: string
  readonly results: readonly {
    readonly status: string
    readonly result: unknown
    readonly error: { code: string } | null
  }[]
}

test('items and results of a swarm above 1 MiB of JSON pass between nodes whose setting takes them, and no other', async (t: Assert) => {
  const mesh = await localMesh(t)
  const homeOf = async (maxPayloadBytes: number | null): Promise<string> =>
    giveListAgent(await mesh.dir(), AGENT, maxPayloadBytes)
  const a = await mesh.start('a', { home: await homeOf(8_388_608) })
  const join = async (): Promise<string> => (await a.api.call('invite.create', { trust: 'mine' })).code
  const b = await mesh.start('b', { join: await join(), home: await homeOf(8_388_608) })
  await mesh.start('c', { join: await join(), home: await homeOf(8_388_608) })
  await untilOnline(a, 2)
  await untilOnline(b, 2)
  for (const address of ['list@b', 'list@c']) await untilAgent(a, address)

  const items = [
    { list: Array.from({ length: 250_000 }, (_, at) => at) },
    { text: 'x'.repeat(2_000_000) },
    { rows: Array.from({ length: 3000 }, () => ({ text: 'y'.repeat(500) })) }
  ]
  const lines = items.map((item) => JSON.stringify(item)).join('\n')
  const echoed = await swarm(a, ['--strategy', 'map', '--capability', 'list.echo', '--items', '-'], lines)
  t.alike(
    echoed.results.map(({ result }) => JSON.stringify(result).length),
    items.map((item) => JSON.stringify(item).length)
  )
  const each = ['--strategy', 'each', '--capability', 'list.make', '--input', '{"length":250000}']
  const made = await swarm(a, each)
  t.alike(
    made.results.map(({ status }) => status),
    ['completed', 'completed', 'completed']
  )
  const id = (await a.api.call('swarm.list', {})).swarms[0]?.id ?? ''
  const there = await b.api.call('swarm.results', { id })
  t.alike(
    there.results.map(({ result }) => (result as { list: unknown[] }).list.length),
    [250_000, 250_000, 250_000],
    'another participant has them'
  )

  await mesh.start('d', { join: await join(), home: await homeOf(null) })
  await untilAgent(a, 'list@d')
  const refused = await swarm(a, each)
  t.is(refused.status, 'failed')
  t.alike(new Set(refused.results.map(({ error }) => error?.code)), new Set(['PAYLOAD_TOO_LARGE']))
})

/** Runs a swarm by the command line, and reads its results. */
async function swarm(node: LocalNode, args: readonly string[], stdin = ''): Promise<Results> {
  await node.cli(['swarm', 'run', 'goal', ...args], stdin)
  const id = (await node.api.call('swarm.list', {})).swarms[0]?.id ?? ''
  return (await node.json(['swarm', 'results', id])) as Results
}
