import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { agentText } from '../support/agents/agent-text.js'
import { localMesh, until, untilAgent, untilOnline } from '../support/nodes.js'

test('nodes in different sandboxes do not find the agents of each other; one in none finds and reaches both', {
  timeout: 120_000
}, async (t: Assert) => {
  const mesh = await localMesh(t)
  const a = await mesh.start('a')
  const boxes = []
  for (const sandboxId of ['ci', 'prod']) {
    const { code } = await a.api.call('invite.create', { trust: 'mine', sandboxId })
    boxes.push(await mesh.start(sandboxId, { join: code }))
  }
  const [ci, prod] = boxes as [typeof a, typeof a]
  await Promise.all([a, ci, prod].map((node) => untilOnline(node, 2)))
  for (const name of ['ci', 'prod']) await untilAgent(a, `text@${name}`)
  const listed = async (node: typeof a): Promise<string[]> =>
    (await node.json<{ agents: { address: string }[] }>(['agents'])).agents.map((one) => one.address)
  t.alike(await listed(ci), ['files@ci', 'host@ci', 'text@ci'])
  t.alike(await listed(prod), ['files@prod', 'host@prod', 'text@prod'])
  t.is((await listed(a)).length, 9)
  t.is((await ci.cli(['agents', 'show', 'text@a'])).code, 4)
  t.is((await ci.cli(['call', 'text@a', 'text.stats', '{"text":"x"}'])).code, 4, 'an invisible agent does not exist')
  const { peers } = await ci.json<{ peers: { name: string; agents: string[] }[] }>(['peers'])
  t.alike(peers.map((one) => one.agents).flat(), [], 'nor does the table of peers report it')
  t.alike((await ci.json<{ agents: string[] }>(['peers', 'show', 'a'])).agents, [])
  t.is((await a.cli(['call', 'text@ci', 'text.stats', '{"text":"x"}'])).code, 0)
  const file = path.join(ci.home, 'agents', 'boxed.md')
  await fs.mkdir(path.dirname(file), { recursive: true })
  await fs.writeFile(file, agentText('boxed', ['  sandbox: lab']))
  const { problems } = await until(ci.api, 'node.status', {}, (status) => status.problems.length > 0)
  t.alike(
    [problems[0]?.code, problems[0]?.message.startsWith(`${file}: a2a.sandbox: agent boxed is not offered`)],
    ['AGENT_FILE_INVALID', true]
  )
  const checked = await ci.cli(['agents', 'check', file])
  t.alike(
    [checked.code, checked.stdout.startsWith(`fault  ${file}:8: a2a.sandbox: it asks for the sandbox lab`)],
    [78, true]
  )
  t.ok((await ci.cli(['agents', '--local'])).stderr.includes('agent boxed is not offered'))
  t.is((await a.cli(['agents', 'check', file])).code, 0, 'a node in none would offer it')
  t.is((await listed(ci)).length, 3)
})
