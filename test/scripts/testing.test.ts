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
  const { output } = await ran(
    t,
    "test('good', (t) => { t.ok(1, 'fine') })\ntest('bad', (t) => { t.ok(1, 'held'); t.is(1, 2, 'broke') })"
  )
  const { gist, withoutPassing } = await load<{ gist(shown: string): string; withoutPassing(output: string): string }>(
    'tap.mjs'
  )
  const shown = withoutPassing(output)
  t.ok(shown.startsWith('# bad\n    not ok 2 - broke'))
  for (const word of ['good', 'fine', 'held']) t.absent(shown.includes(`- ${word}`), word)
  const again = gist(`${'x\n'.repeat(2000)}${shown}\n${'y\n'.repeat(2000)}`)
  t.ok(again.startsWith('    not ok 2 - broke\n') && again.endsWith('\n      ...'))
  t.is(gist('z'.repeat(2000)).length, 1500)
})

test('a title cannot pass for a skipped test or a plan', async (t) => {
  const { tap } = await ran(t, "test('reads # SKIP in a log and 1..9', (t) => { t.ok(1, 'ok 3 - not a test # SKIP') })")
  t.alike(tap.passed, ['reads # SKIP in a log and 1..9'])
  t.is(tap.skipped.length, 0)
})

test('a crash is a fault beside the tests that passed before it', async (t) => {
  const { tap, faults, output } = await ran(
    t,
    "test('good', (t) => { t.ok(1) })\ntest('throws', () => { throw new Error('boom') })"
  )
  t.alike(tap.passed, ['good'])
  t.alike(faults, ['ended in the middle, exit code 1'])
  t.ok(output.includes('boom'))
})

