import { execFile } from 'node:child_process'
import fs from 'node:fs/promises'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import test from 'brittle'
import type { Assert } from 'brittle'
import { untilTrue } from '../support/nodes.js'
import { tempDir } from '../support/tmp.js'

interface Tap {
  readonly passed: string[]
  readonly failed: string[]
  readonly skipped: string[]
  readonly assertions: number
  readonly complete: boolean
}

interface FileResult {
  readonly tap: Tap
  readonly faults: string[]
  readonly output: string
}

function load<T>(script: string): Promise<T> {
  return import(pathToFileURL(path.resolve('scripts/testing', script)).href) as Promise<T>
}

/** Runs a test file of this text as the runner does. */
async function ran(t: Assert, text: string): Promise<FileResult> {
  const dir = await tempDir(t)
  const file = path.join(dir, 'x.test.mjs')
  const brittle = pathToFileURL(path.resolve('node_modules/brittle/index.js')).href
  await fs.writeFile(file, `import test from '${brittle}'\n${text}\n`)
  const { runFile } = await load<{ runFile(job: { file: string; dir: string }): Promise<FileResult> }>('run-file.mjs')
  return runFile({ file, dir: path.join(dir, 'tmp') })
}

test('tests are counted by fate, assertions under them', async (t) => {
  const { tap, faults } = await ran(
    t,
    `test('good', (t) => { t.ok(1); t.is(1, 1) })
     test('bad', (t) => { t.is(1, 2) })
     test.skip('not yet', (t) => { t.ok(1) })
     test('says nothing', () => {})`
  )
  t.alike(tap.passed, ['good'])
  t.alike(tap.failed, ['bad', 'says nothing (it asserts nothing)'])
  t.alike(tap.skipped, ['not yet'])
  t.is(tap.assertions, 3)
  t.alike(faults, [])
})

test('of a failed file only what matters is shown', async (t) => {
  const { output } = await ran(t, "test('good', (t) => { t.ok(1, 'fine') })\ntest('bad', (t) => { t.ok(1, 'held'); t.is(1, 2, 'broke') })")
  const { withoutPassing } = await load<{ withoutPassing(output: string): string }>('tap.mjs')
  const shown = withoutPassing(output)
  t.ok(shown.startsWith('# bad\n    not ok 2 - broke'))
  for (const word of ['good', 'fine', 'held']) t.absent(shown.includes(`- ${word}`), word)
})

test('a title cannot pass for a skipped test or a plan', async (t) => {
  const { tap } = await ran(t, "test('reads # SKIP in a log and 1..9', (t) => { t.ok(1, 'ok 3 - not a test # SKIP') })")
  t.alike(tap.passed, ['reads # SKIP in a log and 1..9'])
  t.is(tap.skipped.length, 0)
})

test('a crash is a fault beside the tests that passed before it', async (t) => {
  const { tap, faults, output } = await ran(t, "test('good', (t) => { t.ok(1) })\ntest('throws', () => { throw new Error('boom') })")
  t.alike(tap.passed, ['good'])
  t.alike(faults, ['ended in the middle, exit code 1'])
  t.ok(output.includes('boom'))
})

test('a file that ends itself early, or runs nothing, is a fault', async (t) => {
  t.alike((await ran(t, "test('good', (t) => { t.ok(1) })\ntest('exits', () => { process.exit(0) })")).faults, [
    'ended in the middle, exit code 0'
  ])
  t.is((await ran(t, '')).faults.length, 1)
  t.alike((await ran(t, "test('good', (t) => { t.ok(1) })\ntest('killed', () => { process.kill(process.pid, 'SIGKILL') })")).faults, [
    'ended by SIGKILL'
  ])
})

test('a file left in the temporary directory is a fault, and is removed', async (t) => {
  const { tap, faults } = await ran(
    t,
    `import fs from 'node:fs'; import os from 'node:os'
     test('litters', (t) => { fs.writeFileSync(os.tmpdir() + '/litter', ''); t.ok(1) })`
  )
  t.is(tap.passed.length, 1)
  t.is(faults.length, 1)
  t.ok(faults[0]?.includes('litter was not removed'))
  await t.exception(fs.stat(faults[0]?.split(' ')[0] ?? ''), /ENOENT/)
})

test('a process left running is a fault, and is ended', async (t) => {
  const { faults } = await ran(
    t,
    `import { spawn } from 'node:child_process'
     test('leaves a child', (t) => {
       const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { detached: true, stdio: 'ignore' })
       child.unref()
       t.ok(child.pid)
     })`
  )
  t.is(faults.length, 1)
  const pid = /^process (\d+) still runs: /.exec(faults[0] ?? '')?.[1]
  t.ok(pid)
  await untilTrue(async () => {
    const { stdout } = await promisify(execFile)('ps', ['-o', 'stat=', '-p', pid ?? '0']).catch(() => ({ stdout: '' }))
    return stdout.trim() === '' || stdout.startsWith('Z')
  }, 'the process is gone')
})

test('nothing of the developer reaches a test: no settings, no home', async (t) => {
  process.env['A2A_NODE_HOME'] = '/somewhere'
  process.env['XDG_DATA_HOME'] = '/elsewhere'
  t.teardown(() => {
    delete process.env['A2A_NODE_HOME']
    delete process.env['XDG_DATA_HOME']
  })
  const { tap } = await ran(
    t,
    `test('clean', (t) => {
       t.is(process.env.A2A_NODE_HOME, undefined)
       t.is(process.env.XDG_DATA_HOME, undefined)
       t.is(process.env.HOME, process.env.TMPDIR)
     })`
  )
  t.alike(tap.passed, ['clean'])
})
