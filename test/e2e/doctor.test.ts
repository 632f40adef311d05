import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import { doctor, failing } from '../support/doctor.js'
import { type LocalMesh, localMesh, twoAdmins, untilAgent, untilOnline, untilTrue } from '../support/nodes.js'

async function refused(mesh: LocalMesh, home: string): Promise<{ code: string; next: readonly string[] }> {
  const { code, stderr } = await mesh.run(['--home', home, 'start', '--json'])
  if (code !== 78) throw new Error(`exit ${code}: ${stderr}`)
  return (
    JSON.parse(stderr.split('\n').find((line) => line.startsWith('{"error"')) ?? '{}') as {
      error: { code: string; next: string[] }
    }
  ).error
}

/** Turns over what stands in the middle of each of these files. */
async function garble(dir: string, names: RegExp): Promise<void> {
  for (const name of (await fs.readdir(dir)).filter((one) => names.test(one))) {
    const bytes = await fs.readFile(path.join(dir, name))
    for (let at = Math.floor(bytes.length / 3); at < (bytes.length * 2) / 3; at++) bytes[at] = (bytes[at] ?? 0) ^ 0x55
    await fs.writeFile(path.join(dir, name), bytes)
  }
}

test('a damaged store is found at start, reported with the next step, and repaired: the same node, the log from the others', async (t) => {
  const mesh = await localMesh(t)
  const [a, b] = await twoAdmins(mesh)
  const invite = await b.json<{ id: string }>(['invite', '--mine', '--uses', '3'])
  await b.stop()
  t.ok((await doctor(mesh, b.home)).ok, 'all is well before')
  await garble(path.join(b.home, 'store', 'db'), /\.(log|sst)$|^MANIFEST/)

  const fault = await refused(mesh, b.home)
  t.is(fault.code, 'STORE_DAMAGED')
  t.ok(fault.next.some((one) => one.includes('doctor --repair')))
  const found = await doctor(mesh, b.home)
  t.is(found.code, 1)
  t.alike(failing(found), ['store'])
  const repaired = await doctor(mesh, b.home, '--repair')
  t.is(repaired.code, 0)
  t.alike(
    repaired.repairs.map((one) => one.name),
    ['store']
  )
  t.ok(repaired.repairs[0]?.lost?.includes('no other member'))
  t.ok(
    (await fs.readdir(b.home)).some((name) => name.startsWith('store.damaged-')),
    'the earlier file is kept'
  )

  const again = await mesh.start('b', { home: b.home })
  t.alike([again.info.node.id, again.info.mesh.id], [b.info.node.id, b.info.mesh.id])
  await Promise.all([untilOnline(again, 1), untilOnline(a, 1)])
  await untilAgent(again, 'text@a')
  const hasInvite = async (): Promise<boolean> =>
    (await again.api.call('invite.list', {})).invites.some((one) => one.id === invite.id)
  await untilTrue(hasInvite, 'its own edits came back')
  const c = await mesh.start('c', { join: (await again.api.call('invite.create', { trust: 'mine' })).code })
  await untilOnline(c, 2)
  t.is((await again.json<{ outcome: string }>(['call', 'text@c', 'text.stats', '{"text":"x"}'])).outcome, 'COMPLETED')
  for (const node of [a, again, c]) t.absent(/conflict|diverged/i.test(node.errors()), node.errors())
})

test('a store that was put back to an older copy is found, as is a ledger that is gone; the ledger is moved aside and begun anew', async (t) => {
  const mesh = await localMesh(t)
  const a = await mesh.start('a')
  await a.stop()
  const old = path.join(await mesh.dir(), 'db')
  await fs.cp(path.join(a.home, 'store', 'db'), old, { recursive: true })
  const back = await mesh.start('a', { home: a.home })
  await back.api.call('invite.create', { trust: 'mine' })
  await back.stop()
  const now = `${old}.now`
  await fs.cp(path.join(a.home, 'store', 'db'), now, { recursive: true })
  const put = async (from: string): Promise<void> => {
    await fs.rm(path.join(a.home, 'store'), { recursive: true })
    await fs.cp(from, path.join(a.home, 'store', 'db'), { recursive: true })
  }
  await put(old)
  t.is((await refused(mesh, a.home)).code, 'STORE_DAMAGED')
  t.alike(failing(await doctor(mesh, a.home)), ['store'])
  await put(now)
  await fs.rm(path.join(a.home, 'ledger'), { recursive: true })
  for (const name of ['cards.json', 'cards.json.copy']) await fs.writeFile(path.join(a.home, name), '{}')
  const mark = path.join(a.home, 'ledger.json')
  t.ok((await fs.readFile(mark, 'utf8')).includes('commits'))
  const repaired = await doctor(mesh, a.home, '--repair')
  t.ok(repaired.repairs.some((one) => one.name === 'documents'))
  t.is(repaired.code, 0)
  const again = await mesh.start('a', { home: a.home })
  t.is(again.info.node.id, a.info.node.id)
  const running = await doctor(mesh, a.home)
  t.ok(running.ok, 'also next to a node that runs')
  t.is((await mesh.run(['--home', a.home, 'doctor', '--repair'])).code, 9, 'whose home nobody repairs')
})

