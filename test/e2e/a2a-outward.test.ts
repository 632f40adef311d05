import fs from 'node:fs'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import type { ImportedServerInfo } from '../../src/ports/imported-tools.js'
import type { Reply } from '../../src/ports/node-api.js'
import { remoteServer } from '../support/a2a/remote-server.js'
import { ask, gatewayNode, request } from '../support/a2a.js'
import { type LocalMesh, localMesh, type LocalNode, untilAgent, untilOnline, untilTrue } from '../support/nodes.js'

const TIMEOUT = { timeout: 180_000 }

/** A node with a config of its own. */
async function configured(
  mesh: LocalMesh,
  name: string,
  lines: readonly string[],
  env: Record<string, string> = {}
): Promise<LocalNode> {
  const home = await mesh.dir()
  fs.writeFileSync(path.join(home, 'config.yaml'), [...lines, ''].join('\n'))
  return await mesh.start(name, { home, env })
}

test(
  'the agent of another mesh, by the card of its gateway, is an agent of this one, also for its members',
  TIMEOUT,
  async (t: Assert) => {
    const mesh = await localMesh(t)
    const far = await mesh.start('far', { args: ['--http', '0'] })
    const { token } = await far.api.call('token.create', { name: 'near', tier: 1, scopes: ['read', 'send'] })
    const gateway = far.info.http ?? ''
    const url = `${gateway}/agents/text/.well-known/agent-card.json`
    const near = await configured(
      mesh,
      'near',
      [
        'a2a:',
        '  allowPrivate: [127.0.0.1]',
        '  agents:',
        '    words:',
        `      card: ${url}`,
        '      auth: { bearer: env:FAR_TOKEN }',
        '      sideEffect: read'
      ],
      { FAR_TOKEN: token }
    )
    await untilAgent(near, 'words@near')
    const reply = await near.json<Reply>(['call', 'words', 'text.stats', '{"text":"one two three"}'])
    t.is((reply.payload as { words?: number }).words, 3, JSON.stringify(reply.payload))
    const { servers } = await near.json<{ servers: ImportedServerInfo[] }>(['tools', 'ls'])
    t.alike(
      servers.map((one) => [one.name, one.transport, one.state, one.pinnedBy]),
      [['words', 'a2a', 'ready', 'first-sight']]
    )
    const byUrl = await near.json<Reply>(['call', url, 'text.stats', '{"text":"one two"}'])
    t.is((byUrl.payload as { words?: number }).words, 2, 'the card of a configured agent is that agent')
    t.is(byUrl.agent, 'words@near')
    const shownConfig = await near.cli(['config', 'show'])
    t.absent(shownConfig.stdout.includes(token))
    const { code } = await near.api.call('invite.create', { trust: 'mine' })
    const member = await mesh.start('member', { join: code })
    await untilOnline(member, 1)
    await untilAgent(member, 'words@near')
    const carried = await member.json<Reply>(['call', 'words', 'text.stats', '{"text":"a b c d"}'])
    t.is((carried.payload as { words?: number }).words, 4)
    await far.stop()
    const lost = await near.cli(['call', 'words', 'text.stats', '{"text":"x"}'])
    t.ok(lost.code !== 0 && /was not reached, and nothing was done/.test(lost.stderr), lost.stderr)
    await near.stop()
    await member.stop()
  }
)

test(
  'over a hop to the agent of another node an artifact is sent once, and the facade gives it as the result',
  TIMEOUT,
  async (t: Assert) => {
    const mesh = await localMesh(t)
    const far = await gatewayNode(mesh, 'far')
    const lines = ['http: { listen: 0 }', 'a2a:', '  allowPrivate: [127.0.0.1]', '  agents:', '    talks:']
    const card = `      card: ${far.url}/agents/talk/.well-known/agent-card.json`
    const node = await configured(mesh, 'near', [...lines, card, '      auth: { bearer: env:FAR_TOKEN }'], {
      FAR_TOKEN: far.token
    })
    await untilAgent(node, 'talks@near')
    const { token } = await node.json<{ token: string }>(['a2a', 'token', 'create', '--tier', 'L0'])
    const near = { ...far, node, url: node.info.http ?? '', token }
    const input = JSON.stringify({ chunks: ['one ', 'two ', 'three'] })
    const message = { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: input }], metadata: { skillId: 'talk.say' } }
    const { task } = (await ask(near, '/agents/talks/message:send', { json: { message } })).body as {
      task: { artifacts: object[] }
    }
    t.alike(
      task.artifacts
        .map((one) => one as { artifactId: string; parts: { text: string }[] })
        .map(({ artifactId, parts }) => [artifactId, parts.map(({ text }) => text)]),
      [['out', ['one ', 'two ', 'three']]],
      JSON.stringify(task)
    )
    t.is((await ask(near, '/agents/talks/run', { json: { prompt: input } })).body['result'], 'one two three')
  }
)

