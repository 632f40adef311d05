import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { ask, type GatewayNode, gatewayNode, type HttpAnswer } from '../support/a2a.js'
import { freePort, localMesh, type LocalMesh } from '../support/nodes.js'
import { basic, pkce } from '../support/oauth.js'

interface Client {
  readonly id: string
  readonly secret: string
}

/** A node with OAuth on a port of its own, so that it is the same issuer after a restart. */
async function oauthNode(mesh: LocalMesh): Promise<{ readonly node: GatewayNode; readonly http: string }> {
  const home = path.join(await mesh.dir(), 'home')
  await fs.mkdir(home, { recursive: true })
  await fs.writeFile(path.join(home, 'config.yaml'), 'a2a: { oauth: { enabled: true } }\n')
  const http = String(await freePort())
  return { node: await gatewayNode(mesh, 'a', { home, http }), http }
}

async function client({ node }: GatewayNode, ...options: readonly string[]): Promise<Client> {
  return await node.json<Client>(['a2a', 'client', 'create', ...options])
}

async function post(
  url: string,
  form: Record<string, string>,
  headers: Record<string, string> = {}
): Promise<Record<string, string>> {
  const response = await fetch(url, {
    method: 'POST',
    body: new URLSearchParams(form),
    headers: { ...headers, connection: 'close' }
  })
  const text = await response.text()
  return text === '' ? {} : (JSON.parse(text) as Record<string, string>)
}

async function ownToken({ url }: GatewayNode, { id, secret }: Client, scope?: string): Promise<string> {
  const form = { grant_type: 'client_credentials', ...(scope === undefined ? {} : { scope }) }
  return (await post(`${url}/oauth/token`, form, { authorization: basic(id, secret) }))['access_token'] ?? ''
}

let count = 0
async function send(node: GatewayNode, token: string, skill = 'talk.once'): Promise<HttpAnswer> {
  const message = {
    messageId: `m${++count}`,
    role: 'ROLE_USER',
    parts: [{ text: 'hello' }],
    metadata: { skillId: skill }
  }
  return await ask({ ...node, token }, '/agents/talk/message:send', {
    json: { message },
    headers: { connection: 'close' }
  })
}

function taskOf({ body }: HttpAnswer): { readonly id: string; readonly state: string; readonly why: string } {
  const task = body['task'] as { id: string; status: { state: string; message?: unknown } } | undefined
  return { id: task?.id ?? '', state: task?.status.state ?? '', why: JSON.stringify(body) }
}

async function statusOf(node: GatewayNode, token: string, place = '/agents/talk/tasks'): Promise<number> {
  return (await fetch(node.url + place, { headers: { authorization: `Bearer ${token}`, connection: 'close' } })).status
}

test('a client gets a token by its secret and sends; its tasks are its own, and the router holds it to its tier and capabilities', async (t) => {
  const { node } = await oauthNode(await localMesh(t))
  const strong = await client(node, '--name', 'strong', '--tier', 'L0')
  const token = await ownToken(node, strong)
  const done = taskOf(await send(node, token))
  t.is(done.state, 'TASK_STATE_COMPLETED', done.why)
  t.is(
    await statusOf(node, await ownToken(node, strong), `/agents/talk/tasks/${done.id}`),
    200,
    'also with another token of it'
  )
  const other = await client(node, '--name', 'other', '--tier', 'L0')
  t.is(await statusOf(node, await ownToken(node, other), `/agents/talk/tasks/${done.id}`), 404)
  const weak = taskOf(await send(node, await ownToken(node, await client(node, '--name', 'weak'))))
  t.ok(weak.state !== 'TASK_STATE_COMPLETED' && weak.why.includes('ESCALATION_REQUIRED'), weak.why)
  const narrow = await ownToken(node, strong, 'a2a:send a2a:tier:L0 skill:talk.say')
  t.absent((await send(node, narrow, 'talk.say')).body['error'])
  const refused = taskOf(await send(node, narrow))
  t.ok(refused.state !== 'TASK_STATE_COMPLETED' && refused.why.includes('POLICY_DENIED'), refused.why)
  const onceOnly = await ownToken(node, strong, 'a2a:send a2a:tier:L0 skill:talk.once')
  const said = await send(node, onceOnly, 'talk.say')
  t.ok(JSON.stringify(said.body).includes('POLICY_DENIED'), 'nor what may be answered at once')
  const audit = (await node.node.cli(['audit', '--json'])).stdout
  t.ok(audit.includes('token: it is limited to some capabilities'), 'the router put it on record')
  t.is((await send(node, await ownToken(node, strong, 'a2a:read'))).status, 403, 'a reader sends nothing')
  t.is(await statusOf(node, token, '/extendedAgentCard'), await statusOf(node, node.token, '/extendedAgentCard'))
  t.is(await statusOf(node, node.token), 200, 'tokens of the node go on working')
  t.not(await statusOf(node, token, '/metrics'), 200, 'the node itself is not for clients')
  const tools = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }
  t.is(
    (await ask({ ...node, token }, '/mcp', { json: tools, headers: { accept: 'application/json, text/event-stream' } }))
      .status,
    403
  )
})

