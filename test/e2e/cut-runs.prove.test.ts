import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import type { TaskInfo } from '../../src/ports/node-api.js'
import { type TestMesh, type TestNode, testMesh, untilTrue } from '../support/nodes.js'

/** How an agent file of the runtime `module` begins. */
const AGENT = `---
name: bomb
description: ends the node that runs it, or runs for ever
a2a:
  version: 0.1.0
  capabilities:
    - { id: bomb.off, description: what it does, input: { type: object }, output: { type: object }, idempotent: true, sideEffect: none }
  runtime: { type: module, path: ./bomb.mjs }
  limits: { timeout: 10m, concurrency: 4 }
---
`

interface Scene {
  readonly mesh: TestMesh
  readonly asker: TestNode
  readonly bomber: TestNode
  /** Starts the node of the agent again. */
  again(): Promise<TestNode>
  /** Runs that began so far. */
  begun(): Promise<number>
  /** The request at its caller. */
  task(): Promise<TaskInfo>
}

/** Two nodes, of which one asks the agent of the other; the module does `deed` at each run, once that is noted. */
async function askedScene(
  mesh: TestMesh,
  deed: (home: string) => string,
  env: Readonly<Record<string, string>> = {}
): Promise<Scene> {
  const dir = await mesh.dir()
  const [agents, begun, home] = [path.join(dir, 'agents'), path.join(dir, 'begun'), path.join(dir, 'home')]
  await fs.mkdir(agents)
  await fs.writeFile(begun, '')
  await fs.writeFile(path.join(agents, 'bomb.md'), AGENT)
  const note = `fs.appendFileSync(${JSON.stringify(begun)}, 'x')`
  const module = `import fs from 'node:fs'\nexport default { async run () { ${note}; ${deed(home)} } }\n`
  await fs.writeFile(path.join(agents, 'bomb.mjs'), module)
  const asker = await mesh.start('a')
  const { code } = await asker.api.call('invite.create', { trust: 'mine' })
  const args = ['--agents', agents]
  const bomber = await mesh.start('b', { join: code, home, args, env })
  await untilTrue(
    async () => (await asker.api.call('agents.list', {})).agents.some(({ id }) => id === 'bomb'),
    'the agent is seen'
  )
  const asking = { agent: 'bomb@b', capability: 'bomb.off', input: {}, wait: false, timeoutMs: 600_000 }
  const { taskId } = await asker.api.call('message.call', asking)
  return {
    mesh,
    asker,
    bomber,
    again: () => mesh.start('b', { home, args, env }),
    begun: async () => (await fs.readFile(begun, 'utf8')).length,
    task: async () => await asker.api.call('tasks.show', { id: taskId ?? '' })
  }
}

/** The task at the node of the agent, as `tasks show` prints it. */
async function shownThere(node: TestNode): Promise<string> {
  const { tasks } = await node.api.call('tasks.list', {})
  const ids = tasks.filter(({ role }) => role === 'callee').map(({ id }) => id)
  return (await Promise.all(ids.map((id) => node.cli(['tasks', 'show', id])))).map(({ stdout }) => stdout).join('')
}

/**
 * Starts the node of the agent again until it stays up and its caller gets the outcome; that node. Fails when a fourth
 * run ends it.
 */
async function startedUntilTold(scene: Scene, mostRuns: number): Promise<TestNode> {
  for (;;) {
    // It may end before it says that it is ready.
    const node = await scene.again().catch(() => null)
    const told =
      node === null
        ? 'ended'
        : await Promise.race([node.exited.then(() => 'ended'), untilUnknown(scene).then(() => 'told')])
    if (node !== null && told === 'told') return node
    if ((await scene.begun()) > mostRuns) throw new Error(`it ran more than ${mostRuns} times`)
  }
}

function untilUnknown(scene: Scene): Promise<void> {
  return untilTrue(async () => (await scene.task()).state === 'unknown', 'its caller gets the outcome')
}

test('a request that ends its node with SIGKILL runs twice, or three times when the record of its first run was lost: then a start stays up, and its caller gets unknown', {
  timeout: 90_000
}, async (t) => {
  const kills = (home: string): string =>
    `process.kill(JSON.parse(fs.readFileSync(${JSON.stringify(path.join(home, 'run', 'node.pid'))}, 'utf8')).pid, 'SIGKILL')`
  const scene = await askedScene(await testMesh(t), kills)
  t.is((await scene.bomber.exited).signal, 'SIGKILL')
  t.is(await scene.begun(), 1)
  const last = await startedUntilTold(scene, 3)
  const runs = await scene.begun()
  t.ok(runs === 2 || runs === 3, `${runs} runs`)
  const { error } = await scene.task()
  t.ok(error?.message.startsWith('its node ended twice while it ran; it is not run again'), error?.message)
  t.ok((await shownThere(last)).includes('its node ended twice while it ran'))
  t.ok(last.errors().includes('a request is not run again'), last.errors())
  t.is(await scene.begun(), runs)
  t.is(last.process.exitCode, null)
})

test('after an error of its own a node runs nothing again that ran then, and says which error it was', async (t) => {
  const mesh = await testMesh(t)
  const preload = path.join(await mesh.dir(), 'fails.mjs')
  await fs.writeFile(
    preload,
    `process.on('SIGCONT', () => void setImmediate(() => { throw new TypeError('a mistake') }))\n`
  )
  const scene = await askedScene(mesh, () => 'await new Promise(() => setInterval(() => {}, 1000))', {
    NODE_OPTIONS: `--import ${preload}`
  })
  await untilTrue(async () => (await scene.begun()) === 1, 'it runs')
  scene.bomber.kill('SIGCONT')
  t.is((await scene.bomber.exited).code, 1)
  const note = path.join(scene.bomber.home, 'run', 'fault')
  t.is(await fs.readFile(note, 'utf8'), 'a mistake\n')
  t.is((await fs.stat(note)).mode & 0o777, 0o600)
  const second = await scene.again()
  await untilUnknown(scene)
  const { error } = await scene.task()
  t.ok(
    error?.message.startsWith('its node ended by an error of its own while it ran; it is not run again'),
    error?.message
  )
  t.is(await scene.begun(), 1)
  t.ok(second.errors().includes('a mistake'), second.errors())
  await t.exception(fs.stat(note), 'it counts once')
})
