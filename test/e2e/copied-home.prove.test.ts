import fs from 'node:fs/promises'
import { watch } from 'node:fs'
import { spawn } from 'node:child_process'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { ROOT, testMesh, type TestMesh, untilOnline } from '../support/nodes.js'

test('a change of identity that is killed leaves no half node: a start refuses it, and another run finishes it', async (t: Assert) => {
  const mesh = await testMesh(t)
  const [a, b] = await mesh.meshOf('a', 'b')
  if (a === undefined || b === undefined) throw new Error('no nodes')
  await b.stop()
  const { copy, words } = await cutChange(t, mesh, b.home)
  t.ok((await mesh.run(['--home', copy, 'start', '--json'])).stderr.includes('"CONFLICT"'))
  t.is((await mesh.run(words)).code, 0)
  const { code } = await a.api.call('invite.create', { trust: 'mine' })
  const c = await mesh.start('c', { home: copy, join: code })
  t.not(c.info.node.id, b.info.node.id)
  await Promise.all([untilOnline(a, 1), untilOnline(c, 1)])
  const back = await mesh.start('b', { home: b.home })
  await untilOnline(back, 2)
})

/** Copies a home and kills a change of its identity under way; copies again when the kill came after its end. */
async function cutChange(
  t: Assert,
  mesh: TestMesh,
  home: string
): Promise<{ readonly copy: string; readonly words: readonly string[] }> {
  for (let attempt = 0; attempt < 10; attempt++) {
    const copy = path.join(await mesh.dir(), 'copy')
    await fs.cp(home, copy, { recursive: true })
    const words = ['--home', copy, 'doctor', '--new-identity', '--yes']
    const child = spawn(process.execPath, [path.join(ROOT, 'bin', 'a2a-node.js'), ...words], {
      env: { ...process.env, ...mesh.env },
      stdio: 'ignore'
    })
    const ended = new Promise((resolve) => child.once('exit', resolve))
    const watcher = watch(copy, (_event, file) => {
      if (file === 'former-node.moving') child.kill('SIGKILL')
    })
    await ended
    watcher.close()
    if ((await fs.readdir(copy)).includes('former-node.moving')) return { copy, words }
    t.comment('the kill came too late')
  }
  throw new Error('no change of ten was cut')
}
