import fs from 'node:fs'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import type { ContextInfo } from '../../src/ports/task-api.js'
import type { Reply } from '../../src/ports/node-api.js'
import { ask, gatewayNode } from '../support/a2a.js'
import { localMesh, type LocalNode, untilAgent, untilOnline } from '../support/nodes.js'

const FILE = `---
name: keeper
description: Says how many messages came before.
a2a:
  capabilities:
    - { id: keeper.say, input: { type: object } }
  runtime: { type: module, path: ./keeper.mjs }
---
`
const MODULE = `export default {
  run({ input }, { conversation }) {
    return conversation.history.length + ' before ' + input.text
  }
}
`

test('calls of the command line begin and continue contexts, also of clients, over a hop and a restart', {
  timeout: 120_000
}, async (t: Assert) => {
  const mesh = await localMesh(t)
  const near = await gatewayNode(mesh, 'near')
  const home = await mesh.dir()
  fs.mkdirSync(path.join(home, 'agents'), { recursive: true })
  fs.writeFileSync(path.join(home, 'agents/keeper.md'), FILE)
  fs.writeFileSync(path.join(home, 'agents/keeper.mjs'), MODULE)
  const { code } = await near.node.api.call('invite.create', { trust: 'mine' })
  await mesh.start('far', { home, join: code })
  await untilOnline(near.node, 1)
  await untilAgent(near.node, 'keeper@far')
  const call = (node: LocalNode, text: string, context: string) =>
    node.json<Reply>(['call', 'keeper@far', 'keeper.say', JSON.stringify({ text }), '--context', context])

  const { contextId = '', payload } = await call(near.node, 'one', 'new')
  t.is(payload, '0 before one')
  t.is((await call(near.node, 'two', contextId.slice(0, 10))).payload, '2 before two')
  const plain = await near.node.cli(['call', 'keeper@far', 'keeper.say', '{"text":"three"}', '--context', contextId])
  t.alike([plain.code, plain.stdout], [0, '4 before three\n'])
  t.ok(plain.stderr.includes(`a2a-node --home ${near.node.home} tasks --context ${contextId}`), plain.stderr)

  const message = { messageId: 'm1', contextId: 'ctx_of_client', role: 'ROLE_USER', parts: [{ text: 'hello' }] }
  await ask(near, '/agents/keeper@far/message:send', { json: { message } })
  t.is((await call(near.node, 'and', 'ctx_of_client')).payload, '2 before and')

  await near.node.stop()
  const again = await gatewayNode(mesh, 'near', { home: near.node.home, dir: near.dir, token: near.token })
  await untilOnline(again.node, 1)
  await untilAgent(again.node, 'keeper@far')
  t.is((await call(again.node, 'four', contextId)).payload, '6 before four')
  const { turns, more } = await again.node.json<ContextInfo>(['tasks', '--context', contextId])
  t.alike(
    turns.map(({ role, agent, state, text }) => [role, agent, state, text]),
    ['one', 'two', 'three', 'four'].flatMap((text, at) => [
      ['user', 'keeper@far', 'completed', text],
      ['agent', 'keeper@far', 'completed', `${at * 2} before ${text}`]
    ])
  )
  t.is(more, false)
  const shown = await again.node.cli(['tasks', 'ls', '--context', 'ctx_of_c'])
  t.ok(/token [\w-]+ to keeper@far {2}task_\w+ completed\n {2}hello\n/.test(shown.stdout), shown.stdout)
  const unknown = await again.node.cli(['call', 'keeper@far', 'keeper.say', '{}', '--context', 'ctx_none'])
  t.ok(unknown.code !== 0 && unknown.stderr.includes('no context "ctx_none"'), unknown.stderr)
})