test('a revoked token and a revoked client are refused at once; a restart keeps clients, tokens and revocations', async (t) => {
  const mesh = await localMesh(t)
  const { node, http } = await oauthNode(mesh)
  const [one, two] = [await client(node, '--tier', 'L0'), await client(node, '--tier', 'L0')]
  const [lasting, revoked, ended] = [await ownToken(node, one), await ownToken(node, one), await ownToken(node, two)]
  await post(`${node.url}/oauth/revoke`, { token: revoked }, { authorization: basic(one.id, one.secret) })
  t.is((await node.node.cli(['a2a', 'client', 'revoke', two.id])).code, 0)
  const statuses = async (of: GatewayNode): Promise<number[]> =>
    await Promise.all([lasting, revoked, ended].map((token) => statusOf(of, token)))
  t.alike(await statuses(node), [200, 401, 401])
  await node.node.stop()
  const again = await gatewayNode(mesh, 'a', { http, home: node.node.home, dir: node.dir, token: node.token })
  t.alike(await statuses(again), [200, 401, 401])
  t.is(taskOf(await send(again, await ownToken(again, one))).state, 'TASK_STATE_COMPLETED')
  const log = node.node.errors() + again.node.errors()
  for (const secret of [one.secret, two.secret, lasting, revoked]) t.absent(log.includes(secret))
  t.absent(log.includes('Unsupported runtime'))
})

test('a device and a browser wait for the operator, who allows them at the command line', async (t) => {
  const { node } = await oauthNode(await localMesh(t))
  const redirect = 'http://127.0.0.1:9/cb'
  const { id } = await client(node, '--public', '--tier', 'L0', '--redirect-uri', redirect)
  const begun = await post(`${node.url}/oauth/device_authorization`, { client_id: id })
  const form = {
    grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
    client_id: id,
    device_code: begun['device_code'] ?? ''
  }
  t.is((await post(`${node.url}/oauth/token`, form))['error'], 'authorization_pending')
  const { requests } = await node.node.json<{ requests: { flow: string }[] }>(['a2a', 'oauth', 'ls'])
  t.alike(
    requests.map(({ flow }) => flow),
    ['device']
  )
  const unknown = await node.node.cli(['a2a', 'oauth', 'approve', 'BCDF-GHJK'])
  t.is(unknown.code, 4)
  t.is((await node.node.cli(['a2a', 'oauth', 'approve', begun['user_code'] ?? ''])).code, 0)
  t.is(
    taskOf(await send(node, (await post(`${node.url}/oauth/token`, form))['access_token'] ?? '')).state,
    'TASK_STATE_COMPLETED'
  )
  const { verifier, challenge } = pkce()
  const query = new URLSearchParams({
    client_id: id,
    response_type: 'code',
    redirect_uri: redirect,
    code_challenge: challenge,
    code_challenge_method: 'S256'
  })
  const begin = await fetch(`${node.url}/oauth/authorize?${query.toString()}`, { redirect: 'manual' })
  const cookie = begin.headers
    .getSetCookie()
    .map((line) => line.split(';')[0])
    .join('; ')
  const visit = (place: string): Promise<Response> =>
    fetch(new URL(place, node.url), { redirect: 'manual', headers: { cookie } })
  const page = begin.headers.get('location') ?? ''
  const [, command, code = ''] =
    /<pre>(.*) a2a oauth approve ([A-Z-]+)<\/pre>/.exec(await (await visit(page)).text()) ?? []
  t.is(command, `a2a-node --home ${node.node.home}`, 'commands on the page are for the home of the node')
  t.ok((await (await visit('/oauth/device')).text()).includes(`<pre>${command} a2a oauth approve CODE</pre>`))
  t.is((await node.node.cli(['a2a', 'oauth', 'approve', code])).code, 0)
  const back = await visit((await visit(page)).headers.get('location') ?? '')
  const answer = new URL(back.headers.get('location') ?? 'about:blank')
  const tokens = await post(`${node.url}/oauth/token`, {
    grant_type: 'authorization_code',
    client_id: id,
    code: answer.searchParams.get('code') ?? '',
    redirect_uri: redirect,
    code_verifier: verifier
  })
  t.is(await statusOf(node, tokens['access_token'] ?? ''), 200)
})

test('an issuer that would not do is refused at the start, http.publicUrl in its place too', async (t: Assert) => {
  const mesh = await localMesh(t)
  const home = path.join(await mesh.dir(), 'home')
  await fs.mkdir(home, { mode: 0o700 })
  const start = async (config: string): Promise<string> => {
    await fs.writeFile(path.join(home, 'config.yaml'), `a2a: { oauth: { enabled: true } }\n${config}\n`)
    const { code, stderr } = await mesh.run(['--home', home, 'start'])
    return `${code} ${stderr}`
  }
  const bare = await start('http: { listen: "0.0.0.0:0" }')
  t.ok(bare.startsWith('78 ') && bare.includes('needs a2a.oauth.issuer or http.publicUrl'), bare)
  for (const url of ['https://example.org/node', 'http://10.0.0.5:8421']) {
    const told = await start(`http: { listen: "0.0.0.0:0", publicUrl: "${url}" }`)
    t.ok(told.startsWith('78 ') && told.includes('http.publicUrl cannot stand for it'), told)
  }
})

test('without OAuth in the config nobody gets a token by it, and the commands say what to do', async (t: Assert) => {
  const node = await gatewayNode(await localMesh(t), 'a')
  for (const place of ['/oauth/token', '/.well-known/oauth-authorization-server'])
    t.is((await fetch(node.url + place)).status, 401)
  const refused = await node.node.cli(['a2a', 'client', 'ls'])
  t.is(refused.code, 2)
  t.ok(refused.stderr.includes('a2a.oauth.enabled'), refused.stderr)
})
