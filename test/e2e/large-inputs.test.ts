import test, { type Assert } from 'brittle'
import { mcpClient } from '../support/mcp-clients.js'
import { giveListAgent, type ListAgent } from '../support/list-agent.js'
import { localMesh, untilAgent, untilOnline } from '../support/nodes.js'

const CAPABILITIES = ['list.length', 'list.make']
const AGENT: ListAgent = {
  capabilities: CAPABILITIES,
  module: `export default {
  async run({ capability, input }) {
    return capability === 'list.make' ? { list: Array.from({ length: input.length }, (_, at) => at) } : { bytes: JSON.stringify(input).length }
  }
}`
}

/** JSON values of 2 to 4 MB without a long text. */
const INPUTS: Readonly<Record<string, object>> = {
  numbers: { list: Array.from({ length: 400_000 }, (_, at) => at) },
  objects: { list: Array.from({ length: 20_000 }, (_, at) => ({ at, text: 'x'.repeat(100) })) },
  'nested lists': { list: Array.from({ length: 200_000 }, () => [[1], [2]]) },
  'short texts': { list: Array.from({ length: 3000 }, () => 'y'.repeat(1000)) },
  'members of objects': Object.fromEntries(
    Array.from({ length: 900 }, (_, at) => [
      `key${at}`,
      Object.fromEntries(Array.from({ length: 300 }, (_one, to) => [`k${to}`, to]))
    ])
  )
}

test('a setting above 1 MiB holds for every JSON value, here and on another node with that setting', async (t: Assert) => {
  const mesh = await localMesh(t)
  const homeOf = async (maxPayloadBytes: number | null): Promise<string> =>
    giveListAgent(await mesh.dir(), AGENT, maxPayloadBytes)
  const a = await mesh.start('a', { home: await homeOf(8_388_608) })
  const invite = async (): Promise<string> => (await a.api.call('invite.create', { trust: 'mine' })).code
  const b = await mesh.start('b', { join: await invite(), home: await homeOf(8_388_608) })
  const c = await mesh.start('c', { join: await invite(), home: await homeOf(null) })
  await untilOnline(a, 2)
  for (const address of ['list@b', 'list@c']) await untilAgent(a, address)
  const { sdk } = await mcpClient(t, mesh, a)
  const call = (agent: string, capability: string, input: object) =>
    sdk.callTool({ name: 'a2a_call', arguments: { agent, capability, input } })
  for (const [name, input] of Object.entries(INPUTS)) {
    const bytes = JSON.stringify(input).length
    t.ok(bytes > 2_000_000)
    for (const agent of ['list@a', 'list@b']) {
      const { content } = await call(agent, 'list.length', input)
      t.alike(content, [{ type: 'text', text: JSON.stringify({ bytes }) }], `${name} to ${agent}`)
    }
  }
  const typed = JSON.stringify(INPUTS['numbers'])
  for (const agent of ['list@a', 'list@b']) {
    const { code, stdout } = await a.cli(['call', agent, 'list.length', '-', '--json'], typed)
    const { payload } = JSON.parse(stdout) as { readonly payload: unknown }
    t.alike([code, payload], [0, { bytes: typed.length }], `${agent} by the command line`)
  }
  const refused = await call('list@c', 'list.length', INPUTS['numbers'] ?? {})
  t.is(refused.isError, true)
  t.ok(JSON.stringify(refused.content).includes('tools.maxPayloadBytes'), 'the error names the setting of the reader')
  const made = await b.api.call('message.call', {
    agent: 'list@a',
    capability: 'list.make',
    input: { length: 300_000 }
  })
  t.is((made.payload as { list: unknown[] }).list.length, 300_000, 'a result, too')
  const small = await c.api.call('message.call', {
    agent: 'list@a',
    capability: 'list.make',
    input: { length: 300_000 }
  })
  t.is(small.outcome, 'FAILED', 'a node without the setting is sent no more than before')
  t.is(small.error?.code, 'PAYLOAD_TOO_LARGE')
  t.is(
    (await c.api.call('message.call', { agent: 'list@a', capability: 'list.make', input: { length: 3 } })).outcome,
    'COMPLETED'
  )
})
