import fs from 'node:fs'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { hashOf } from '../../../../src/adapters/mcp/imported/tool-definition.js'
import type { HealthFinding } from '../../../../src/ports/agent-runtime.js'
import { eventually, isRunning } from '../../../support/agents/eventually.js'
import { FakeStore } from '../../../support/fake-store.js'
import { recordedRun, taskOf } from '../../../support/agents/task.js'
import { failureOf, type ImportedScene, importedScene, toolsOf } from '../../../support/mcp/imported-scene.js'
import { ROOT } from '../../../support/nodes.js'

/** A second server of which nothing that the first does may be felt. */
const NEIGHBOUR = { name: 'good', plan: { tools: toolsOf('echo') } }

async function isUnharmed(t: Assert, scene: ImportedScene): Promise<void> {
  const outcome = await scene.call('good', 'echo', { text: 'still here' })
  t.alike(outcome, { ok: true, result: 'still here' }, 'the other server is unharmed')
  t.is(scene.notes('good').filter((line) => line.startsWith('start ')).length, 1, 'and was not restarted')
}

const callsOf = (scene: ImportedScene, server: string): number =>
  scene.notes(server).filter((line) => line.startsWith('call ')).length

test('the agent of a server gives definitions that its card lacks, also while the server is away', async (t: Assert) => {
  const tree = { type: 'object', properties: { next: { $ref: '#' } } }
  const scene = await importedScene(t, [
    { name: 'demo', plan: { tools: [{ name: 'tree', description: 'A tree.', inputSchema: tree }] } }
  ])
  await scene.ready('demo')
  const [agent] = scene.agents()
  const [capability, gives] = agent?.definition.capabilities ?? []
  const hash = hashOf(capability ?? {})
  t.alike([capability?.id, gives?.id, hash === null], ['mcp_demo_tree', 'demo.definitions', false])
  process.kill(scene.pid('demo'), 'SIGKILL')
  const given = await agent?.run(taskOf('demo.definitions', { hashes: [hash] }), recordedRun())
  const definition = { name: 'tree', description: 'A tree.', inputSchema: tree, outputSchema: null }
  t.alike(given, { ok: true, result: { definitions: [definition] } })
})

test('each tool of a server is a capability of its agent, with its schemas, and runs', async (t: Assert) => {
  const add = {
    name: 'add',
    description: 'Adds.',
    inputSchema: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } }, required: ['a', 'b'] },
    outputSchema: { type: 'object', properties: { sum: { type: 'number' } }, required: ['sum'] }
  }
  const scene = await importedScene(t, [
    {
      name: 'demo',
      plan: { tools: [add, ...toolsOf('echo', 'steps', 'fail', 'picture', 'ns/pid')] },
      spec: { idempotent: ['add'], sideEffect: 'read', tier: 2 }
    }
  ])
  await scene.ready('demo')
  const [agent] = scene.agents()
  t.is(agent?.definition.id, 'demo')
  t.is(agent?.definition.runtime, 'mcp')
  t.is(agent?.definition.tier, 2)
  const [capability] = agent?.definition.capabilities ?? []
  t.is(capability?.id, 'mcp_demo_add')
  t.alike([capability?.inputSchema, capability?.outputSchema], [add.inputSchema, add.outputSchema])
  t.alike([capability?.idempotent, capability?.sideEffect, capability?.description], [true, 'read', 'Adds.'])
  t.alike(await scene.call('demo', 'add', { a: 1, b: 2 }), { ok: true, result: { sum: 3 } })
  t.alike(await scene.call('demo', 'echo', { text: '{"json":true}' }), { ok: true, result: { json: true } })
  t.ok(/does not fit add/.test(failureOf(t, await scene.call('demo', 'add', { a: 'one' }))))
  t.alike(await scene.call('demo', 'fail'), {
    ok: false,
    code: 'TASK_FAILED',
    message: 'the disk is full',
    data: { retryAfter: 7 }
  })
  t.alike(await scene.call('demo', 'picture'), {
    ok: true,
    result: {
      content: [
        { type: 'text', text: 'look' },
        { type: 'image', data: 'AAAA', mimeType: 'image/png' }
      ]
    }
  })
  const id = agent?.definition.capabilities.find(({ name }) => name === 'ns/pid')?.id ?? ''
  t.ok(/^mcp_demo_ns_pid_[0-9a-f]{8}$/.test(id), 'a name that no capability may have is hashed')
  t.alike(
    await scene.call('demo', id.slice('mcp_demo_'.length)),
    { ok: true, result: scene.pid('demo') },
    'and reaches the tool by its own'
  )
  const run = recordedRun()
  t.alike(await scene.call('demo', 'steps', {}, run), { ok: true, result: 'done' })
  t.alike(
    run.reports,
    [1, 2, 3].map((progress) => ({ progress, total: 3 }))
  )
})

