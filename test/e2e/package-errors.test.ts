import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import type { Problem } from '../../src/ports/node-api.js'
import { ROOT, testMesh, untilTrue } from '../support/nodes.js'

/**
 * A module for `--import`: on SIGUSR2 a package of the network fails in a task of its own, on SIGCONT the program
 * itself does.
 */
const FAILS = `
import { createRequire } from 'node:module'
const { data } = createRequire(${JSON.stringify(path.join(ROOT, 'package.json'))})('hypercore-crypto')
process.on('SIGUSR2', () => void setImmediate(data))
process.on('SIGCONT', () => void setImmediate(() => { throw new TypeError('a mistake of this program') }))
`

test('a package that fails where nobody can catch it does not end the node: status and events report it; a mistake of the program does', async (t) => {
  const mesh = await testMesh(t)
  const preload = path.join(await mesh.dir(), 'fails.mjs')
  await fs.writeFile(preload, FAILS)
  const node = await mesh.start('a', { env: { NODE_OPTIONS: `--import ${preload}` } })
  const problems = async (): Promise<readonly Problem[]> =>
    (await node.json<{ problems: readonly Problem[] }>(['status'])).problems
  t.alike(await problems(), [])
  node.kill('SIGUSR2')
  await untilTrue(async () => (await problems()).length > 0, 'the node reports it')
  const [problem] = await problems()
  t.is(problem?.code, 'INTERNAL')
  t.ok(problem?.message.startsWith('hypercore-crypto failed once, probably at what a peer sent'), problem?.message)
  const told = await node.cli(['events', '--json'])
  t.ok(told.stdout.includes('"type":"package-failed"'), told.stdout)
  t.ok(node.errors().includes('a package failed'), 'the log says where')
  node.kill('SIGUSR2')
  await untilTrue(async () => (await problems())[0]?.message.includes('2 times') ?? false, 'it counts them')
  node.kill('SIGCONT')
  t.is((await node.exited).code, 1)
  t.ok(node.errors().includes('a mistake of this program'))
})
