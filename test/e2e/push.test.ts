import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { ask, type GatewayNode, gatewayNode } from '../support/a2a.js'
import { type TestMesh, testMesh } from '../support/nodes.js'
import { type Received, type Receiver, receiver, stateOf } from '../support/webhook.js'

/** Nodes that may send to receivers of this machine. */
async function pushMesh(t: Assert): Promise<TestMesh> {
  const mesh = await testMesh(t)
  const env = { A2A_NODE_A2A_ALLOW_PRIVATE: '127.0.0.1' }
  return { ...mesh, start: (name, options = {}) => mesh.start(name, { ...options, env: { ...env, ...options.env } }) }
}

let said = 0
const message = (input: object): object => ({ messageId: `p${++said}`, role: 'ROLE_USER', parts: [{ data: input }] })
const rpc = async (node: GatewayNode, method: string, params: object): Promise<Record<string, unknown>> => {
  const { body } = await ask(node, '/agents/talk', { json: { jsonrpc: '2.0', id: 1, method, params } })
  if (body['error'] !== undefined) throw new Error(JSON.stringify(body['error']))
  return body['result'] as Record<string, unknown>
}
const at = (value: unknown, ...names: readonly string[]): unknown =>
  names.reduce<unknown>((one, name) => (one as Record<string, unknown> | undefined)?.[name], value)
const events = (got: readonly Received[]): unknown[] => got.map(({ headers }) => headers['x-a2a-event'])
const ids = (got: readonly Received[]): unknown[] => got.map(({ headers }) => headers['webhook-id'])

async function begin(node: GatewayNode, hook: Receiver, input: object, more: object = {}): Promise<string> {
  const configuration = { returnImmediately: true, taskPushNotificationConfig: { id: 'mine', url: hook.url, ...more } }
  const sent = await rpc(node, 'SendMessage', { message: message(input), configuration })
  return String(at(sent, 'task', 'id'))
}

test('a webhook is told each event of a task, in order, in the JSON of the version in which it was registered', async (t: Assert) => {
  const node = await gatewayNode(await pushMesh(t), 'a')
  const hook = await receiver(t)
  const task = await begin(node, hook, { chunks: ['one', 'two'] }, { token: 'so it is me' })
  const got = await hook.until((all) => all.some(({ headers }) => headers['x-a2a-event'] === 'task.completed'))
  t.alike(events(got), ['task.submitted', 'task.working', 'task.artifact', 'task.artifact', 'task.completed'])
  t.ok(
    got.every(({ headers }) => headers['content-type'] === 'application/a2a+json' && headers['x-a2a-notification-token'] === 'so it is me')
  )
  t.alike([at(got[0]?.json, 'task', 'id'), stateOf(got[0])], [task, 'TASK_STATE_SUBMITTED'])
  t.is(at(got[2]?.json, 'artifactUpdate', 'artifact', 'artifactId'), 'out')
  t.is(stateOf(got[4]), 'TASK_STATE_COMPLETED')
  t.is(new Set(ids(got)).size, 5)
})

test('restart mid-push: what a killed node was sending is sent again, under the same id, and in order', async (t: Assert) => {
  const mesh = await pushMesh(t)
  const before = await gatewayNode(mesh, 'a')
  const hook = await receiver(t)
  hook.answer(({ headers }) => (headers['x-a2a-event'] === 'task.working' ? null : { status: 200 }))
  const until = path.join(before.dir, 'until')
  const task = await begin(before, hook, { text: 'x', until })
  const held = await hook.until(2)
  t.alike(events(held), ['task.submitted', 'task.working'])
  await fs.writeFile(until, '')
  while (at(await rpc(before, 'GetTask', { id: task }), 'status', 'state') !== 'TASK_STATE_COMPLETED') continue
  before.node.kill('SIGKILL')
  await before.node.exited
  hook.answer(() => ({ status: 200 }))
  await gatewayNode(mesh, 'a', { home: before.node.home, dir: before.dir, token: before.token })
  const all = await hook.until((got) => got.some(({ headers }) => headers['x-a2a-event'] === 'task.completed'))
  t.alike(events(all), ['task.submitted', 'task.working', 'task.working', 'task.artifact', 'task.completed'])
  t.is(ids(all)[2], ids(all)[1], 'the receiver knows it by its id')
  t.is(all[2]?.body, all[1]?.body)
  t.is(new Set(ids(all)).size, 4)
})