test('a server gets the variables that the config names and none of the node', async (t: Assert) => {
  const scene = await importedScene(t, [{ name: 'demo', plan: { tools: toolsOf('env') }, env: { NAMED: 'yes' } }])
  await scene.ready('demo')
  const outcome = await scene.call('demo', 'env')
  const { env, cwd } = (outcome.ok ? outcome.result : {}) as { env: Record<string, string>; cwd: string }
  t.is(env['NAMED'], 'yes')
  t.is(env['SECRET'], undefined)
  t.is(fs.realpathSync(cwd), fs.realpathSync(scene.dir))
})

test('a call that a server dies of is never repeated, and says that it may have run; the server comes up again', async (t: Assert) => {
  const scene = await importedScene(t, [{ name: 'demo', plan: { tools: toolsOf('die', 'echo') } }, NEIGHBOUR])
  await Promise.all([scene.ready('demo'), scene.ready('good')])
  const failure = failureOf(t, await scene.call('demo', 'die'))
  t.ok(/it may have run, and is not repeated/.test(failure) && /exit code 3/.test(failure), failure)
  t.is(callsOf(scene, 'demo'), 1)
  t.alike(
    await scene.call('demo', 'echo', { text: 'back' }),
    { ok: true, result: 'back' },
    'the next call waits for it'
  )
  t.is(scene.info('demo').restarts, 1)
  t.is(callsOf(scene, 'demo'), 2)
  await isUnharmed(t, scene)
})

test('a result that a schema of its server would make a long check of is not checked by it', {
  timeout: 20_000
}, async (t: Assert) => {
  const ways = Array.from({ length: 500 }, (_, i) => ({ const: i }))
  const outputSchema = { type: 'object', properties: { a: { items: { anyOf: ways } } } }
  const scene = await importedScene(t, [
    { name: 'demo', plan: { tools: [{ name: 'echo', inputSchema: { type: 'object' }, outputSchema }] } }
  ])
  await scene.ready('demo')
  const few = await scene.call('demo', 'echo', { text: '{"a":[1,"x"]}' })
  t.ok(/INVALID_OUTPUT/.test(failureOf(t, few)), 'a small one is')
  const many = { a: Array.from({ length: 100_000 }, () => 0) }
  t.alike(
    await scene.call('demo', 'echo', { text: JSON.stringify(many) }),
    { ok: true, result: many },
    'checked, it takes 20 seconds'
  )
})

test('a tool that the config calls idempotent is repeated once, and no more', async (t: Assert) => {
  const scene = await importedScene(t, [
    { name: 'demo', plan: { tools: toolsOf('die') }, spec: { idempotent: ['die'] } }
  ])
  await scene.ready('demo')
  failureOf(t, await scene.call('demo', 'die'))
  t.is(callsOf(scene, 'demo'), 2)
})

