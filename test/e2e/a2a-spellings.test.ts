import fs from 'node:fs/promises'
import { join } from 'node:path'
import test from 'brittle'
import { ask, type GatewayNode, gatewayNode } from '../support/a2a.js'
import { localMesh, untilAgent, untilTrue } from '../support/nodes.js'

/** Forms of a path that clients join from a URL with and without a slash at its end. */
const FORMS: readonly ((path: string) => string)[] = [
  (path) => `${path}/`,
  (path) => `/${path}`,
  (path) => path.replaceAll('/', '//'),
  (path) => `${path}//`
]

test('a slash at the end and several in a row lead to the same place, for each binding and one hop away', async (t) => {
  const mesh = await localMesh(t)
  const node = await gatewayNode(mesh, 'a')
  const { code } = await node.node.json<{ code: string }>(['invite', '--mine'])
  const b = await mesh.start('b', { join: code, args: ['--http', '0'] })
  const { token } = await b.json<{ token: string }>(['a2a', 'token', 'create', '--tier', 'L1'])
  const other = { ...node, node: b, url: b.info.http ?? '', token }
  await untilAgent(b, 'talk@a')
  let sent = 0
  const send = (more: object) => ({
    message: { messageId: `m${++sent}`, role: 'ROLE_USER', parts: [{ text: 'hi' }], ...more }
  })
  const rpc = () => ({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: send({}) })
  for (const [at, place] of [
    [node, '/agents/talk'],
    [node, '/a2a/talk'],
    [other, '/agents/talk@a']
  ] as const)
    for (const form of FORMS) {
      const { status, body } = await ask(at, form(place), { json: rpc() })
      t.ok(status === 200 && JSON.stringify(body).includes('you said hi'), form(place))
      const rest = await ask(at, form(`${place}/message:send`), { json: send({}) })
      t.ok(rest.status === 200 && JSON.stringify(rest.body).includes('you said hi'), form(`${place}/message:send`))
    }
  for (const path of [
    '/agents/talk/tasks',
    '/agents',
    '/agents/talk',
    '/a2a/talk/card',
    '/.well-known/agent-card.json',
    '/health'
  ])
    for (const form of FORMS) {
      const [plain, same] = [await ask(node, path), await ask(node, form(path))]
      t.alike(
        [same.status, same.type, Object.keys(same.body)],
        [plain.status, plain.type, Object.keys(plain.body)],
        form(path)
      )
      t.is(plain.status, 200, path)
    }
})

test('fields are read by the names of JSON and by those of the proto file, in the body and the query, in both versions', async (t) => {
  const node = await gatewayNode(await localMesh(t), 'a')
  const message = {
    message_id: 'p1',
    context_id: 'ctx-p',
    role: 'ROLE_USER',
    parts: [{ text: 'hi', media_type: 'text/plain' }]
  }
  const configuration = { history_length: 0, accepted_output_modes: ['text/plain'] }
  const request = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message, configuration } }
  const sent = await ask(node, '/agents/talk', { json: request })
  const text = JSON.stringify(sent.body)
  t.ok(text.includes('"contextId":"ctx-p"') && text.includes('you said hi') && !text.includes('"history"'), text)
  const again = await ask(node, '/agents/talk/message:send', { json: { message, configuration } })
  t.ok(JSON.stringify(again.body).includes('"contextId":"ctx-p"'), 'REST of 1.0')
  const old = await ask(node, '/agents/talk/v1/message:send', {
    json: { message: { message_id: 'p2', context_id: 'ctx-p', role: 'ROLE_USER', content: [{ text: 'hi' }] } }
  })
  t.ok(JSON.stringify(old.body).includes('"contextId":"ctx-p"'), 'REST of 0.3')
  const list = await ask(node, '/agents/talk/tasks?page_size=1&context_id=ctx-p&include_artifacts=true')
  t.is((list.body['tasks'] as readonly unknown[] | undefined)?.length, 1, JSON.stringify(list.body))
  const listed = { jsonrpc: '2.0', id: 2, method: 'ListTasks', params: { page_size: 1, context_id: 'ctx-none' } }
  t.alike((await ask(node, '/agents/talk', { json: listed })).body['result'], {
    tasks: [],
    nextPageToken: '',
    pageSize: 1,
    totalSize: 0
  })
  const both = { ...request, params: { message: { ...message, messageId: 'p3' } } }
  const { error } = (await ask(node, '/agents/talk', { json: both })).body as {
    error?: { code: number; message: string }
  }
  t.alike([error?.code, error?.message], [-32602, 'message.message_id: is given as messageId too'])
})

test('the card at the root offers only skills that a message there reaches, with one agent, several, and a2a.default', async (t) => {
  const mesh = await localMesh(t)
  const node = await gatewayNode(mesh, 'a')
  const message = (id: string) => ({ message: { messageId: id, role: 'ROLE_USER', parts: [{ text: 'hi' }] } })
  const card = async (at: GatewayNode) => {
    const { body } = await ask(at, '/.well-known/agent-card.json', { headers: { 'a2a-version': '1.0' } })
    return body as { name: string; skills: { id: string }[]; supportedInterfaces: { url: string }[] }
  }
  const own = await card(node)
  t.alike([own.name, own.skills[0]?.id, own.supportedInterfaces[0]?.url], ['talk', 'talk.say', `${node.url}/a2a`])
  for (const path of ['/a2a/message:send', '/a2a']) {
    const json =
      path === '/a2a' ? { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: message('r2') } : message('r1')
    const { status, body } = await ask(node, path, { json })
    t.ok(status === 200 && JSON.stringify(body).includes('you said hi'), JSON.stringify(body))
  }

  const agents = join(node.dir, 'agents')
  const talk = await fs.readFile(join(agents, 'talk.md'), 'utf8')
  await fs.writeFile(
    join(agents, 'other.md'),
    talk.replace('name: talk', 'name: other').replaceAll('talk.s', 'other.s').replaceAll('talk.o', 'other.o')
  )
  await untilAgent(node.node, 'other@a')
  const { status, body } = await ask(node, '/a2a/message:send', { json: message('r3') })
  const text = JSON.stringify(body)
  t.ok(
    status === 400 && text.includes('metadata.skillId') && text.includes('other.say') && text.includes('talk.say'),
    text
  )
  await untilTrue(
    async () => (await card(node)).skills.some(({ id }) => id === 'other/other.say'),
    'the card of the node'
  )

  const { code } = await node.node.json<{ code: string }>(['invite', '--mine'])
  const b = await mesh.start('b', { join: code, args: ['--http', '0'], env: { A2A_NODE_A2A_DEFAULT: 'talk@a' } })
  const { token } = await b.json<{ token: string }>(['a2a', 'token', 'create', '--tier', 'L1'])
  await untilAgent(b, 'talk@a')
  const other = { ...node, node: b, url: b.info.http ?? '', token }
  const hop = await ask(other, '/a2a/message:send', { json: message('r4') })
  t.ok(hop.status === 200 && JSON.stringify(hop.body).includes('you said hi'), JSON.stringify(hop.body))
  await untilTrue(async () => (await card(other)).name === 'talk', 'its card')
})
