import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import type { StatusInfo } from '../../src/ports/node-api.js'
import { ask, gatewayNode } from '../support/a2a.js'
import { agentText } from '../support/agents/agent-text.js'
import { eventsOf } from '../support/facade-scene.js'
import { localMesh, untilAgent, untilTrue } from '../support/nodes.js'
import { parsePrometheus } from '../support/prometheus.js'

test('with curl and a token an agent is listed, run and streamed, here and on another node', async (t) => {
  const mesh = await localMesh(t)
  const node = await gatewayNode(mesh, 'a')
  const list = await ask(node, '/agents')
  const names = (list.body['agents'] as { name: string; description: string }[]).map(({ name, description }) => [
    name,
    description
  ])
  t.alike(
    names.find(([name]) => name === 'talk'),
    ['talk', 'Talks.']
  )
  t.alike(
    [(await ask(node, '/v1/agents/talk')).body['defaultCapability'], (await ask(node, '/agents/none')).status],
    ['talk.say', 404]
  )
  const ran = await ask(node, '/agents/talk/run', { json: { prompt: 'hello' } })
  t.alike([ran.status, ran.body['result']], [200, 'you said hello'])
  const { taskId } = ran.body['meta'] as { taskId: string }
  t.is((await ask(node, `/a2a/tasks/${taskId}`)).status, 200, 'it is a task of the protocol, too')
  const streamed = await fetch(`${node.url}/v1/agents/talk/stream`, {
    method: 'POST',
    headers: { authorization: `Bearer ${node.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ prompt: '{"chunks":["one ","two"]}' })
  })
  t.is(streamed.headers.get('content-type'), 'text/event-stream')
  t.alike(
    eventsOf(await streamed.text()).map(({ event, data }) => [event, data['token'] ?? data['content']]),
    [
      ['state', 'one '],
      ['state', 'two'],
      ['result', 'one two']
    ]
  )
  const failed = await ask(node, '/agents/talk/run', { json: { prompt: '{"fail":"the reason"}' } })
  t.alike([failed.status, failed.body], [500, { error: 'internal_error', message: 'Unexpected failure' }])
  t.ok(node.node.errors().includes('the reason'), 'its node knows why')
  t.is((await fetch(`${node.url}/agents`)).status, 401)
  t.is(
    (
      await ask(node, '/agents/talk/message:send', {
        json: { message: { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'x' }] } }
      })
    ).status,
    200
  )

  const code = (await node.node.json<{ code: string }>(['invite', '--mine'])).code
  const other = await mesh.start('b', { join: code, args: ['--http', '0'] })
  await untilAgent(other, 'talk@a')
  const { token } = await other.json<{ token: string }>(['a2a', 'token', 'create'])
  const far = { ...node, node: other, url: other.info.http ?? '', token }
  const listed = (await ask(far, '/agents')).body['agents'] as { name: string }[]
  t.ok(
    listed.some(({ name }) => name === 'talk@a') && listed.every(({ name }) => name !== 'talk'),
    'its name is that of its card'
  )
  const found = async (query: string): Promise<unknown> =>
    ((await ask(far, `/agents?${query}`)).body['agents'] as { name: string }[]).map(({ name }) => name)
  t.alike([await found('node=a&skill=talk.say'), await found('node=b&skill=talk.say')], [['talk@a'], []])
  t.is((await ask(far, '/agents/talk@a/run', { json: { prompt: 'from afar' } })).body['result'], 'you said from afar')
  for (const place of ['/agents/talk', '/agents/talk/.well-known/agent-card.json', '/agents/tal@a'])
    t.is((await ask(far, place)).status, 404, place)
  t.alike(
    (await ask(far, '/agents/talk/run', { json: { prompt: 'x' } })).body['error'],
    'agent_not_found',
    'an id alone is of this node'
  )
  const tenant = { message: { messageId: 'm2', role: 'ROLE_USER', parts: [{ text: 'x' }] }, tenant: 'talk' }
  t.is((await ask(far, '/a2a/message:send', { json: tenant })).status, 400)
  t.is((await ask(far, '/a2a/message:send', { json: { ...tenant, tenant: 'talk@a' } })).status, 200)
  await node.node.stop()
  t.alike((await ask(far, '/agents/talk@a/run', { json: { prompt: 'gone' } })).body['error'], 'unavailable')
})

test('an agent whose program is missing is called so wherever agents are listed, and is never ready', async (t) => {
  const mesh = await localMesh(t)
  const home = path.join(await mesh.dir(), 'a')
  await fs.mkdir(path.join(home, 'agents'), { recursive: true, mode: 0o700 })
  await fs.writeFile(
    path.join(home, 'agents', 'lost.md'),
    agentText('lost', [], '{ type: command, command: [no-such-program-here] }')
  )
  const node = await mesh.start('a', { home, args: ['--http', '0'] })
  await untilTrue(async () => (await node.json<StatusInfo>(['status'])).problems.length > 0, 'it was looked at')
  const { agents, problems } = await node.json<StatusInfo>(['status'])
  t.absent(agents.ready.includes('lost'))
  t.alike(
    problems.map(({ code }) => code),
    ['AGENT_UNHEALTHY']
  )
  const { stdout, stderr } = await node.cli(['agents', '--local'])
  t.ok(/lost@a +L\d +unhealthy /.test(stdout) && /text@a +L\d +ready /.test(stdout), stdout)
  t.ok(stderr === '' || stderr.includes('no-such-program-here'), stderr)
  t.ok(/^lost@a +L\d +unhealthy\n/.test((await node.cli(['agents', 'show', 'lost'])).stdout))
  const { token } = await node.json<{ token: string }>(['a2a', 'token', 'create', '--tier', 'L0'])
  const at = { node, url: node.info.http ?? '', token, dir: home }
  const listed = (await ask(at, '/agents')).body['agents'] as { name: string; status: string; health?: string }[]
  const shown = (await ask(at, '/agents/lost')).body
  for (const one of [listed.find(({ name }) => name === 'lost'), shown])
    t.alike([one?.['status'], one?.['health']], ['unhealthy', 'unhealthy'])
  t.is(listed.find(({ name }) => name === 'text')?.status, 'ready')
})

test('the config limits contents and rates; metrics are for tokens', async (t) => {
  const mesh = await localMesh(t)
  const home = path.join(await mesh.dir(), 'a')
  await fs.mkdir(home, { mode: 0o700 })
  const file = path.join(home, 'config.yaml')
  await fs.writeFile(
    file,
    'a2a:\n  guardrails:\n    input: { maxLength: 20, deny: ["(?i)secret"] }\n  rateLimit: { perMinute: 1, burst: 6 }\n'
  )
  const node = await mesh.start('a', { home, args: ['--http', '0'] })
  const { token } = await node.json<{ token: string }>(['a2a', 'token', 'create', '--tier', 'L0'])
  const at = { node, url: node.info.http ?? '', token, dir: home }
  const run = (prompt: string) => ask(at, '/agents/text/run', { json: { prompt } })
  t.alike((await run('x'.repeat(21))).body['details'], { on: 'input', rule: 'maxLength', limit: 20, length: 21 })
  t.is((await run('my Secret')).body['error'], 'guardrail_violation')
  const refused = await ask(at, '/agents/text/message:send', {
    json: { message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'secret' }] } }
  })
  t.is(refused.status, 400, 'a message of the protocol as well')
  t.is((await run('fine words')).status, 200)
  t.is((await ask(at, '/v1/agents')).status, 200)
  const card = await ask(at, '/a2a/v1/card')
  const usage = (
    card.body['capabilities'] as { extensions: { uri: string; params: { limits: object } }[] }
  ).extensions.at(-1)
  t.alike(
    { ...usage?.params.limits, callsPerMinute: 1, callsAtOnce: 6, callsLeft: 0 },
    usage?.params.limits,
    JSON.stringify(usage)
  )
  t.is((await ask(at, '/agents')).status, 429)
  const call = await ask(at, '/agents/text', { json: { jsonrpc: '2.0', id: 7, method: 'ListTasks', params: {} } })
  t.alike(
    [call.status, call.body['id'], (call.body['error'] as { code: number }).code],
    [429, 7, -32603],
    'one limit for all'
  )
  const metrics = await fetch(`${at.url}/metrics`, { headers: { authorization: `Bearer ${token}` } })
  const { samples } = parsePrometheus((await metrics.text()).trimEnd())
  t.is(samples.get('a2a_node_tasks_completed_total'), 1)
  t.alike([(await fetch(`${at.url}/metrics`)).status, (await fetch(`${at.url}/health`)).status], [401, 200])
  await fs.writeFile(file, 'a2a:\n  guardrails: { output: { deny: ["(?<=a)b"] } }\n')
  const checked = await node.cli(['config', 'check'])
  t.is(checked.code, 78)
  t.ok(checked.stdout.includes(`${file}:2: a2a.guardrails.output.deny.0: is no pattern of RE2`), checked.stdout)
})
