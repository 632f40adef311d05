import path from 'node:path'
import test from 'brittle'
import type { Reply } from '../../src/ports/node-api.js'
import { ask } from '../support/a2a.js'
import { type LocalNode, localMesh, untilAgent, untilOnline, untilTrue } from '../support/nodes.js'
import { TIMEOUT, pair } from '../support/mesh-pair.js'

test(
  'a member calls an agent by its URL of the mesh, by key or by name; cards over HTTP do not name it',
  TIMEOUT,
  async (t) => {
    const { a, b } = await pair(await localMesh(t))
    const card = (await ask(a, '/agents/talk/.well-known/agent-card.json', { headers: { 'a2a-version': '1.0' } })).body
    const interfaces = card['supportedInterfaces'] as { url: string }[]
    t.ok(interfaces.length > 0 && interfaces.every((one) => one.url.startsWith('http:')), JSON.stringify(interfaces))
    const url = `a2a-mesh://${a.node.info.node.id}/agents/talk`
    for (const place of [url, 'a2a-mesh://a/agents/talk']) {
      const reply = await b.json<Reply>(['call', place, 'talk.say', '{"text":"hello"}'])
      t.is(reply.payload, 'you said hello', place)
    }
    const asked = await b.json<Reply>(['call', url, '{"ask":"Which one?"}'])
    t.ok(JSON.stringify(asked.payload).includes('Which one?'), JSON.stringify(asked.payload))
    const nobody = await b.cli(['call', 'a2a-mesh://a/agents/nobody', '{"text":"x"}'])
    t.ok(
      nobody.code !== 0 && /nothing was done/.test(nobody.stderr) && /no agent "nobody"/.test(nobody.stderr),
      nobody.stderr
    )
    t.is((await ask(a, '/agents/talk/tasks')).body['totalSize'], 0, 'the tasks of a member are not those of a token')
  }
)

test(
  'a task that its caller cancels is canceled at the other node; a binding that is off says so, and a weaker member gives its justification',
  TIMEOUT,
  async (t) => {
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
    await untilTrue(
      async () => (await a.node.json<{ state: string }>(['tasks', 'show', there])).state === 'canceled',
      'it is canceled there'
    )

    const { code } = await a.node.api.call('invite.create', { trust: 'mine', tier: 2 })
    const off = await mesh.start('c', { join: code, env: { A2A_NODE_A2A_MESH: 'false' } })
    await untilOnline(off, 1)
    await untilAgent(b, 'text@c')
    const refused = await b.cli(['call', 'a2a-mesh://c/agents/text', 'hello'])
    t.ok(refused.code !== 0 && /a2a\.mesh is off there/.test(refused.stderr), refused.stderr)
    const weak = ['call', 'a2a-mesh://a/agents/talk', 'talk.say', '{"text":"hello"}']
    const unjustified = await off.cli(weak)
    t.ok(unjustified.code !== 0 && /justification is missing/.test(unjustified.stderr), unjustified.stderr)
    t.is((await off.json<Reply>([...weak, '--justification', 'the report is due'])).payload, 'you said hello')
  }
)
