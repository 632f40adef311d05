import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { isRunning } from '../support/agents/eventually.js'
import { mcpClient, oldMcpClient } from '../support/mcp-clients.js'
import { modern } from '../support/mcp-http-scene.js'
import { ROOT, localMesh, type LocalNode, until, untilAgent, untilTrue } from '../support/nodes.js'

const JSON_HEADERS = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
  connection: 'close'
}

/** An agent whose capability notes that it began, then waits until it is ended. */
const SLEEPER = `---
name: sleeper
description: Sleeps.
a2a:
  capabilities:
    - id: sleeper.sleep
      input: { type: object, properties: { file: { type: string } }, required: [file] }
  prompts:
    - name: lullaby
      description: Sings somebody to sleep.
      arguments: [{ name: who }]
      template: Sing {who} to sleep, {softly}.
  runtime: { type: command, command: [node, -e, "require('fs').writeFileSync(process.argv[1], String(process.pid)); setInterval(() => {}, 1000)", "{input.file}"] }
---
`

interface ListedAgents {
  readonly agents: readonly { readonly agent: string }[]
}

test('official clients of both SDKs list and call the tools of their node and of others', async (t) => {
  const mesh = await localMesh(t)
  const [a] = (await mesh.meshOf('a', 'b', 'c')) as [LocalNode]
  await Promise.all(['text@b', 'text@c'].map((address) => untilAgent(a, address)))
  const newest = await mcpClient(t, mesh, a)
  for (const client of [newest, await oldMcpClient(t, mesh, a)]) {
    const tools = await client.tools()
    for (const name of ['text__stats', 'host__report', 'a2a_swarm', 'health']) t.ok(tools.includes(name), name)
    t.absent(tools.includes('text_at_b__stats'), 'the machines of one version are one tool')
    const there = await client.call('text__stats', { text: 'one two', node: 'c' })
    t.alike([there.isError, (there.value as { words: number }).words], [false, 2])
    const nowhere = await client.call('host__report', { node: 'z' })
    t.alike([nowhere.isError, (nowhere.value as { message: string }).message], [true, '"node" is none of a, b, c'])
    for (const name of ['text__stats', 'text_at_b__stats', 'text@c.stats']) {
      const { isError, value } = await client.call(name, { text: 'one two\nthree' })
      t.absent(isError)
      t.is((value as { words: number }).words, 3, name)
    }
    const { value } = await client.call('a2a_list_agents', { capability: 'text.stats' })
    t.alike((value as ListedAgents).agents.map(({ agent }) => agent).sort(), ['text@a', 'text@b', 'text@c'])
    const wrong = await client.call('text_at_b__stats', { words: 1 })
    t.alike([wrong.isError, (wrong.value as { code: string }).code], [true, 'INVALID_ARGUMENT'])
    const none = await client.call('text__nothing', {})
    t.alike([none.isError, (none.value as { code: string }).code], [true, 'NOT_FOUND'])
  }
  const { value } = await newest.call('a2a_swarm', {
    goal: 'count',
    capability: 'text.stats',
    items: [{ text: 'a' }, { text: 'b c' }, { text: 'd e f' }]
  })
  const { status, results } = value as { status: string; results: { result: { words: number } }[] }
  t.is(status, 'completed')
  t.alike(
    results.map(({ result }) => result.words).sort((one, other) => one - other),
    [1, 2, 3]
  )
})