test('a server that never answers a call costs the caller its time, and only that; a deaf one is started anew', async (t: Assert) => {
  const plan = { tools: toolsOf('never', 'echo') }
  const scene = await importedScene(t, [{ name: 'demo', plan, spec: { timeoutMs: 300 } }, NEIGHBOUR])
  await Promise.all([scene.ready('demo'), scene.ready('good')])
  const late = await scene.call('demo', 'never')
  t.ok(failureOf(t, late).startsWith('TIMEOUT'))
  t.ok(!late.ok && late.isUnknown === true, 'the server may go on with it')
  t.alike(await scene.call('demo', 'echo', { text: 'a' }), { ok: true, result: 'a' }, 'the same program serves on')
  t.is(scene.info('demo').restarts, 0)
  const [canceled, aborted] = [recordedRun(), scene.notes('demo').length]
  const call = scene.call('demo', 'never', {}, canceled)
  await eventually(() => scene.notes('demo').length > aborted)
  canceled.abort()
  t.ok(failureOf(t, await call).startsWith('CANCELED'))
  await eventually(() => scene.notes('demo').includes('notifications/cancelled'))
  await isUnharmed(t, scene)
})

test('a server that is deaf from some moment on is found out by its next list, ended and started anew', {
  timeout: 60_000
}, async (t: Assert) => {
  const scene = await importedScene(t, [
    { name: 'demo', plan: { tools: toolsOf('never') }, spec: { timeoutMs: 200 } },
    NEIGHBOUR
  ])
  await Promise.all([scene.ready('demo'), scene.ready('good')])
  const pid = scene.pid('demo')
  scene.replan('demo', { tools: toolsOf('never'), deaf: true, announce: false })
  failureOf(t, await scene.call('demo', 'never'))
  await eventually(() => !isRunning(pid))
  t.ok(/did not list its tools within 10 s/.test(scene.info('demo').lastError ?? ''))
  await isUnharmed(t, scene)
})

test('results that are too large fail their call alone; a line without end, and a flood, end the program', async (t: Assert) => {
  const tools = toolsOf('huge', 'endless', 'flood', 'answers', 'asks', 'echo', 'never')
  const scene = await importedScene(t, [
    { name: 'demo', plan: { tools }, spec: { maxOutputBytes: 100_000 } },
    NEIGHBOUR
  ])
  await Promise.all([scene.ready('demo'), scene.ready('good')])
  const other = recordedRun()
  const waiting = scene.call('demo', 'never', {}, other)
  t.ok(/PAYLOAD_TOO_LARGE/.test(failureOf(t, await scene.call('demo', 'huge', { bytes: 150_000 }))))
  t.ok(/more than 100000 bytes/.test(failureOf(t, await scene.call('demo', 'huge', { bytes: 500_000 }))))
  t.alike(await scene.call('demo', 'echo', { text: 'a' }), { ok: true, result: 'a' })
  t.is(scene.info('demo').restarts, 0)
  other.abort()
  await waiting
  for (const [tool, reason] of [
    ['endless', /line without end/],
    ['flood', /floods this node/],
    ['answers', /floods this node/],
    ['asks', /does not read the answers/]
  ] as const) {
    await scene.ready('demo')
    const pid = scene.pid('demo')
    t.ok(reason.test(failureOf(t, await scene.call('demo', tool))), tool)
    await eventually(() => !isRunning(pid))
  }
  t.alike(await scene.call('demo', 'echo', { text: 'again' }), { ok: true, result: 'again' })
  await isUnharmed(t, scene)
})

test('lines that are no messages are skipped, and hundreds of changes are a list or two', async (t: Assert) => {
  const scene = await importedScene(t, [{ name: 'demo', plan: { tools: toolsOf('changes', 'echo'), garbage: 500 } }])
  await scene.ready('demo')
  await scene.call('demo', 'changes')
  await eventually(() => scene.notes('demo').filter((line) => line === 'list').length === 2)
  t.alike(await scene.call('demo', 'echo', { text: 'a' }), { ok: true, result: 'a' })
  t.ok(scene.notes('demo').filter((line) => line === 'list').length <= 3)
})

