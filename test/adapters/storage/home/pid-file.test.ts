import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import type { Assert } from 'brittle'
import { readPidFile, removePidFile, writePidFile } from '../../../../src/adapters/storage/home/pid-file.js'
import type { PidRecord } from '../../../../src/adapters/storage/home/pid-file.js'
import { tempDir } from '../../../support/tmp.js'

const own: PidRecord = { pid: process.pid, startedAt: 1_700_000_000_000, socket: '/tmp/control.sock' }

async function fileIn(t: Assert): Promise<string> {
  return path.join(await tempDir(t), 'node.pid')
}

/** A process that lives until it is told to end. */
async function living(t: Assert): Promise<{ pid: number; end: () => Promise<void> }> {
  const child = spawn(process.execPath, ['-e', 'process.stdin.resume(); console.log("up")'], {
    stdio: ['pipe', 'pipe', 'ignore']
  })
  const exited = once(child, 'exit')
  t.teardown(() => child.kill('SIGKILL'))
  await once(child.stdout, 'data')
  if (child.pid === undefined) throw new Error('no process')
  return {
    pid: child.pid,
    end: async () => {
      child.kill('SIGKILL')
      await exited
    }
  }
}

test('the written record is read back, for this user alone', async (t) => {
  const file = await fileIn(t)
  await writePidFile(file, own)
  t.alike(await readPidFile(file), own)
  t.is(((await fs.stat(file)).mode & 0o777).toString(8), '600')
  t.alike(await fs.readdir(path.dirname(file)), ['node.pid'])
})

test('no file, and a file that is no pid file, say that nobody runs', async (t) => {
  const file = await fileIn(t)
  t.is(await readPidFile(file), null)
  for (const text of ['', '{', '[]', '{"pid":"1"}', '{"pid":-1,"startedAt":1,"socket":""}', `{"pid":${process.pid}}`]) {
    await fs.writeFile(file, text)
    t.is(await readPidFile(file), null, text)
  }
})

test('the record of a killed node is replaced', async (t) => {
  const file = await fileIn(t)
  const first = await living(t)
  await writePidFile(file, { ...own, pid: first.pid })
  await first.end()
  t.is(await readPidFile(file), null)
  await writePidFile(file, own)
  t.is((await readPidFile(file))?.pid, process.pid)
})

test('a pid that now belongs to another process does not count as running', async (t) => {
  const file = await fileIn(t)
  await writePidFile(file, own)
  const text = await fs.readFile(file, 'utf8')
  await fs.writeFile(file, text.replace(/"process":"[^"]*"/, '"process":"another boot/1"'))
  t.is(await readPidFile(file), null)
})

test('removing it twice is no fault', async (t) => {
  const file = await fileIn(t)
  await writePidFile(file, own)
  await removePidFile(file)
  await t.exception(fs.stat(file), /ENOENT/)
  await t.execution(removePidFile(file))
})

test('a process that has ended and was not collected by its parent does not run', async (t) => {
  if (process.platform !== 'linux') return t.comment('skipped: only Linux shows it')
  // The shell becomes a program that collects nothing, and only then its child ends: the shell itself would collect it.
  const script = 'exec 3<&0; (read -r _ <&3) & echo $!; exec sleep 300'
  const parent = spawn('sh', ['-c', script], { stdio: ['pipe', 'pipe', 'ignore'] })
  t.teardown(() => void parent.kill('SIGKILL'))
  const pid = Number(
    await new Promise<string>((resolve) => parent.stdout.once('data', (text: Buffer) => resolve(text.toString())))
  )
  const until = async (isSo: () => Promise<boolean>): Promise<void> => {
    while (!(await isSo())) await new Promise((resolve) => setImmediate(resolve))
  }
  await until(async () => (await fs.readFile(`/proc/${parent.pid}/comm`, 'utf8')) === 'sleep\n')
  parent.stdin.end()
  await until(async () => / Z /.test((await fs.readFile(`/proc/${pid}/stat`, 'utf8')).replace(/^.*\)/, '')))
  const file = path.join(await tempDir(t), 'node.pid')
  await fs.writeFile(file, JSON.stringify({ pid, startedAt: 1, socket: '/s' }))
  t.is(await readPidFile(file), null)
})