test('a call from a client passes the rules of the node it reaches: refused by tier, pending approval, canceled', async (t) => {
  const mesh = await localMesh(t)
  const [a] = (await mesh.meshOf('a')) as [LocalNode]
  const { code } = await a.json<{ code: string }>(['invite', '--mine', '--tier', 'L2'])
  const b = await mesh.start('b', { join: code })
  await fs.writeFile(path.join(a.home, 'agents', 'sleeper.md'), SLEEPER)
  await Promise.all([untilAgent(a, 'sleeper@a'), untilAgent(a, 'text@b'), untilAgent(b, 'sleeper@a')])
  const [here, there] = [await mcpClient(t, mesh, a), await mcpClient(t, mesh, b)]
  const refused = await there.call('text@a.stats', { text: 'x' })
  t.ok(refused.isError)
  t.alike(
    [(refused.value as { code: string }).code, (refused.value as { details: { code: string } }).details.code],
    ['UNAUTHORIZED', 'ESCALATION_REQUIRED']
  )
  const reason = { agent: 'text@a', capability: 'text.stats', input: { text: 'x' }, justification: 'to count' }
  t.absent((await there.call('a2a_call', reason)).isError)

  await fs.writeFile(path.join(a.home, 'policy.yaml'), 'rules:\n  - capability: sleeper.*\n    decision: ask\n')
  await untilTrue(async () => (await a.api.call('policy.show', {})).rules[0]?.id !== 'guests-ask', 'the policy is read')
  const file = path.join(await mesh.dir(), 'pid')
  const told: string[] = []
  const gone = new AbortController()
  const sleeping = there
    .call(
      'a2a_call',
      { ...reason, agent: 'sleeper@a', capability: 'sleeper.sleep', input: { file } },
      { signal: gone.signal, onProgress: (line) => told.push(line) }
    )
    .catch((error: unknown) => error)
  const { approvals } = await until(a.api, 'approvals.list', {}, (item) => item.approvals.length > 0)
  await untilTrue(() => told.some((line) => line.startsWith('waiting for approval')), 'the client is notified')
  await a.api.call('approvals.allow', { id: approvals[0]?.id ?? '' })
  await untilTrue(async () => (await fs.readFile(file, 'utf8').catch(() => '')) !== '', 'the agent began')
  const pid = Number(await fs.readFile(file, 'utf8'))
  gone.abort()
  t.ok((await sleeping) instanceof Error)
  await untilTrue(() => !isRunning(pid), 'the agent was ended')

  const { prompts } = await here.sdk.listPrompts()
  t.alike(
    prompts.map(({ name }) => name),
    ['sleeper__lullaby']
  )
  const { messages } = await here.sdk.getPrompt({ name: 'sleeper__lullaby', arguments: { who: 'Ada' } })
  t.is((messages as { content: { text: string } }[])[0]?.content.text, 'Sing Ada to sleep, {softly}.')
})

test('cards, documents, results of swarms and the audit log are resources', async (t) => {
  const mesh = await localMesh(t)
  const [a] = (await mesh.meshOf('a')) as [LocalNode]
  await a.api.call('documents.create', { name: 'notes & more' })
  await a.api.call('documents.edit', { document: 'notes & more', edit: { type: 'text', text: 'hello' } })
  const { sdk, call } = await mcpClient(t, mesh, a)
  await call('a2a_swarm', { goal: 'report', capability: 'host.report' })
  const { resources } = await sdk.listResources()
  const contentOf = async (prefix: string): Promise<{ text: string; mimeType: string }> => {
    const found = resources.find(({ uri }) => uri.startsWith(prefix))
    const { contents } = await sdk.readResource({ uri: found?.uri ?? prefix })
    return contents[0] as { text: string; mimeType: string }
  }
  t.is((JSON.parse((await contentOf('a2a://agents/text')).text) as { address: string }).address, 'text@a')
  t.alike(await contentOf('a2a://documents/'), {
    uri: 'a2a://documents/notes%20%26%20more',
    mimeType: 'text/plain',
    text: 'hello'
  })
  t.is((JSON.parse((await contentOf('a2a://swarms/')).text) as { status: string }).status, 'completed')
  t.ok(Array.isArray(JSON.parse((await contentOf('a2a://audit')).text)))
  for (const uri of ['a2a://documents/nothing', 'a2a://agents/%', 'a2a://', 'file:///etc/passwd']) {
    await t.exception(sdk.readResource({ uri }), uri)
  }
})

test('mcp serve ends with its client, also without a node, and with --embed starts one', async (t) => {
  const mesh = await localMesh(t)
  const home = path.join(await mesh.dir(), 'embedded')
  const serve = async (
    args: readonly string[],
    input: string
  ): Promise<{ code: number | null; out: string; err: string }> => {
    const child = spawn(
      process.execPath,
      [path.join(ROOT, 'bin', 'a2a-node.js'), '--home', home, 'mcp', 'serve', ...args],
      {
        env: { ...mesh.env }
      }
    )
    let [out, err] = ['', '']
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => (err += chunk))
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      out += chunk
      // It has answered; a client that has nothing more to ask ends its input.
      if (out.includes('\n')) child.stdin.end()
    })
    child.stdin.on('error', () => {})
    child.stdin.write(input)
    if (input === '') child.stdin.end()
    const [code] = (await once(child, 'close')) as [number | null]
    return { code, out, err }
  }
  t.alike(await serve(['--no-start'], ''), { code: 0, out: '', err: '' })
  t.is((await serve(['--embed', '--network', 'moon'], '')).code, 2)
  const embedded = await serve(
    ['--embed', '--network', 'local', '--agents', 'text'],
    '{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'
  )
  t.is(embedded.code, 0, embedded.err)
  t.absent(embedded.err.includes('no such directory'), 'the agents of a client are no directory of the node')
  const answer = JSON.parse(embedded.out) as { error: { code: number; data: { code: string } } }
  t.alike([answer.error.code, answer.error.data.code], [-32002, 'NOT_INITIALIZED'])
  await untilTrue(async () => (await fs.readdir(home)).includes('mesh.json'), 'the node that it started')
})

