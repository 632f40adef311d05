import { spawnSync } from 'node:child_process'
import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { tempDir } from '../support/tmp.js'

const MODULE = new URL('../../src/cli/log-file.js', import.meta.url).href

/** Runs code with `LogFile` and `file` in a process of its own. */
function ran(file: string, code: string): { readonly status: number | null; readonly stderr: string } {
  const script = `import fs from 'node:fs'
    import { LogFile } from ${JSON.stringify(MODULE)}
    const file = ${JSON.stringify(file)}
    ${code}`
  return spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' })
}

test('output goes to the new file of that name, and back to no other after the next rotation', async (t: Assert) => {
  const file = path.join(await tempDir(t), 'node.log')
  const { status, stderr } = ran(
    file,
    `const log = LogFile.ofOutput(file)
    for (const line of ['one', 'two']) {
      log.reopen()
      console.log(line)
      console.error(line)
      fs.renameSync(file, file + '.' + line)
    }`
  )
  t.is(status, 0, stderr)
  for (const line of ['one', 'two']) t.is(await fs.readFile(`${file}.${line}`, 'utf8'), `${line}\n${line}\n`)
})

test('a log that takes nothing, or cannot be opened, stops no process and is a fault with its cause', {
  skip: process.platform !== 'linux'
}, async (t: Assert) => {
  const dir = await tempDir(t)
  for (const [file, code] of [
    ['/dev/full', 'ENOSPC'],
    ['/dev/null/none', 'ENOTDIR'],
    [path.join(dir, 'gone', 'node.log'), 'ENOENT'],
    [dir, 'EISDIR']
  ] as const) {
    const { status, stderr } = ran(
      file,
      `const log = LogFile.ofOutput(file)
      process.stderr.write('lost')
      process.stdout.write('lost', () => process.exit(log.fault()?.error.code === '${code}' ? 7 : 1))`
    )
    t.is(status, 7, `${file}: ${stderr}`)
  }
})

test('the last output waits for a log that takes nothing, and the fault ends with it', {
  skip: process.platform !== 'linux'
}, async (t: Assert) => {
  const dir = await tempDir(t)
  const file = path.join(dir, 'logs', 'node.log')
  const { status, stderr } = ran(
    file,
    `const dir = ${JSON.stringify(path.dirname(file))}
    fs.mkdirSync(dir)
    const log = LogFile.ofOutput(file)
    console.error('before')
    fs.rmSync(dir, { recursive: true })
    const faults = [log.fault()]
    console.error('x'.repeat(70_000))
    console.error('during')
    faults.push(log.fault())
    fs.mkdirSync(dir)
    faults.push(log.fault())
    process.exit(faults.map((one) => (one === null ? 0 : 1)).join('') === '110' ? 7 : 1)`
  )
  t.is(status, 7, stderr)
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
