// Runs one compiled test file in a process of its own.
import { spawn } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { leaksOf } from './leaks.mjs'
import { readTap } from './tap.mjs'

/** Milliseconds one file may take. */
const FILE_LIMIT_MS = 300_000
/** Characters of output that are kept of one file. */
const MAX_OUTPUT = 4_000_000

/** Process groups that run now. */
const running = new Set()

/** Ends every test file that runs now. */
export function killAll() {
  for (const pid of running) killGroup(pid)
}

/**
 * Runs a test file with an empty TMPDIR and HOME of its own.
 * @param {{ file: string, dir: string }} job the compiled file and the directory to make for it
 * @returns {Promise<{ tap: ReturnType<typeof readTap>, faults: string[], output: string, ms: number }>}
 *   `faults` says what went wrong beside failed tests: a crash, the time limit, no test, something left behind
 */
export async function runFile({ file, dir }) {
  fs.mkdirSync(dir, { recursive: true, mode: 0o700 })
  const start = performance.now()
  const { code, signal, timedOut, stdout, output } = await run(file, dir)
  const tap = readTap(stdout)
  const faults = []
  if (timedOut) faults.push(`took longer than ${FILE_LIMIT_MS / 1000} s`)
  else if (signal !== null) faults.push(`ended by ${signal}`)
  else if (!tap.complete) faults.push(`ended in the middle, exit code ${code}`)
  else if (code !== 0 && tap.failed.length === 0) faults.push(`exit code ${code}`)
  if (tap.complete && tap.passed.length + tap.failed.length + tap.skipped.length === 0) faults.push('ran no test')
  dropCompiled(dir)
  faults.push(...(await leaksOf(dir)))
  return { tap, faults, output, ms: performance.now() - start }
}

/** The code that `a2a-node` keeps compiled is no leak: it runs also where a client or an agent passes it no variable that says not to. */
function dropCompiled(home) {
  const cache = path.join(home, '.cache')
  const own = path.join(cache, 'a2a-node')
  fs.rmSync(path.join(own, 'compiled'), { recursive: true, force: true })
  for (const directory of [own, cache]) if (fs.existsSync(directory) && fs.readdirSync(directory).length === 0) fs.rmdirSync(directory)
}

function run(file, dir) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [path.resolve(file)], {
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: environment(dir)
    })
    const result = { code: null, signal: null, timedOut: false, stdout: '', output: '' }
    const limit = setTimeout(() => {
      result.timedOut = true
      killGroup(child.pid)
    }, FILE_LIMIT_MS)
    running.add(child.pid)
    child.stdout.setEncoding('utf8').on('data', (text) => {
      if (result.stdout.length < MAX_OUTPUT) result.stdout += text
      if (result.output.length < MAX_OUTPUT) result.output += text
    })
    child.stderr.setEncoding('utf8').on('data', (text) => {
      if (result.output.length < MAX_OUTPUT) result.output += text
    })
    // A grandchild may hold the pipes open after the file itself has ended: it is a leak, not a reason to wait.
    child.on('exit', (code, signal) => {
      clearTimeout(limit)
      running.delete(child.pid)
      const closed = new Promise((done) => child.on('close', done))
      const drained = new Promise((done) => setTimeout(done, 500).unref())
      void Promise.race([closed, drained]).then(() => resolve({ ...result, code, signal }))
    })
  })
}

/** The environment of a test: nothing of the developer's own node, nothing of the developer's own directories. */
function environment(dir) {
  const kept = Object.entries(process.env).filter(([name]) => !/^(A2A_NODE_|XDG_|FORCE_COLOR$)/.test(name))
  return { ...Object.fromEntries(kept), NO_COLOR: '1', NODE_DISABLE_COMPILE_CACHE: '1', TMPDIR: dir, HOME: dir, A2A_NODE_TEST_RUN: dir }
}

function killGroup(pid) {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // gone meanwhile
  }
}
