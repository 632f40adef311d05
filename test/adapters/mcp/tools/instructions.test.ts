import test, { type Assert } from 'brittle'
import { meshInstructions } from '../../../../src/adapters/mcp/tools/instructions.js'
import { agentDefinition, capability, echo, FakeAgent } from '../../../support/fake-agents.js'
import { World } from '../../../support/fake-node.js'
import { McpScene } from '../../../support/mcp.js'

test('the instructions name each machine with its agents, this one and an offline one too, and how to find a tool', async (t: Assert) => {
  const world = new World(t)
  const many = Array.from({ length: 10 }, (_, at) => echo(`agent-${at}`))
  const owner = await world.owner({ agents: [echo('text'), echo('files')] })
  const peer = await world.member('gpu-box', { agents: many })
  await world.link(owner, peer)
  const text = await meshInstructions(owner.api(), false)
  t.ok(text.includes('- owner (this machine): files, text\n'), text)
  t.ok(
    text.includes('- gpu-box: agent-0, agent-1, agent-2, agent-3, agent-4, agent-5, agent-6, agent-7, 2 more\n'),
    text
  )
  t.ok(text.includes('agent_at_machine__tool'), text)
  world.net.disconnect(owner.id, peer.id)
  await world.pass(120_000, 1000)
  const later = await meshInstructions(owner.api(), true)
  t.ok(later.includes('- gpu-box (offline now): '), later)
  t.ok(later.includes('call a hit with a2a_call_tool') && !later.includes('agent_at_machine__tool'), later)
  t.ok(later.length < 1000, `${later.length} characters`)
})

test('instructions of servers are quoted from machines of the same person alone', async (t: Assert) => {
  const world = new World(t)
  const server = (words: string): FakeAgent => {
    const description = `Tools of the MCP server demo. ${words}`
    const definition = { ...agentDefinition('demo', { capabilities: [capability('mcp_demo_run')] }), description }
    return new FakeAgent(definition, () => ({ ok: true, result: null }))
  }
  const owner = await world.owner({ agents: [server('Of this machine.')] })
  for (const [name, terms] of [
    ['mine', { trust: 'mine' }],
    ['guest', {}]
  ] as const)
    await world.link(owner, await world.member(name, { agents: [server(`Of a ${name}.`)], terms }))
  const text = await meshInstructions(owner.api(), true)
  t.ok(text.includes('- demo@owner: Of this machine.\n') && text.includes('- demo@mine: Of a mine.\n'), text)
  t.absent(text.includes('Of a guest'), text)
})

test('a caller that may not list agents gets instructions without machines', async (t: Assert) => {
  const world = new World(t)
  const owner = await world.owner({ agents: [echo('text')] })
  const text = await meshInstructions(owner.api({ scopes: ['send'] }), true)
  t.ok(text.includes('a2a_find_tools') && !text.includes('owner'), text)
})

test('instructions are made when a client begins, in both eras, and a client that left meanwhile does no harm', async (t: Assert) => {
  let made = 0
  const scene = new McpScene({ instructions: () => Promise.resolve(`number ${++made}`) })
  for (const mode of ['legacy', 'auto'] as const) {
    const client = await scene.client(t, mode)
    t.is(client.getInstructions(), `number ${made}`)
  }
  let give: (text: string) => void = () => {}
  const slow = new McpScene({ instructions: () => new Promise<string>((resolve) => (give = resolve)) })
  const client = slow.connect(t)
  client.stream.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })}\n`)
  await new Promise((resolve) => setImmediate(resolve))
  await client.close()
  give('late')
  await new Promise((resolve) => setImmediate(resolve))
  t.alike(
    slow.logs.filter(({ level }) => level === 'error'),
    []
  )
})