test(
  'call with the URL of a card asks an agent that nobody configured, through the node: its guard and its policy hold',
  TIMEOUT,
  async (t: Assert) => {
    const mesh = await localMesh(t)
    const server = await remoteServer(t, '0.3', (turn) => {
      turn.chunk('result', `heard ${turn.text}`)
      turn.end('completed')
    })
    const node = await configured(mesh, 'a', ['a2a:', `  allowPrivate: ["${server.host}"]`])
    const said = await node.cli(['call', server.url, 'hello there'])
    t.alike([said.code, said.stdout.trim()], [0, 'heard hello there'], said.stderr)
    const named = await node.json<Reply>(['call', server.cardUrl, 'talk', '{"text":"you"}'])
    t.alike([named.outcome, named.payload, named.agent], ['COMPLETED', 'heard you', 'a2a@a'])
    const asked = server.requests.length
    const unknown = await node.cli(['call', server.cardUrl, 'tolk', 'x'])
    t.ok(unknown.code !== 0 && /no skill "tolk"; did you mean talk\?/.test(unknown.stderr), unknown.stderr)
    for (const url of [
      'http://169.254.169.254/latest/meta-data',
      'http://127.0.0.1:1/',
      'http://localhost:8080/',
      'http://2130706433/'
    ]) {
      const refused = await node.cli(['call', url, 'x'])
      t.ok(refused.code !== 0 && /the address is refused/.test(refused.stderr), `${url}: ${refused.stderr}`)
    }
    const few = await node.cli(['call', server.cardUrl])
    t.is(few.code, 2, 'without a message it is no call')
    const { code } = await node.api.call('invite.create', { trust: 'mine' })
    const member = await mesh.start('b', { join: code })
    await untilOnline(member, 1)
    await untilAgent(member, 'a2a@a')
    const through = await member.cli([
      'call',
      'a2a@a',
      'a2a.call',
      JSON.stringify({ card: server.cardUrl, input: 'x' })
    ])
    t.ok(through.code !== 0 && /for its own node alone/.test(through.stderr), through.stderr)
    t.is(server.requests.length, asked, 'nothing else reached it')
    fs.writeFileSync(path.join(node.home, 'policy.yaml'), 'rules:\n  - { capability: a2a.call, decision: deny }\n')
    await untilTrue(
      async () => (await node.cli(['call', server.cardUrl, 'x'])).stderr.includes('policy.yaml:2: deny'),
      'the policy holds'
    )
    await member.stop()
    await node.stop()
  }
)

test(
  'the agent that asks any URL is there for the operator alone: on no face of the gateway is it listed or asked',
  TIMEOUT,
  async (t) => {
    const mesh = await localMesh(t)
    const server = await remoteServer(t, '1.0', (turn) => turn.end('completed'))
    const home = await mesh.dir()
    fs.writeFileSync(
      path.join(home, 'config.yaml'),
      ['http: { listen: 0 }', 'a2a:', `  allowPrivate: ["${server.host}"]`, ''].join('\n')
    )
    const node = await mesh.start('a', { home })
    const called = await node.cli(['call', server.url, 'hello'])
    t.is(called.code, 0, called.stderr)
    const { token } = await node.json<{ token: string }>(['a2a', 'token', 'create', '--tier', 'L0'])
    const { length } = server.requests
    const [near, input] = [
      { node, url: node.info.http ?? '', token, dir: home },
      { card: server.cardUrl, input: 'x' }
    ]
    const message = { messageId: 'm1', role: 'ROLE_USER', parts: [{ data: input }], metadata: { skillId: 'a2a.call' } }
    const rpc = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } }
    const agui = {
      threadId: 't',
      runId: 'r',
      messages: [{ id: 'm', role: 'user', content: JSON.stringify(input) }],
      tools: [],
      context: []
    }
    const posts: readonly (readonly [string, unknown])[] = [
      ['/agents/a2a/run', { prompt: 'x' }],
      ['/agents/a2a', rpc],
      ['/agents/a2a/message:send', { message }],
      ['/a2a', rpc],
      ['/a2a/message:send', { message }],
      ['/agents/a2a/agui', { ...agui, state: {}, forwardedProps: {} }]
    ]
    for (const [at, json] of posts) {
      const answer = await (await request(near, at, { json })).text()
      t.ok(
        /no agent .{0,2}"a2a.{0,2}" is served here|No agents available for skill: a2a.call/.test(answer),
        `${at}: ${answer}`
      )
    }
    for (const at of ['/agents', '/.well-known/agent-card.json']) {
      const { status, body } = await ask(near, at, {})
      t.is(status, 200)
      t.absent(JSON.stringify(body).includes('a2a.call'), `${at}: ${JSON.stringify(body)}`)
    }
    t.is((await ask(near, '/agents/a2a/.well-known/agent-card.json', {})).status, 404)
    t.is(server.requests.length, length, 'nothing reached it')
    await node.stop()
  }
)
