import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import type { Assert } from 'brittle'
import { type HomePaths, resolveHome } from '../../src/config/paths.js'
import { repairHome, useHome } from '../../src/maintenance/doctor-stores.js'
import { takeHomeLock } from '../../src/compose/open-home.js'
import { Unwind } from '../../src/compose/unwind.js'
import { failsWith } from '../support/fails.js'
import { tempDir } from '../support/tmp.js'

async function homeIn(t: Assert): Promise<HomePaths> {
  const home = resolveHome({ home: await tempDir(t) })
  await fs.mkdir(home.run, { mode: 0o700 })
  return home
}

/** Takes a home until the test ends. */
function unwindOf(t: Assert): Unwind {
  const unwind = new Unwind((name, error) => t.fail(`${name}: ${String(error)}`))
  t.teardown(() => unwind.run())
  return unwind
}

test('a home whose pid file names a living process is free, as long as no process has its lock', async (t) => {
  const home = await homeIn(t)
  await fs.writeFile(
    path.join(home.run, 'node.pid'),
    JSON.stringify({ pid: process.ppid, startedAt: 1, socket: home.socket })
  )
  t.alike(await useHome(home, unwindOf(t)), { by: 'this process' })
})

test('a home that another holder has is not used, and not repaired; its pid is reported when the pid file has it', async (t) => {
  const home = await homeIn(t)
  const lock = await takeHomeLock(home, 1)
  t.alike(await useHome(home, unwindOf(t)), { by: 'another process', pid: process.pid })
  await failsWith(t, 'ALREADY_RUNNING', () => repairHome(home, 1))
  await fs.writeFile(path.join(home.run, 'node.pid'), '{')
  t.alike(await useHome(home, unwindOf(t)), { by: 'another process', pid: null })
  await failsWith(t, 'STORE_LOCKED', () => repairHome(home, 1))
  await lock.release()
})

test('a home that was used is free again afterwards', async (t) => {
  const home = await homeIn(t)
  const unwind = unwindOf(t)
  await useHome(home, unwind)
  await unwind.run()
  t.alike(await fs.readdir(home.run), [])
  await (await takeHomeLock(home, 1)).release()
})

test('a home that nobody can use says why', async (t) => {
  const home = resolveHome({ home: await tempDir(t) })
  await fs.writeFile(home.run, 'in the way')
  const use = await useHome(home, unwindOf(t))
  t.is(use.by, 'nobody')
  t.is(use.by === 'nobody' ? use.reason.code : null, 'CONFIG_INVALID')
})