test('a server that lies about its results is found out, and its word is not passed on', async (t: Assert) => {
  const outputSchema = { type: 'object', properties: { sum: { type: 'number' } }, required: ['sum'] }
  const scene = await importedScene(t, [
    {
      name: 'demo',
      plan: { tools: [{ name: 'lie', outputSchema }, { name: 'echo', outputSchema }, ...toolsOf('deep')] }
    }
  ])
  await scene.ready('demo')
  t.ok(failureOf(t, await scene.call('demo', 'lie')).startsWith('INVALID_OUTPUT'))
  t.ok(failureOf(t, await scene.call('demo', 'echo', { text: 'no object' })).startsWith('INVALID_OUTPUT'))
  t.ok(/^INVALID_OUTPUT.*nested deeper/.test(failureOf(t, await scene.call('demo', 'deep'))))
})

test('endless lists are refused, and the server is reported as failed', async (t: Assert) => {
  const many = Array.from({ length: 2001 }, (_, i) => ({ name: `tool_${i}` }))
  const scene = await importedScene(t, [
    { name: 'many', plan: { tools: many } },
    { name: 'pages', plan: { tools: [], endlessPages: true } },
    { name: 'broken', plan: { tools: [], exit: 4 } },
    NEIGHBOUR
  ])
  await eventually(() => ['many', 'pages', 'broken'].every((name) => scene.info(name).lastError !== null))
  t.ok(/more than 2000 tools/.test(scene.info('many').lastError ?? ''))
  t.ok(/more than 64 pages/.test(scene.info('pages').lastError ?? ''))
  t.ok(
    /exit code 4: cannot go on: no licence/.test(scene.info('broken').lastError ?? ''),
    scene.info('broken').lastError ?? ''
  )
  await scene.ready('good')
  t.alike(
    scene.agents().map(({ definition }) => definition.id),
    ['good']
  )
  t.ok(
    scene.imported
      .problems()
      .some(({ code, next }) => code === 'TOOL_SERVER_FAILED' && next === 'a2a-node tools refresh broken')
  )
  await isUnharmed(t, scene)
})

test('a server whose cursors lead round keeps its tools, with a note in the log', async (t: Assert) => {
  const [one, two] = [toolsOf('echo'), toolsOf('pid')]
  const scene = await importedScene(t, [
    {
      name: 'circle',
      plan: { tools: [], pages: { '': { tools: one, nextCursor: 'a' }, a: { tools: two, nextCursor: 'a' } } }
    },
    { name: 'deaf', plan: { tools: one, endlessPages: true } },
    NEIGHBOUR
  ])
  await Promise.all(['circle', 'deaf', 'good'].map((name) => scene.ready(name)))
  t.alike(
    scene.info('circle').tools.map(({ name }) => name),
    ['echo', 'pid']
  )
  t.alike(await scene.call('deaf', 'echo', { text: 'a' }), { ok: true, result: 'a' })
  t.alike([...scene.logged].sort(), [
    'circle: its tool list repeats a cursor; the list was ended there',
    'deaf: its tool list repeats a page; the list was ended there'
  ])
})

test('a program that cannot be started is reported by its name', async (t: Assert) => {
  const address = { kind: 'stdio', program: { command: ['no-such-program-here'], env: {}, cwd: ROOT } } as const
  const scene = await importedScene(t, [{ name: 'demo', plan: { tools: [] }, address }])
  await eventually(() => scene.info('demo').lastError !== null)
  t.ok(/no-such-program-here was not found/.test(scene.info('demo').lastError ?? ''))
})

