import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import type { Reply } from '../../src/ports/node-api.js'
import { ask, type GatewayNode, gatewayNode } from '../support/a2a.js'
import { type LocalNode, localMesh, type TestMesh, testMesh, untilAgent, untilOnline, untilTrue } from '../support/nodes.js'

const TIMEOUT = { timeout: 180_000 }

/** The node `a` with the agent `talk`, and a member `b` of its mesh that has a link to it. */
async function pair<N extends LocalNode>(mesh: TestMesh<N>): Promise<{ readonly a: GatewayNode<N>; readonly b: N }> {
  const a = await gatewayNode(mesh, 'a')
  const { code } = await a.node.api.call('invite.create', {})
  const b = await mesh.start('b', { join: code })
  await untilOnline(b, 1)
  await untilAgent(b, 'talk@a')
  return { a, b }
}

/** The texts of the chunks that a task of the node was told of. */
async function chunksOf(node: LocalNode, id: string): Promise<string[]> {
  const { events } = await node.json<{ events: { type: string; data?: { a2a?: { artifact?: { parts: { text: string }[] } } } }[] }>([
    'tasks',
    'show',
    id
  ])
  return events.flatMap((event) => event.data?.a2a?.artifact?.parts.map(({ text }) => text) ?? [])
}

test('a member calls an agent by its URL of the mesh, as its card says, by key or by name', TIMEOUT, async (t) => {
  const { a, b } = await pair(await localMesh(t))
  const card = (await ask(a, '/agents/talk/.well-known/agent-card.json', { headers: { 'a2a-version': '1.0' } })).body
  const interfaces = card['supportedInterfaces'] as { url: string; protocolBinding: string; protocolVersion: string }[]
  const url = `a2a-mesh://${a.node.info.node.id}/agents/talk`
  t.alike(
    interfaces.filter((one) => one.url.startsWith('a2a-mesh:')),
    (['1.0', '0.3'] as const).map((protocolVersion) => ({
      protocolBinding: 'urn:a2a-node:binding:mesh:1',
      protocolVersion,
      url
    }))
  )
  for (const place of [url, 'a2a-mesh://a/agents/talk']) {
    const reply = await b.json<Reply>(['call', place, 'talk.say', '{"text":"hello"}'])
    t.is(reply.payload, 'you said hello', place)
  }
  const asked = await b.json<Reply>(['call', url, '{"ask":"Which one?"}'])
  t.ok(JSON.stringify(asked.payload).includes('Which one?'), JSON.stringify(asked.payload))
  const nobody = await b.cli(['call', 'a2a-mesh://a/agents/nobody', '{"text":"x"}'])
  t.ok(nobody.code !== 0 && /nothing was done/.test(nobody.stderr) && /no agent "nobody"/.test(nobody.stderr), nobody.stderr)
  t.is((await ask(a, '/agents/talk/tasks')).body['totalSize'], 0, 'the tasks of a member are not those of a token')
})

test(
  'a callee that is killed in the middle of a stream is taken up again: none of its events comes twice or is missing',
  TIMEOUT,
  async (t) => {
    const mesh = await testMesh(t)
    const { a, b } = await pair(mesh)
    const gate = path.join(a.dir, 'gate-')
    const input = { chunks: ['one ', 'two ', 'three'], gate }
    const url = `a2a-mesh://${a.node.info.node.id}/agents/talk`
    const calling = b.json<Reply>(['call', url, JSON.stringify(input), '--timeout', '2m'])
    const taskOf = async (): Promise<string> =>
      (await b.json<{ tasks: { id: string; agent: string }[] }>(['tasks'])).tasks.find((one) => one.agent.startsWith('a2a@'))?.id ?? ''
    await untilTrue(async () => (await chunksOf(b, await taskOf()).catch(() => [])).length === 1, 'the first chunk is there')
    a.node.kill('SIGKILL')
    await a.node.exited
    for (const step of [1, 2]) await fs.writeFile(`${gate}${step}`, '')
    await gatewayNode(mesh, 'a', { home: a.node.home, dir: a.dir, token: a.token })
    const reply = await calling
    t.ok(JSON.stringify(reply.payload).includes('one two three'), JSON.stringify(reply.payload))
    // What may be repeated begins anew after the kill: its first chunk takes the place of the one before.
    t.alike((await chunksOf(b, await taskOf())).slice(-3), ['one ', 'two ', 'three'])
  }
)

test('a link that is lost in the middle of a stream costs nothing: every chunk comes once, in order', TIMEOUT, async (t) => {
  const { a, b } = await pair(await testMesh(t))
  const gate = path.join(a.dir, 'gate-')
  const input = { chunks: ['one ', 'two ', 'three'], gate }
  const calling = b.json<Reply>(['call', 'a2a-mesh://a/agents/talk', JSON.stringify(input), '--timeout', '2m'])
  const taskOf = async (): Promise<string> =>
    (await b.json<{ tasks: { id: string; agent: string }[] }>(['tasks'])).tasks.find((one) => one.agent.startsWith('a2a@'))?.id ?? ''
  await untilTrue(async () => (await chunksOf(b, await taskOf()).catch(() => [])).length === 1, 'the first chunk is there')
  a.node.kill('SIGSTOP')
  await untilOnline(b, 0)
  await fs.writeFile(`${gate}1`, '')
  a.node.kill('SIGCONT')
  await fs.writeFile(`${gate}2`, '')
  t.ok(JSON.stringify((await calling).payload).includes('one two three'))
  t.alike(await chunksOf(b, await taskOf()), ['one ', 'two ', 'three'])
})

test('a task that its caller cancels is canceled at the other node; a binding that is off says so', TIMEOUT, async (t) => {
  const mesh = await localMesh(t)
  const { a, b } = await pair(mesh)
  const until = path.join(a.dir, 'never')
  const calling = b.cli(['call', 'a2a-mesh://a/agents/talk', JSON.stringify({ until })])
  const running = async (node: LocalNode, agent: string): Promise<string | undefined> =>
    (await node.json<{ tasks: { id: string; agent: string; state: string }[] }>(['tasks'])).tasks.find(
      (one) => one.agent.startsWith(agent) && one.state === 'working'
    )?.id
  await untilTrue(async () => (await running(a.node, 'talk@')) !== undefined, 'it runs there')
  const there = (await running(a.node, 'talk@')) ?? ''
  await b.json(['tasks', 'cancel', (await running(b, 'a2a@')) ?? ''])
  t.not((await calling).code, 0)
  await untilTrue(async () => (await a.node.json<{ state: string }>(['tasks', 'show', there])).state === 'canceled', 'it is canceled there')

  const { code } = await a.node.api.call('invite.create', {})
  const off = await mesh.start('c', { join: code, env: { A2A_NODE_A2A_MESH: 'false' } })
  await untilOnline(off, 1)
  await untilAgent(b, 'text@c')
  const refused = await b.cli(['call', 'a2a-mesh://c/agents/text', 'hello'])
  t.ok(refused.code !== 0 && /a2a\.mesh is off there/.test(refused.stderr), refused.stderr)
})
