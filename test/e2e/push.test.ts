import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { createRemoteJWKSet } from 'jose'
import type { PushList } from '../../src/ports/push-api.js'
import { ask, type GatewayNode, gatewayNode } from '../support/a2a.js'
import { type LocalNode, localMesh, ROOT, type TestMesh, testMesh } from '../support/nodes.js'
import { type Received, type Receiver, receiver, stateOf } from '../support/webhook.js'

/** Nodes that may send to receivers of this machine. */
function pushMesh<N extends LocalNode>(mesh: TestMesh<N>): TestMesh<N> {
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

test('a webhook gets each event of a task, in order, in the JSON of the version in which it was registered', async (t: Assert) => {
  const node = await gatewayNode(pushMesh(await localMesh(t)), 'a')
  const hook = await receiver(t)
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
  const more = { token: 'so it is me', authentication: { scheme: 'HMAC-SHA256', credentials: secret } }
  const task = await begin(node, hook, { chunks: ['one', 'two'] }, more)
  const got = await hook.until((all) => all.some(({ headers }) => headers['x-a2a-event'] === 'task.completed'))
  t.alike(events(got), ['task.submitted', 'task.working', 'task.artifact', 'task.artifact', 'task.completed'])
  t.ok(
    got.every(
      ({ headers }) =>
        headers['content-type'] === 'application/a2a+json' && headers['x-a2a-notification-token'] === 'so it is me'
    )
  )
  t.alike([at(got[0]?.json, 'task', 'id'), stateOf(got[0])], [task, 'TASK_STATE_SUBMITTED'])
  t.is(at(got[2]?.json, 'artifactUpdate', 'artifact', 'artifactId'), 'out')
  t.is(stateOf(got[4]), 'TASK_STATE_COMPLETED')
  t.is(new Set(ids(got)).size, 5)
  const { isSigned, isOfNode } = await exampleOfDocs(t)
  const keys = createRemoteJWKSet(new URL('/.well-known/jwks.json', node.url))
  for (const { headers, body } of got) {
    t.ok(isSigned(headers, body, secret), 'its secret signed it')
    t.ok(await isOfNode(headers, body, { node: node.url, url: hook.url, keys }), 'its node signed it')
    t.absent(
      isSigned(headers, `${body} `, secret) ||
        (await isOfNode(headers, `${body} `, { node: node.url, url: hook.url, keys }))
    )
  }
  const old = await receiver(t)
  const params = {
    message: { kind: 'message', messageId: 'old', role: 'user', parts: [{ kind: 'text', text: 'hello' }] }
  }
  await rpc(node, 'message/send', {
    ...params,
    configuration: { blocking: false, pushNotificationConfig: { url: old.url } }
  })
  const told = await old.until((all) => all.some(({ headers }) => headers['x-a2a-event'] === 'task.completed'))
  t.alike(events(told), ['task.submitted', 'task.working', 'task.artifact', 'task.completed'])
  t.alike(
    told.map((one) => [one.json['kind'], stateOf(one), one.headers['content-type']]),
    ['submitted', 'working', 'working', 'completed'].map((state) => ['task', state, 'application/json'])
  )
})

interface Example {
  isSigned(headers: Received['headers'], body: string, secret: string): boolean
  isOfNode(
    headers: Received['headers'],
    body: string,
    of: { node: string; url: string; keys: unknown }
  ): Promise<boolean>
}

/** The example of docs/GATEWAY.md as a module. */
async function exampleOfDocs(t: Assert): Promise<Example> {
  const text = await fs.readFile(path.join(ROOT, 'docs/GATEWAY.md'), 'utf8')
  const [, code = ''] = /## Webhooks.*?```js\n(.*?)```/s.exec(text) ?? []
  // Where its packages are found.
  const file = path.join(ROOT, 'build', `webhook-example-${process.pid}.mjs`)
  await fs.writeFile(file, code)
  t.teardown(() => fs.rm(file))
  return (await import(file)) as Example
}

test('a notification that a webhook refuses is listed as given up with the reason, and retried by the command line', async (t: Assert) => {
  const node = await gatewayNode(pushMesh(await localMesh(t)), 'a')
  const { cli, json } = node.node
  t.is((await cli(['a2a', 'push', 'ls'])).stdout, 'no client wants push notifications\n')
  const hook = await receiver(t)
  hook.answer(({ headers }) => ({ status: headers['x-a2a-event'] === 'task.artifact' ? 404 : 200 }))
  const task = await begin(node, { ...hook, url: `${hook.url}?secret=1` }, { text: 'x' })
  await hook.until((all) => all.some(({ headers }) => headers['x-a2a-event'] === 'task.completed'))
  const [missed] = hook.got.filter(({ headers }) => headers['x-a2a-event'] === 'task.artifact')
  const listed = await json<PushList & { schema: string }>(['a2a', 'push', 'ls'])
  t.is(listed.schema, 'a2a-node/push@1')
  t.alike(
    listed.configs.map((one) => [one.task, one.id, one.url, one.version]),
    [[task, 'mine', hook.url, '1.0']]
  )
  const id = missed?.headers['webhook-id'] ?? ''
  t.alike(
    listed.dead.map((one) => [one.id, one.task, one.event, one.tries, one.reason]),
    [[id, task, 'task.artifact', 1, 'HTTP 404']]
  )
  const shown = await cli(['a2a', 'push', 'ls'])
  t.ok(
    shown.stdout.includes(id) && /given up +1 .*HTTP 404/.test(shown.stdout) && !shown.stdout.includes('secret'),
    shown.stdout
  )
  t.ok(new RegExp(`^ {2}task\\.artifact +${task} +${hook.url}$`, 'm').test(shown.stdout), shown.stdout)
  const unknown = await cli(['a2a', 'push', 'retry', 'hook_none.1'])
  t.ok(
    unknown.code === 4 && /\[NOTIFICATION_NOT_FOUND\]\n {2}try: a2a-node .*a2a push ls/.test(unknown.stderr),
    unknown.stderr
  )
  t.is((await cli(['a2a', 'push', 'retry'])).code, 2)
  hook.answer(() => ({ status: 200 }))
  t.alike((await json(['a2a', 'push', 'retry', id]))['ids'], [id])
  const all = await hook.until((got) => got.filter(({ headers }) => headers['webhook-id'] === id).length === 2)
  t.is(all.at(-1)?.body, missed?.body)
  t.is((await cli(['a2a', 'push', 'retry', '--all'])).stdout, 'no notification was given up\n')
})

test('a node that serves neither HTTP nor members reports it for its push notifications, with the next step', async (t: Assert) => {
  const mesh = await localMesh(t)
  const node = await mesh.start('a', { env: { A2A_NODE_A2A_MESH: 'false' } })
  const ran = await node.cli(['a2a', 'push', 'ls'])
  const open = await mesh.start('b')
  t.is((await open.cli(['a2a', 'push', 'ls'])).code, 0, 'members may have webhooks')
  t.ok(ran.code === 9 && ran.stderr.includes('start --http <[host:]port>'), ran.stderr)
})

test('restart mid-push: the notification in transit at a kill is sent again, under the same id, and in order', async (t: Assert) => {
  const mesh = pushMesh(await testMesh(t, { commandsHere: true }))
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
