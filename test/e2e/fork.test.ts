import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import { freePort, type TestMesh, type TestNode, testMesh, twoAdmins, untilAgent, untilPeer, untilTrue } from '../support/nodes.js'

async function addAgent(home: string, id: string): Promise<void> {
  const head = `---\nname: ${id}\ndescription: Says yes.\na2a:\n  capabilities:\n    - id: ${id}.say\n      description: Say yes\n`
  await fs.writeFile(path.join(home, 'agents', `${id}.md`), `${head}  runtime: { type: command, command: [echo, yes] }\n---\n`)
}

/** A copy of a stopped node's home, as no backup is: with the writer core, which then has two tales. */
async function twinOf(node: TestNode, dir: string): Promise<string> {
  const home = path.join(dir, 'twin')
  await fs.cp(node.home, home, { recursive: true })
  // The store notices that it was copied by this file alone.
  await fs.rm(path.join(home, 'store', 'CORESTORE'))
  return home
}

/** Writes a card to the log of a home while nobody else hears of it. */
async function writeAlone(mesh: TestMesh, home: string, id: string): Promise<void> {
  await addAgent(home, id)
  const log = async (): Promise<string> => fs.readFile(path.join(home, 'core.json'), 'utf8')
  const before = await log()
  const alone = await mesh.start('b', { home, env: { A2A_NODE_LOCAL_PORT: String(await freePort()) } })
  await untilTrue(async () => (await log()) !== before, 'it wrote to its core')
  await alone.stop()
}

test('a forked member is shown by `peers` and `status` with what to do, and nothing but data comes to the stdout of a node', {
  timeout: 120_000
}, async (t) => {
  const mesh = await testMesh(t)
  const [first, b] = await twoAdmins(mesh)
  await first.stop()
  const a = await mesh.start('a', { home: first.home, env: { A2A_NODE_LOG_FORMAT: 'json' } })
  let stdout = ''
  a.process.stdout?.on('data', (text: string) => {
    stdout += text
  })
  await untilPeer(a, 'b', 'online')
  await b.stop()
  const twin = await twinOf(b, await mesh.dir())
  await writeAlone(mesh, b.home, 'left')
  await addAgent(twin, 'right')
  const right = await mesh.start('b', { home: twin })
  await untilAgent(a, 'right@b')
  await right.stop()
  const left = await mesh.start('b', { home: b.home })

  await untilTrue(async () => (await a.api.call('node.status', {})).problems.length > 0, 'the fork is found')
  const next = 'a2a-node peers revoke b'
  const { problems } = await a.json<{ problems: { code: string; next: string }[] }>(['status'])
  t.alike([problems[0]?.code, problems[0]?.next], ['CONFLICT', hinted(a, next)])
  const { peers } = await a.json<{ peers: { name: string; status: string; problem: { code: string; next: string } | null }[] }>(['peers'])
  t.alike([peers[0]?.name, peers[0]?.problem?.code, peers[0]?.problem?.next], ['b', 'CONFLICT', hinted(a, next)])
  const text = await a.cli(['peers'])
  t.ok(/b .* in quarantine/.test(text.stdout), text.stdout)
  t.ok(text.stderr.includes(hinted(a, next)), text.stderr)
  t.ok((await a.cli(['peers', 'show', 'b'])).stdout.includes(hinted(a, next)))
  t.is((await a.cli(['peers', 'revoke', 'b'])).code, 0, 'and it can be done')
  await left.exited
  t.alike((await a.api.call('node.status', {})).problems, [])

  await a.stop()
  t.is(stdout, '', 'the first line was all')
  const lines = a
    .errors()
    .split('\n')
    .filter((line) => line.startsWith('{'))
  const said = lines
    .map((line) => JSON.parse(line) as { message: string; fields: { text?: string } })
    .find((one) => one.message === 'a package says')
  t.ok(/conflict detected/.test(said?.fields.text ?? ''), a.errors())
})

/** Commands for a node of another home name it. */
function hinted(node: TestNode, command: string): string {
  return command.replace('a2a-node', `a2a-node --home ${node.home}`)
}