test('a ledger behind its earlier state does not start, and doctor --repair names the losses of a new one', async (t) => {
  const mesh = await localMesh(t)
  const [a, b] = await mesh.meshOf('a', 'b')
  await untilAgent(b, 'text@a')
  await b.json(['call', 'text@a', 'text.stats', '{"text":"x"}'])
  await b.stop()
  await fs.rm(path.join(b.home, 'ledger'), { recursive: true })
  const fault = await refused(mesh, b.home)
  t.is(fault.code, 'STORE_DAMAGED')
  const repaired = await doctor(mesh, b.home, '--repair')
  t.alike(
    repaired.repairs.map((one) => one.name),
    ['ledger']
  )
  t.ok(repaired.repairs[0]?.lost?.includes('unfinished requests'))
  const again = await mesh.start('b', { home: b.home })
  await untilOnline(again, 1)
  await untilAgent(again, 'text@a')
  t.is((await again.json<{ outcome: string }>(['call', 'text@a', 'text.stats', '{"text":"x"}'])).outcome, 'COMPLETED')
  t.is(a.info.mesh.id, again.info.mesh.id)
})

test('a small file that is damaged is made again from its copy, by a start and by doctor --repair, which say so', async (t) => {
  const mesh = await localMesh(t)
  const a = await mesh.start('a')
  await a.stop()
  for (const name of ['mesh.json', 'node.json']) {
    const file = path.join(a.home, name)
    const whole = await fs.readFile(file)
    await fs.writeFile(file, '{}')
    const found = await doctor(mesh, a.home)
    t.alike(
      found.checks.filter((one) => one.result !== 'ok').map((one) => [one.name, one.result, ...one.next]),
      [['documents', 'warn', `a2a-node --home ${a.home} doctor --repair`]]
    )
    t.alike(
      (await doctor(mesh, a.home, '--repair')).repairs.map((one) => [one.name, one.lost]),
      [['documents', null]]
    )
    t.alike(await fs.readFile(file), whole)
    await fs.writeFile(file, '{}')
    const again = await mesh.start('a', { home: a.home })
    t.alike([again.info.node, again.info.mesh.id], [a.info.node, a.info.mesh.id])
    t.ok(
      (await again.api.call('node.status', {})).problems.some(
        ({ code, message }) => code === 'STORE_DAMAGED' && message.includes(name)
      )
    )
    await again.stop()
    t.ok((await doctor(mesh, a.home)).ok)
  }
})

test('a node with both files of its record damaged keeps its name and its mesh, and the repair lists --network as lost', async (t) => {
  const mesh = await localMesh(t)
  const a = await mesh.start('laptop')
  await a.stop()
  for (const name of ['node.json', 'node.json.copy']) await fs.writeFile(path.join(a.home, name), '')
  t.is((await refused(mesh, a.home)).code, 'STORE_DAMAGED')
  const { repairs } = await doctor(mesh, a.home, '--repair')
  t.ok(repairs[0]?.lost?.includes('--network'))
  const again = await mesh.start('a', { home: a.home })
  t.alike([again.info.node, again.info.mesh.id], [a.info.node, a.info.mesh.id])
})

test('the identity of a node cannot be repaired once its copy is damaged, too: doctor says that a backup can', async (t) => {
  const mesh = await localMesh(t)
  const a = await mesh.start('a')
  await a.stop()
  for (const name of ['mesh.json', 'mesh.json.copy']) await fs.writeFile(path.join(a.home, name), '{}')
  t.is((await refused(mesh, a.home)).code, 'STORE_DAMAGED')
  const { code, stderr } = await mesh.run(['--home', a.home, 'doctor', '--repair'])
  t.is(code, 78, stderr)
  t.ok(/restore/.test(stderr))
  const text = await mesh.run(['--home', a.home, 'doctor'])
  t.is(text.code, 1)
  t.ok(/^fail {2}documents .*mesh\.json/m.test(text.stdout), text.stdout)
})

test('doctor says that a store is gone and makes none; a repair fetches the log anew', async (t) => {
  const mesh = await localMesh(t)
  const [a, b] = await mesh.meshOf('a', 'b')
  await b.stop()
  await fs.rm(path.join(b.home, 'store'), { recursive: true })
  t.alike(failing(await doctor(mesh, b.home)), ['store'])
  t.absent((await fs.readdir(b.home)).includes('store'))
  t.is((await doctor(mesh, b.home, '--repair')).repairs[0]?.name, 'store')
  const again = await mesh.start('b', { home: b.home })
  await untilOnline(again, 1)
  t.is((await fs.stat(path.join(b.home, 'store'))).mode & 0o777, 0o700)
  t.is(a.info.mesh.id, again.info.mesh.id)
})
