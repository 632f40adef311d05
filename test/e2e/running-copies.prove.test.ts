import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import type { Problem } from '../../src/ports/node-api.js'
import { type TestNode, testMesh, untilTrue } from '../support/nodes.js'

/** A copy of the home of a stopped node, as of a disk that was cloned: the store does not notice. */
async function cloneOf(node: TestNode, dir: string): Promise<string> {
  const home = path.join(dir, 'clone')
  await fs.cp(node.home, home, { recursive: true })
  for (const store of ['store', 'documents']) await fs.rm(path.join(home, store, 'CORESTORE'), { force: true })
  return home
}

const copiesIn = async (node: TestNode): Promise<Problem[]> =>
  (await node.api.call('node.status', {})).problems.filter(
    ({ code, message }) => code === 'CONFLICT' && message.includes('running cop')
  )

test('two running copies of a home are reported in the status of both, and of a member that links to both', {
  timeout: 120_000
}, async (t) => {
  const mesh = await testMesh(t)
  const [a, b] = await mesh.meshOf('a', 'b')
  if (a === undefined || b === undefined) throw new Error('two nodes')
  t.alike(await copiesIn(a), [])
  await b.stop()
  const home = await cloneOf(b, await mesh.dir())
  const original = await mesh.start('b', { home: b.home })
  await untilTrue(
    async () => (await a.api.call('peers.list', {})).peers.some(({ status }) => status === 'online'),
    'it is back'
  )
  t.alike(await copiesIn(a), [], 'a restart is no copy')
  const clone = await mesh.start('b', { home })
  for (const node of [a, original, clone])
    await untilTrue(async () => (await copiesIn(node)).length > 0, `${node.home} knows`)
  const [seen] = await copiesIn(a)
  t.ok(seen?.message.startsWith('two running copies of the home of b use its key'), seen?.message)
  for (const node of [original, clone]) {
    const [told] = await copiesIn(node)
    t.ok(told?.message.includes('as a reports'), told?.message)
    t.is(told?.next, 'a2a-node stop && a2a-node doctor --new-identity --force')
    const { stdout } = await node.cli(['doctor'])
    t.ok(stdout.includes('another running copy of this home uses the key of this node'), stdout)
  }
  await clone.stop()
  const changed = await clone.cli(['doctor', '--new-identity', '--force', '--yes'])
  t.is(changed.code, 0, changed.stderr)
})
