import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import fs from 'node:fs/promises'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import test from 'brittle'
import extensions from 'fs-native-extensions'
import type { Assert } from 'brittle'
import { writePidFile } from '../../../../src/adapters/storage/home/pid-file.js'
import { takeProcessLock } from '../../../../src/adapters/storage/home/process-lock.js'
import { failsWith } from '../../../support/fails.js'
import { tempDir } from '../../../support/tmp.js'

const SOURCE = pathToFileURL(
  path.resolve(import.meta.dirname, '../../../../src/adapters/storage/home/process-lock.js')
).href
const own = { pid: process.pid, startedAt: 1_700_000_000_000, socket: '/tmp/control.sock' }

async function placeIn(t: Assert): Promise<string> {
  return path.join(await tempDir(t), 'node')
}

/** A process that holds the place, and has a child of its own that lives on. Resolves when it holds. */
async function holder(t: Assert, place: string): Promise<{ pid: number; kill: () => Promise<void> }> {
  const script = `
    import { spawn } from 'node:child_process'
    import { takeProcessLock } from '${SOURCE}'
    await takeProcessLock('${place}', { pid: process.pid, startedAt: 1, socket: '/held' })
    const child = spawn('sleep', ['300'], { detached: true, stdio: 'ignore' })
    child.once('spawn', () => console.log(child.pid))
    setInterval(() => {}, 1000)`
  const holding = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit']
  })
  const exited = once(holding, 'exit')
  t.teardown(() => holding.kill('SIGKILL'))
  const grandchild = Number(await firstText(holding))
  t.teardown(() => process.kill(grandchild, 'SIGKILL'))
  return {
    pid: holding.pid ?? 0,
    kill: async () => {
      holding.kill('SIGKILL')
      await exited
    }
  }
}

async function firstText(child: ChildProcess): Promise<string> {
  if (child.stdout === null) throw new Error('no output')
  const [text] = (await once(child.stdout, 'data')) as [Buffer]
  return text.toString()
}

test('a second holder gets the pid and socket of the first, in another process and in this one', async (t) => {
  const place = await placeIn(t)
  const first = await holder(t, place)
  const error = await failsWith(t, 'ALREADY_RUNNING', () => takeProcessLock(place, own))
  t.alike(error.data, { pid: first.pid, socket: '/held' })
  const here = `${place}-here`
  await takeProcessLock(here, own)
  t.alike((await failsWith(t, 'ALREADY_RUNNING', () => takeProcessLock(here, own))).data, {
    pid: process.pid,
    socket: own.socket
  })
})

test('a killed holder lets others in at once, although a child of it lives on, and they learn that it was killed', async (t) => {
  const place = await placeIn(t)
  const first = await holder(t, place)
  await first.kill()
  const second = await takeProcessLock(place, own)
  t.ok(second.isAfterKill)
  await second.release()
  const third = await takeProcessLock(place, own)
  t.absent(third.isAfterKill)
  await third.release()
})

test('releasing leaves nothing behind and lets others in', async (t) => {
  const place = await placeIn(t)
  for (let round = 0; round < 3; round++) {
    const lock = await takeProcessLock(place, own)
    t.alike((await fs.readdir(path.dirname(place))).sort(), ['node.lock', 'node.pid'])
    await lock.release()
    t.alike(await fs.readdir(path.dirname(place)), [])
  }
})

test('the pid file decides nothing: without the lock even that of a living process is replaced', async (t) => {
  const place = await placeIn(t)
  const texts = [
    '',
    '{',
    '[]',
    '{"pid":"1"}',
    '{"pid":-1,"startedAt":1,"socket":""}',
    JSON.stringify({ ...own, pid: process.ppid })
  ]
  for (const text of texts) {
    await fs.writeFile(`${place}.pid`, text)
    const lock = await takeProcessLock(place, own)
    t.is((JSON.parse(await fs.readFile(`${place}.pid`, 'utf8')) as { pid: number }).pid, process.pid, text)
    await lock.release()
  }
})

test('a locked home whose pid file is empty, or names a process that is gone, is STORE_LOCKED', async (t) => {
  const place = await placeIn(t)
  await takeProcessLock(place, own)
  await fs.writeFile(`${place}.pid`, '{')
  await failsWith(t, 'STORE_LOCKED', () => takeProcessLock(place, own))
  // The pid of a living process that is not the one that wrote the file.
  await writePidFile(`${place}.pid`, own)
  const text = await fs.readFile(`${place}.pid`, 'utf8')
  await fs.writeFile(`${place}.pid`, text.replace(/"process":"[^"]*"/, '"process":"another boot/1"'))
  await failsWith(t, 'STORE_LOCKED', () => takeProcessLock(place, own))
  await fs.rm(`${place}.pid`)
  await failsWith(t, 'STORE_LOCKED', () => takeProcessLock(place, own))
})

test('a holder whose lock file was taken away by force removes nothing of the next holder', async (t) => {
  const place = await placeIn(t)
  const first = await takeProcessLock(place, own)
  await fs.rm(`${place}.lock`)
  const second = await takeProcessLock(place, own)
  await first.release()
  t.alike((await fs.readdir(path.dirname(place))).sort(), ['node.lock', 'node.pid'])
  await failsWith(t, 'ALREADY_RUNNING', () => takeProcessLock(place, own))
  await second.release()
})

test('of holders that come and go at every moment never two hold the place at once', async (t) => {
  const place = await placeIn(t)
  let holding = 0
  let most = 0
  let taken = 0
  const worker = async (): Promise<void> => {
    for (let tries = 0; tries < 200; tries++) {
      const lock = await takeProcessLock(place, own).catch(() => null)
      if (lock === null) continue
      taken++
      most = Math.max(most, ++holding)
      await fs.stat(`${place}.pid`)
      holding--
      await lock.release()
    }
  }
  await Promise.all(Array.from({ length: 8 }, worker))
  t.is(most, 1)
  t.ok(taken > 20, `${taken} times taken`)
})

test('a lock file that its holder removed between opening and locking is not taken for the lock', async (t) => {
  const place = await placeIn(t)
  const { tryLock } = extensions
  t.teardown(() => Object.assign(extensions, { tryLock }))
  let locked = 0
  Object.assign(extensions, {
    tryLock: (fd: number) => {
      // What a holder does that releases in this moment.
      if (locked++ === 0) rmSync(`${place}.lock`)
      return tryLock(fd)
    }
  })
  const lock = await takeProcessLock(place, own)
  t.is(locked, 2)
  await failsWith(t, 'ALREADY_RUNNING', () => takeProcessLock(place, own))
  await lock.release()
})

test('a place in a directory that is not there is an error, and nothing stays open', async (t) => {
  const before = (await fs.readdir('/proc/self/fd').catch(() => [])).length
  const place = path.join(await tempDir(t), 'none', 'node')
  for (let tries = 0; tries < 20; tries++) await t.exception(() => takeProcessLock(place, own))
  const held = await placeIn(t)
  const lock = await takeProcessLock(held, own)
  for (let tries = 0; tries < 20; tries++) await failsWith(t, 'ALREADY_RUNNING', () => takeProcessLock(held, own))
  await lock.release()
  t.ok((await fs.readdir('/proc/self/fd').catch(() => [])).length < before + 10)
})
