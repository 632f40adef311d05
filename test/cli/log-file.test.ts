import { spawnSync } from 'node:child_process'
import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { tempDir } from '../support/tmp.js'

const MODULE = new URL('../../src/cli/log-file.js', import.meta.url).href

/** Runs code with the `log` of `file` in a process of its own, whose output goes there. Returns its exit code. */
async function ran(file: string, code: string): Promise<number | null> {
  const script = `import fs from 'node:fs'
    import { LogFile } from ${JSON.stringify(MODULE)}
    const [file, dir] = ${JSON.stringify([file, path.dirname(file)])}
    const log = LogFile.ofOutput(file)
    ${code}`
  const output = await fs.open(file, 'a')
  try {
    const args = ['--input-type=module', '-e', script]
    return spawnSync(process.execPath, args, { stdio: ['ignore', output.fd, output.fd] }).status
  } finally {
    await output.close()
  }
}

test('output goes to the new file of that name, and back to no other after the next rotation', async (t: Assert) => {
  const file = path.join(await tempDir(t), 'node.log')
  const status = await ran(
    file,
    `for (const line of ['one', 'two']) {
      log.reopen()
      console.log(line)
      console.error(line)
      fs.renameSync(file, file + '.' + line)
    }`
  )
  t.is(status, 0)
  for (const line of ['one', 'two']) t.is(await fs.readFile(`${file}.${line}`, 'utf8'), `${line}\n${line}\n`)
})

test('a log that takes nothing, or cannot be opened again, stops no process and is a fault with its cause', {
  skip: process.platform !== 'linux'
}, async (t: Assert) => {
  const changes = {
    ENOSPC: "fs.rmSync(file); fs.symlinkSync('/dev/full', file)",
    ENOENT: 'fs.rmSync(dir, { recursive: true })',
    EISDIR: 'fs.rmSync(file); fs.mkdirSync(file)',
    ENOTDIR: "fs.rmSync(dir, { recursive: true }); fs.writeFileSync(dir, '')",
    ELOOP: 'fs.rmSync(file); fs.symlinkSync(file, file)'
  }
  for (const [code, change] of Object.entries(changes)) {
    const dir = path.join(await tempDir(t), 'logs')
    await fs.mkdir(dir)
    const status = await ran(
      path.join(dir, 'node.log'),
      `${change}
      log.reopen()
      process.stderr.write('lost')
      process.stdout.write('lost', () => process.exit(log.fault()?.error.code === '${code}' ? 7 : 1))`
    )
    t.is(status, 7, code)
  }
})

test('the last output waits for a log that takes nothing, and the fault ends with it', async (t: Assert) => {
  const dir = path.join(await tempDir(t), 'logs')
  await fs.mkdir(dir)
  const file = path.join(dir, 'node.log')
  const status = await ran(
    file,
    `console.error('before')
    fs.rmSync(dir, { recursive: true })
    const faults = [log.fault()]
    console.error('x'.repeat(70_000))
    console.error('during')
    faults.push(log.fault())
    fs.mkdirSync(dir)
    faults.push(log.fault())
    process.exit(faults.map((one) => (one === null ? 0 : 1)).join('') === '110' ? 7 : 1)`
  )
  t.is(status, 7)
  t.is(await fs.readFile(file, 'utf8'), 'during\n', 'older output is dropped beyond 64 KiB')
})

test('the file that stderr of a process in the foreground leads to is a fault while it takes nothing', {
  skip: process.platform !== 'linux'
}, async (t: Assert) => {
  const full = await fs.open('/dev/full', 'a')
  t.teardown(() => full.close())
  const script = `import { LogFile } from ${JSON.stringify(MODULE)}
    const log = LogFile.ofStderr()
    process.stderr.write('lost')
    process.exit(log?.fault()?.error.code === 'ENOSPC' ? 7 : 1)`
  const run = (stderr: number | 'pipe'): number | null =>
    spawnSync(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', stderr] }).status
  t.is(run(full.fd), 7)
  t.is(run('pipe'), 1, 'a pipe is none')
})
