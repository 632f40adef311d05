import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import { type TestMesh, type TestNode, testMesh, twoAdmins, untilTrue } from '../support/nodes.js'

/** A copy of a stopped node's home, as no backup is: with the writer core, which then has two tales. */
async function twinOf(node: TestNode, dir: string): Promise<string> {
  const home = path.join(dir, 'twin')
  await fs.cp(node.home, home, { recursive: true })
  // The store notices that it was copied by this file alone.
  await fs.rm(path.join(home, 'store', 'CORESTORE'))
  return home
}

/** Writes an invite to the core of a home while nobody is there who could write it for it; its id. */
async function writeAlone(mesh: TestMesh, home: string): Promise<string> {
  const alone = await mesh.start('b', { home })
  const { id } = await alone.api.call('invite.create', { trust: 'mine' })
  await alone.stop()
  return id
}

test('a forked member is shown by `peers` and `status` with the next step, and nothing but data comes to the stdout of a node', {
  timeout: 120_000
}, async (t) => {
  const mesh = await testMesh(t)
  const [first, b] = await twoAdmins(mesh)
  await untilTrue(async () => (await b.api.call('peers.show', { peer: 'b' })).writer, 'b writes to its own core')
  for (const node of [first, b]) await node.stop()
  const twin = await twinOf(b, await mesh.dir())
  await writeAlone(mesh, b.home)
  const told = await writeAlone(mesh, twin)
  const a = await mesh.start('a', { home: first.home, env: { A2A_NODE_LOG_FORMAT: 'json' } })
  let stdout = ''
  a.process.stdout?.on('data', (text: string) => {
    stdout += text
  })
  const right = await mesh.start('b', { home: twin })
  // Only the log tells of invites: a card would come over the channel as well, and say nothing of the core.
  await untilTrue(
    async () => (await a.api.call('invite.list', {})).invites.some(({ id }) => id === told),
    'one version is here'
  )
  await right.stop()
  const left = await mesh.start('b', { home: b.home })

  await untilTrue(async () => (await a.api.call('node.status', {})).problems.length > 0, 'the fork is found')
  const next = `a2a-node peers revoke ${b.info.node.id}`
  const { problems } = await a.json<{ problems: { code: string; next: string }[] }>(['status'])
  t.alike([problems[0]?.code, problems[0]?.next], ['CONFLICT', hinted(a, next)])
  const { peers } = await a.json<{
    peers: { name: string; status: string; problem: { code: string; next: string } | null }[]
  }>(['peers'])
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