test('a file that ends itself early, or runs nothing, is a fault', async (t) => {
  t.alike((await ran(t, "test('good', (t) => { t.ok(1) })\ntest('exits', () => { process.exit(0) })")).faults, [
    'ended in the middle, exit code 0'
  ])
  t.is((await ran(t, '')).faults.length, 1)
  t.alike(
    (await ran(t, "test('good', (t) => { t.ok(1) })\ntest('killed', () => { process.kill(process.pid, 'SIGKILL') })"))
      .faults,
    ['ended by SIGKILL']
  )
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

interface Timed {
  readonly name: string
  readonly ms: number
  readonly cpuMs: number
}

interface Budget {
  readonly BUDGET_S: number
  readonly PROOF_BUDGET_S: number
  readonly LONGER: Readonly<Record<string, number>>
  overBudget(file: Timed, factors: { machine: number; load: number }): string | null
}

test('files of one process keep their own results, directories and leaks, and a crash stops none of the later files', async (t) => {
  const root = await tempDir(t)
  const brittle = pathToFileURL(path.resolve('node_modules/brittle/index.js')).href
  const texts = [
    "test('same title', (t) => { t.ok(1) })",
    "import fs from 'node:fs'; import os from 'node:os'; test('litters', (t) => { fs.writeFileSync(os.tmpdir() + '/litter', ''); t.ok(1) })",
    "test('good', (t) => { t.ok(1) }); test('throws', () => { throw new Error('boom') })",
    "test('same title', (t) => { t.is(process.env.TMPDIR.slice(-2), '/3'); t.is(process.env.HOME, process.env.TMPDIR) })",
    "test('bad', (t) => { t.is(1, 2) })"
  ]
  const jobs = texts.map((_, at) => ({ file: path.join(root, `${at}.test.mjs`), dir: path.join(root, String(at)) }))
  for (const [at, text] of texts.entries())
    await fs.writeFile(jobs[at]?.file ?? '', `import test from '${brittle}'\n${text}\n`)
  const { runFiles } = await load<{ runFiles(given: typeof jobs): Promise<(FileResult & Timed & { file: string })[]> }>(
    'run-file.mjs'
  )
  const results = await runFiles(jobs)
  t.alike(
    results.map(({ file, tap }) => [file, tap.passed, tap.failed]),
    [
      [jobs[0]?.file, ['same title'], []],
      [jobs[1]?.file, ['litters'], []],
      [jobs[2]?.file, ['good'], []],
      [jobs[3]?.file, ['same title'], []],
      [jobs[4]?.file, [], ['bad']]
    ]
  )
  t.alike(
    results.map(({ faults }) => faults.length),
    [0, 1, 1, 0, 0]
  )
  t.ok(results[1]?.faults[0]?.includes('litter was not removed'))
  t.is(results[2]?.faults[0], 'ended in the middle, exit code 1')
  t.ok(results[4]?.output.includes('not ok'))
})

test('the CPU time of a file counts the processes that it waited for', {
  skip: process.platform !== 'linux'
}, async (t) => {
  const { cpuMs, ms } = (await ran(
    t,
    `import { execFileSync } from 'node:child_process'
     test('spins', (t) => {
       execFileSync(process.execPath, ['-e', 'while (process.cpuUsage().user < 400000);'])
       t.ok(process.cpuUsage().user < 400000)
     })`
  )) as FileResult & Timed
  t.ok(cpuMs >= 400, `${cpuMs} ms`)
  t.ok(ms >= 400, `${ms} ms`)
})

test('a file over its time budget fails; a load of other processes and a slow machine are taken into account', async (t) => {
  const { BUDGET_S, LONGER, overBudget, PROOF_BUDGET_S } = await load<Budget>('budget.mjs')
  const idle = { machine: 1, load: 1 }
  const ms = BUDGET_S * 1000 + 1000
  const file = { name: 'test/kit/ids.test.ts', ms, cpuMs: 10 }
  t.ok(overBudget(file, idle)?.includes(`a budget of ${BUDGET_S} s`), 'it waits too long')
  t.ok(overBudget({ ...file, ms: 10, cpuMs: 2 * ms }, { ...idle, load: 8 }), 'it computes too long, under any load')
  t.is(overBudget({ ...file, ms: 10, cpuMs: ms }, { ...idle, load: 2 }), null)
  t.is(overBudget(file, { ...idle, load: 2 }), null)
  t.is(overBudget({ ...file, cpuMs: ms }, { machine: 2, load: 1 }), null)
  t.is(overBudget({ ...file, ms: BUDGET_S * 1000 }, idle), null)
  const proof = { ...file, name: 'test/e2e/takeover.prove.test.ts', ms: PROOF_BUDGET_S * 1000 }
  t.is(overBudget(proof, idle), null)
  t.ok(overBudget({ ...proof, ms: proof.ms + 1 }, idle), 'a slow proof has more time, not any')
  for (const [name, budget] of Object.entries(LONGER)) {
    t.ok(budget > BUDGET_S, name)
    t.is(overBudget({ ...file, name, ms: budget * 1000 }, idle), null)
    t.ok(overBudget({ ...file, name, ms: budget * 1000 + 1 }, idle))
    await fs.access(name)
  }
})

test('a file over its budget runs once more, alone; over it again it counts as failed, and the runner exits 1', async (t) => {
  const dir = await tempDir(t)
  await fs.mkdir(path.join(dir, 'src'))
  await fs.mkdir(path.join(dir, 'test/kit'), { recursive: true })
  await fs.writeFile(
    path.join(dir, 'test/kit/slow.test.ts'),
    `import fs from 'node:fs'\nimport test from '${pathToFileURL(path.resolve('node_modules/brittle/index.js')).href}'\ntest('waits', async (t) => { fs.appendFileSync('runs', '.'); await new Promise((go) => setTimeout(go, 300)); t.ok(1) })\n`
  )
  const runs = () => fs.readFile(path.join(dir, 'runs'), 'utf8')
  await fs.copyFile('tsconfig.json', path.join(dir, 'tsconfig.json'))
  await fs.writeFile(path.join(dir, 'package.json'), '{ "type": "module" }')
  const script = path.resolve('scripts/test.mjs')
  const runner = (...args: string[]) =>
    promisify(execFile)(process.execPath, [script, ...args], { cwd: dir }).then(
      ({ stdout }) => ({ code: 0, stdout }),
      ({ code, stdout }: { code: number; stdout: string }) => ({ code, stdout })
    )
  const good = await runner()
  t.is(good.code, 0)
  t.ok(good.stdout.endsWith('\n1 passed, 0 failed\n'))
  t.is(await runs(), '.')
  t.ok(/ slowest files .*\n +\d+\.\d +\d+\.\d {2}test\/kit\/slow\.test\.ts\n/.test(good.stdout))
  const slow = await runner('--budget', '0.0001')
  t.is(slow.code, 1)
  t.ok(slow.stdout.includes('\nthe failed files:\n') && slow.stdout.split('FAILED test/kit/slow.test.ts').length === 3)
  t.ok(slow.stdout.endsWith('\n1 passed, 1 failed\n'))
  t.is(await runs(), '...')
})

/** The plan of a tree of empty test files. */
async function planOf(t: Assert, names: readonly string[]) {
  const root = await tempDir(t)
  for (const name of names) {
    await fs.mkdir(path.dirname(path.join(root, name)), { recursive: true })
    await fs.writeFile(path.join(root, name), '')
  }
  const { groupsOf } = await load<{
    groupsOf(root: string, chosen: { filters: string[]; isProof: boolean }): string[][]
  }>('plan.mjs')
  return (filters: string[], isProof = false) =>
    groupsOf(root, { filters, isProof }).map((group) => group.map((file) => path.relative(root, file)))
}

test('places whose files take longest start first, and fewer of their files share a process', async (t) => {
  const mesh = Array.from({ length: 13 }, (_, number) => `adapters/mesh/${String(number).padStart(2, '0')}.test.js`)
  const plan = await planOf(t, ['adapters/a2a/a.test.js', ...mesh, 'kit/k.test.js', 'e2e/e.test.js'])
  const [first, second, third, ...others] = plan([])
  t.alike(first, ['e2e/e.test.js'])
  t.alike([second, third], [mesh.slice(0, 12), mesh.slice(12)])
  t.alike(others.flat().toSorted(), ['adapters/a2a/a.test.js', 'kit/k.test.js'])
})

test('slow proofs are a tier of their own; a filter finds the files of both', async (t) => {
  const names = [
    'e2e/a.test.js',
    'e2e/b.prove.test.js',
    'e2e/b.test.js',
    'node/swarms/c.test.js',
    'node/swarms/consensus/d.test.js'
  ]
  const plan = await planOf(t, names)
  t.alike(plan([]), [
    ['e2e/a.test.js', 'e2e/b.test.js'],
    ['node/swarms/c.test.js', 'node/swarms/consensus/d.test.js']
  ])
  t.alike(plan([], true), [['e2e/b.prove.test.js']])
  t.alike(plan(['e2e/b']), [['e2e/b.prove.test.js'], ['e2e/b.test.js']])
})

test('each file runs once: neighbours of a folder share a process up to its limit, a slow proof and a simulation share none', async (t) => {
  const many = (folder: string, count: number, end = 'test.js') =>
    Array.from({ length: count }, (_, at) => path.join(folder, `${String(at).padStart(3, '0')}.${end}`))
  const files = [
    ...many('node', 31),
    ...many('kit', 1),
    ...many('kit/names', 1),
    ...many('', 2),
    ...many('e2e', 7),
    ...many('simulation', 2)
  ]
  const plan = await planOf(t, [...files, ...many('node', 2, 'prove.test.js')])
  const groups = plan([])
  t.alike(groups.flat().toSorted(), files.toSorted())
  const sizes = (folder: string) =>
    groups.filter(([first]) => path.dirname(first ?? '').split('/')[0] === folder).map(({ length }) => length)
  t.alike(new Set(sizes('node')), new Set([1, 30]))
  t.alike(sizes('kit'), [2])
  t.alike(sizes('.'), [2])
  t.alike(new Set(sizes('e2e')), new Set([1, 6]))
  t.alike(sizes('simulation'), [1, 1])
  t.ok(
    groups.slice(0, 2).every(([first]) => first?.startsWith('e2e/')),
    'files that take longest begin first'
  )
  t.alike(
    plan([], true).map(({ length }) => length),
    [1, 1]
  )
})

test('a run that builds fails when an entry of the program is missing, before any test', async (t) => {
  const dir = await tempDir(t)
  for (const folder of ['src', 'test']) await fs.mkdir(path.join(dir, folder))
  await fs.writeFile(path.join(dir, 'src/index.ts'), 'export const a = 1\n')
  await fs.writeFile(path.join(dir, 'test/a.test.ts'), '')
  await fs.copyFile('tsconfig.json', path.join(dir, 'tsconfig.json'))
  const args = [path.resolve('scripts/test.mjs'), '--build']
  const run = promisify(execFile)(process.execPath, args, { cwd: dir })
  const { code, stdout, stderr } = await run.then(
    (output) => ({ code: 0, ...output }),
    (error: { code: number; stdout: string; stderr: string }) => error
  )
  t.is(code, 1)
  t.ok(stderr.includes('build/src/client.js'), stderr)
  t.is(stdout, '0 passed, 1 failed\n')
})

test('a syntax error fails the run, and each further run until it is mended', async (t) => {
  const dir = await tempDir(t)
  await fs.mkdir(path.join(dir, 'src'))
  await fs.mkdir(path.join(dir, 'test'))
  await fs.copyFile('tsconfig.json', path.join(dir, 'tsconfig.json'))
  const file = path.join(dir, 'test/a.test.ts')
  const script = pathToFileURL(path.resolve('scripts/testing/compile.mjs')).href
  const compiles = async (): Promise<boolean> => {
    const args = [
      '--input-type=module',
      '-e',
      `import { compile } from '${script}'\nprocess.exitCode = compile() ? 0 : 3`
    ]
    return await promisify(execFile)(process.execPath, args, { cwd: dir }).then(
      () => true,
      ({ code }: { code: number }) => (code === 3 ? false : Promise.reject(new Error(`exit code ${code}`)))
    )
  }
  // The compiler mends this by itself: its output could be run.
  await fs.writeFile(file, 'export const a = [1, 2\n')
  t.is(await compiles(), false)
  t.is(await compiles(), false, 'nothing changed')
  await fs.writeFile(file, 'export const a = [1, 2]\n')
  t.is(await compiles(), true)
})

test('temporary directories are in memory where programs may run there and 2 GiB are free', async (t) => {
  interface Scratch {
    scratchPlace(system: { readonly mounts: string; readonly freeBytes: number }): string
  }
  const { scratchPlace } = await load<Scratch>('scratch.mjs')
  const shm = (options: string, type = 'tmpfs'): string =>
    `/dev/vda / ext4 rw 0 0\n${type} /dev/shm ${type} ${options} 0 0\n`
  const room = 2 * 1024 ** 3
  t.is(scratchPlace({ mounts: shm('rw,nosuid'), freeBytes: room }), '/dev/shm')
  t.not(scratchPlace({ mounts: shm('rw,noexec'), freeBytes: room }), '/dev/shm')
  t.not(scratchPlace({ mounts: shm('rw', 'ext4'), freeBytes: room }), '/dev/shm')
  t.not(scratchPlace({ mounts: shm('rw'), freeBytes: room - 1 }), '/dev/shm')
  t.not(scratchPlace({ mounts: '', freeBytes: room }), '/dev/shm')
})
