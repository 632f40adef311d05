import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { doctor } from '../support/doctor.js'
import { ROOT, type TestMesh, type TestNode, testMesh, twoAdmins, untilOnline, untilTrue } from '../support/nodes.js'

/**
 * A module for `--import`: the process dies when the engine of the log takes a block of another node that says
 * "poison".
 */
const DIES = `
import { createRequire } from 'node:module'
const Linearizer = createRequire(${JSON.stringify(path.join(ROOT, 'package.json'))})('autobase/lib/linearizer.js')
const { createNode } = Linearizer
Linearizer.createNode = (writer, length, value, ...rest) => {
  if (value !== null && !writer.core.writable && Buffer.from(value).includes('poison')) process.kill(process.pid, 'SIGKILL')
  return createNode.call(Linearizer, writer, length, value, ...rest)
}
`

async function deadly(mesh: TestMesh): Promise<{ readonly NODE_OPTIONS: string }> {
  const preload = path.join(await mesh.dir(), 'dies.mjs')
  await fs.writeFile(preload, DIES)
  return { NODE_OPTIONS: `--import ${preload}` }
}

/** What `doctor` says of cores of the log. */
async function coresOf(mesh: TestMesh, { home }: TestNode, ...more: readonly string[]): Promise<string> {
  const { checks } = await doctor(mesh, home, ...more)
  return checks
    .filter(({ name }) => name === 'cores')
    .map(({ text, next }) => `${text} ${next.join(' ')}`)
    .join('\n')
}

async function hasPoison({ api }: TestNode): Promise<boolean> {
  return (await api.call('invite.list', {})).invites.some(({ sandboxId }) => sandboxId === 'poison')
}

/** Two nodes. The first one dies at what the other one just wrote. */
async function poisoned(t: Assert) {
  const mesh = await testMesh(t)
  const env = await deadly(mesh)
  const [first, b] = await twoAdmins(mesh)
  await first.stop()
  const a = await mesh.start('a', { env })
  await untilOnline(a, 1)
  await b.api.call('invite.create', { trust: 'mine', sandboxId: 'poison' })
  return { mesh, env, a, b }
}

test('a node that died at a block of a member, and at two starts after that, starts without the core and says so; the mesh goes on', {
  timeout: 180_000
}, async (t) => {
  const { mesh, env, a, b } = await poisoned(t)
  t.is((await a.exited).signal, 'SIGKILL')
  t.ok((await coresOf(mesh, a)).startsWith('no core of the mesh log is set aside'))
  for (const count of ['the last start ended', 'the last 2 starts ended']) {
    await t.exception(mesh.start('a', { env }))
    const said = await coresOf(mesh, a)
    t.ok(said.includes(`${count} before the node was up`), said)
  }
  const third = await mesh.start('a', { env })
  await untilOnline(third, 1)
  const { problems } = await third.json<{ problems: readonly { readonly code: string; readonly next: string }[] }>([
    'status'
  ])
  const revoke = `peers revoke ${b.info.node.id}`
  t.alike(
    problems.map(({ code, next }) => [code, next.endsWith(revoke)]),
    [['INTERNAL', true]]
  )
  const again = await mesh.run(['--home', a.home, 'start'])
  t.ok(/at which starts of this node ended/.test(again.stdout + again.stderr), again.stdout)
  const { code } = await third.api.call('invite.create', { trust: 'mine' })
  await mesh.start('c', { join: code })
  await untilOnline(third, 2)
  t.absent(await hasPoison(third))
  await third.stop()
  const named = await coresOf(mesh, a)
  t.ok(named.includes(revoke), named)
  await t.exception(mesh.start('a', { env }), 'it was tried again, and ended the start')
  await (await mesh.start('a', { env })).stop()
  // The fault is gone, as after an update of this program: the core is read again.
  const whole = await mesh.start('a')
  await untilTrue(() => hasPoison(whole), 'the entry is in the log')
})

test('doctor --repair leaves out the core at which starts ended, so that the next one comes up; once it is revoked nothing is wrong', {
  timeout: 180_000
}, async (t) => {
  const { mesh, env, a, b } = await poisoned(t)
  await a.exited
  for (let count = 0; count < 2; count++) await t.exception(mesh.start('a', { env }))
  t.alike(
    (await doctor(mesh, a.home, '--repair')).repairs.map(({ name }) => name),
    ['cores']
  )
  const again = await mesh.start('a', { env })
  await again.json(['peers', 'revoke', b.info.node.id])
  await b.exited
  t.alike((await again.json<{ problems: readonly unknown[] }>(['status'])).problems, [])
})