test('an official client works over HTTP with a token, as far as its token goes', async (t) => {
  const mesh = await localMesh(t)
  const a = await mesh.start('a', { args: ['--http', '0'] })
  const { token, id } = await a.json<{ token: string; id: string }>([
    'a2a',
    'token',
    'create',
    '--scope',
    'read,send,admin'
  ])
  const weak = await a.json<{ token: string }>(['a2a', 'token', 'create', '--scope', 'read'])
  const url = new URL('/mcp', a.info.http ?? '')
  const connect = async (bearer: string): Promise<Client> => {
    const client = new Client({ name: 'test', version: '1.0.0' })
    await client.connect(
      new StreamableHTTPClientTransport(url, { requestInit: { headers: { authorization: `Bearer ${bearer}` } } })
    )
    t.teardown(() => client.close(), { order: -1 })
    return client
  }
  const client = await connect(token)
  const textOf = (result: unknown): unknown =>
    JSON.parse((result as { content: { text: string }[] }).content[0]?.text ?? 'null')
  const stats = await client.callTool({ name: 'text__stats', arguments: { text: 'one two' } })
  t.is((textOf(stats) as { words: number }).words, 2)
  t.ok((await client.listResources()).resources.some(({ uri }) => uri === 'a2a://audit'))
  const reader = await connect(weak.token)
  const refused = await reader.callTool({ name: 'text__stats', arguments: { text: 'one two' } })
  t.is((textOf(refused) as { code: string }).code, 'UNAUTHORIZED')
  t.absent((await reader.listResources()).resources.some(({ uri }) => uri === 'a2a://audit'))
  await t.exception(connect('a2a_nothing'))
  await a.cli(['a2a', 'token', 'revoke', id])
  await t.exception(client.callTool({ name: 'text__stats', arguments: { text: 'one two' } }))
})

test('guardrails and the limit of calls bind a client with a token at /mcp, and never the operator', async (t) => {
  const mesh = await localMesh(t)
  const home = path.join(await mesh.dir(), 'a')
  await fs.mkdir(home, { mode: 0o700 })
  const rails = 'input: { maxLength: 40, deny: ["(?i)secret"] }, output: { maxLength: 100000, deny: ["\\"?words\\"?"] }'
  await fs.writeFile(
    path.join(home, 'config.yaml'),
    `a2a:\n  guardrails: { ${rails} }\n  rateLimit: { perMinute: 1, burst: 5 }\n`
  )
  const a = await mesh.start('a', { home, args: ['--http', '0'] })
  const { token } = await a.json<{ token: string }>(['a2a', 'token', 'create'])
  const ask = async (text: string): Promise<{ status: number; retryAfter: string | null; body: string }> => {
    const [body, headers] = modern(7, 'tools/call', { name: 'text__stats', arguments: { text } })
    const response = await fetch(new URL('/mcp', a.info.http ?? ''), {
      method: 'POST',
      headers: { ...headers, ...JSON_HEADERS, authorization: `Bearer ${token}` },
      body: JSON.stringify(body)
    })
    return { status: response.status, retryAfter: response.headers.get('retry-after'), body: await response.text() }
  }
  for (const text of ['my Secret', 'x'.repeat(41)]) {
    const { body } = await ask(text)
    t.ok(/INVALID_INPUT/.test(body), body)
  }
  const hidden = (await ask('one two')).body
  t.ok(/INVALID_OUTPUT/.test(hidden), hidden)
  t.absent(/"words\\?"/.test(hidden), hidden)
  for (let i = 0; i < 2; i++) await ask('one')
  const { status, retryAfter, body } = await ask('one')
  t.alike([status, (JSON.parse(body) as { id: number }).id, Number(retryAfter) > 0], [429, 7, true], body)
  const own = await mcpClient(t, mesh, a)
  t.is((await own.call('text__stats', { text: `my secret ${'x'.repeat(60)}` })).isError, false)
})

test('requests that a script pipes into mcp serve at once are answered before it ends', async (t) => {
  const mesh = await localMesh(t)
  const node = await mesh.start('a')
  const lines = [
    {
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'script', version: '1' } }
    },
    { method: 'notifications/initialized' },
    { id: 2, method: 'tools/call', params: { name: 'text__stats', arguments: { text: 'one two' } } }
  ].map((message) => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  const { code, stdout } = await node.cli(['mcp', 'serve'], lines.join(''))
  const [shaken, called, ...others] = stdout.trim().split('\n')
  t.alike([code, others], [0, []])
  t.ok(shaken?.includes('"protocolVersion":"2025-06-18"'), shaken)
  t.ok(called?.includes('"id":2') && !called.includes('"isError":true') && called.includes('words'), called)
})
