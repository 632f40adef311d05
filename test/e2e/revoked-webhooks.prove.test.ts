import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import type { PushList } from '../../src/ports/push-api.js'
import { ask, type GatewayNode, gatewayNode } from '../support/a2a.js'
import { freePort, testMesh } from '../support/nodes.js'
import { basic } from '../support/oauth.js'
import { type Receiver, receiver } from '../support/webhook.js'

const ENV = { A2A_NODE_A2A_ALLOW_PRIVATE: '127.0.0.1' }

/** A task that ends when the file `until` is there, told to a webhook. */
async function begin(node: GatewayNode, token: string, { url }: Receiver): Promise<void> {
  const parts = [{ data: { text: 'x', until: path.join(node.dir, 'until') } }]
  const configuration = { returnImmediately: true, taskPushNotificationConfig: { id: 'mine', url } }
  const message = { messageId: token.slice(-20), role: 'ROLE_USER', parts }
  const answer = await ask({ ...node, token }, '/agents/talk/message:send', { json: { message, configuration } })
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
}

const hasEnded = (got: Receiver['got']): boolean =>
  got.some(({ headers }) => headers['x-a2a-event'] === 'task.completed')

test('webhooks of a revoked token and of a revoked client stop and are removed, after a revocation without HTTP too', async (t) => {
  const base = await testMesh(t, { commandsHere: true })
  const mesh: typeof base = {
    ...base,
    start: (name, options = {}) => base.start(name, { ...options, env: { ...ENV, ...options.env } })
  }
  const home = path.join(await mesh.dir(), 'home')
  await fs.mkdir(home, { recursive: true })
  await fs.writeFile(path.join(home, 'config.yaml'), 'a2a: { oauth: { enabled: true } }\n')
  const http = String(await freePort())
  const node = await gatewayNode(mesh, 'a', { home, http })
  const { json, cli } = node.node
  const client = await json<{ id: string; secret: string }>(['a2a', 'client', 'create', '--tier', 'L0'])
  const got = await fetch(`${node.url}/oauth/token`, {
    method: 'POST',
    body: new URLSearchParams({ grant_type: 'client_credentials' }),
    headers: { authorization: basic(client.id, client.secret), connection: 'close' }
  })
  const { access_token: ofClient } = (await got.json()) as { access_token: string }
  const own = async (): Promise<{ id: string; token: string }> => await json(['a2a', 'token', 'create', '--tier', 'L0'])
  const [first, later] = [await own(), await own()]
  const [one, two, three, stays] = [await receiver(t), await receiver(t), await receiver(t), await receiver(t)]
  await begin(node, first.token, one)
  await begin(node, ofClient, two)
  await begin(node, later.token, three)
  await begin(node, node.token, stays)
  for (const hook of [one, two, three, stays]) await hook.until(2)
  t.is((await cli(['a2a', 'token', 'revoke', first.id])).code, 0)
  t.is((await cli(['a2a', 'client', 'revoke', client.id])).code, 0)
  await node.node.stop()
  const silent = await mesh.start('a', { home, env: { A2A_NODE_A2A_MESH: 'false' } })
  t.is((await silent.cli(['a2a', 'token', 'revoke', later.id])).code, 0)
  await silent.stop()
  const counts = [one, two, three].map((hook) => hook.got.length)
  const again = await gatewayNode(mesh, 'a', { home, http, dir: node.dir, token: node.token })
  await fs.writeFile(path.join(node.dir, 'until'), '')
  await stays.until((all) => hasEnded(all) || all.some(({ headers }) => headers['x-a2a-event'] === 'task.failed'))
  t.alike(
    [one, two, three].map((hook) => hook.got.length),
    counts
  )
  const { configs, waiting, dead } = await again.node.json<PushList>(['a2a', 'push', 'ls'])
  t.alike([configs.map(({ url }) => url), waiting.length, dead.length], [[stays.url], 0, 0])
})