test('the agent of a server is as healthy as its server: well while it is up, not before and not after', async (t: Assert) => {
  const store = new FakeStore()
  const gone = { kind: 'stdio', program: { command: ['no-such-program-here'], env: {}, cwd: ROOT } } as const
  const server = { name: 'demo', plan: { tools: toolsOf('echo') } }
  const found = async (scene: ImportedScene): Promise<HealthFinding | undefined> =>
    await scene.agents()[0]?.check?.(new AbortController().signal)
  const first = await importedScene(t, [server], { store })
  await first.ready('demo')
  t.alike(await found(first), { state: 'healthy', reason: null })
  const [agent] = first.agents()
  await first.close()
  t.alike(await agent?.check?.(new AbortController().signal), {
    state: 'unhealthy',
    reason: 'the MCP server was closed'
  })
  const again = await importedScene(t, [{ ...server, address: gone }], { store })
  await eventually(() => again.info('demo').lastError !== null)
  const lost = await found(again)
  t.is(lost?.state, 'unhealthy', 'it is offered by the list that the home has')
  t.ok(/no-such-program-here was not found/.test(lost?.reason ?? ''), lost?.reason ?? '')
})

test('a server that will not end is killed with all that it started when the node closes', async (t: Assert) => {
  const scene = await importedScene(t, [{ name: 'demo', plan: { tools: toolsOf('echo'), stubborn: true } }])
  await scene.ready('demo')
  const pid = scene.pid('demo')
  t.is(fs.readdirSync(path.join(scene.dir, 'run')).length, 1, 'it stands on record')
  await scene.close()
  t.absent(isRunning(pid))
  t.alike(fs.readdirSync(path.join(scene.dir, 'run')), [])
  t.is(scene.info('demo').state, 'closed')
})

test('closing does not wait for a server that never comes up', async (t: Assert) => {
  const scene = await importedScene(t, [{ name: 'demo', plan: { tools: toolsOf('echo'), deaf: true } }])
  await eventually(() => scene.notes('demo').length > 0)
  const pid = scene.pid('demo')
  const from = performance.now()
  await scene.close()
  t.ok(performance.now() - from < 4000)
  t.absent(isRunning(pid))
})

test('a server that ends over the question for the newer protocol is asked by the older one', async (t: Assert) => {
  const scene = await importedScene(t, [{ name: 'demo', plan: { tools: toolsOf('echo'), diesOnUnknown: true } }])
  await scene.ready('demo')
  t.alike(await scene.call('demo', 'echo', { text: 'old' }), { ok: true, result: 'old' })
})

test('the official server of the newer protocol is called in it, and its changes arrive', async (t: Assert) => {
  const program = {
    command: [process.execPath, path.join(ROOT, 'test/support/mcp/modern-server.mjs')] as [string, string],
    env: {},
    cwd: ROOT
  }
  const scene = await importedScene(t, [{ name: 'demo', plan: { tools: [] }, address: { kind: 'stdio', program } }])
  await scene.ready('demo')
  t.alike(await scene.call('demo', 'shout', { text: 'hello' }), { ok: true, result: { text: 'HELLO' } })
  t.alike(await scene.call('demo', 'grow'), { ok: true, result: 'grown' })
  await eventually(() => scene.info('demo').change !== null)
  t.alike(scene.info('demo').change, { added: ['whisper'], removed: [], changed: [] })
})

test('the official server of the older protocol is spoken to in that', async (t: Assert) => {
  const program = {
    command: [process.execPath, path.join(ROOT, 'test/support/mcp/legacy-server.mjs')] as [string, string],
    env: {},
    cwd: ROOT
  }
  const scene = await importedScene(t, [{ name: 'demo', plan: { tools: [] }, address: { kind: 'stdio', program } }])
  await scene.ready('demo')
  t.alike(await scene.call('demo', 'shout', { text: 'hello' }), { ok: true, result: { text: 'HELLO' } })
  t.is(failureOf(t, await scene.call('demo', 'fail')), 'TASK_FAILED: it is broken')
})
